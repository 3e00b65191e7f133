//! A payment service over HTTP, for `idemctl probe`: it executes the steps of one of the seven
//! schemas, with the service's own scripts, on a real server. On request it makes one mistake.
//!
//! `POST /payments` takes `{"order": TEXT, "amount": NUMBER}` and the header `Idempotency-Key`, and
//! `GET /effects` returns the number of executed payments, `GET /effects?key=K` that of one key. `Authorization` names the caller. With
//! `"fail": "before"` or `"after"` in the body, the first execution of a key fails before or after
//! its payment. An amount of 0 or less is a validation error, found before the lock is taken.
//!
//! Only one of the schemas stores a fingerprint. For the others the service keeps the payload and
//! the caller of a key in its own database, which is memory here.

mod contract;
mod http;
mod request;
mod service;
mod store;
mod variant;

pub use contract::CONTRACTS;
pub use service::{Answers, Config, Late, ProbeService};
pub use variant::{VARIANTS, Variant};
