//! Schemas: as a table, as a page, as JSON.

mod page;
mod schema_json;
mod table;
mod words;

pub use self::schema_json::{document, line};
pub use page::page;
pub use table::table;
