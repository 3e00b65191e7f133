//! Schemas: as a table, as a page, as JSON.

mod json;
mod page;
mod table;
mod words;

pub use json::{document, line};
pub use page::page;
pub use table::table;
