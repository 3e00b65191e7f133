//! A connection to one server: its target, opening and log-in, requests and replies, and the
//! permission to change data.

mod bounds;
pub(crate) mod client_options;
mod connection;
pub(crate) mod credentials;
pub(crate) mod diagnose;
mod find_master;
pub(crate) mod permit;
mod redacted;
pub(crate) mod reply;
pub(crate) mod resp;
pub(crate) mod sentinels;
pub(crate) mod target;
pub(crate) mod tls;
pub(crate) mod trace;
mod traced;
mod transport;

pub(super) use client_options::ClientOption;
pub(crate) use connection::{Connection, Packed, pack};
pub(crate) use permit::{Permit, Writable};
pub(super) use resp::Token;
pub use target::{Address, Target};
