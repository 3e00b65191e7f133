//! `idemctl restore`, and the backups it reads.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../support/backup.rs"]
mod backup;
#[path = "../support/cluster.rs"]
mod cluster;
#[path = "../support/fault.rs"]
mod fault;
#[path = "../support/sentinel.rs"]
mod sentinel;
#[path = "../support/mod.rs"]
mod support;

mod beside;
mod command;
mod damage;
mod moment;
mod place;

use std::path::Path;

use support::{Run, Server};

/// Restores without being asked.
fn restore(server: &Server, file: &Path, more: &[&str]) -> Run {
    server.idemctl(&[&["restore", file.to_str().unwrap(), "--yes"], more].concat())
}
