//! Checks that a call has no reply that an earlier reply always takes over.

use crate::domain::schema::location::{At as _, Checked, REPLIES, wrong};
use crate::domain::schema::steps::{Reply, ReplyPattern};
use crate::domain::schema::value_format::ValueFormat;

/// Checks that each reply can be matched. An entry that an earlier one covers would never be used.
pub(super) fn check_order(replies: &[Reply], values: &[ValueFormat]) -> Checked<()> {
    for (later, reply) in replies.iter().enumerate() {
        for (earlier, covering) in replies[..later].iter().enumerate() {
            if covers(covering, reply, values) {
                let message = format!(
                    "this reply never applies, because reply {} of the call matches every such \
                    reply; distinguish the two, for example with `value`",
                    earlier + 1
                );
                return wrong(message).at(later).at(REPLIES);
            }
        }
    }
    Ok(())
}

/// True if the earlier entry matches every reply that the later entry matches.
fn covers(earlier: &Reply, later: &Reply, values: &[ValueFormat]) -> bool {
    // The earlier entry matches only other payloads, and leaves equal ones to the later entry.
    if earlier.value.is_some() && earlier.is_for_other_payloads() && !later.is_for_other_payloads()
    {
        return false;
    }
    // An expired value and a valid one never match the same entry.
    if earlier.value.is_some() && earlier.is_for_past_expiry() != later.is_for_past_expiry() {
        return false;
    }
    match (&earlier.pattern, &later.pattern) {
        (ReplyPattern::Text, ReplyPattern::Text | ReplyPattern::Word(_) | ReplyPattern::Value) => {
            true
        }
        (ReplyPattern::Error(earlier), ReplyPattern::Error(later)) => {
            earlier == "*" || earlier == later
        }
        (ReplyPattern::Array(first), ReplyPattern::Array(other)) => {
            first == other && (earlier.value.is_none() || earlier.value == later.value)
        }
        (ReplyPattern::Value, ReplyPattern::Value) => earlier.value == later.value,
        (ReplyPattern::Value, ReplyPattern::Word(word)) => match earlier.value {
            Some(value) => values[value].tests.equals.as_deref() == Some(word.as_bytes()),
            None => false,
        },
        (earlier, later) => earlier == later,
    }
}
