//! One connection: where to, how it is opened, logged in to and spoken on, and the leave to change.

pub(crate) mod client_options;
mod connection;
pub(crate) mod diagnose;
mod find_master;
pub(crate) mod permit;
pub(crate) mod reply;
pub(crate) mod resp;
pub(crate) mod sentinels;
pub(crate) mod socket;
pub(crate) mod target;
pub(crate) mod tls;
mod transport;

pub use connection::{Packed, Wire, pack};
