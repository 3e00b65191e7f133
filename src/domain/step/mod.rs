//! The steps of a service: what is sent, how calls are executed, what replies mean, and what the next request gets.

pub(crate) mod encoding;
mod executor;
pub mod fencing;
pub(crate) mod kept;
pub mod next_request;
pub mod reply;
pub mod request;

pub(crate) use executor::{CallPerformer, ExecutedStep, StepCall, execute};
pub(crate) use next_request::{Answer, NextRequest};
pub(crate) use reply::{ReplyMatch, StepReply};
pub(crate) use request::{Request, cluster_problem};
