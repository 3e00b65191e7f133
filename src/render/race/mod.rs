//! Races as tables, charts, a timeline, and JSON.

mod chart;
mod race_json;
mod report;
mod table;
mod timeline;

pub use self::race_json::{document, lines};
pub use report::text;
