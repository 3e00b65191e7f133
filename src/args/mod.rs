//! Option groups that several commands share: by what they are about.

mod change;
mod connection;
mod context;
mod display;
mod expect;
mod junit;
mod keys;
mod prune;
mod scan_options;
mod schemas;
mod select;
mod watch;

pub(crate) use crate::domain::duration::parse_duration;
pub(crate) use change::{
    ChangeArgs, ConfirmArgs, ReturnArgs, StepArgs, parse_owner, parse_token, parse_ttl,
};
pub(crate) use connection::{ConnectionArgs, TlsArgs};
pub(crate) use context::ContextArgs;
pub(crate) use display::{DisplayArgs, Format, Output, ShowArgs, Sort, TabularOutput, without};
pub(crate) use expect::{accepted, exit_of};
pub(crate) use junit::JunitArgs;
pub(crate) use keys::KeysArgs;
pub(crate) use prune::PruneArgs;
pub(crate) use scan_options::{RateArgs, ScanArgs, ScanCountArgs};
pub(crate) use schemas::{SchemaArgs, SchemaFolderArgs, StatedTtl};
pub(crate) use select::{FilterArgs, SelectArgs, StateArg, ThresholdArgs, finding_codes};
pub(crate) use watch::{FollowArgs, WatchArgs};
