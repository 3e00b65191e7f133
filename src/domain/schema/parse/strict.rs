//! Checks that format 2 makes and format 1 does not. idemctl could read such a schema, but each
//! finding is most likely a mistake.
//!
//! Folders of format 1 with such mistakes are in use, and must keep working. `schema check` warns
//! about them if it can.

use super::symbol_table::SymbolTable;
use crate::domain::schema::decoder::Encoding;
use crate::domain::schema::location::{At as _, CALL, Checked, REPLIES, Wrong, wrong};
use crate::domain::schema::raw::{RawSchema, RawValue};
use crate::domain::schema::steps::{RECLAIMABLE, Reply, ReplyPattern, Step};
use crate::domain::schema::value_format::ValueFormat;

/// All mistakes that format 2 rejects. The values and steps are resolved as far as they have no
/// other errors.
pub(super) fn faults(
    raw: &RawSchema,
    symbols: &SymbolTable,
    steps: &[(&'static str, &Option<Step>)],
) -> Vec<Wrong> {
    let mut found = Vec::new();
    for (value, index) in symbols.values.iter().zip(&symbols.indexes) {
        let checked = check_value(&raw.value[*index], value.encoding());
        found.extend(checked.at(*index).at("value").err());
    }
    for (step, index, call) in raw.calls() {
        for (list, words) in call.lists() {
            for (at, word) in words.iter().enumerate() {
                let Some(left) = word.leftover() else { continue };
                let unknown: Checked<()> = wrong(format!(
                    "`{left}` is not a placeholder of a call and would be sent unchanged"
                ));
                found.extend(unknown.at(at).at(list).at(index).at(CALL).at(step).err());
            }
        }
    }
    for (name, step) in steps {
        let Some(step) = step else { continue };
        for (index, call) in step.calls.iter().enumerate() {
            let checked = check_replies(&call.replies, &symbols.values);
            found.extend(checked.at(index).at(CALL).at(*name).err());
        }
    }
    found
}

/// Checks that a value format distinguishes its values from others, or is marked to match any text.
fn check_value(raw: &RawValue, encoding: Encoding) -> Checked<()> {
    if raw.name == RECLAIMABLE {
        return wrong(format!("`{RECLAIMABLE}` is a word that `when` already uses")).at("name");
    }
    match encoding {
        Encoding::Text if raw.equals.is_none() && !raw.opaque => {
            wrong("matches any text; write `equals`, or `opaque = true` if that is intended")
        }
        Encoding::Json | Encoding::Msgpack
            if raw.fields_are.is_empty() && raw.has.is_empty() && raw.required.is_none() =>
        {
            wrong(
                "matches any JSON; write `where`, `has` or `required`, or leave `encoding` out and \
                mark it `opaque`",
            )
        }
        // The type of the Redis key, or the first bytes, distinguish the value.
        _ => Ok(()),
    }
}

/// Checks that each reply can be matched. An entry that an earlier one covers would never be used.
fn check_replies(replies: &[Reply], values: &[ValueFormat]) -> Checked<()> {
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
