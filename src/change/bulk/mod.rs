//! What purge and sweep share: records are chosen by a rule, counted, looked at again right before the change, changed as
//! long as they are what was seen, and accounted for.

mod ahead;
mod flow;
mod key_file;
mod narrowing;
mod owners;
mod place;
mod removal;
mod rule;
mod second_look;
mod source;
mod survey;

pub use ahead::Supply;
pub use flow::Flow;
pub use key_file::KeyFile;
pub use narrowing::Narrowing;
pub use owners::Owners;
pub use rule::{Chosen, Rule, Scope, Verdict};
pub use source::Source;
pub use survey::Survey;
