//! Records: what was seen of their Redis keys, what that says, whose it is, and how well it is known.

pub mod age;
pub mod claim;
pub mod deadline;
pub mod decode;
pub mod evidence;
pub mod identity;
pub mod json;
pub mod json_prefix;
pub mod locate;
pub mod observation;
mod record;
pub mod response;
pub mod stranger;

pub use record::Record;
