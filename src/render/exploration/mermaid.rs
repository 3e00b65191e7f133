//! A history as a sequence diagram for Mermaid, which many viewers of Markdown draw.

use super::lanes::{FAULT, Lanes};
use crate::domain::exploration::{Harm, Line};
use crate::render::escape;

/// A diagram, with its title.
pub(crate) fn mermaid(title: &str, harm: &Harm) -> String {
    let lanes = Lanes::of(&harm.lines);
    let mut text = format!(
        "---\ntitle: {}\n---\nsequenceDiagram\n",
        plain(&format!("{title}, {}, {}", harm.invariant.name, harm.faults))
    );
    for (number, name) in lanes.names().iter().enumerate() {
        text.push_str(&format!("    participant p{number} as {}\n", plain(name)));
    }
    let redis = lanes.redis();
    let mut before = "nothing";
    for line in &harm.lines {
        text.push_str(&steps(&lanes, line, before, redis));
        before = &line.holds;
    }
    text
}

fn steps(lanes: &Lanes, line: &Line, before: &str, redis: usize) -> String {
    let cells = lanes.cells(line, before);
    let Some(lane) = cells.lane else { return format!("    Note over p{redis}: {}\n", plain(&cells.redis)) };
    let does = plain(&cells.does);
    if line.reply.is_none() {
        return format!("    Note over p{lane}: {does}\n");
    }
    let arrow = if cells.does.starts_with(FAULT) { "-x" } else { "->>" };
    let sends = format!("    p{lane}{arrow}p{redis}: {does}\n");
    if cells.redis.is_empty() { sends } else { sends + &format!("    Note over p{redis}: {}\n", plain(&cells.redis)) }
}

/// Text in which nothing means something to Mermaid.
fn plain(text: &str) -> String {
    let text = escape::text(text.as_bytes());
    text.replace(';', ",").replace('#', "no. ").replace(['<', '>', '`', '"', '\\'], "'").replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::exploration::{Budget, Token, invariants};
    use crate::render::exploration::lanes::tests::lines;

    #[test]
    fn nothing_of_a_name_is_taken_for_mermaids_words() {
        let token = Token { workers: vec!["mine".to_owned()], acts: Vec::new() };
        let harm =
            Harm { invariant: &invariants::ALL[0], faults: Budget::default(), lines: lines(), token, deviates: None };
        let text = mermaid("a;b#c", &harm);
        assert!(text.contains("title: a,bno. c, one-effect, no fault"), "{text}");
        assert!(
            text.contains("    p0->>p1: begins (take): acquired\n    Note over p1: lock of worker 1, 30s\n"),
            "{text}"
        );
        assert!(text.contains("    Note over p1: ✗ the lock's TTL ends: nothing\n") && !text.contains('<'), "{text}");
    }
}
