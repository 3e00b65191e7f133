//! The frontier of each schema: the faults that lead to each violation, and the extent of the
//! search.

use anstyle::AnsiColor;

use super::{met_steps, remedies, trace};
use crate::domain::exploration::{
    Exploration, FrontierDifference, Invariant, ReplayedSchedule, Violation, ViolationCause,
    invariants,
};
use crate::render::fold::lines;
use crate::render::invocation::word;
use crate::render::style::View;
use crate::render::words::{self, counted};
use crate::render::{escape, table};

/// The explorations of a report, and its options.
#[derive(Clone, Copy)]
pub(crate) struct ShownExplorations<'a> {
    pub(crate) explorations: &'a [Exploration],
    /// True if the history of the first violation that counts is shown.
    pub(crate) first_trace: bool,
    /// True if the histories of all violations are shown.
    pub(crate) every_trace: bool,
    /// True if the extent of each search is shown.
    pub(crate) is_verbose: bool,
    /// The differences from the accepted frontiers; `None` if there was nothing to compare with.
    pub(crate) differences: Option<&'a [FrontierDifference]>,
    /// The schemas whose files have changed since their frontiers were accepted.
    pub(crate) changed: &'a [String],
    /// The command line that replays a history, without its token.
    pub(crate) replay: &'a str,
}

/// The report of explorations.
pub(crate) fn text(shown: ShownExplorations<'_>, view: View) -> String {
    if let Some(differences) = shown.differences {
        return compared(shown, differences, view);
    }
    let mut parts = Vec::new();
    let mut is_hidden = false;
    for exploration in shown.explorations {
        // A replayed schedule was not searched, so it has no frontier.
        if let Some(replay) = &exploration.replay {
            parts.push(again(exploration, replay, view));
            continue;
        }
        parts.push(frontier(exploration, shown.is_verbose, view));
        let violations = shortest(exploration);
        let first = violations.iter().position(|violation| violation.counts);
        for (index, violation) in violations.into_iter().enumerate() {
            if shown.every_trace || shown.first_trace && first == Some(index) {
                parts.push(history(violation, shown.replay, view));
            } else {
                is_hidden = true;
            }
        }
    }
    if is_hidden && !shown.every_trace {
        parts.push("`--trace` shows the shortest way to every violation.\n".to_owned());
    }
    // One list for all schemas, because they often need the same change.
    let advice = remedies::text(shown.explorations, view);
    if !advice.is_empty() {
        parts.push(format!("{}\n{advice}", view.palette.bold("What to change")));
    }
    parts.join("\n")
}

/// The differences from the accepted frontiers, with a history and advice for each new violation.
/// Accepted violations are not shown.
fn compared(
    shown: ShownExplorations<'_>,
    differences: &[FrontierDifference],
    view: View,
) -> String {
    let mut parts = vec![self::differences(shown, differences, view)];
    let mut of_new = Vec::new();
    for exploration in shown.explorations {
        let name = exploration.name();
        let mut new = exploration.clone();
        new.violations.retain(|violation| {
            differences
                .iter()
                .any(|difference| difference.is_new && difference.is(&name, violation))
        });
        for violation in shortest(&new) {
            let title = view.palette.bold(&escape::text(name.as_bytes()));
            parts.push(format!("{title}\n{}", history(violation, shown.replay, view)));
        }
        of_new.push(new);
    }
    let advice = remedies::text(&of_new, view);
    if !advice.is_empty() {
        parts.push(format!("{}\n{advice}", view.palette.bold("What to change")));
    }
    parts.join("\n")
}

/// The first violation of each invariant: by its cause, and then the one with the fewest faults and a
/// shortest schedule.
fn shortest(exploration: &Exploration) -> Vec<&Violation> {
    let mut shortest = Vec::new();
    for invariant in invariants::ALL {
        if let Some(violation) = first_of(exploration, &invariant) {
            shortest.push(violation);
        }
    }
    shortest
}

fn first_of<'a>(exploration: &'a Exploration, invariant: &Invariant) -> Option<&'a Violation> {
    exploration.violations.iter().find(|violation| violation.invariant.name == invariant.name)
}

fn frontier(exploration: &Exploration, is_verbose: bool, view: View) -> String {
    let name = escape::text(exploration.name().as_bytes());
    let mut text = format!("{}: {}\n", view.palette.bold(&name), verdict(exploration, view));
    if let Some(warning) = &exploration.short_results {
        text.push_str(&lines(&format!("warning: {warning}"), 2, view.width));
    }
    text.push_str(&met_steps::reason(exploration, view));
    if exploration.violations.iter().any(|violation| violation.counts) {
        text.push_str(&broken(exploration, view));
    }
    text.push_str(&excused(exploration, view));
    text.push_str(&held(exploration, view));
    for name in &exploration.not_asked {
        let why = not_asked_because(name);
        text.push_str(&lines(&format!("{why}: {name}"), 2, view.width));
    }
    if is_verbose || !exploration.is_complete() {
        text.push_str(&lines(&view.palette.dim(&coverage(exploration)), 2, view.width));
    }
    text.push_str(&met_steps::coverage(exploration, view));
    text
}

/// The number of broken invariants that count, or that there are none.
fn verdict(exploration: &Exploration, view: View) -> String {
    let palette = view.palette;
    let mut wrong = Vec::new();
    let counting: Vec<_> =
        shortest(exploration).into_iter().filter(|violation| violation.counts).collect();
    if !counting.is_empty() {
        let kind = match counting.iter().filter_map(|violation| violation.cause).min() {
            Some(ViolationCause::Schema) => "schema bug: ",
            Some(ViolationCause::NotFenced) => "not fenced: ",
            _ => "",
        };
        let broken = counted(counting.len() as u64, "broken invariant");
        wrong.push(format!("{kind}{broken}"));
    }
    if let Some(goals) = met_steps::unreached(exploration) {
        wrong.push(format!("it never reaches {goals} without a fault"));
    }
    if !wrong.is_empty() {
        return palette.paint(AnsiColor::Red.on_default().bold(), &wrong.join(", and "));
    }
    // Without causes, a violation may be of the schema or not.
    let what = if exploration.assumed.is_some() { "schema bug" } else { "violation" };
    let none = format!("no {what} within the bounds");
    if exploration.is_complete() {
        palette.paint(AnsiColor::Green.on_default(), &none)
    } else {
        palette.paint(AnsiColor::Yellow.on_default(), &format!("{none} so far"))
    }
}

/// The violations that count, with the faults that cause each.
fn broken(exploration: &Exploration, view: View) -> String {
    let mut rows = Vec::new();
    let mut last = "";
    for violation in exploration.violations.iter().filter(|violation| violation.counts) {
        // The violations of one invariant follow each other, and its name is shown once.
        let name = violation.invariant.name;
        rows.push(vec![
            if name == last { String::new() } else { name.to_owned() },
            violation.faults.to_string(),
            violation.token.acts.len().to_string(),
        ]);
        last = name;
    }
    table::grid(view, 2, &["BROKEN", "BY", "STEPS"], rows.into_iter())
}

/// The invariants whose violations do not count, in a line for each cause.
fn excused(exploration: &Exploration, view: View) -> String {
    let mut text = String::new();
    for (cause, title) in [
        (ViolationCause::NotFenced, "not fenced (`checks_owner` false)"),
        (ViolationCause::Environment, "environment, as with every lock"),
    ] {
        let mut names = Vec::new();
        for violation in &exploration.violations {
            let name = violation.invariant.name;
            let mut of_name =
                exploration.violations.iter().filter(|other| other.invariant.name == name);
            if of_name.any(|other| other.counts) {
                continue;
            }
            if violation.cause == Some(cause) && !names.contains(&name) {
                names.push(name);
            }
        }
        if !names.is_empty() {
            let line = format!("{title}: {}", names.join(", "));
            text.push_str(&lines(&line, 2, view.width));
        }
    }
    text
}

/// Why an invariant was not checked.
pub(super) fn not_asked_because(name: &str) -> &'static str {
    if name == invariants::TRUE_REPLAY.name {
        "not fully checked (no response in the replies)"
    } else {
        "not checked (not compared)"
    }
}

/// The invariants that are not broken.
fn held(exploration: &Exploration, view: View) -> String {
    let mut holds = Vec::new();
    for invariant in &exploration.invariants {
        // An invariant that was not checked must not be reported as one that holds.
        if !exploration.not_asked.contains(&invariant.name)
            && first_of(exploration, invariant).is_none()
        {
            holds.push(invariant.name);
        }
    }
    if holds.is_empty() {
        return String::new();
    }
    let word = if !exploration.unreached().is_empty() {
        // What never happens breaks nothing, so this is not evidence.
        "not broken, but hardly tested"
    } else if exploration.is_complete() {
        "holds"
    } else {
        "not broken so far"
    };
    lines(&format!("{word}: {}", holds.join(", ")), 2, view.width)
}

/// The extent of the search, in words.
fn coverage(exploration: &Exploration) -> String {
    let covered = exploration.covered;
    let mut workers = counted(exploration.workers.into(), "worker");
    if exploration.has_other_payload {
        workers.push_str(", the last of which has another payload,");
    }
    let mut assuming = exploration.assumptions.names().join(" and ");
    if !assuming.is_empty() {
        assuming.insert_str(0, ", assuming ");
    }
    let within = if exploration.most.total() == 0 {
        format!("{workers} without a fault{assuming}")
    } else {
        format!("{workers} with at most {}{assuming}", exploration.most)
    };
    let effort = format!(
        "{}, {}, {}ms",
        counted(covered.states as u64, "state"),
        counted(covered.server_calls as u64, "server call"),
        exploration.wall_ms
    );
    let schedules = match covered.schedules {
        Some(schedules) => format!("all {} schedules", approximately(schedules)),
        None => format!("all schedules of up to {}", counted(covered.depth as u64, "step")),
    };
    format!("{schedules} of {within}; {effort}")
}

/// A number as `1234`, or as `5.2e8` if it is large.
fn approximately(number: f64) -> String {
    if number < 10_000.0 { format!("{number:.0}") } else { format!("{number:.1e}") }
}

/// A violation with the history that leads to it, and the command line that replays it.
pub(super) fn history(violation: &Violation, replay: &str, view: View) -> String {
    let palette = view.palette;
    let cause = match violation.cause {
        Some(cause) => format!(" ({})", cause.as_str()),
        None => String::new(),
    };
    let heading = format!("{}, {}{cause}", violation.invariant.name, violation.faults);
    let mut text = lines(&palette.bold(&heading), 2, view.width);
    text.push_str(&lines(&format!("Expected: {}.", violation.invariant.sentence), 2, view.width));
    text.push_str(&trace::text(&violation.lines, view));
    text.push_str(&otherwise(violation.deviates.as_deref(), view));
    // It stays in one line, so that it can be copied.
    let token = word(&violation.token.to_string());
    let line = escape::text(format!("{replay} {token}").as_bytes());
    text.push_str(&format!("  {}\n", palette.dim(&line)));
    text
}

/// A replayed schedule and its violations.
fn again(exploration: &Exploration, replay: &ReplayedSchedule, view: View) -> String {
    let name = escape::text(exploration.name().as_bytes());
    let mut text = format!("{}, {}\n", view.palette.bold(&name), exploration.most);
    text.push_str(&trace::text(&replay.lines, view));
    text.push_str(&otherwise(replay.deviates.as_deref(), view));
    for violation in &exploration.violations {
        let broken =
            format!("Broken: {} ({}).", violation.invariant.name, violation.invariant.sentence);
        text.push_str(&lines(&broken, 2, view.width));
    }
    if exploration.violations.is_empty() {
        text.push_str("  This history breaks no invariant.\n");
    }
    text
}

fn otherwise(deviates: Option<&str>, view: View) -> String {
    let Some(why) = deviates else { return String::new() };
    let why = escape::text(why.as_bytes());
    lines(&format!("With real workers the outcome differed: {why}"), 2, view.width)
}

/// The differences from the accepted frontiers, one per line.
fn differences(
    shown: ShownExplorations<'_>,
    differences: &[FrontierDifference],
    view: View,
) -> String {
    let mut text = String::new();
    for schema in shown.changed {
        let schema = escape::text(schema.as_bytes());
        text += &format!("The files of {schema} have changed since the result was accepted.\n");
    }
    if !shown.explorations.iter().all(Exploration::is_complete) {
        text += "--max-states ended the search, so the comparison is not complete.\n";
    }
    if differences.is_empty() {
        return text + words::ALL_ACCEPTED;
    }
    text += &format!("{}\n", view.palette.bold(words::DIFFERENT));
    for difference in differences {
        let change = if difference.is_new { "new" } else { "gone" };
        let schema = escape::text(difference.schema.as_bytes());
        let faults = escape::text(difference.faults_in_words().as_bytes());
        let cause = match &difference.violation.cause {
            Some(cause) => format!(" (cause: {})", escape::text(cause.as_bytes())),
            None => String::new(),
        };
        let invariant = escape::text(difference.violation.invariant.as_bytes());
        let what = if difference.violation.faults.is_none() {
            format!("{invariant} is never reached")
        } else {
            format!("{invariant} by {faults}{cause}")
        };
        text += &format!("  {change:<5}{schema}: {what}\n");
    }
    text
}
