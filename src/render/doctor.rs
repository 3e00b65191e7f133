//! The page of `doctor`, its JSON, and the list of checks.

use anstyle::{AnsiColor, Style};
use serde::Serialize;

use super::doctor_remedy::DoctorRemedies;
use super::doctor_verdict;
use super::escape;
use super::page::Page;
use super::style::{Palette, View};
use super::table::grid_folding;
use super::words::counted;
use crate::domain::doctor::{
    self, Acceptance, CHECKS, CheckSeverity, Counterexample, ModelledFault, RefusedFact, Statement,
    phrase_of,
};

/// The columns of the severity before the code.
const SEVERITY: usize = 9;

/// The most statements that are OK and have a line each.
const MAX_OK: usize = 3;

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
    expires: &'a str,
    is_expired: bool,
}

/// A statement as JSON. `replay` returns the command line that replays a history.
pub(crate) fn statement<'a>(
    statement: &'a Statement,
    replay: &dyn Fn(&Counterexample) -> String,
    remedies: DoctorRemedies<'_>,
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
        remedy: remedies.of(statement),
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

fn accepted(accepted: &Acceptance) -> AcceptedJson<'_> {
    let Acceptance { reason, expires, is_expired, .. } = accepted;
    AcceptedJson { reason, expires, is_expired: *is_expired }
}

/// What a page shows of each statement.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PageDetail<'a> {
    /// The servers, and the context.
    pub(crate) place: &'a str,
    /// The names of the schemas in use.
    pub(crate) schemas: &'a [&'a str],
    /// True if the operator or the context names them.
    pub(crate) are_named: bool,
    /// The servers, because several were checked.
    pub(crate) shows_servers: bool,
    /// Each check that is OK.
    pub(crate) is_verbose: bool,
}

/// The verdict, and one paragraph per statement. The statements that are OK share one line.
pub(crate) fn page(
    statements: &[Statement],
    detail: PageDetail<'_>,
    replay: &dyn Fn(&Counterexample) -> String,
    remedies: DoctorRemedies<'_>,
    view: View,
) -> String {
    let mut page = Page::new(view);
    page.wrapped(0, &doctor_verdict::line(statements, view.palette));
    page.wrapped(
        0,
        &view
            .palette
            .dim(&format!("Checked (server/database): {}.", escape::text(detail.place.as_bytes()))),
    );
    if !detail.schemas.is_empty() {
        let names = escape::text(detail.schemas.join(", ").as_bytes());
        let which = if detail.schemas.len() == 1 { "Schema" } else { "Schemas" };
        let how = if detail.are_named { "as named" } else { "by the keys in a sample" };
        let what = "A schema describes the locks and results that a service stores in Redis, and its \
                    steps. A lock marks a request that is being executed. A result is its response.";
        page.wrapped(0, &view.palette.dim(&format!("{which} in use, {how}: {names}. {what}")));
    }
    let mut sound: Vec<&Statement> = Vec::new();
    for statement in statements {
        if statement.judgement.severity == CheckSeverity::Ok {
            sound.push(statement);
            continue;
        }
        page.line("");
        paragraph(&mut page, statement, detail, replay, remedies);
    }
    if !sound.is_empty() {
        page.line("");
    }
    if sound.len() <= MAX_OK || detail.is_verbose {
        for statement in sound {
            heading(&mut page, statement);
        }
    } else if let Some(line) = one_line_of(statements, view.palette) {
        page.wrapped(0, &line);
    }
    page.text
}

/// The checks of which all statements are OK, in one line; `None` if there is none.
fn one_line_of(statements: &[Statement], palette: Palette) -> Option<String> {
    let mut sound: Vec<&str> = Vec::new();
    for statement in statements {
        let code = statement.check.code;
        let mut of_check = statements.iter().filter(|other| other.check.code == code);
        let is_sound = of_check.all(|other| other.judgement.severity == CheckSeverity::Ok);
        if is_sound && !sound.contains(&code) {
            sound.push(code);
        }
    }
    if sound.is_empty() {
        return None;
    }
    let severity = word(CheckSeverity::Ok, palette);
    let count = counted(sound.len() as u64, "check");
    let claimed = statements.iter().filter(|statement| sound.contains(&statement.check.code));
    let line = format!("{severity}{count} found no problem: {} (-v shows each)", sound.join(", "));
    doctor::covered(claimed).claim(Some(line), None)
}

/// The severity, padded to its column.
fn word(severity: CheckSeverity, palette: Palette) -> String {
    palette.paint(style(severity), &format!("{:<SEVERITY$}", severity.as_str()))
}

/// The severity, the check and its fact.
fn heading(page: &mut Page, statement: &Statement) {
    let judgement = &statement.judgement;
    let palette = page.view.palette;
    let severity = word(judgement.severity, palette);
    let code = palette.bold(statement.check.code);
    let fact = escape::text(judgement.fact.as_bytes());
    let evidence = match judgement.severity {
        // The severity says it.
        CheckSeverity::Unknown => String::new(),
        _ => palette.dim(&format!(" ({})", judgement.evidence.as_str())),
    };
    page.wrapped(0, &format!("{severity}{code}: {fact}{evidence}"));
}

/// The paragraph of a statement: its fact, what can happen, and what to do.
fn paragraph(
    page: &mut Page,
    statement: &Statement,
    detail: PageDetail<'_>,
    replay: &dyn Fn(&Counterexample) -> String,
    remedies: DoctorRemedies<'_>,
) {
    let judgement = &statement.judgement;
    heading(page, statement);
    if detail.shows_servers && !judgement.nodes.is_empty() {
        page.field("At", &escape::text(judgement.nodes.join(", ").as_bytes()));
    }
    if let Some(consequence) = statement.consequence() {
        page.field("Consequence", &escape::text(consequence.as_bytes()));
    }
    for found in &statement.counterexamples {
        page.field("Shown by", &history(found, judgement.fault));
    }
    if let Some(first) = statement.counterexamples.first() {
        page.field("Replay", &format!("`{}` (on a temporary Redis)", replay(first)));
    }
    if !statement.unharmed.is_empty() {
        let line = format!("explore finds no violation in {}", statement.unharmed.join(", "));
        page.field("Not shown", &escape::text(line.as_bytes()));
    }
    for (schema, why) in &statement.unexplored {
        let line = format!("{schema} was not explored: {why}");
        page.field("Not shown", &escape::text(line.as_bytes()));
    }
    if let Some(remedy) = remedies.of(statement) {
        page.field("Remedy", &escape::text(remedy.as_bytes()));
    }
    if let Some(Acceptance { reason, expires, is_expired, .. }) = &statement.accepted {
        let until = if *is_expired { "no longer, since" } else { "until" };
        let line = format!("{until} {expires} ({reason})");
        page.field("Accepted", &escape::text(line.as_bytes()));
    }
}

/// `in a simulation, express executes twice in 5 steps, with 1 eviction`.
fn history(found: &Counterexample, fault: Option<ModelledFault>) -> String {
    let with = match found.faults.as_str() {
        "no fault" => "without a fault".to_owned(),
        // A crash loses them as a failover does.
        _ if fault == Some(ModelledFault::LostWrites) => {
            "with 1 loss of the last writes".to_owned()
        }
        faults => format!("with {faults}"),
    };
    let Counterexample { schema, steps, .. } = found;
    let phrase = phrase_of(&found.invariant);
    let line = format!("in a simulation, {schema} {phrase} in {steps} steps, {with}");
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

/// The table of `--list`.
pub(crate) fn list(view: View) -> String {
    let mut rows = Vec::with_capacity(CHECKS.len());
    for check in &CHECKS {
        rows.push(vec![
            check.code.to_owned(),
            check.group.as_str().to_owned(),
            check.title.to_owned(),
        ]);
    }
    grid_folding(view, &["CODE", "GROUP", "CHECKS"], rows, &["CHECKS"])
}
