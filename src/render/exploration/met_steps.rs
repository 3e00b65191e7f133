//! What an exploration met of the described steps, and the goals that it never reached.

use serde_json::{Value, json};

use crate::domain::exploration::{CoveredCall, Exploration, StepCoverage, UnreachedGoal};
use crate::render::escape;
use crate::render::fold::lines;
use crate::render::style::View;

/// The goals that no schedule without a fault reaches, as one phrase; `None` if all were reached.
pub(super) fn unreached(exploration: &Exploration) -> Option<String> {
    let mut nouns = Vec::new();
    for unreached in exploration.unreached() {
        nouns.push(unreached.goal.noun());
    }
    let last = nouns.pop()?;
    if nouns.is_empty() {
        return Some(last.to_owned());
    }
    Some(format!("{} or {last}", nouns.join(", ")))
}

/// Why the first of these goals is not reached.
pub(super) fn reason(exploration: &Exploration, view: View) -> String {
    let Some(UnreachedGoal { why: Some(why), .. }) = exploration.unreached().first() else {
        return String::new();
    };
    lines(&format!("why: {}", escape::text(why.as_bytes())), 2, view.width)
}

/// How many of the listed replies and formats were met, and which ones were not.
pub(super) fn coverage(exploration: &Exploration, view: View) -> String {
    let Some(steps) = &exploration.steps else { return String::new() };
    let is_mixed = exploration.schemas.len() > 1;
    let mut all = 0;
    let mut met = 0;
    let mut never = Vec::new();
    for call in &steps.calls {
        let title = titled(&call.schema, &call.title, is_mixed);
        all += call.replies.len();
        if !call.is_sent {
            never.push(title);
            continue;
        }
        for reply in &call.replies {
            if reply.is_met {
                met += 1;
            } else {
                never.push(format!("{title} {}", reply.reply));
            }
        }
    }
    let mut formats = 0;
    for format in &steps.formats {
        if format.is_met {
            formats += 1;
        } else {
            never.push(titled(&format.schema, &format!("format {}", format.name), is_mixed));
        }
    }
    let so_far = if exploration.covered.complete { "" } else { " so far" };
    let mut text =
        format!("met {met} of {all} replies and {formats} of {} formats", steps.formats.len());
    if !never.is_empty() {
        text.push_str(&format!("; never{so_far}: {}", never.join(", ")));
    }
    let mut text = lines(&view.palette.dim(&escape::text(text.as_bytes())), 2, view.width);
    for call in &steps.calls {
        if let Some(unlisted) = &call.unlisted {
            let title = titled(&call.schema, &call.title, is_mixed);
            let found = format!("not listed in the schema: {title} replied {unlisted}");
            text.push_str(&lines(&escape::text(found.as_bytes()), 2, view.width));
        }
    }
    text
}

/// A part of a schema, with the schema's name if two schemas were explored together.
fn titled(schema: &str, part: &str, is_mixed: bool) -> String {
    if is_mixed { format!("{schema} {part}") } else { part.to_owned() }
}

/// What was met, as JSON.
pub(super) fn coverage_json(steps: &StepCoverage) -> Value {
    let mut formats = Vec::new();
    for format in &steps.formats {
        formats.push(json!({
            "schema": format.schema,
            "format": format.name,
            "met": format.is_met,
        }));
    }
    json!({
        "calls": steps.calls.iter().map(call_json).collect::<Vec<_>>(),
        "formats": formats,
    })
}

fn call_json(call: &CoveredCall) -> Value {
    let mut replies = Vec::new();
    for reply in &call.replies {
        replies.push(json!({
            "reply": reply.reply,
            "means": reply.means.as_str(),
            "met": reply.is_met,
        }));
    }
    json!({
        "schema": call.schema,
        "step": call.step,
        "call": call.name,
        "sent": call.is_sent,
        "replies": replies,
        "unlisted": call.unlisted,
    })
}

/// A goal that was not reached, as JSON.
pub(super) fn unreached_json(unreached: &UnreachedGoal) -> Value {
    json!({ "goal": unreached.goal.as_str(), "why": unreached.why })
}
