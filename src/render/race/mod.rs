//! Races as tables, charts, a timeline, and JSON.

mod chart;
mod race_json;
mod report;
mod sentences;
mod table;
mod timeline;

pub use self::race_json::run;
pub use self::report::text;
