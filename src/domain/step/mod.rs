//! The three steps of a service: what is asked, what is answered, what the next request gets.

pub(crate) mod cluster_fit;
pub(crate) mod encoding;
pub mod fencing;
pub(crate) mod kept;
pub mod next_request;
pub mod reply;
pub mod request;

pub(crate) use next_request::{Answer, NextRequest};
pub use reply::Listener;
pub(crate) use reply::StepReply;
pub(crate) use request::Request;
