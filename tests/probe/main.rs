//! `idemctl probe` from the outside: the binary, a payment service that executes the steps of a
//! schema, correctly or with one mistake, and a server of the tests' own.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod answers;
mod before_the_run;
mod changed_records;
mod clusters;
mod correct;
mod curl_lines;
mod effects;
mod faults;
mod host_prompt;
mod mistakes;
mod on_the_way;
mod outside;
mod page;
mod removal;
mod service;
mod shown_run;
mod stage;
mod statements;
mod stored_records;
mod tls;
#[path = "../cli/json/validator.rs"]
#[expect(dead_code, reason = "its other functions are for the tests of all documents")]
mod validator;
