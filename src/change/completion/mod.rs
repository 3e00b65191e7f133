//! How a record is completed in a worker's place: the choice of owner and fingerprint, the
//! rehearsal on a temporary local Redis, and whether clients get the response.

mod delivery;
mod owner_and_fingerprint;
mod rehearsal;

pub(crate) use self::delivery::check_delivery;
pub(crate) use self::owner_and_fingerprint::{
    ChosenCompletion, CompleteOptions, NO_HASH, no_fingerprint,
};
pub(crate) use self::rehearsal::{RehearsalOutcome, local_servers};
