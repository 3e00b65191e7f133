//! Option groups that several commands share: by what they are about.

mod change;
mod connection;
mod display;
mod schemas;
mod select;
mod watch;

pub(crate) use self::connection::ContextArgs;
pub(crate) use self::display::JunitArgs;
pub(crate) use self::display::{accepted, exit_of};
pub(crate) use self::select::KeysArgs;
pub(crate) use self::select::PruneArgs;
pub(crate) use self::watch::{RateArgs, ScanArgs, ScanCountArgs};
pub(crate) use crate::domain::duration::parse_duration;
pub(crate) use change::{
    ChangeArgs, ConfirmArgs, PlanArgs, ReturnArgs, StepArgs, parse_owner, parse_token, parse_ttl,
};
pub(crate) use connection::{ConnectionArgs, TlsArgs};
pub(crate) use display::{DisplayArgs, Format, Output, ShowArgs, Sort, TabularOutput, without};
pub(crate) use schemas::{SchemaArgs, SchemaFolderArgs, StatedTtl};
pub(crate) use select::{FilterArgs, SelectArgs, StateArg, ThresholdArgs, finding_codes};
pub(crate) use watch::{FollowArgs, WatchArgs};
