//! idemctl and the services on the same keys, byte for byte. The services' side is written from their contract in
//! literal bytes and plain commands; nothing of it comes from idemctl's code, its scripts or `schema.toml`.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod by_hand;
mod completing;
mod detecting;
mod distances;
mod given;
mod hashes;
mod libraries;
mod meeting;
mod promises;
mod readers;
mod reading;
mod recorded;
mod replays;
mod services;
mod writing;
