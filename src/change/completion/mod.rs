//! How a record is completed in a worker's place: the choice of owner and fingerprint, the trial on
//! a temporary local Redis, and whether clients get the response.

mod choice;
mod delivery;
mod trial;

pub(crate) use self::choice::{ChosenCompletion, CompleteRequest};
pub(crate) use self::delivery::check_delivery;
pub(crate) use self::trial::TrialOutcome;
