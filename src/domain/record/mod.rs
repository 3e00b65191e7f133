//! Records: what was seen of their Redis keys, what that says, whose it is, and how well it is known.

pub(crate) mod age;
pub mod claim;
pub(crate) mod codec;
pub(crate) mod deadline;
pub mod decode;
mod dump_type;
pub(crate) mod encode;
pub(crate) mod evidence;
pub(crate) mod extended;
pub(crate) mod identity;
pub mod json;
pub mod json_prefix;
pub(crate) mod key_identity;
pub mod locate;
pub mod observation;
pub(crate) mod packed;
mod record;
pub mod response;
pub(crate) mod stranger;

pub(crate) use age::{Age, AgeSource};
pub(crate) use claim::Claim;
pub(crate) use deadline::Deadline;
pub(crate) use decode::{Decoded, Reading, Stored};
pub(crate) use evidence::Evidence;
pub(crate) use extended::{Extended, Left};
pub(crate) use identity::{Comparison, Identity};
pub(crate) use json::Json;
pub(crate) use key_identity::KeyIdentity;
pub(crate) use locate::Candidate;
pub(crate) use observation::{Content, Expiry, Field, Hash, Observation, SeenKey};
pub use record::Record;
pub(crate) use response::Response;
pub(crate) use stranger::Stranger;
