//! What the library promises, compared with a real server: matching, reading, comparing and changing.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod apply;
mod cjson;
mod explore;
mod glob;
mod guarded;
mod next_request;
mod protocols;
mod states;
mod watched;
