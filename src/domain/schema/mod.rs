//! Schemas: how one service library stores a record, as data read from a `schema.toml`.

pub mod catalog;
pub(crate) mod closed;
pub(crate) mod conduct;
pub(crate) mod forms;
pub mod key_template;
pub(crate) mod location;
pub mod lua_check;
pub(crate) mod model;
pub(crate) mod parse;
pub(crate) mod prefix;
pub(crate) mod raw;
pub(crate) mod role;
pub mod self_check;
pub(crate) mod steps;
pub(crate) mod value_template;
pub(crate) mod write_format;

pub use self::location::line_of_key;
pub use self::parse::{SchemaError, SchemaSource, parse};
pub use closed::{Closed, Level, Member};
pub use conduct::{Conduct, OnFailure, OnHangUp, WithoutRedis};
pub use forms::{BodyEncoding, Encoding, Fields, State, Timestamp, ValueCase, Where};
pub use model::{Origin, Schema, Script, TtlOf};
pub use prefix::{Prefix, PrefixPlace, Prefixes};
pub use role::{Role, SlotKey};
pub use steps::{Action, Call, Condition, First, Meaning, Pattern, Reply, SlotIs, Step};
pub use value_template::Template;
pub use write_format::{HeaderNames, Keeps, WriteFormat};
