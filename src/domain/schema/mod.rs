//! Schemas: how one service library stores a record, as data read from a `schema.toml`.

pub mod catalog;
pub(crate) mod closed;
pub(crate) mod conduct;
pub(crate) mod forms;
pub(crate) mod key_template;
pub(crate) mod location;
pub(crate) mod lua_check;
pub(crate) mod model;
pub(crate) mod parse;
pub(crate) mod prefix;
pub(crate) mod raw;
pub(crate) mod role;
pub(crate) mod self_check;
pub(crate) mod steps;
pub(crate) mod value_template;
pub(crate) mod write_format;

pub(crate) use self::location::line_of_key;
pub(crate) use self::parse::{SchemaError, SchemaSource, parse};
pub(crate) use catalog::Catalog;
pub(crate) use closed::{Closed, Member};
pub(crate) use conduct::{Conduct, OnFailure, OnHangUp, WithoutRedis};
pub use forms::State;
pub(crate) use forms::{BodyEncoding, Encoding, Fields, Timestamp, ValueCase};
pub use model::Schema;
pub(crate) use model::{Origin, Script, TtlOf};
pub(crate) use prefix::{Prefix, PrefixPlace, Prefixes};
pub(crate) use role::Role;
pub use steps::{Action, Call, Meaning, Pattern, Reply, Step};
pub(crate) use steps::{Condition, First, SlotIs};
pub(crate) use value_template::Template;
pub(crate) use write_format::{HeaderNames, Keeps};
