//! How the workers of a race go about it.

/// What a worker does to take the lock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strategy {
    /// The schema's own begin step.
    Schema,
    /// GET, and SET when nothing was there.
    CheckThenAct,
    /// SET NX, and GET when that fails: what an older release does.
    SetNx,
}

impl Strategy {
    /// The stable word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Schema => "schema",
            Self::CheckThenAct => "check-then-act",
            Self::SetNx => "set-nx",
        }
    }
}
