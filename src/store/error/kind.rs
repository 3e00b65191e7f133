//! What an error means for whoever asked.

use super::acl;
use super::error::StoreError;

/// What a node of a cluster says of a command that belongs to another node, or another moment, and was not executed.
pub(super) const REDIRECTS: [&str; 3] = ["MOVED", "ASK", "TRYAGAIN"];

/// The codes by which one server refuses every command for now.
const FOR_NOW: [&str; 3] = ["LOADING", "BUSY", "MASTERDOWN"];

impl StoreError {
    /// The server that could not be reached, did not answer in time, or answered out of turn, where that is what went wrong.
    pub(in crate::store) fn silent_server(&self) -> Option<&str> {
        match self {
            Self::Unreachable { target, .. }
            | Self::TimedOut { target, .. }
            | Self::UnknownService { target, .. } => Some(target),
            // No more can be asked there.
            Self::Unasked { target } => Some(target),
            _ => None,
        }
    }

    /// The one of two that says more of what is not done: that an outcome is unknown, else the first.
    pub fn worse(first: Option<Self>, second: Option<Self>) -> Option<Self> {
        match (&first, &second) {
            (Some(Self::OutcomeUnknown { .. }), _) => first,
            (_, Some(Self::OutcomeUnknown { .. })) => second,
            _ => first.or(second),
        }
    }

    /// An unknown outcome, with what another node `refused` meanwhile; of any other error and a refusal the refusal.
    pub(in crate::store) fn with_refusal(self, refused: Option<Self>) -> Self {
        match (self, refused) {
            (Self::OutcomeUnknown { target, what, why }, Some(refused)) => {
                Self::OutcomeUnknown { target, what, why: format!("{why}; and {refused}") }
            }
            (error, refused) => refused.unwrap_or(error),
        }
    }

    /// An error to stop with, unless the outcome of something is unknown since before.
    pub(in crate::store) fn worst_of(before: Option<Self>, error: Self) -> Self {
        match before {
            Some(unknown @ Self::OutcomeUnknown { .. }) => unknown,
            _ => error,
        }
    }

    /// True when the reason is that the user lacks a right.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Permission { .. } | Self::NeedsSlots { .. })
    }

    /// True when the server takes no client, or none that has not logged in: such a client it cuts off in the middle of a command
    /// of many words.
    pub(in crate::store) fn turns_away(&self) -> bool {
        match self {
            Self::Refused { code, why, .. } => {
                code == "DENIED" || why.starts_with("max number of clients")
            }
            Self::Authentication { why, .. } => why.starts_with("NOAUTH"),
            _ => false,
        }
    }

    /// True when the user may not send the command at all, whatever the Redis key.
    pub(in crate::store) fn is_of_command(&self) -> bool {
        matches!(self, Self::Permission { why, .. } if why.contains("command"))
    }

    /// True for what was found out of changes after they were made.
    pub fn came_after(&self) -> bool {
        matches!(self, Self::NotReplicated { .. } | Self::MasterUnknown { .. })
    }

    /// The same, with the rights that a script takes, where the server named none.
    pub(in crate::store) fn naming(self, rights: &str) -> Self {
        match self {
            Self::Permission { target, why } if why.ends_with(acl::OF_SCRIPT) => {
                Self::Permission { target, why: format!("{why}: {rights}") }
            }
            other => other,
        }
    }

    /// True when the user may not ask which node of a cluster serves a key.
    pub(in crate::store) fn wants_slots(&self) -> bool {
        matches!(self, Self::NeedsSlots { .. })
    }

    /// True when the Redis key holds another type than the command works on.
    pub(in crate::store) fn is_wrong_type(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if code == "WRONGTYPE")
    }

    /// True when a node of a cluster names another node, or another moment; nothing was done.
    pub fn is_redirect(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if REDIRECTS.contains(&code.as_str()))
    }

    /// True when one server refuses every command for now, whatever the record.
    pub(in crate::store) fn is_for_now(&self) -> bool {
        matches!(self, Self::Refused { code, .. } if FOR_NOW.contains(&code.as_str()))
    }

    /// True when the error is that of one node or one slot of a cluster: the others may do well.
    pub(in crate::store) fn is_of_a_part(&self) -> bool {
        self.silent_server().is_some() || self.is_for_now() || self.is_of_the_slot()
    }

    /// The error to end with after the other nodes and slots of a cluster were done.
    pub fn of_a_part(self) -> Self {
        match self {
            Self::Refused { .. } => {
                Self::Missed { why: format!("records could not be read again: {self}") }
            }
            other => other,
        }
    }

    /// True when a node of a cluster does not serve the slot of this Redis key: another node does, or will, or none.
    pub fn is_of_the_slot(&self) -> bool {
        self.is_redirect()
            || matches!(self, Self::Refused { code, why, .. } if code == "CLUSTERDOWN" && why.contains("slot"))
    }

    /// True when the server does not know the command.
    pub fn is_unknown_command(&self) -> bool {
        matches!(self, Self::Refused { why, .. } if why.to_ascii_lowercase().contains("unknown command"))
    }

    /// True when no reply came.
    pub fn lost_the_reply(&self) -> bool {
        let is_silent = self.silent_server().is_some();
        is_silent || matches!(self, Self::NotRedis { .. })
    }
}

#[cfg(test)]
mod tests {
    use crate::store::error::{RefusedAt, StoreError};

    /// Rule: what one node refused is told beside an outcome that is unknown on another.
    #[test]
    fn a_refusal_is_told_beside_an_unknown_outcome_and_the_outcome_gives_the_exit_code() {
        let (target, why) = (String::from("a:1/0"), String::from("too few"));
        let unknown = StoreError::OutcomeUnknown {
            target: target.clone(),
            what: "it".into(),
            why: "lost".into(),
        };
        let refused = StoreError::Refused {
            target,
            code: "NOREPLICAS".into(),
            why,
            place: RefusedAt::Command,
        };
        let told = unknown.clone().with_refusal(Some(refused));
        assert!(
            matches!(told, StoreError::OutcomeUnknown { .. })
                && told.to_string().contains("NOREPLICAS"),
            "{told}"
        );
        assert_eq!(unknown.clone().with_refusal(None).to_string(), unknown.to_string());
    }
}
