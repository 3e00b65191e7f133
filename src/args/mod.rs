//! Option groups that several commands share: one group a file.

mod change;
mod connection;
mod display;
mod findings;
mod output;
mod parsers;
mod schemas;
mod state;
mod step;
mod thresholds;
mod tls;
mod walk;

pub use crate::domain::duration::parse_duration;
pub use change::{ChangeArgs, ConfirmArgs};
pub use connection::ConnectionArgs;
pub use display::{ColorArg, DisplayArgs};
pub use findings::finding_codes;
pub use output::Output;
pub use parsers::{parse_owner, parse_token};
pub use schemas::{SchemaArgs, SchemaFolderArgs};
pub use state::StateArg;
pub use step::StepArgs;
pub use thresholds::ThresholdArgs;
pub use tls::TlsArgs;
pub use walk::{PageArgs, ReadFrom, WalkArgs};
