//! Why a scenario is not played to its end.

use crate::store::StoreError;

#[derive(Debug)]
pub(crate) enum Abort {
    /// The scenario says nothing of this schema, and why.
    NotApplicable(String),
    /// The machine was too slow: a lock ended before its moment in the story. The scenario is played again with more time.
    Late,
    Store(StoreError),
}

impl From<StoreError> for Abort {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

pub(crate) type Played<T = ()> = Result<T, Abort>;
