//! Option groups that several commands share: one group a file.

mod change;
mod connection;
mod display;
mod findings;
mod headings;
mod keys;
mod output;
mod parsers;
mod returns;
mod schemas;
mod select;
mod show;
mod state;
mod step;
mod thresholds;
mod tls;
mod walk;

pub(crate) use crate::domain::duration::parse_duration;
pub(crate) use change::{ChangeArgs, ConfirmArgs};
pub(crate) use connection::ConnectionArgs;
pub(crate) use display::DisplayArgs;
pub(crate) use findings::finding_codes;
pub(crate) use headings::without;
pub(crate) use keys::KeysArgs;
pub(crate) use output::Output;
pub(crate) use parsers::{parse_owner, parse_token, parse_ttl};
pub(crate) use returns::ReturnArgs;
pub(crate) use schemas::{SchemaArgs, SchemaFolderArgs};
pub(crate) use select::{FilterArgs, SelectArgs};
pub(crate) use show::{Format, ShowArgs, Sort};
pub(crate) use state::StateArg;
pub(crate) use step::StepArgs;
pub(crate) use thresholds::ThresholdArgs;
pub(crate) use tls::TlsArgs;
pub(crate) use walk::{PageArgs, WalkArgs};
