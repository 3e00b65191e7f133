//! Records: the observed Redis keys, their decoded values, the service that wrote them, and the
//! evidence.

pub(crate) mod age;
pub mod author;
pub(crate) mod codec;
pub(crate) mod deadline;
pub mod decode;
pub(crate) mod encode;
pub(crate) mod evidence;
pub(crate) mod extended;
pub mod field_set;
pub(crate) mod identity;
pub(crate) mod implausible;
pub mod json;
pub mod json_prefix;
pub(crate) mod key_identity;
pub mod locate;
pub(crate) mod name;
pub mod observation;
pub(crate) mod only;
pub(crate) mod packed;
mod record;
pub mod response;
pub(crate) mod unclaimed_key;

pub(crate) use age::{Age, AgeSource};
pub(crate) use author::Author;
pub(crate) use deadline::Deadline;
pub(crate) use decode::{Decoded, Reading, Stored};
pub(crate) use evidence::Evidence;
pub(crate) use extended::{Extended, Left};
pub use field_set::{FieldSet, ValueField};
pub(crate) use identity::{Comparison, Identity};
pub(crate) use json::Json;
pub(crate) use key_identity::{KeyIdentity, has_expiring_fields, is_plain_hash};
pub(crate) use locate::Candidate;
pub use name::RecordName;
pub(crate) use name::{GivenKey, KeyMeanings};
pub(crate) use observation::{Content, Field, Hash, KeyState, Observation, TimeLeft};
pub(crate) use only::Only;
pub use record::Record;
pub(crate) use response::Response;
pub(crate) use unclaimed_key::UnclaimedKey;
