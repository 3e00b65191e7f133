//! Races as tables, charts, a timeline, and JSON.

mod chart;
mod json;
mod report;
mod table;
mod timeline;

pub use json::{document, lines};
pub use report::text;
