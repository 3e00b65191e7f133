//! idemctl on servers that belong together: a cluster, its replicas, a master that Sentinels know.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]
#![allow(clippy::print_stderr, reason = "a test that cannot be run here says so")]

#[path = "../support/mod.rs"]
mod support;

mod cluster;
mod doctor;
mod gaps;
mod reconcile;
mod replicas;
mod sentinel;
