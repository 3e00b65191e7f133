//! The verdict of every scenario with every built-in schema, line by line in `matrix.txt`: scenario, schema, verdict,
//! excuse, the longest wait in milliseconds, and the number of effects. Change a line only with a reason.

use std::collections::BTreeSet;

use serde_json::Value;

use super::variant::matrix;

const ACCEPTED: &str = include_str!("matrix.txt");

/// The cell as a line of the file.
fn line(cell: &Value) -> String {
    let word = |field: &str| match &cell[field] {
        Value::Null => "-".to_owned(),
        Value::String(word) => word.clone(),
        other => other.to_string(),
    };
    let fields = ["scenario", "schema", "verdict", "excuse", "blocked_ms", "effects"];
    fields.map(word).join(" ")
}

#[test]
fn each_cell_of_the_matrix_is_as_it_was_accepted() {
    let played: BTreeSet<_> = matrix().iter().map(|cell| line(&cell.0)).collect();
    let accepted: BTreeSet<_> = ACCEPTED.lines().map(str::to_owned).collect();
    let other: Vec<_> = played.difference(&accepted).collect();
    let missing: Vec<_> = accepted.difference(&played).collect();
    assert!(other.is_empty() && missing.is_empty(), "played: {other:#?}\naccepted: {missing:#?}");
}
