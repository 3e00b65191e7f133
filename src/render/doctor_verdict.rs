//! The first line of the page of `doctor`: how many problems there are, and what to do first.

use anstyle::{AnsiColor, Style};

use super::style::Palette;
use super::words::counted;
use crate::domain::doctor::{CheckSeverity, Statement};

/// `3 problems, 2 notes, 1 not checked, 21 fine. Begin with eviction-policy.` The statements are in
/// the order of the page.
pub(crate) fn line(statements: &[Statement], palette: Palette) -> String {
    let counts = palette.paint(style(statements), &counts(statements));
    format!("{counts} {}", first_step(statements)).trim_end().to_owned()
}

/// How many problems, notes and checks there are. A check is fine if all its statements are.
pub(crate) fn counts(statements: &[Statement]) -> String {
    let problems = statements.iter().filter(|statement| statement.is_alarm()).count();
    let notes = of(statements, CheckSeverity::Note).count();
    let mut parts = vec![
        counted(problems as u64, "problem"),
        counted(notes as u64, "note"),
        format!("{} not checked", checks(statements, CheckSeverity::Unknown).len()),
    ];
    let mut fine = checks(statements, CheckSeverity::Ok);
    fine.retain(|code| {
        let mut of_check = statements.iter().filter(|statement| statement.check.code == *code);
        of_check.all(|statement| statement.judgement.severity == CheckSeverity::Ok)
    });
    parts.push(format!("{} fine", fine.len()));
    let accepted = statements.iter().filter_map(|statement| statement.accepted.as_ref());
    let silenced = accepted.filter(|accepted| !accepted.is_expired).count();
    if silenced > 0 {
        parts.push(format!("{silenced} accepted"));
    }
    format!("{}.", parts.join(", "))
}

/// What the operator does first; empty if everything is fine.
fn first_step(statements: &[Statement]) -> String {
    if let Some(first) = statements.iter().find(|statement| statement.is_alarm()) {
        return format!("Begin with {}.", first.check.code);
    }
    if let Some(first) = of(statements, CheckSeverity::Unknown).next() {
        return match first.judgement.refusal.as_ref().and_then(|refusal| refusal.rule.as_ref()) {
            Some(_) => "Begin with the rights that this user lacks.".to_owned(),
            None => format!("Begin with {}.", first.check.code),
        };
    }
    if of(statements, CheckSeverity::Note).next().is_some() {
        return "Read the notes.".to_owned();
    }
    String::new()
}

fn of(statements: &[Statement], severity: CheckSeverity) -> impl Iterator<Item = &Statement> {
    statements.iter().filter(move |statement| statement.judgement.severity == severity)
}

/// The codes of the checks with a statement of this severity.
fn checks(statements: &[Statement], severity: CheckSeverity) -> Vec<&'static str> {
    let mut codes = Vec::new();
    for statement in of(statements, severity) {
        if !codes.contains(&statement.check.code) {
            codes.push(statement.check.code);
        }
    }
    codes
}

fn style(statements: &[Statement]) -> Style {
    if statements.iter().any(Statement::is_alarm) {
        AnsiColor::Red.on_default().bold()
    } else if of(statements, CheckSeverity::Unknown).next().is_some() {
        Style::new().bold()
    } else {
        AnsiColor::Green.on_default().bold()
    }
}
