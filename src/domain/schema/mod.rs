//! Schemas: how a service library stores a record, as data from a `schema.toml`.

mod capabilities;
pub mod catalog;
pub(crate) mod closed_fields;
pub(crate) mod decoder;
mod files_hash;
mod key_parts;
pub(crate) mod key_template;
pub(crate) mod location;
pub(crate) mod lua_check;
pub(crate) mod model;
pub(crate) mod parse;
mod protocol;
pub(crate) mod raw;
pub(crate) mod redis_keys;
pub(crate) mod service_behavior;
mod shipped;
pub(crate) mod steps;
pub(crate) mod ttl;
pub(crate) mod value_format;
pub(crate) mod value_template;
pub(crate) mod write_format;
mod written;

pub(crate) use self::location::line_of_key;
pub(crate) use self::parse::{CompiledIn, SchemaError, SchemaSource, parse, parse_all};
pub(crate) use catalog::Catalog;
pub(crate) use closed_fields::{ClosedFields, Member};
pub(crate) use decoder::{Codec, Decoder, Decoding, Encoding};
pub(crate) use key_template::Exclusion;
pub use model::Schema;
pub(crate) use model::{SchemaOrigin, Script};
pub(crate) use protocol::expanded;
pub(crate) use redis_keys::{Prefix, PrefixPlace, Prefixes, Role};
pub(crate) use service_behavior::{
    OnFailure, OnHangUp, PayloadUse, ServiceBehavior, StatusCodes, WithoutRedis,
};
pub(crate) use shipped::Shipped;
pub use steps::{Action, Call, Meaning, Reply, ReplyPattern, Step};
pub(crate) use steps::{Condition, First, KeyIs};
pub(crate) use ttl::NO_TTL;
pub use ttl::TtlOf;
pub use value_format::State;
pub(crate) use value_format::{
    BodyEncoding, BodyIs, Clock, ExpiresAt, PastExpiry, Timestamp, ValueFormat,
};
pub(crate) use value_template::Template;
pub(crate) use write_format::{HeaderNames, HeadersAs, Keeps, Numbers, WriteFormat};
