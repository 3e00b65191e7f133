//! The results of `context test`, as lines and as JSON.

use anstyle::AnsiColor;
use serde::Serialize;

use super::escape;
use super::style::View;

/// The result of one check of a connection, in the order of the JSON fields.
#[derive(Serialize)]
pub struct Check {
    /// The name of the check.
    pub check: &'static str,
    /// `None` if the check was not made, or its result does not matter.
    pub ok: Option<bool>,
    /// The result in words.
    pub says: String,
}

/// One line per check.
pub fn page(checks: &[Check], view: View) -> String {
    let mut text = String::new();
    let good = AnsiColor::Green.on_default();
    let bad = AnsiColor::Red.on_default().bold();
    for check in checks {
        let mark = match check.ok {
            Some(true) => view.palette.paint(good, "ok"),
            Some(false) => view.palette.paint(bad, "NO"),
            None => view.palette.dim("- "),
        };
        text.push_str(&format!(
            "{mark}  {:<7}  {}\n",
            check.check,
            escape::text(check.says.as_bytes())
        ));
    }
    text
}
