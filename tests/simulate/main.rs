//! `idemctl simulate`: every scenario ends well for a sound schema and badly for a broken one, so that no verdict comes
//! from a table.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../support/mod.rs"]
mod support;

mod variant;

mod attempts;
mod command;
mod server;
mod stable;
mod traces;
mod worlds;
mod zombies;
