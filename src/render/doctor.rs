//! The page of `doctor`, its JSON, and the list of checks.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::escape;
use super::invocation::Invocation;
use super::page::Page;
use super::style::View;
use super::table::grid_folding;
use super::words::counted;
use crate::domain::doctor::{
    AppliedAcceptance, CHECKS, CheckSeverity, Counterexample, ModelledFault, RefusedFact,
    Statement, phrase_of,
};

/// The columns of the severity before the code.
const SEVERITY: usize = 9;

/// Advice that the paragraph before has as well.
const AS_ABOVE: &str = "as above";

/// A statement as JSON, in the order of the fields.
#[derive(Serialize)]
pub(crate) struct StatementJson<'a> {
    code: &'static str,
    group: &'static str,
    severity: &'static str,
    evidence: &'static str,
    nodes: &'a [String],
    schemas: &'a [String],
    fact: &'a str,
    consequence: Option<&'a str>,
    remedy: Option<String>,
    inputs: Option<&'a str>,
    replay: Option<String>,
    counterexamples: Vec<CounterexampleJson<'a>>,
    unharmed: &'a [String],
    unexplored: Vec<UnexploredJson<'a>>,
    refused: Option<RefusedJson<'a>>,
    accepted: Option<AcceptedJson<'a>>,
}

/// A history that `explore` found, as JSON.
#[derive(Serialize)]
struct CounterexampleJson<'a> {
    schema: &'a str,
    invariant: &'a str,
    faults: &'a str,
    steps: usize,
    token: &'a str,
}

/// A schema that could not be explored, as JSON.
#[derive(Serialize)]
struct UnexploredJson<'a> {
    schema: &'a str,
    why: &'a str,
}

/// A command that got no answer, as JSON.
#[derive(Serialize)]
struct RefusedJson<'a> {
    command: &'a str,
    rule: Option<&'a str>,
    why: &'a str,
}

/// An acceptance, as JSON.
#[derive(Serialize)]
struct AcceptedJson<'a> {
    reason: &'a str,
    date: &'a str,
    expires: &'a str,
    is_expired: bool,
    is_exceeded: bool,
}

/// A statement as JSON. `replay` returns the command line that replays a history; `invocation`
/// completes the command lines in the advice.
pub(crate) fn statement<'a>(
    statement: &'a Statement,
    replay: &dyn Fn(&Counterexample) -> String,
    invocation: &Invocation,
) -> StatementJson<'a> {
    let judgement = &statement.judgement;
    let mut counterexamples = Vec::new();
    for found in &statement.counterexamples {
        counterexamples.push(CounterexampleJson {
            schema: &found.schema,
            invariant: &found.invariant,
            faults: &found.faults,
            steps: found.steps,
            token: &found.token,
        });
    }
    let mut unexplored = Vec::new();
    for (schema, why) in &statement.unexplored {
        unexplored.push(UnexploredJson { schema, why });
    }
    StatementJson {
        code: statement.check.code,
        group: statement.check.group.as_str(),
        severity: judgement.severity.as_str(),
        evidence: judgement.evidence.as_str(),
        nodes: &judgement.nodes,
        schemas: &judgement.schemas,
        fact: &judgement.fact,
        consequence: statement.consequence(),
        remedy: statement.remedy().map(|remedy| invocation.complete(&remedy).into_owned()),
        inputs: judgement.inputs.as_deref(),
        replay: statement.counterexamples.first().map(replay),
        counterexamples,
        unharmed: &statement.unharmed,
        unexplored,
        refused: judgement.refusal.as_ref().map(refused),
        accepted: statement.accepted.as_ref().map(accepted),
    }
}

fn refused(refusal: &RefusedFact) -> RefusedJson<'_> {
    RefusedJson { command: &refusal.command, rule: refusal.rule.as_deref(), why: &refusal.why }
}

fn accepted(accepted: &AppliedAcceptance) -> AcceptedJson<'_> {
    AcceptedJson {
        reason: &accepted.reason,
        date: &accepted.date,
        expires: &accepted.expires,
        is_expired: accepted.is_expired,
        is_exceeded: accepted.is_exceeded,
    }
}

/// What a page shows of each statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageDetail {
    /// The servers, because several were checked.
    pub(crate) shows_servers: bool,
    /// The formula and the inputs of a fact.
    pub(crate) shows_inputs: bool,
}

/// One paragraph per statement. A statement that is OK has one line.
pub(crate) fn page(
    statements: &[Statement],
    detail: PageDetail,
    replay: &dyn Fn(&Counterexample) -> String,
    invocation: &Invocation,
    view: View,
) -> String {
    let mut page = Page::new(view);
    let mut previous = None;
    let mut refused: Vec<&str> = Vec::new();
    for statement in statements {
        // Checks that are unknown for the same reason are one paragraph.
        let codes = refused_with(statement, statements);
        if codes.len() > 1 {
            if !refused.contains(&codes[0]) {
                let shows_servers = detail.shows_servers;
                paragraph_of_refused(&mut page, statement, &codes, shows_servers, invocation);
            }
            refused.extend(codes);
            previous = None;
            continue;
        }
        paragraph(&mut page, statement, previous, detail, replay, invocation);
        previous = Some(statement);
    }
    page.text
}

/// The checks that are unknown for the same reason.
fn refused_with<'a>(statement: &'a Statement, statements: &'a [Statement]) -> Vec<&'static str> {
    let mut codes = Vec::new();
    if statement.judgement.refusal.is_none() {
        return codes;
    }
    for other in statements {
        let is_alike = other.judgement == statement.judgement;
        if is_alike && !codes.contains(&other.check.code) {
            codes.push(other.check.code);
        }
    }
    codes
}

/// One paragraph for several checks that are unknown for the same reason.
fn paragraph_of_refused(
    page: &mut Page,
    statement: &Statement,
    codes: &[&str],
    shows_servers: bool,
    invocation: &Invocation,
) {
    let judgement = &statement.judgement;
    let palette = page.view.palette;
    let word = format!("{:<SEVERITY$}", judgement.severity.as_str());
    let severity = palette.paint(style(judgement.severity), &word);
    let names = palette.bold(&codes.join(", "));
    let fact = escape::text(judgement.fact.as_bytes());
    page.wrapped(0, &format!("{severity}{names}: {fact}"));
    if shows_servers && !judgement.nodes.is_empty() {
        page.field("At", &escape::text(judgement.nodes.join(", ").as_bytes()));
    }
    // Advice that is not about one of the checks alone names all of them.
    if let Some(remedy) = statement.remedy() {
        let remedy = remedy.replace(
            &format!("--skip {}", statement.check.code),
            &format!("--skip {}", codes.join(",")),
        );
        page.field("Remedy", &escape::text(invocation.complete(&remedy).as_bytes()));
    }
}

/// The paragraph of a statement. Advice that the previous one of the same check has as well is not
/// repeated.
fn paragraph(
    page: &mut Page,
    statement: &Statement,
    previous: Option<&Statement>,
    detail: PageDetail,
    replay: &dyn Fn(&Counterexample) -> String,
    invocation: &Invocation,
) {
    let judgement = &statement.judgement;
    let palette = page.view.palette;
    let word = format!("{:<SEVERITY$}", judgement.severity.as_str());
    let severity = palette.paint(style(judgement.severity), &word);
    let code = palette.bold(statement.check.code);
    let fact = escape::text(judgement.fact.as_bytes());
    let evidence = match judgement.severity {
        // The severity says it.
        CheckSeverity::Unknown => String::new(),
        _ => palette.dim(&format!(" ({})", judgement.evidence.as_str())),
    };
    page.wrapped(0, &format!("{severity}{code}: {fact}{evidence}"));
    if detail.shows_inputs
        && let Some(inputs) = &judgement.inputs
    {
        page.field("From", &escape::text(inputs.as_bytes()));
    }
    if judgement.severity == CheckSeverity::Ok {
        return;
    }
    if detail.shows_servers && !judgement.nodes.is_empty() {
        page.field("At", &escape::text(judgement.nodes.join(", ").as_bytes()));
    }
    let alike = previous.filter(|previous| previous.check.code == statement.check.code);
    if let Some(consequence) = statement.consequence() {
        let is_known = alike.is_some_and(|alike| alike.consequence() == Some(consequence));
        let text = if is_known { AS_ABOVE } else { consequence };
        page.field("Consequence", &escape::text(text.as_bytes()));
    }
    for found in shortest_of_each(&statement.counterexamples) {
        page.field("Shown by", &history(&found, judgement.fault));
        for history in &found.histories {
            page.field("Replay", &format!("`{}` (on a temporary Redis)", replay(history)));
        }
    }
    if !statement.unharmed.is_empty() {
        let line = format!("explore finds no violation in {}", statement.unharmed.join(", "));
        page.field("Not shown", &escape::text(line.as_bytes()));
    }
    for (schema, why) in &statement.unexplored {
        let line = format!("{schema} was not explored: {why}");
        page.field("Not shown", &escape::text(line.as_bytes()));
    }
    if let Some(remedy) = statement.remedy() {
        let is_known = alike.is_some_and(|alike| alike.remedy().as_ref() == Some(&remedy));
        let text = if is_known { AS_ABOVE.into() } else { invocation.complete(&remedy) };
        page.field("Remedy", &escape::text(text.as_bytes()));
    }
    if let Some(accepted) = &statement.accepted {
        let AppliedAcceptance { reason, date, expires, is_expired, is_exceeded } = accepted;
        let line = if *is_expired {
            format!("no longer, since {expires} (on {date}: {reason})")
        } else if *is_exceeded {
            format!("only as a warning, so this error counts (on {date}: {reason})")
        } else {
            format!("until {expires} (on {date}: {reason})")
        };
        page.field("Accepted", &escape::text(line.as_bytes()));
    }
}

/// Histories of the same length that violate the same invariant.
struct AlikeHistories<'a> {
    first: &'a Counterexample,
    /// All of them, of one schema each.
    histories: Vec<&'a Counterexample>,
}

/// The histories in groups, so that a page names each harm once.
fn shortest_of_each(found: &[Counterexample]) -> Vec<AlikeHistories<'_>> {
    let mut groups: Vec<AlikeHistories<'_>> = Vec::new();
    for history in found {
        let group = groups.iter_mut().find(|group| {
            group.first.invariant == history.invariant && group.first.steps == history.steps
        });
        match group {
            Some(group) => group.histories.push(history),
            None => groups.push(AlikeHistories { first: history, histories: vec![history] }),
        }
    }
    groups
}

/// `express executes twice in 5 steps, with 1 eviction; go-chi likewise`.
fn history(histories: &AlikeHistories<'_>, fault: Option<ModelledFault>) -> String {
    let first = histories.first;
    let phrase = phrase_of(&first.invariant);
    let steps = first.steps;
    let with = match first.faults.as_str() {
        "no fault" => "without a fault".to_owned(),
        // A crash loses them as a failover does.
        _ if fault == Some(ModelledFault::LostWrites) => {
            "with 1 loss of the last writes".to_owned()
        }
        faults => format!("with {faults}"),
    };
    let mut line = format!("{} {phrase} in {steps} steps, {with}", first.schema);
    let others: Vec<_> =
        histories.histories[1..].iter().map(|history| history.schema.as_str()).collect();
    if !others.is_empty() {
        line.push_str(&format!("; likewise {}", others.join(", ")));
    }
    escape::text(line.as_bytes())
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

/// How many statements there are of each severity, in one sentence.
pub(crate) fn summary(statements: &[Statement]) -> String {
    let order = [
        (CheckSeverity::Error, "error"),
        (CheckSeverity::Warning, "warning"),
        (CheckSeverity::Note, "note"),
    ];
    let count = |severity: CheckSeverity| {
        let of_severity =
            statements.iter().filter(|statement| statement.judgement.severity == severity);
        of_severity.count() as u64
    };
    let mut parts = Vec::new();
    for (severity, noun) in order {
        parts.push(counted(count(severity), noun));
    }
    parts.push(format!("{} unknown", count(CheckSeverity::Unknown)));
    parts.push(format!("{} ok", count(CheckSeverity::Ok)));
    let mut silenced = 0;
    for statement in statements {
        if statement.accepted.as_ref().is_some_and(AppliedAcceptance::is_valid) {
            silenced += 1;
        }
    }
    if silenced > 0 {
        parts.push(format!("{silenced} accepted"));
    }
    format!("{}.", parts.join(", "))
}

/// The ACL rules that allow everything that was refused, without duplicates; `None` for a single
/// one, which its line shows.
pub(crate) fn missing_rules(statements: &[Statement]) -> Option<String> {
    let mut rules: Vec<&str> = Vec::new();
    for statement in statements {
        let rule = statement.judgement.refusal.as_ref().and_then(|refusal| refusal.rule.as_deref());
        for word in rule.unwrap_or_default().split_whitespace() {
            let word = word.trim_end_matches(',');
            if word.starts_with(['+', '~']) && !rules.contains(&word) {
                rules.push(word);
            }
        }
    }
    if rules.len() > 1 { Some(rules.join(" ")) } else { None }
}

/// All checks with their rules, for `--list` with --verbose.
pub(crate) fn rules(view: View) -> String {
    let mut page = Page::new(view);
    for check in &CHECKS {
        page.wrapped(0, &format!("{}: {}", page.view.palette.bold(check.code), check.title));
        page.field("Reads", check.reads);
        page.field("Rule", check.rule);
        page.field("Source", check.source);
        page.field("Consequence", check.consequence);
        page.field("Remedy", check.remedy);
    }
    page.text
}

/// The table of `--list`.
pub(crate) fn list(view: View) -> String {
    let mut rows = Vec::with_capacity(CHECKS.len());
    for check in &CHECKS {
        rows.push(vec![
            check.code.to_owned(),
            check.group.as_str().to_owned(),
            check.title.to_owned(),
            check.reads.to_owned(),
        ]);
    }
    grid_folding(view, &["CODE", "GROUP", "CHECKS", "READS"], rows, &["CHECKS", "READS"])
}
