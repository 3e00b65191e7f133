//! `idemctl reconcile` from the outside: the binary, servers of the tests' own, and small programs
//! that play the provider.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod contrib;
mod errors;
mod from_file;
mod holding;
mod named_keys;
mod noticed;
mod provider;
mod selection;
mod steps;
mod storm;
