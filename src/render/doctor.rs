//! The page of `doctor`, its JSON, and the list of checks.

use std::collections::BTreeSet;

use anstyle::{AnsiColor, Style};
use serde_json::{Value, json};

use super::escape;
use super::invocation::Invocation;
use super::page::Page;
use super::style::{Palette, View};
use super::table::grid_folding;
use super::words::counted;
use crate::domain::doctor::{
    Acceptance, CHECKS, CheckSeverity, Counterexample, ModelledFault, Statement, UnexploredSchema,
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

/// The verdict, and one paragraph per statement.
pub(crate) fn page(statements: &[Statement], run: &DoctorRun<'_>, view: View) -> String {
    let mut page = Page::new(view);
    page.wrapped(0, &view.palette.bold(&verdict(statements)));
    page.wrapped(0, &view.palette.dim(&escape::text(run.place.as_bytes())));
    page.line("");
    for statement in statements {
        paragraph(&mut page, statement, run);
    }
    page.text
}

/// `3 problems, 2 notes, 1 not checked, 21 fine. Begin with eviction-policy.` The statements are in
/// the order of the page.
pub(crate) fn verdict(statements: &[Statement]) -> String {
    let count = |severity| {
        statements.iter().filter(|statement| statement.judgement.severity == severity).count()
    };
    let unknown = count(CheckSeverity::Unknown);
    let mut alarms = statements.iter().filter(|statement| statement.is_alarm());
    let first = alarms.clone().next();
    let first = first.or_else(|| {
        statements.iter().find(|known| known.judgement.severity == CheckSeverity::Unknown)
    });
    let begin = first.map(|first| format!(" Begin with {}.", first.check.code));
    format!(
        "{}, {}, {unknown} not checked, {} fine.{}",
        counted(alarms.by_ref().count() as u64, "problem"),
        counted(count(CheckSeverity::Note) as u64, "note"),
        count(CheckSeverity::Ok),
        begin.unwrap_or_default()
    )
}

/// The severity, padded to its column.
fn word(severity: CheckSeverity, palette: Palette) -> String {
    palette.paint(style(severity), &format!("{:<SEVERITY$}", severity.as_str()))
}

/// The fact of a statement, what can happen, and what to do.
fn paragraph(page: &mut Page, statement: &Statement, run: &DoctorRun<'_>) {
    let judgement = &statement.judgement;
    let palette = page.view.palette;
    let severity = word(judgement.severity, palette);
    let code = palette.bold(statement.check.code);
    let fact = escape::text(judgement.fact.as_bytes());
    let evidence = palette.dim(&format!("({})", judgement.evidence.as_str()));
    page.wrapped(0, &format!("{severity}{code}: {fact} {evidence}"));
    if judgement.severity == CheckSeverity::Ok {
        return;
    }
    let mut field = |label: &str, text: &str| page.field(label, &escape::text(text.as_bytes()));
    if run.has_several_nodes && !judgement.nodes.is_empty() {
        field("At", &judgement.nodes.join(", "));
    }
    if let Some(consequence) = statement.consequence() {
        field("Consequence", consequence);
    }
    for found in &statement.counterexamples {
        field("Shown by", &history(found, judgement.fault));
    }
    if let Some(first) = statement.counterexamples.first() {
        field("Replay", &format!("`{}`", (run.replay)(first)));
    }
    if !statement.unharmed.is_empty() {
        let names = statement.unharmed.join(", ");
        field("Not shown", &format!("explore finds no violation in {names}"));
    }
    for UnexploredSchema { schema, why } in &statement.unexplored {
        field("Not shown", &format!("{schema} was not explored: {why}"));
    }
    if let Some(remedy) = statement.remedy() {
        field("Remedy", &run.invocation.complete(&remedy));
    }
    if let Some(Acceptance { reason, expires, .. }) = &statement.accepted {
        field("Accepted", &format!("until {expires} ({reason})"));
    }
    page.line("");
}

/// `in a simulation, express executes twice in 5 steps, with 1 eviction`.
fn history(found: &Counterexample, fault: Option<ModelledFault>) -> String {
    let Counterexample { schema, steps, invariant, faults, .. } = found;
    let with = match fault {
        // A crash loses them as a failover does.
        Some(ModelledFault::LostWrites) => "1 loss of the last writes",
        _ => faults,
    };
    format!("in a simulation, {schema} {} in {steps} steps, with {with}", invariant.phrase)
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
    let mut rows = Vec::with_capacity(CHECKS.len());
    for check in CHECKS {
        rows.push(vec![
            check.code.to_owned(),
            check.group.as_str().to_owned(),
            check.title.to_owned(),
        ]);
    }
    grid_folding(view, &["CODE", "GROUP", "CHECKS"], rows, &["CHECKS"])
}
