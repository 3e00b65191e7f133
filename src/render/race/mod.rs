//! Races as tables, charts, a timeline, and JSON.

mod chart;
mod race_cases;
mod race_json;
mod report;
mod sentences;
mod table;
mod timeline;

pub(crate) use self::race_cases::suites;
pub use self::race_json::run;
pub use self::report::text;
