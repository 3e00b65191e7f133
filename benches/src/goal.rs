//! What idemctl sets itself, beside what was measured.

/// A limit, and what was measured.
pub struct Goal {
    what: String,
    limit: f64,
    unit: &'static str,
    measured: f64,
}

impl Goal {
    /// At most so many times what the other takes.
    pub fn ratio(what: impl Into<String>, limit: f64, measured: f64) -> Self {
        Self { what: what.into(), limit, unit: "x", measured }
    }

    /// At most so many milliseconds.
    pub fn millis(what: impl Into<String>, limit: f64, measured: f64) -> Self {
        Self { what: what.into(), limit, unit: " ms", measured }
    }

    /// At most so many megabytes.
    pub fn megabytes(what: impl Into<String>, limit: f64, measured: f64) -> Self {
        Self { what: what.into(), limit, unit: " MB", measured }
    }
}

/// Prints one line a goal.
pub fn print(goals: &[Goal]) {
    println!("\n{:<72} {:>9} {:>10}", "goal", "at most", "measured");
    for Goal { what, limit, unit, measured } in goals {
        let verdict = if measured <= limit { "" } else { "  missed" };
        let (limit, measured) = (format!("{limit}{unit}"), format!("{measured:.2}{unit}"));
        println!("{what:<72} {limit:>9} {measured:>10}{verdict}");
    }
}
