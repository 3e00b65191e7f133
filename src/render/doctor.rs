//! The page of `doctor`, its JSON, and the list of checks.

use std::collections::BTreeSet;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use super::escape;
use super::invocation::Invocation;
use super::page::Page;
use super::style::{Palette, View};
use super::table::{Column, of_columns};
use super::words::counted;
use crate::domain::doctor::{
    Acceptance, CHECKS, CheckSeverity, Counterexample, DoctorCheck, FactEvidence, ModelledFault,
    Statement, UnexploredSchema,
};

/// The columns of the severity before the code.
const SEVERITY: usize = 9;

/// What the page and its JSON say about a run besides the statements.
pub(crate) struct DoctorRun<'a> {
    /// What was checked.
    pub(crate) place: &'a str,
    /// True if several servers were checked.
    pub(crate) has_several_nodes: bool,
    /// The command line that replays a history.
    pub(crate) replay: &'a dyn Fn(&Counterexample) -> String,
    /// The options of this run, for the command lines in advice.
    pub(crate) invocation: &'a Invocation,
}

/// A statement as JSON.
pub(crate) fn statement(statement: &Statement, run: &DoctorRun<'_>) -> Value {
    let judgement = &statement.judgement;
    let remedy = statement.remedy();
    json!({
        "code": statement.check.code,
        "group": statement.check.group.as_str(),
        "severity": judgement.severity.as_str(),
        "evidence": judgement.evidence.as_str(),
        "nodes": judgement.nodes,
        "schemas": judgement.schemas,
        "fact": judgement.fact,
        "consequence": statement.consequence(),
        "remedy": remedy.map(|remedy| run.invocation.complete(&remedy).into_owned()),
        "replay": statement.counterexamples.first().map(run.replay),
        "counterexamples": statement.counterexamples,
        "unharmed": statement.unharmed,
        "unexplored": statement.unexplored,
        "refused": judgement.refusal,
        "accepted": statement.accepted,
    })
}

/// The verdict, a row for each alarm, and the codes of the rest. `explains` prints every statement
/// with its consequence, a history and the remedy.
pub(crate) fn page(
    statements: &[Statement],
    run: &DoctorRun<'_>,
    view: View,
    explains: bool,
) -> String {
    let mut page = Page::new(view);
    page.wrapped(0, &view.palette.bold(&verdict(statements)));
    page.wrapped(0, &view.palette.dim(&escape::text(run.place.as_bytes())));
    page.line("");
    let codes = CHECKS.iter().map(|check| check.code.len());
    let code_columns = codes.max().unwrap_or_default() + 2;
    for statement in statements {
        let judgement = &statement.judgement;
        if is_brief(judgement.severity) && !explains {
            continue;
        }
        let code = format!("{:<code_columns$}", statement.check.code);
        let label = word(judgement.severity, view.palette) + &view.palette.bold(&code);
        let mut fact = escape::text(judgement.fact.as_bytes());
        if explains || judgement.evidence == FactEvidence::Estimated {
            fact += &view.palette.dim(&format!(" ({})", judgement.evidence.as_str()));
        }
        if let Some(Acceptance { reason, expires, .. }) = &statement.accepted {
            fact += &escape::text(format!(" (accepted until {expires}: {reason})").as_bytes());
        }
        page.beside(&label, SEVERITY + code_columns, &fact);
        if explains && judgement.severity != CheckSeverity::Ok {
            explain(&mut page, statement, run);
        }
    }
    for severity in [CheckSeverity::Note, CheckSeverity::Ok] {
        let codes = codes_of(statements, severity);
        if !explains && !codes.is_empty() {
            page.beside(&word(severity, view.palette), SEVERITY, &codes.join(", "));
        }
    }
    page.text
}

/// True for what needs no row of its own, because nothing has to be done at once.
fn is_brief(severity: CheckSeverity) -> bool {
    matches!(severity, CheckSeverity::Note | CheckSeverity::Ok)
}

/// The checks of which this is the worst severity. The statements are in the order of the page.
fn codes_of(statements: &[Statement], severity: CheckSeverity) -> Vec<&'static str> {
    let mut worse = Vec::new();
    let mut codes = Vec::new();
    for statement in statements {
        let code = statement.check.code;
        if statement.judgement.severity < severity {
            worse.push(code);
        } else if statement.judgement.severity == severity
            && !worse.contains(&code)
            && !codes.contains(&code)
        {
            codes.push(code);
        }
    }
    codes
}

/// `3 problems, 2 notes, 1 not checked, 21 fine`
pub(crate) fn verdict(statements: &[Statement]) -> String {
    let alarms = statements.iter().filter(|statement| statement.is_alarm()).count();
    format!(
        "{}, {}, {} not checked, {} fine",
        counted(alarms as u64, "problem"),
        counted(codes_of(statements, CheckSeverity::Note).len() as u64, "note"),
        codes_of(statements, CheckSeverity::Unknown).len(),
        codes_of(statements, CheckSeverity::Ok).len(),
    )
}

/// The severity, padded to its column.
fn word(severity: CheckSeverity, palette: Palette) -> String {
    palette.paint(style(severity), &format!("{:<SEVERITY$}", severity.as_str()))
}

/// What can happen, the worst history that shows it, and what to do.
fn explain(page: &mut Page, statement: &Statement, run: &DoctorRun<'_>) {
    let judgement = &statement.judgement;
    let mut field = |label: &str, text: &str| page.field(label, &escape::text(text.as_bytes()));
    if run.has_several_nodes && !judgement.nodes.is_empty() {
        field("At", &judgement.nodes.join(", "));
    }
    if let Some(consequence) = statement.consequence() {
        field("Consequence", consequence);
    }
    if let Some(first) = statement.counterexamples.first() {
        field("Shown by", &history(first, judgement.fault));
        let others = statement.counterexamples[1..].iter().map(|found| found.schema.as_str());
        let others = others.collect::<Vec<_>>().join(", ");
        if !others.is_empty() {
            field("Also in", &others);
        }
        field("Replay", &format!("`{}`", (run.replay)(first)));
    }
    if !statement.unharmed.is_empty() {
        field("No harm in", &statement.unharmed.join(", "));
    }
    for UnexploredSchema { schema, why } in &statement.unexplored {
        field("Not explored", &format!("{schema}: {why}"));
    }
    if let Some(remedy) = statement.remedy() {
        field("Remedy", &run.invocation.complete(&remedy));
    }
    page.line("");
}

/// A history in one sentence.
fn history(found: &Counterexample, fault: Option<ModelledFault>) -> String {
    let Counterexample { schema, steps, invariant, faults, .. } = found;
    let with = match fault {
        // A crash loses them as a failover does.
        Some(ModelledFault::LostWrites) => "1 loss of the last writes",
        _ => faults,
    };
    format!("explore: {schema} violates {} in {steps} steps, with {with}", invariant.name)
}

fn style(severity: CheckSeverity) -> Style {
    match severity {
        CheckSeverity::Ok => AnsiColor::Green.on_default(),
        CheckSeverity::Note => AnsiColor::Cyan.on_default(),
        CheckSeverity::Warning => AnsiColor::Yellow.on_default(),
        CheckSeverity::Error => AnsiColor::Red.on_default().bold(),
        CheckSeverity::Unknown => Style::new().bold(),
    }
}

/// The ACL rules that allow everything that was refused, without duplicates.
pub(crate) fn missing_rules(statements: &[Statement]) -> String {
    let refusals = statements.iter().filter_map(|statement| statement.judgement.refusal.as_ref());
    let rules = refusals.filter_map(|refusal| refusal.rule.as_deref());
    let words = rules.flat_map(str::split_whitespace).map(|word| word.trim_end_matches(','));
    let rules: BTreeSet<_> = words.filter(|word| word.starts_with(['+', '~'])).collect();
    rules.into_iter().collect::<Vec<_>>().join(" ")
}

/// The table of `--list`.
pub(crate) fn list(view: View) -> String {
    let columns = [
        Column::text("CODE", 0, |check: &DoctorCheck| check.code.to_owned()),
        Column::text("GROUP", 1, |check| check.group.as_str().to_owned()),
        Column::folded("CHECKS", 0, |check| check.title.to_owned()),
    ];
    of_columns(view, &columns, CHECKS)
}
