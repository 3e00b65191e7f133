//! One screen of a watch. It overwrites the previous one in a single write: cursor home, the lines,
//! and the rest cleared.

use std::fmt::Write as _;
use std::ops::Deref;

use indicatif::ProgressBar;
use unicode_width::UnicodeWidthStr as _;

/// The content of one screen so far.
#[derive(Debug, Default)]
pub(super) struct Frame {
    heading: String,
    data: Vec<u8>,
    /// The lines below the data.
    notes: Vec<String>,
    /// The most lines of data to keep, and how many lines there were.
    most: usize,
    lines: usize,
}

impl Frame {
    /// A frame for a terminal of this height in lines.
    pub(super) fn new(heading: String, height: usize) -> Self {
        Self { heading, most: height, ..Self::default() }
    }

    /// Adds data. Lines beyond the terminal's height are only counted.
    pub(super) fn data(&mut self, bytes: &[u8]) {
        for line in bytes.split_inclusive(|byte| *byte == b'\n') {
            // A list may have millions of lines, and no more than a screen of them is shown.
            if self.lines < self.most {
                self.data.extend_from_slice(line);
            }
            self.lines += usize::from(line.ends_with(b"\n"));
        }
    }

    pub(super) fn note(&mut self, line: String) {
        self.notes.push(line);
    }

    /// The bytes that draw the frame on a terminal of this size.
    pub(super) fn paint(&self, width: usize, height: usize) -> String {
        let text = String::from_utf8_lossy(&self.data);
        let data: Vec<_> = text.lines().collect();
        let mut around = rows(&self.heading, width);
        for note in &self.notes {
            around += rows(note, width);
        }
        // The last row is reserved for the cursor.
        let mut room = height.saturating_sub(around + 1);
        // Lines that were only counted take at least one row each.
        let mut all = self.lines - data.len();
        for line in &data {
            all += rows(line, width);
        }
        // The line that counts the missing lines takes a row as well.
        if all > room {
            room = room.saturating_sub(1);
        }
        let mut painted = format!("\u{1b}[H{}\u{1b}[K\n", self.heading);
        let mut shown = 0;
        for line in &data {
            let Some(left) = room.checked_sub(rows(line, width)) else { break };
            room = left;
            shown += 1;
            // Writing to memory cannot fail.
            let _ = writeln!(painted, "{line}\u{1b}[K");
        }
        let left = self.lines - shown;
        if left > 0 {
            let _ = writeln!(painted, "… {left} more lines\u{1b}[K");
        }
        for note in &self.notes {
            let _ = writeln!(painted, "{note}\u{1b}[K");
        }
        painted.push_str("\u{1b}[J");
        painted
    }
}

/// How many rows of a terminal of this width a line takes. Colours take none.
fn rows(line: &str, width: usize) -> usize {
    anstream::adapter::strip_str(line).to_string().width().div_ceil(width.max(1)).max(1)
}

/// A progress line on stderr. Dropping it erases it however the work ended, because otherwise it
/// would cover a question or a message that is printed later.
pub struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// A progress line that is never shown.
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    pub(super) fn new(bar: ProgressBar) -> Self {
        Self(bar)
    }
}

impl Deref for ProgressLine {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn painted(lines: usize, notes: usize, height: usize) -> String {
        let mut frame = Frame::new("heading".to_owned(), height);
        (0..lines).for_each(|line| frame.data(format!("line {line}\n").as_bytes()));
        (0..notes).for_each(|note| frame.note(format!("note {note}")));
        frame.paint(80, height)
    }

    /// Rule: a frame never scrolls, and lines that do not fit are counted.
    #[test]
    fn a_frame_fits_the_terminal() {
        for lines in [0, 1, 5, 6, 7, 8, 100] {
            for notes in 0..3 {
                let painted = painted(lines, notes, 10);
                let count = painted.matches('\n').count();
                assert!(count < 10, "{lines} {notes}: {painted:?}");
                let shown = painted.matches("line ").count();
                let left = lines - shown;
                assert_eq!(
                    painted.contains(&format!("… {left} more lines")),
                    left > 0,
                    "{painted:?}"
                );
                assert_eq!(painted.matches("note").count(), notes);
                assert!(left == 0 || count == 9, "{lines} {notes}: {painted:?}");
            }
        }
    }

    #[test]
    fn a_line_that_is_wider_than_the_terminal_takes_two_rows() {
        let mut frame = Frame::new(String::new(), 6);
        (0..4).for_each(|_| frame.data(format!("{}\n", "x".repeat(15)).as_bytes()));
        assert_eq!(frame.paint(10, 6).matches("xx\u{1b}[K\n").count(), 1);
    }
}
