//! The three steps of a service: what is asked, what is answered, what the next request gets.

pub mod cluster_fit;
pub(crate) mod encoding;
pub mod fencing;
pub mod next_request;
pub mod reply;
pub mod request;
