//! The page: one line per check, and a paragraph for each failure.

use std::fmt::Write as _;

use anstyle::{AnsiColor, Style};

use super::curl::{commands_of_check, commands_of_steps, masked_url, url};
use super::shown_answer::{is_read_meanwhile, record_of, shown_body, shown_header, spread};
use crate::domain::duration::short;
use crate::domain::probe::{
    CHECKS, CheckedService, EffectsMade, ProbeDifference, ProbeExchange, ProbeStep, ProbeTask,
    ProbeVerdict, StoredRecord,
};
use crate::render::escape;
use crate::render::page::Page;
use crate::render::style::View;
use crate::render::table::{grid, grid_folding};

/// The headers of an answer that are shown.
const SHOWN_HEADERS: [&str; 5] =
    ["location", "etag", "content-type", "retry-after", "idempotent-replayed"];

/// The columns of a verdict.
const VERDICT: usize = 14;

/// All checks with their groups and titles.
pub(crate) fn list(view: View) -> String {
    let mut rows = Vec::with_capacity(CHECKS.len());
    for check in &CHECKS {
        rows.push(vec![
            check.id.to_owned(),
            check.group.as_str().to_owned(),
            check.title.to_owned(),
        ]);
    }
    grid_folding(view, &["check", "group", "passes if"], rows, &["passes if"])
}

/// The requests of each check as curl commands, for `--dry-run`. `requests` is their number, and
/// `most` the limit with repetitions.
pub(crate) fn dry_run(
    checks: &[(&'static str, Result<&[ProbeStep], &str>)],
    requests: usize,
    most: usize,
    view: View,
) -> String {
    let mut page = Page::new(view);
    page.line(&format!(
        "# {requests} requests. With repetitions, idemctl sends at most {most} (--max-requests)."
    ));
    page.line("");
    for (id, steps) in checks {
        page.line(&format!("# {id}"));
        match steps {
            Ok(steps) => {
                for line in commands_of_steps(steps) {
                    page.line(&line);
                }
            }
            Err(why) => page.line(&format!("# not applicable: {}", escape::text(why.as_bytes()))),
        }
        page.line("");
    }
    page.text
}

/// A run apart from its checks.
pub(crate) struct ProbeRun<'a> {
    pub(crate) task: &'a ProbeTask,
    /// How many requests were sent to the service.
    pub(crate) sent: usize,
    /// How many operations they executed, if this was counted.
    pub(crate) effects: Option<EffectsMade>,
    /// True if idemctl removed the records of the run.
    pub(crate) removes_records: bool,
    /// What differs from the accepted results; `None` without any.
    pub(crate) differences: Option<&'a [ProbeDifference]>,
}

/// The page: the profile, the checks by group, and the failures.
pub(crate) fn page(
    run: &ProbeRun<'_>,
    checked: &[CheckedService],
    is_verbose: bool,
    view: View,
) -> String {
    let mut page = Page::new(view);
    let task = run.task;
    let target = escape::text(masked_url(&task.template.url).as_bytes());
    let method = escape::text(task.template.method.as_bytes());
    let name = escape::text(task.profile.name.as_bytes());
    page.wrapped(0, &format!("{method} {target}, judged by {name}"));
    let source = format!("{} ({})", task.profile.title, task.profile.source);
    page.wrapped(0, &view.palette.dim(&escape::text(source.as_bytes())));
    page.wrapped(0, &sent_words(run));
    if !run.removes_records {
        let prefix = task.key_prefix();
        page.wrapped(
            0,
            &format!(
                "idemctl removed no records. Each key of this run begins with {prefix}, and its \
                 record stays in the service's store until it expires."
            ),
        );
    }
    if let Some(differences) = run.differences {
        if differences.is_empty() {
            page.wrapped(0, "The failures are those of --expect: none is new, and none is gone.");
        }
        for difference in differences {
            let what = if difference.is_new { "new failure" } else { "accepted failure is gone" };
            page.wrapped(0, &format!("{what}: {}", difference.id));
        }
    }
    page.line("");
    let mut group = None;
    let mut left_out = Vec::new();
    for checked in checked {
        if checked.judgement.verdict == ProbeVerdict::NotApplicable && !is_verbose {
            left_out.push(checked);
            continue;
        }
        if group != Some(checked.check.group) {
            group = Some(checked.check.group);
            page.line(&view.palette.bold(checked.check.group.as_str()));
        }
        line(&mut page, checked);
    }
    not_applicable(&mut page, &left_out);
    for checked in checked {
        if checked.is_failed() {
            failure(&mut page, task, checked);
        }
    }
    page.text
}

/// How many requests were sent, and how many operations they executed.
fn sent_words(run: &ProbeRun<'_>) -> String {
    let sent = run.sent;
    let Some(made) = run.effects else {
        let rest = if run.task.counts_effects {
            "How many operations they executed is unknown."
        } else {
            "Without --effects, idemctl compares answers, and does not know how often the service \
             executed."
        };
        return format!("{sent} requests were sent. {rest}");
    };
    let count = made.count;
    let operations = if count == 1 { "operation" } else { "operations" };
    if made.is_complete {
        format!("{sent} requests were sent, and --effects counted {count} {operations}.")
    } else {
        format!(
            "{sent} requests were sent, and --effects counted at least {count} {operations}, \
             because not every check counts."
        )
    }
}

/// What the run sent and found, in one line.
pub(crate) fn summary(task: &ProbeTask, checked: &[CheckedService], sent: usize) -> String {
    let count =
        |verdict| checked.iter().filter(|checked| checked.judgement.verdict == verdict).count();
    let mut text = format!(
        "{sent} requests sent: {} passed, {} failed, {} inconclusive, {} reported, {} not \
         applicable.",
        count(ProbeVerdict::Pass),
        count(ProbeVerdict::Fail),
        count(ProbeVerdict::Inconclusive),
        count(ProbeVerdict::Reported),
        count(ProbeVerdict::NotApplicable),
    );
    let widest = checked.iter().filter_map(|checked| spread(&checked.results)).max();
    if let Some(widest) = widest {
        let _ = write!(
            text,
            " {} simultaneous requests were sent within {widest} µs or less.",
            task.concurrency
        );
    }
    text
}

fn line(page: &mut Page, checked: &CheckedService) {
    let verdict = checked.judgement.verdict;
    let word = format!("{:<VERDICT$}", verdict.as_str());
    // Readers look for what differs, although the profile does not judge it.
    let differs = verdict == ProbeVerdict::Reported && checked.holds == Some(false);
    let shown = if differs { style(ProbeVerdict::Inconclusive) } else { style(verdict) };
    let word = page.view.palette.paint(shown, &word);
    let message = escape::text(checked.judgement.message.as_bytes());
    let id = checked.check.id;
    let title = checked.check.title;
    let line = match (verdict, checked.holds) {
        (ProbeVerdict::Reported, Some(true)) => format!("{word}{id}: {message} (holds: {title})"),
        (ProbeVerdict::Reported, Some(false)) => {
            format!("{word}{id}: {message} (does not hold: {title})")
        }
        _ => format!("{word}{id}: {message}"),
    };
    page.wrapped(2, &line);
}

/// The checks that cannot be made, by their reasons.
fn not_applicable(page: &mut Page, left_out: &[&CheckedService]) {
    let mut reasons: Vec<(&str, Vec<&str>)> = Vec::new();
    for checked in left_out {
        let why = checked.judgement.message.as_str();
        match reasons.iter_mut().find(|(known, _)| *known == why) {
            Some((_, ids)) => ids.push(checked.check.id),
            None => reasons.push((why, vec![checked.check.id])),
        }
    }
    if reasons.is_empty() {
        return;
    }
    page.line(&page.view.palette.bold("not applicable"));
    for (why, ids) in reasons {
        let why = escape::text(why.as_bytes());
        page.wrapped(2, &format!("{} ({why})", ids.join(", ")));
    }
}

/// The two answers of a failure side by side, the record, and how to repeat it.
fn failure(page: &mut Page, task: &ProbeTask, checked: &CheckedService) {
    page.line("");
    let title = format!("{}: {}", checked.check.id, checked.judgement.message);
    page.wrapped(0, &page.view.palette.bold(&escape::text(title.as_bytes())));
    page.field("Expected", checked.check.title);
    if let Some(clause) = &checked.clause {
        let text = format!("{}: {}", clause.clause, clause.rule);
        page.field("Rule", &escape::text(text.as_bytes()));
    }
    let shown = checked.shown();
    if !shown.is_empty() {
        page.text.push_str(&side_by_side(page.view, &shown));
    }
    if let Some(record) = record_of(checked) {
        let mut words = record_words(record);
        if is_read_meanwhile(checked) {
            words.push_str(" (read when the second request was sent)");
        }
        page.field("In Redis", &words);
    }
    let label = page.view.palette.dim("Repeat");
    page.indented(2, &label);
    for line in commands_of_check(task, checked.check) {
        page.indented(4, &line);
    }
}

fn side_by_side(view: View, shown: &[&ProbeExchange]) -> String {
    let mut rows = vec![
        row("Request", shown, |exchange| {
            let line = format!("{} {}", exchange.request.method, url(&exchange.request));
            escape::text(line.as_bytes())
        }),
        row("Answer", shown, ProbeExchange::in_words),
    ];
    for name in SHOWN_HEADERS {
        let value = |exchange: &ProbeExchange| {
            let value = exchange.answer().and_then(|answer| answer.header(name));
            match value {
                Some(value) => escape::text(shown_header(exchange, name, value).as_bytes()),
                None => "-".to_owned(),
            }
        };
        if shown.iter().any(|exchange| value(exchange) != "-") {
            rows.push(row(name, shown, value));
        }
    }
    rows.push(row("Body", shown, shown_body));
    // The bodies themselves show where they differ.
    if let [one, other] = shown
        && let (Some(first), Some(second)) = (one.answer(), other.answer())
        && one.request.has_credentials()
        && let Some(offset) = first.body.first_difference(&second.body)
    {
        rows.push(vec!["Differs".to_owned(), "-".to_owned(), format!("from byte {offset} on")]);
    }
    grid(view, 2, &[], rows.into_iter())
}

fn row(
    label: &str,
    shown: &[&ProbeExchange],
    cell: impl Fn(&ProbeExchange) -> String,
) -> Vec<String> {
    let mut cells = vec![label.to_owned()];
    for exchange in shown {
        cells.push(cell(exchange));
    }
    cells
}

fn record_words(record: &StoredRecord) -> String {
    if record.state == "unrecognised" {
        return format!(
            "a value that {} does not recognise",
            escape::text(record.schema.as_bytes())
        );
    }
    if record.state == "absent" {
        return "no record of this key".to_owned();
    }
    let mut words = format!("{} of {}", record.state, record.schema);
    match (record.never_expires, record.ttl_ms) {
        (true, _) => words.push_str(", never expires"),
        (false, Some(ttl)) => {
            let _ = write!(words, ", expires in {}", short(ttl));
        }
        (false, None) => {}
    }
    if let Some(owner) = &record.owner {
        let _ = write!(words, ", owner {owner}");
    }
    escape::text(words.as_bytes())
}

fn style(verdict: ProbeVerdict) -> Style {
    let color = match verdict {
        ProbeVerdict::Pass => AnsiColor::Green,
        ProbeVerdict::Fail => AnsiColor::Red,
        ProbeVerdict::Inconclusive => AnsiColor::Yellow,
        ProbeVerdict::NotApplicable | ProbeVerdict::Reported => return Style::new().dimmed(),
    };
    Style::new().fg_color(Some(color.into()))
}
