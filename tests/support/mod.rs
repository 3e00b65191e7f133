//! What the tests share: a server of their own, the binary with a cleared environment, and one snapshot of stdout,
//! stderr and status together.
#![allow(dead_code, unused_imports, reason = "each runner uses a part of it")]

pub mod audit;
pub mod backup;
pub mod certificates;
pub mod cluster;
pub mod encoding_service;
pub mod fault;
pub mod header;
mod home;
mod keys;
pub mod library;
pub mod memory;
mod port;
pub mod printed;
pub mod probe_service;
pub mod proxy;
mod run;
pub mod sentinel;
mod server;
mod stored;
pub mod terminal;
mod wait;
pub mod wire;

pub use home::Home;
pub use keys::{FOREVER, fill};
pub use port::free_port;
pub use run::{Run, Running, Runs, alone, at_once, binary, bounded, idemctl, signal};
pub use rustix::process::Signal;
pub use server::{Server, program};
pub use stored::{BUILT_IN, DONE, LOCK, PENDING};
pub use wait::until;
