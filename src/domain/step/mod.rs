//! The steps of a service: the calls that are sent, how they are executed, and what replies mean.
//! Also the prediction of the next request's answer.

pub(crate) mod encoding;
mod executor;
pub mod fencing;
pub mod inputs;
pub(crate) mod kept;
pub mod next_request;
pub mod reply;
pub(crate) mod worker_steps;

pub(crate) use executor::{CallSender, ExecutedStep, StepCall, execute};
pub(crate) use inputs::{StepInputs, cluster_problem};
pub(crate) use next_request::{Answer, NextRequest, UnknownAnswer};
pub(crate) use reply::{ReplyMatch, StepReply};
pub use worker_steps::StepKind;
