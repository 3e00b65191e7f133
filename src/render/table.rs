//! Columns side by side, as wide as what stands in them, folded where the terminal ends.

use comfy_table::{Attribute, Cell, ContentArrangement, Table, TableStyle};

use super::style::Palette;

/// Lays out rows under a heading (none: no heading line), `indent` columns from the left.
pub(super) fn grid(
    palette: Palette,
    width: Option<usize>,
    indent: usize,
    heading: &[&str],
    rows: Vec<Vec<String>>,
) -> String {
    let mut table = Table::new();
    table.load_style(TableStyle::new());
    if palette.is_on() {
        table.enforce_styling();
    } else {
        table.force_no_tty();
    }
    match width.and_then(|width| u16::try_from(width.saturating_sub(indent)).ok()) {
        Some(width) => table.set_content_arrangement(ContentArrangement::Dynamic).set_width(width),
        None => table.set_content_arrangement(ContentArrangement::Disabled),
    };
    if !heading.is_empty() {
        table.add_row(heading.iter().map(|name| {
            let cell = Cell::new(name);
            if palette.is_on() { cell.add_attribute(Attribute::Bold) } else { cell }
        }));
    }
    table.add_rows(rows);
    let last = table.column_count().saturating_sub(1);
    for (index, column) in table.column_iter_mut().enumerate() {
        column.set_padding((0, if index == last { 0 } else { 2 }));
    }
    let indent = " ".repeat(indent);
    table.lines().map(|line| format!("{indent}{}\n", line.trim_end())).collect()
}
