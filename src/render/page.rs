//! Pages for people: labelled fields and indented paragraphs, folded where the terminal ends.

use std::fmt::Write as _;

use super::fold::fold;
use super::style::View;

const LABEL: usize = 14;

/// Bytes that the buffer has left behind a line: behind a line of megabytes the buffer need not grow, which takes twice as many.
const ROOM: usize = 4096;

pub(super) struct Page {
    pub(super) text: String,
    pub(super) view: View,
}

impl Page {
    pub(super) fn new(view: View) -> Self {
        Self { text: String::new(), view }
    }

    /// A line as it is, however long.
    pub(super) fn line(&mut self, line: &str) {
        self.indented(0, line);
    }

    /// The same, so many columns to the right.
    pub(super) fn indented(&mut self, indent: usize, line: &str) {
        self.text.reserve(indent + line.len() + ROOM);
        self.text.extend(std::iter::repeat_n(' ', indent));
        self.text.push_str(line);
        self.text.push('\n');
    }

    /// A label and its value; further lines of the value stand below its first one.
    pub(super) fn field(&mut self, label: &str, value: &str) {
        let label = self.view.palette.dim(&format!("{label:<LABEL$}"));
        let mut lines = fold(value, self.width_less(LABEL + 2)).into_iter();
        let _ = writeln!(self.text, "  {label}{}", lines.next().unwrap_or_default());
        for line in lines {
            let _ = writeln!(self.text, "  {:LABEL$}{line}", "");
        }
    }

    /// A paragraph; its further lines are indented by two columns more than its first one.
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
