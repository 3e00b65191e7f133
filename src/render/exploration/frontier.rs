//! The frontier of each schema: the faults that lead to each violation, and the extent of the
//! search.

use anstyle::AnsiColor;

use super::remedies::lines;
use super::{lanes, met_steps, remedies};
use crate::domain::exploration::{
    Exploration, FaultBudget, FrontierDifference, Invariant, ReplayedSchedule, Violation,
    invariants,
};
use crate::render::style::View;
use crate::render::{escape, table};

/// The explorations of a report, and its options.
#[derive(Clone, Copy)]
pub(crate) struct ShownExplorations<'a> {
    pub(crate) explorations: &'a [Exploration],
    /// True if the shortest schedule of each violation is shown.
    pub(crate) traces: bool,
    /// The differences from the accepted frontiers; `None` if there was nothing to compare with.
    pub(crate) differences: Option<&'a [FrontierDifference]>,
}

/// The report of explorations.
pub(crate) fn text(shown: ShownExplorations<'_>, view: View) -> String {
    let mut parts = Vec::new();
    for exploration in shown.explorations {
        // A replayed schedule was not searched, so it has no frontier.
        if let Some(replay) = &exploration.replay {
            parts.push(again(exploration, replay, view));
            continue;
        }
        parts.push(frontier(exploration, view));
        if shown.traces {
            for violation in shortest(exploration) {
                parts.push(history(violation, view));
            }
        }
    }
    // One list for all schemas, because they often need the same change.
    let advice = remedies::text(shown.explorations, view);
    if !advice.is_empty() {
        parts.push(format!("{}\n{advice}", view.palette.bold("What to change")));
    }
    if !shown.traces
        && shown.explorations.iter().any(|exploration| !exploration.violations.is_empty())
    {
        parts.push("`--trace table` shows the shortest way to each violation.\n".to_owned());
    }
    if let Some(differences) = shown.differences {
        parts.push(self::differences(differences, view));
    }
    parts.join("\n")
}

/// The first violation of each invariant, which has the fewest faults and a shortest schedule.
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

fn frontier(exploration: &Exploration, view: View) -> String {
    let palette = view.palette;
    let red = AnsiColor::Red.on_default().bold();
    let name = escape::text(exploration.name().as_bytes());
    let mut wrong = Vec::new();
    if !exploration.violations.is_empty() {
        let broken = shortest(exploration).len();
        wrong.push(format!("{} broken", count(broken, "invariant is", "invariants are")));
    }
    let unreached = met_steps::unreached(exploration);
    if let Some(goals) = &unreached {
        wrong.push(format!("it never reaches {goals} without a fault"));
    }
    let verdict = match (wrong.is_empty(), exploration.covered.complete) {
        (true, true) => palette.paint(AnsiColor::Green.on_default(), "no violation"),
        (true, false) => palette.paint(AnsiColor::Yellow.on_default(), "no violation so far"),
        (false, _) => palette.paint(red, &wrong.join(", and ")),
    };
    let mut text = format!("{}: {verdict}\n", palette.bold(&name));
    text.push_str(&met_steps::reason(exploration, view));
    let rows = exploration.violations.iter().enumerate().map(|(at, violation)| {
        // The violations of one invariant follow each other, and its name is shown once.
        let is_first =
            at == 0 || exploration.violations[at - 1].invariant.name != violation.invariant.name;
        let name = if is_first { violation.invariant.name } else { "" };
        vec![name.to_owned(), violation.faults.to_string(), violation.token.acts.len().to_string()]
    });
    if !exploration.violations.is_empty() {
        text.push_str(&table::grid(view, 2, &["BROKEN", "BY", "STEPS"], rows));
        if !exploration.covered.complete {
            let may = "fewer faults may be enough, because the search did not reach all histories";
            text.push_str(&lines(may, 2, view.width));
        }
    }
    let mut holds = Vec::new();
    for invariant in invariants::ALL {
        let is_broken = first_of(exploration, &invariant).is_some();
        // An invariant that was not checked must not be reported as one that holds.
        if !is_broken && !exploration.not_asked.contains(&invariant.name) {
            holds.push(invariant.name);
        }
    }
    if !holds.is_empty() {
        let word = if unreached.is_some() {
            // What never happens breaks nothing, so this is not evidence.
            "not broken, but hardly tested"
        } else if exploration.covered.complete {
            "holds"
        } else {
            "not broken so far"
        };
        text.push_str(&lines(&format!("{word}: {}", holds.join(", ")), 2, view.width));
    }
    if !exploration.not_asked.is_empty() {
        let names = exploration.not_asked.join(", ");
        text.push_str(&lines(
            &format!("not checked, because the schema does not compare it: {names}"),
            2,
            view.width,
        ));
    }
    text.push_str(&lines(&palette.dim(&coverage(exploration)), 2, view.width));
    text.push_str(&met_steps::coverage(exploration, view));
    text
}

/// The extent of the search, in words.
fn coverage(exploration: &Exploration) -> String {
    let covered = exploration.covered;
    let workers = count(usize::from(exploration.workers), "worker", "workers");
    let mut assumed = Vec::new();
    for assumption in exploration.assumptions.all() {
        assumed.push(assumption.as_str());
    }
    let assuming = if assumed.is_empty() {
        String::new()
    } else {
        format!(", assuming {}", assumed.join(" and "))
    };
    let within = if exploration.most == FaultBudget::default() {
        format!("{workers} without a fault{assuming}")
    } else {
        format!("{workers} with at most {}{assuming}", exploration.most)
    };
    let effort = format!(
        "{}, {}, {}ms",
        count(covered.states, "state", "states"),
        count(covered.server_calls, "server call", "server calls"),
        exploration.wall_ms
    );
    match covered.schedules {
        Some(schedules) => {
            format!("all {} schedules of {within}; {effort}", approximately(schedules))
        }
        None => format!(
            "not all schedules of {within}, because a limit stopped the search; all prefixes of up \
            to {}; {effort}",
            count(covered.depth, "step", "steps")
        ),
    }
}

/// A number as `1234`, or as `5.2e8` if it is large.
fn approximately(number: f64) -> String {
    if number < 10_000.0 { format!("{number:.0}") } else { format!("{number:.1e}") }
}

fn history(violation: &Violation, view: View) -> String {
    let palette = view.palette;
    let heading = format!("{}, {}", violation.invariant.name, violation.faults);
    let mut text = lines(&palette.bold(&heading), 2, view.width);
    text.push_str(&lines(&format!("Expected: {}.", violation.invariant.sentence), 2, view.width));
    text.push_str(&lanes::text(&violation.lines, view));
    text.push_str(&otherwise(violation.deviates.as_deref(), view));
    // The token stays in one line, so that it can be copied.
    text.push_str(&format!(
        "  {}\n",
        palette.dim(&format!("--replay {}", escape::text(violation.token.to_string().as_bytes())))
    ));
    text
}

/// A replayed schedule and its violations.
fn again(exploration: &Exploration, replay: &ReplayedSchedule, view: View) -> String {
    let name = escape::text(exploration.name().as_bytes());
    let mut text = format!("{}, {}\n", view.palette.bold(&name), exploration.most);
    text.push_str(&lanes::text(&replay.lines, view));
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
pub(crate) fn differences(differences: &[FrontierDifference], view: View) -> String {
    if differences.is_empty() {
        return "All results match the accepted file.\n".to_owned();
    }
    let mut text = format!("{}\n", view.palette.bold("Different from the accepted file"));
    for difference in differences {
        let change = if difference.is_new { "new" } else { "gone" };
        let schema = escape::text(difference.schema.as_bytes());
        let faults = escape::text(difference.faults.as_bytes());
        let what = if difference.is_goal() {
            format!("{} is never reached", difference.invariant)
        } else {
            format!("{} by {faults}", difference.invariant)
        };
        text += &format!("  {change:<5}{schema}: {what}\n");
    }
    text
}

/// A number with its noun.
fn count(number: usize, one: &str, many: &str) -> String {
    format!("{number} {}", if number == 1 { one } else { many })
}
