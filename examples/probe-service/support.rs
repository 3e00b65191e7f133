//! The parts of the tests' support that the service consists of.
#![allow(dead_code, unused_imports, missing_docs, reason = "the tests use the rest")]

#[path = "../../tests/support/probe_service/mod.rs"]
pub mod probe_service;
#[path = "../../tests/support/wire.rs"]
pub mod wire;
