//! Schemas: as a table, as a page, as JSON.

mod page;
mod schema_json;
mod words;

pub use self::page::{page, table};
pub use self::schema_json::schema;
