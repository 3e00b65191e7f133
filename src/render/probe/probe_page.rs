//! The page: one line per check, and a paragraph for each failure.

use anstyle::{AnsiColor, Style};

use super::curl::{commands_of_check, commands_of_steps, masked_url, url};
use super::shown_answer::{record_of, shown_body, shown_header};
use crate::domain::duration::short;
use crate::domain::probe::{
    CHECKS, CheckedService, EffectsMade, ProbeCheck, ProbeDifference, ProbeExchange, ProbeTask,
    ProbeVerdict, Steps, StoredRecord,
};
use crate::render::escape;
use crate::render::page::Page;
use crate::render::style::View;
use crate::render::table::{Column, of_columns};
use crate::render::words::counted;

/// The headers of an answer that are shown.
const SHOWN_HEADERS: [&str; 5] =
    ["location", "etag", "content-type", "retry-after", "idempotent-replayed"];

/// The columns of a verdict.
const VERDICT: usize = 14;

/// All checks with their groups and titles.
pub(crate) fn list(view: View) -> String {
    let columns = [
        Column::text("CHECK", 0, |check: &ProbeCheck| check.id.to_owned()),
        Column::text("GROUP", 1, |check| check.group.as_str().to_owned()),
        Column::folded("PASSES IF", 0, |check| check.title.to_owned()),
    ];
    of_columns(view, &columns, CHECKS)
}

/// The requests of each check as curl commands, for `--dry-run`. `requests` is their number, and
/// `most` the limit with repetitions.
pub(crate) fn dry_run(
    checks: &[(&'static str, Steps)],
    requests: usize,
    most: usize,
    view: View,
) -> String {
    let mut page = Page::new(view);
    page.line(&format!(
        "# {requests} requests. With repetitions, idemctl sends at most {most} (--max-requests)."
    ));
    for (id, steps) in checks {
        page.line("");
        page.line(&format!("# {id}"));
        match steps {
            Ok(steps) => {
                for line in commands_of_steps(steps) {
                    page.line(&line);
                }
            }
            Err(why) => page.line(&format!("# not applicable: {}", escape::text(why.as_bytes()))),
        }
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

/// The page: the profile, one line for each check, and the failures.
pub(crate) fn page(run: &ProbeRun<'_>, checked: &[CheckedService], view: View) -> String {
    let mut page = Page::new(view);
    let task = run.task;
    let (method, url) = (&task.template.method, masked_url(&task.template.url));
    let title =
        format!("{method} {url}, judged by {} ({})", task.profile.name, task.profile.source);
    page.wrapped(0, &escape::text(title.as_bytes()));
    page.wrapped(0, &sent_words(run));
    if !run.removes_records {
        let prefix = task.key_prefix();
        page.wrapped(
            0,
            &format!("idemctl removed no records. Each key of this run begins with {prefix}."),
        );
    }
    if run.differences.is_some_and(<[_]>::is_empty) {
        page.wrapped(0, "The failures are those of --expect.");
    }
    for difference in run.differences.unwrap_or_default() {
        let what = if difference.is_new { "new failure" } else { "accepted failure is gone" };
        page.wrapped(0, &format!("{what}: {}", difference.id));
    }
    page.line("");
    for checked in checked {
        line(&mut page, checked);
    }
    for checked in checked.iter().filter(|checked| checked.is_failed()) {
        failure(&mut page, task, checked);
    }
    page.text
}

/// How many requests were sent, and how many operations they executed.
fn sent_words(run: &ProbeRun<'_>) -> String {
    let sent = run.sent;
    match run.effects {
        Some(made) => {
            let operations = counted(made.count, "operation");
            let least = if made.is_complete { "" } else { "at least " };
            format!("{sent} requests were sent, and --effects counted {least}{operations}.")
        }
        None => format!("{sent} requests were sent. How often they executed was not counted."),
    }
}

/// What the run sent and found, in one line.
pub(crate) fn summary(checked: &[CheckedService], sent: usize) -> String {
    let count =
        |verdict| checked.iter().filter(|checked| checked.judgement.verdict == verdict).count();
    format!(
        "{sent} requests sent: {} passed, {} failed, {} inconclusive, {} reported, {} not \
         applicable.",
        count(ProbeVerdict::Pass),
        count(ProbeVerdict::Fail),
        count(ProbeVerdict::Inconclusive),
        count(ProbeVerdict::Reported),
        count(ProbeVerdict::NotApplicable),
    )
}

fn line(page: &mut Page, checked: &CheckedService) {
    let verdict = checked.judgement.verdict;
    let word = page.view.palette.paint(style(verdict), &format!("{:<VERDICT$}", verdict.as_str()));
    let message = escape::text(checked.judgement.message.as_bytes());
    let mut line = format!("{word}{}: {message}", checked.check.id);
    if let (ProbeVerdict::Reported, Some(holds)) = (verdict, checked.holds) {
        let holds = if holds { "holds" } else { "does not hold" };
        line.push_str(&format!(" ({holds}: {})", checked.check.title));
    }
    page.wrapped(2, &line);
}

/// The answers that show a failure, the record, and how to repeat it.
fn failure(page: &mut Page, task: &ProbeTask, checked: &CheckedService) {
    page.line("");
    let title = format!("{}: {}", checked.check.id, checked.judgement.message);
    page.wrapped(0, &page.view.palette.bold(&escape::text(title.as_bytes())));
    page.field("Expected", checked.check.title);
    if let Some(clause) = &checked.clause {
        let text = format!("{}: {}", clause.clause, clause.rule);
        page.field("Rule", &escape::text(text.as_bytes()));
    }
    for exchange in checked.shown() {
        let request = &exchange.request;
        let line = format!("{} {}", request.method, url(request));
        page.field("Sent", &escape::text(line.as_bytes()));
        page.field("Got", &answer_words(exchange));
    }
    if let Some(record) = record_of(checked) {
        page.field("Seen in Redis", &record_words(record));
    }
    page.field("Repeat", "");
    for line in commands_of_check(task, checked.check) {
        page.indented(4, &line);
    }
}

/// The status, the headers that matter, and the body of an answer.
fn answer_words(exchange: &ProbeExchange) -> String {
    let mut words = vec![exchange.in_words()];
    for name in SHOWN_HEADERS {
        if let Some(value) = exchange.answer().and_then(|answer| answer.header(name)) {
            let value = escape::text(shown_header(exchange, name, value).as_bytes());
            words.push(format!("{name}: {value}"));
        }
    }
    words.push(shown_body(exchange));
    words.join(" | ")
}

fn record_words(record: &StoredRecord) -> String {
    let mut words = format!("{} {}", record.schema, record.state).trim_start().to_owned();
    if record.never_expires {
        words.push_str(", never expires");
    }
    if let Some(ttl) = record.ttl_ms {
        words.push_str(&format!(", expires in {}", short(ttl)));
    }
    if let Some(owner) = &record.owner {
        words.push_str(&format!(", owner {owner}"));
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
