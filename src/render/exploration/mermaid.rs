//! A history as a sequence diagram for Mermaid, which many viewers of Markdown draw.

use super::lanes::{FAULT, Lanes};
use crate::domain::exploration::TraceLine;
use crate::render::escape;

/// A diagram, with its title.
pub(crate) fn mermaid(title: &str, lines: &[TraceLine]) -> String {
    let lanes = Lanes::of(lines);
    let mut text = format!("---\ntitle: {}\n---\nsequenceDiagram\n", plain(title));
    for (number, name) in lanes.names().iter().enumerate() {
        text.push_str(&format!("    participant p{number} as {}\n", plain(name)));
    }
    let middle = lanes.middle();
    let mut before = "nothing";
    for line in lines {
        text.push_str(&steps(&lanes, line, before, middle));
        before = &line.holds;
    }
    text
}

fn steps(lanes: &Lanes, line: &TraceLine, before: &str, middle: usize) -> String {
    let cells = lanes.cells(line, before);
    let Some(lane) = cells.lane else {
        return format!("    Note over p{middle}: {}\n", plain(&cells.holds));
    };
    let does = plain(&cells.does);
    if line.reply.is_none() {
        return format!("    Note over p{lane}: {does}\n");
    }
    let arrow = if cells.does.starts_with(FAULT) { "-x" } else { "->>" };
    let sends = format!("    p{lane}{arrow}p{middle}: {does}\n");
    if cells.holds.is_empty() {
        sends
    } else {
        sends + &format!("    Note over p{middle}: {}\n", plain(&cells.holds))
    }
}

/// Text in which nothing means something to Mermaid.
fn plain(text: &str) -> String {
    let text = escape::text(text.as_bytes());
    text.replace(';', ",")
        .replace('#', "no. ")
        .replace(['<', '>', '`', '"', '\\'], "'")
        .replace('\n', " ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::render::exploration::lanes::tests::lines;

    #[test]
    fn nothing_of_a_name_is_taken_for_mermaids_words() {
        let text = mermaid("a;b#c", &lines());
        assert!(text.contains("title: a,bno. c"), "{text}");
        assert!(
            text.contains(
                "    p0->>p1: begins (take): acquired\n    Note over p1: lock of worker 1, 30s\n"
            ),
            "{text}"
        );
        assert!(
            text.contains("    Note over p1: ✗ the lock's TTL ends: nothing\n")
                && !text.contains('<'),
            "{text}"
        );
    }
}
