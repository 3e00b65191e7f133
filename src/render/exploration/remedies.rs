//! The suggested change for each violation.

use crate::domain::exploration::Exploration;
use crate::render::escape;
use crate::render::fold::lines;
use crate::render::style::View;

/// One suggested change, the violated invariants, and the schemas that it is for.
struct Advice<'a> {
    remedy: &'a str,
    invariants: Vec<&'static str>,
    schemas: Vec<String>,
}

/// A paragraph per suggested change: the violated invariants that count, the schemas, and the change.
/// Violations with the same cause share one paragraph.
pub(super) fn text(explorations: &[Exploration], view: View) -> String {
    let mut advice: Vec<Advice<'_>> = Vec::new();
    for exploration in explorations {
        for violation in exploration.violations.iter().filter(|violation| violation.counts) {
            // One flaw often violates several invariants, and its remedy should appear only once.
            let known = advice.iter().position(|known| known.remedy == violation.remedy);
            let index = known.unwrap_or(advice.len());
            if index == advice.len() {
                advice.push(Advice {
                    remedy: violation.remedy,
                    invariants: Vec::new(),
                    schemas: Vec::new(),
                });
            }
            let of_remedy = &mut advice[index];
            if !of_remedy.invariants.contains(&violation.invariant.name) {
                of_remedy.invariants.push(violation.invariant.name);
            }
            let name = exploration.name();
            if !of_remedy.schemas.contains(&name) {
                of_remedy.schemas.push(name);
            }
        }
    }
    let View { palette, width } = view;
    let mut text = String::new();
    for Advice { remedy, invariants, schemas } in advice {
        let names = escape::text(schemas.join(", ").as_bytes());
        text.push_str(&lines(
            &format!("{}: {names}", palette.bold(&invariants.join(", "))),
            0,
            width,
        ));
        text.push_str(&lines(&format!("{} {remedy}", palette.bold("→")), 2, width));
    }
    text
}
