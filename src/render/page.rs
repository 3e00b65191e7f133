//! Pages for people: labelled fields and indented paragraphs, folded at the width of the terminal.

use std::fmt::Write as _;

use super::fold::fold;
use super::style::View;

/// The width of the labels' column.
const LABEL: usize = 14;

/// Spare bytes in the buffer after each line. After a line of megabytes the next one then does not
/// double the buffer.
const ROOM: usize = 4096;

/// A page that is being written.
pub(super) struct Page {
    pub(super) text: String,
    pub(super) view: View,
}

impl Page {
    /// An empty page.
    pub(super) fn new(view: View) -> Self {
        Self { text: String::new(), view }
    }

    /// A line of any length, unfolded.
    pub(super) fn line(&mut self, line: &str) {
        self.indented(0, line);
    }

    /// A line that is indented by this many columns.
    pub(super) fn indented(&mut self, indent: usize, line: &str) {
        self.text.reserve(indent + line.len() + ROOM);
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A label and its value. Further lines of the value are aligned with the first one.
    pub(super) fn field(&mut self, label: &str, value: &str) {
        let label = self.view.palette.dim(&format!("{label:<LABEL$}"));
        self.beside(&format!("  {label}"), LABEL + 2, value);
    }

    /// A text beside a label of this many columns. Its lines are aligned.
    pub(super) fn beside(&mut self, label: &str, columns: usize, text: &str) {
        let mut lines = fold(text, self.width_less(columns)).into_iter();
        let _ = writeln!(self.text, "{label}{}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(self.text, "{:columns$}{line}", "");
        }
    }

    /// A paragraph whose further lines are indented by two more columns.
    pub(super) fn wrapped(&mut self, indent: usize, text: &str) {
        for (index, line) in fold(text, self.width_less(indent + 2)).iter().enumerate() {
            let hang = if index == 0 { 0 } else { 2 };
            let _ = writeln!(self.text, "{:1$}{line}", "", indent + hang);
        }
    }

    fn width_less(&self, columns: usize) -> Option<usize> {
        self.view.width.map(|width| width.saturating_sub(columns))
    }
}
