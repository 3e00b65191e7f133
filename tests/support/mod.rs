//! What the tests share: a server of their own, the binary with a cleared environment, and one snapshot of stdout,
//! stderr and status together.
#![allow(dead_code, unused_imports, reason = "each runner uses a part of it")]

pub mod backup;
pub mod certificates;
pub mod cluster;
pub mod fault;
pub mod header;
pub mod memory;
pub mod proxy;
mod run;
pub mod sentinel;
mod server;
pub mod wire;

pub use run::{Run, idemctl};
pub use server::{Server, free_port, program};
