//! Replies that can never be met, for an earlier one of the call takes every such reply.

use crate::domain::schema::forms::ValueCase;
use crate::domain::schema::steps::{Pattern, Reply};

/// The first reply that an earlier one leaves nothing to, by the indexes of both.
pub(super) fn shadowed(replies: &[Reply], values: &[ValueCase]) -> Option<(usize, usize)> {
    replies.iter().enumerate().find_map(|(later, reply)| {
        let earlier = replies[..later].iter().position(|earlier| takes_all(earlier, reply, values))?;
        Some((later, earlier))
    })
}

/// True when a reply that fits the later entry fits the earlier one, too.
fn takes_all(earlier: &Reply, later: &Reply, values: &[ValueCase]) -> bool {
    if earlier.form.is_some() && earlier.is_for_other_payloads() && !later.is_for_other_payloads() {
        return false;
    }
    if earlier.form.is_some() && earlier.is_for_lapsed() != later.is_for_lapsed() {
        return false;
    }
    match (&earlier.pattern, &later.pattern) {
        (Pattern::Text, Pattern::Text | Pattern::Word(_) | Pattern::Form) => true,
        (Pattern::Error(earlier), Pattern::Error(later)) => earlier == "*" || earlier == later,
        (Pattern::Array(first), Pattern::Array(other)) => {
            first == other && (earlier.form.is_none() || earlier.form == later.form)
        }
        (Pattern::Form, Pattern::Form) => earlier.form == later.form,
        (Pattern::Form, Pattern::Word(word)) => {
            let form = earlier.form.map(|form| &values[form].tests);
            form.is_some_and(|tests| tests.equals.as_deref() == Some(word.as_bytes()))
        }
        (earlier, later) => earlier == later,
    }
}
