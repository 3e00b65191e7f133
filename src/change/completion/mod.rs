//! How a record is completed in a worker's place: the choice of owner and fingerprint, the
//! rehearsal on a temporary local Redis, and whether clients get the response.

mod choice;
mod delivery;
mod rehearsal;

pub(crate) use self::choice::{ChosenCompletion, CompleteOptions};
pub(crate) use self::delivery::check_delivery;
pub(crate) use self::rehearsal::RehearsalOutcome;
