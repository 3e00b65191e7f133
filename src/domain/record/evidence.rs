//! Evidence: how a statement is known.

/// How a statement is known, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub enum Evidence {
    /// It follows from a schema's default, which this deployment may not keep to. It selects nothing for a change.
    #[default]
    Estimated,
    /// It follows from what this deployment says of itself: an option, or the context.
    Stated,
    /// It stands in the value, or is true under any setting.
    Known,
}

impl Evidence {
    /// The stable word for it.
    pub fn word(self) -> &'static str {
        match self {
            Self::Estimated => "estimated",
            Self::Stated => "stated",
            Self::Known => "known",
        }
    }

    /// What stands before a value: `~23h` is an estimate.
    pub fn mark(self) -> &'static str {
        if self == Self::Estimated { "~" } else { "" }
    }
}
