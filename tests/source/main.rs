//! The project's own files: layers of the code, generated files, documents, scripts. No test here needs a server of its own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod circles;
mod documented;
mod engines;
mod exit_codes;
mod generated;
mod json_types;
mod layers;
mod links;
mod manual;
mod matrix;
mod nesting;
mod release;
mod removed;
mod rust_source;
mod size;
mod wording;
mod yardstick;
