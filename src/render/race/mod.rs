//! Races as a table, a timeline, and JSON.

mod race_json;
mod report;
mod sentences;
mod table;
mod timeline;

pub use self::race_json::run;
pub use self::report::text;
