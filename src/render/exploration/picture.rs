//! A schedule as a picture: the swim lanes as SVG or as a Mermaid diagram.

use crate::domain::exploration::TraceLine;
use crate::render::escape;
use crate::render::exploration::lanes::{FAULT, Lanes};
use crate::render::fold::fold;

/// The height of a line of text, in pixels.
const LINE: usize = 18;

/// The distance between two lanes, in pixels.
const LANE: usize = 250;

/// The margin at the left and at the top, in pixels.
const MARGIN: usize = 20;

/// The width of a lane in characters of the font.
const CHARACTERS: usize = 31;

const STYLE: &str = "text{font:13px ui-monospace,monospace;fill:#1f2328}.name{font-weight:bold}\
.fault{fill:#b3261e}.redis{fill:#57606a}line{stroke:#d0d7de}rect{fill:#fff}";

/// The schedule as SVG, with its title.
pub(crate) fn svg(title: &str, lines: &[TraceLine]) -> String {
    let lanes = Lanes::of(lines);
    let mut drawn = texts(MARGIN, MARGIN + LINE, &[title.to_owned()], "name");
    let top = MARGIN + 3 * LINE;
    for (lane, name) in lanes.names().iter().enumerate() {
        drawn.push_str(&texts(column(lane), top, std::slice::from_ref(name), "name"));
    }
    let mut y = top + 2 * LINE;
    let mut before = "nothing";
    for line in lines {
        let cells = lanes.cells(line, before);
        let kind = if line.act.fault().is_some() { "fault" } else { "step" };
        let of_middle = if cells.lane.is_none() { kind } else { "redis" };
        let lane = cells.lane.unwrap_or(lanes.middle());
        let does = fold(&cells.does, Some(CHARACTERS));
        let holds = fold(&cells.holds, Some(CHARACTERS));
        drawn.push_str(&texts(column(lane), y, &does, kind));
        drawn.push_str(&texts(column(lanes.middle()), y, &holds, of_middle));
        let height = does.len().max(holds.len());
        y += height * LINE + LINE / 2;
        before = &line.holds;
    }
    let width = column(lanes.names().len());
    let height = y + MARGIN;
    let rule_top = top - LINE;
    let mut rules = String::new();
    for lane in 1..lanes.names().len() {
        let x = column(lane) - MARGIN / 2;
        rules += &format!("<line x1=\"{x}\" y1=\"{rule_top}\" x2=\"{x}\" y2=\"{y}\"/>\n");
    }
    // The rules come before the texts, because SVG draws later elements over earlier ones.
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{width}\" height=\"{height}\" \
         role=\"img\">\n<title>{}</title>\n<style>{STYLE}</style>\n\
         <rect width=\"100%\" height=\"100%\"/>\n{rules}{drawn}</svg>\n",
        escaped(title)
    )
}

fn column(lane: usize) -> usize {
    MARGIN + lane * LANE
}

fn texts(x: usize, y: usize, lines: &[String], class: &str) -> String {
    let mut elements = String::new();
    for (number, text) in lines.iter().enumerate() {
        if text.is_empty() {
            continue;
        }
        let y = y + number * LINE;
        let text = escaped(text);
        elements += &format!("<text x=\"{x}\" y=\"{y}\" class=\"{class}\">{text}</text>\n");
    }
    elements
}

fn escaped(text: &str) -> String {
    // `&` comes first, because the other replacements contain it.
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// The schedule as a Mermaid diagram, with its title.
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
    // Mermaid draws `-x` as an arrow with a cross at its end.
    let arrow = if cells.does.starts_with(FAULT) { "-x" } else { "->>" };
    let sends = format!("    p{lane}{arrow}p{middle}: {does}\n");
    if cells.holds.is_empty() {
        sends
    } else {
        sends + &format!("    Note over p{middle}: {}\n", plain(&cells.holds))
    }
}

/// Text without characters that have a meaning in Mermaid.
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
    fn a_name_never_becomes_markup() {
        let picture = svg("a<b & c", &lines());
        assert!(
            picture.contains("a&lt;b &amp; c") && picture.contains("makes &lt;b&gt;"),
            "{picture}"
        );
        assert_eq!(picture.matches("<line ").count(), 2, "between three lanes");
    }
}

#[cfg(test)]
mod mermaid_tests {
    use super::*;
    use crate::render::exploration::lanes::tests::lines;

    #[test]
    fn a_name_never_becomes_mermaid_syntax() {
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
