//! Schemas: how one service library stores a record, as data read from a `schema.toml`.

mod check;
mod closed;
mod conduct;
mod forms;
pub mod lua;
mod model;
mod place;
mod prefix;
mod raw;
mod steps;

pub use check::{SchemaError, SchemaSource, parse};
pub use closed::{Closed, Level, Member};
pub use conduct::{Conduct, OnFailure, OnHangUp, WithoutRedis};
pub use forms::{BodyEncoding, Encoding, Fields, State, Timestamp, ValueCase, Where};
pub use model::{HeaderNames, Origin, Schema, Script, Slot, SlotKey, TtlOf, WriteFormat};
pub use place::line_of_key;
pub use prefix::{Prefix, PrefixPlace};
pub use steps::{Action, Call, Condition, First, Meaning, Pattern, Reply, SlotIs, Step};
