//! Schemas: how one service library stores a record, as data read from a `schema.toml`.

mod check;
pub mod lua;
mod model;
mod place;
mod raw;

pub use check::{SchemaError, SchemaSource, parse};
pub use model::{
    Action, BodyEncoding, Call, Condition, Encoding, Fields, Meaning, Origin, Pattern, Reply, Schema, Script, Slot,
    SlotIs, SlotKey, State, Step, Timestamp, ValueCase, Where, WriteFormat,
};
pub use place::line_of_key;
