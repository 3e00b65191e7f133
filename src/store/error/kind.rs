//! Questions that callers ask about an error.

use super::acl;
use super::error::StoreError;

/// The codes with which a cluster node refuses a command because another node serves the key, or
/// because a slot is being moved. The node did not execute the command.
pub(super) const REDIRECTS: [&str; 3] = ["MOVED", "ASK", "TRYAGAIN"];

/// The codes with which a server temporarily refuses every command.
const FOR_NOW: [&str; 3] = ["LOADING", "BUSY", "MASTERDOWN"];

impl StoreError {
    /// The server that was unreachable, timed out or sent replies out of order, if this error
    /// reports one.
    pub(in crate::store) fn silent_server(&self) -> Option<&str> {
        match self {
            Self::Unreachable { target, .. }
            | Self::TimedOut { target, .. }
            | Self::UnknownService { target, .. } => Some(target),
            // Nothing more can be asked on this connection.
            Self::Unasked { target } => Some(target),
            _ => None,
        }
    }

    /// The error to report of two: one that says that an outcome is unknown, else the first.
    pub fn prefer_unknown_outcome_or_first(
        first: Option<Self>,
        second: Option<Self>,
    ) -> Option<Self> {
        match (&first, &second) {
            (Some(Self::OutcomeUnknown { .. }), _) => first,
            (_, Some(Self::OutcomeUnknown { .. })) => second,
            _ => first.or(second),
        }
    }

    /// Adds the refusal of another node to an unknown outcome. Any other error is replaced by the
    /// refusal.
    pub(in crate::store) fn with_refusal(self, refused: Option<Self>) -> Self {
        match (self, refused) {
            (Self::OutcomeUnknown { target, what, why }, Some(refused)) => {
                Self::OutcomeUnknown { target, what, why: format!("{why}; and {refused}") }
            }
            (error, refused) => refused.unwrap_or(error),
        }
    }

    /// The error to stop with: an earlier one that says that an outcome is unknown, else `error`.
    pub(in crate::store) fn prefer_unknown_outcome_or_last(
        before: Option<Self>,
        error: Self,
    ) -> Self {
        match before {
            Some(unknown @ Self::OutcomeUnknown { .. }) => unknown,
            _ => error,
        }
    }

    /// True if the Redis user lacks a right.
    pub fn is_permission(&self) -> bool {
        matches!(self, Self::Permission { .. } | Self::NeedsSlots { .. })
    }

    /// True if the server accepts no client, or none without a log-in. Such a server closes the
    /// connection in the middle of a command with many arguments.
    pub(in crate::store) fn turns_away(&self) -> bool {
        match self {
            Self::ErrorReply { code, why, .. } => {
                code == "DENIED" || why.starts_with("max number of clients")
            }
            Self::Authentication { why, .. } => why.starts_with("NOAUTH"),
            _ => false,
        }
    }

    /// True if the Redis user may not send the command at all, whatever the Redis key.
    pub(in crate::store) fn is_of_command(&self) -> bool {
        matches!(self, Self::Permission { why, .. } if why.contains("command"))
    }

    /// True if the Redis user may not send the command at all, or the server does not have it.
    /// Valkey without its Lua module names the missing engine.
    pub(in crate::store) fn refuses_command(&self) -> bool {
        let has_no_engine = match self {
            Self::ErrorReply { why, .. } => why.contains("scripting engine"),
            _ => false,
        };
        has_no_engine || self.is_of_command() || self.is_unknown_command()
    }

    /// True for an error that idemctl found only after it had made the changes.
    pub fn came_after(&self) -> bool {
        matches!(self, Self::NotReplicated { .. } | Self::MasterUnknown { .. })
    }

    /// The same error with the rights that a script needs, if the server named none.
    pub(in crate::store) fn naming(self, rights: &str) -> Self {
        match self {
            Self::Permission { target, why } if why.ends_with(acl::OF_SCRIPT) => {
                Self::Permission { target, why: format!("{why}: {rights}") }
            }
            other => other,
        }
    }

    /// True if the Redis user may not ask which node of a cluster serves a key.
    pub(in crate::store) fn lacks_slot_map_right(&self) -> bool {
        matches!(self, Self::NeedsSlots { .. })
    }

    /// True if the Redis key holds another type than the command works on.
    pub(in crate::store) fn is_wrong_type(&self) -> bool {
        matches!(self, Self::ErrorReply { code, .. } if code == "WRONGTYPE")
    }

    /// True if a cluster node redirected the command to another node or to a later time. Nothing
    /// was done.
    pub fn is_redirect(&self) -> bool {
        matches!(self, Self::ErrorReply { code, .. } if REDIRECTS.contains(&code.as_str()))
    }

    /// True if a server temporarily refuses every command, whatever the record.
    pub(in crate::store) fn is_for_now(&self) -> bool {
        matches!(self, Self::ErrorReply { code, .. } if FOR_NOW.contains(&code.as_str()))
    }

    pub(crate) fn is_out_of_memory(&self) -> bool {
        matches!(self, Self::ErrorReply { code, .. } if code == "OOM")
    }

    /// True if the error concerns one node or one slot of a cluster: the others may still work.
    pub(in crate::store) fn concerns_one_node(&self) -> bool {
        self.silent_server().is_some() || self.is_for_now() || self.is_of_the_slot()
    }

    /// The error to report after the other nodes and slots of a cluster were processed.
    pub fn into_missed(self) -> Self {
        match self {
            Self::ErrorReply { .. } => {
                Self::Missed { why: format!("records could not be rechecked: {self}") }
            }
            other => other,
        }
    }

    /// True if a cluster node does not serve the slot of this Redis key. Another node may, now or
    /// later, or none.
    pub fn is_of_the_slot(&self) -> bool {
        match self {
            // A node also answers CLUSTERDOWN, with another message, if the whole cluster is down.
            Self::ErrorReply { code, why, .. } if code == "CLUSTERDOWN" => why.contains("slot"),
            error => error.is_redirect(),
        }
    }

    /// True if RESTORE cannot read the format of the bytes.
    pub fn is_of_the_payload(&self) -> bool {
        matches!(self, Self::ErrorReply { why, .. }
            if why.contains("DUMP payload version") || why.contains("Bad data format"))
    }

    /// True if the server does not know the command.
    pub fn is_unknown_command(&self) -> bool {
        match self {
            Self::ErrorReply { why, .. } => why.to_ascii_lowercase().contains("unknown command"),
            _ => false,
        }
    }

    /// True if no reply was received, or nothing was sent because there is no password.
    pub fn lost_the_reply(&self) -> bool {
        let is_silent = self.silent_server().is_some();
        is_silent || matches!(self, Self::NotRedis { .. } | Self::NoPassword { .. })
    }
}

#[cfg(test)]
mod tests {
    use crate::store::error::{RefusedAt, StoreError};

    /// Rule: an unknown outcome is reported together with the refusal of another node.
    #[test]
    fn a_refusal_is_told_beside_an_unknown_outcome_and_the_outcome_gives_the_exit_code() {
        let (target, why) = (String::from("a:1/0"), String::from("too few"));
        let unknown = StoreError::OutcomeUnknown {
            target: target.clone(),
            what: "it".into(),
            why: "lost".into(),
        };
        let refused = StoreError::ErrorReply {
            target,
            code: "NOREPLICAS".into(),
            why,
            refused_at: RefusedAt::Command,
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
