//! What to change, for each harm that was found.

use crate::domain::exploration::Exploration;
use crate::render::escape;
use crate::render::fold::fold;
use crate::render::style::View;

/// A paragraph for each invariant that is broken: by which schemas, and what to change.
pub(super) fn text(explorations: &[Exploration], view: View) -> String {
    let View { palette, width } = view;
    let mut text = String::new();
    let violations = || {
        explorations
            .iter()
            .flat_map(|exploration| exploration.violations.iter().map(move |violation| (exploration, violation)))
    };
    let mut told: Vec<&str> = Vec::new();
    for (_, violation) in violations() {
        let invariant = violation.invariant;
        if told.contains(&invariant.name) {
            continue;
        }
        told.push(invariant.name);
        let mut names: Vec<_> =
            violations().filter(|(_, other)| other.invariant.name == invariant.name).map(|(of, _)| of.name()).collect();
        names.dedup();
        let names = escape::text(names.join(", ").as_bytes());
        text.push_str(&lines(&format!("{}: {names}", palette.bold(invariant.name)), 0, width));
        text.push_str(&lines(&format!("{} {}", palette.bold("→"), invariant.remedy), 2, width));
    }
    text
}

/// Text folded where the view ends, so many columns from the left.
pub(super) fn lines(text: &str, indent: usize, width: Option<usize>) -> String {
    let folded = fold(text, width.map(|width| width.saturating_sub(indent)));
    folded.iter().map(|line| format!("{}{line}\n", " ".repeat(indent))).collect()
}
