//! `[begin]`, `[renew]`, `[complete]` and `[release]`: the calls that are sent, and the meaning of
//! each reply.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::replies;
use super::symbol_table::SymbolTable;
use crate::domain::schema::location::{
    AllChecked, At as _, CALL, Checked, REPLIES, Wrong, all, wrong,
};
use crate::domain::schema::raw::{RawCall, RawReply, RawStep};
use crate::domain::schema::steps::{
    Action, Call, Condition, KeyIs, Meaning, Reply, ReplyPattern, Step,
};
use crate::domain::schema::value_template::{Placeholder, Template};

/// The name of the payload in a condition, beside the Redis keys.
const PAYLOAD: &str = "fingerprint";

/// Resolves a step. Its replies may have these meanings, and one reply must have the first of them.
pub(super) fn resolve(
    symbols: &SymbolTable,
    raw: &RawStep,
    name: &str,
    meanings: &[Meaning],
) -> AllChecked<Step> {
    if raw.call.is_empty() {
        return all(wrong(format!("[{name}] has no [[{name}.call]]")));
    }
    if raw.gives_ttl && name != "begin" {
        return all(wrong("only [begin] can have it").at("gives_ttl"));
    }
    let mut calls = Vec::with_capacity(raw.call.len());
    let mut found = Vec::new();
    for (index, raw_call) in raw.call.iter().enumerate() {
        let is_last = index + 1 == raw.call.len();
        let mut call = resolve_call(symbols, raw_call);
        if let Ok(resolved) = &call
            && let Err(wrong) = all(check_meanings(resolved, name, meanings, is_last))
        {
            call = Err(wrong);
        }
        match call.at(index).at(CALL) {
            Ok(call) => calls.push(call),
            Err(wrong) => found.extend(wrong),
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    // Without such a reply, idemctl could never report that the step succeeded.
    let mut replies = calls.iter().flat_map(|call| &call.replies);
    if !replies.any(|reply| reply.means == meanings[0]) {
        return all(wrong(format!("no reply of [{name}] means `{}`", meanings[0].as_str())));
    }
    Ok(Step {
        checks_owner: raw.checks_owner,
        gives_ttl: raw.gives_ttl,
        note: raw.note.clone(),
        calls,
    })
}

fn resolve_call(symbols: &SymbolTable, raw: &RawCall) -> AllChecked<Call> {
    let action = all(action(symbols, raw))?;
    let mut found: Vec<Wrong> = Vec::new();
    for (list, words) in raw.lists() {
        for (index, word) in words.iter().enumerate() {
            found.extend(check_word(symbols, word).at(index).at(list).err());
        }
    }
    let mut replies = Vec::with_capacity(raw.replies.len());
    for (index, raw_reply) in raw.replies.iter().enumerate() {
        match resolve_reply(symbols, raw_reply).at(index).at(REPLIES) {
            Ok(reply) => replies.push(reply),
            Err(wrong) => found.push(wrong),
        }
    }
    if !found.is_empty() {
        return Err(found);
    }
    all(replies::check_order(&replies, &symbols.values))?;
    let reads = read_key(symbols, &action);
    Ok(Call { action, replies, reads })
}

/// The Redis key whose value a command returns, by its index. `None` for scripts and all other
/// commands.
fn read_key(symbols: &SymbolTable, action: &Action) -> Option<usize> {
    let Action::Command(words) = action else { return None };
    let name = words.first()?.display();
    if !["GET", "HGETALL", "HMGET"].iter().any(|read| name.eq_ignore_ascii_case(read)) {
        return None;
    }
    match words.get(1)?.only_place()? {
        Placeholder::RedisKey(role) => symbols.index_of(role),
        _ => None,
    }
}

fn action(symbols: &SymbolTable, raw: &RawCall) -> Checked<Action> {
    match (&raw.script, &raw.command) {
        (Some(name), None) if symbols.scripts.contains_key(name) => Ok(Action::Script {
            name: name.clone(),
            keys: raw.keys.clone(),
            args: raw.args.clone(),
        }),
        (Some(name), None) if name.ends_with(".lua") => {
            wrong(format!("write the name without `.lua`: `{}`", name.trim_end_matches(".lua")))
                .at("script")
        }
        (Some(name), None) => {
            wrong(format!("there is no {name}.lua beside schema.toml")).at("script")
        }
        (None, Some(command)) if !command.is_empty() => Ok(Action::Command(command.clone())),
        _ => wrong("a call needs either `script` or `command`"),
    }
}

/// Checks that every placeholder of a word is known, and refers to a Redis key, a TTL or a value of
/// the schema.
fn check_word(symbols: &SymbolTable, word: &Template) -> Checked<()> {
    if let Some(role) = word.roles().find(|role| symbols.index_of(*role).is_none()) {
        return wrong(format!(
            "`{{{0}}}` has no value, because [keys] has no `{0}`",
            role.as_str()
        ));
    }
    if word.has(&symbols.unset) {
        let is_ttl = word.has(&[
            Placeholder::LockTtl,
            Placeholder::LockTtlMilliseconds,
            Placeholder::ResultTtl,
            Placeholder::ResultTtlMilliseconds,
        ]);
        let none = if is_ttl { "; a TTL of \"none\" cannot be sent" } else { "" };
        return wrong(format!("`{}` has no value in [ttl] or [write]{none}", word.display()));
    }
    if let Some(left) = word.leftover() {
        return wrong(format!(
            "`{left}` is not a placeholder of a call and would be sent unchanged"
        ));
    }
    Ok(())
}

fn resolve_reply(symbols: &SymbolTable, raw: &RawReply) -> Checked<Reply> {
    let value = match &raw.value {
        Some(name) => value_named(symbols, name)?,
        None => None,
    };
    let pattern = pattern(raw)?;
    let mut when = Vec::with_capacity(raw.when.len());
    for (index, condition) in raw.when.iter().enumerate() {
        when.push(resolve_condition(symbols, condition).at(index).at("when")?);
    }
    if let Some(value) = value {
        add_value(&mut when, symbols.values[value].key_index, value);
    }
    Ok(Reply {
        pattern,
        value,
        means: raw.means,
        when,
        client: raw.client.as_deref().map(Arc::from),
    })
}

fn pattern(raw: &RawReply) -> Checked<ReplyPattern> {
    let given = [
        raw.word.clone().map(ReplyPattern::Word),
        raw.integer.map(ReplyPattern::Integer),
        raw.nil.filter(|is| *is).map(|_| ReplyPattern::Nil),
        raw.error.clone().map(ReplyPattern::Error),
        raw.array.clone().map(ReplyPattern::Array),
        raw.text.filter(|is| *is).map(|_| ReplyPattern::Text),
    ];
    let mut given: Vec<_> = given.into_iter().flatten().collect();
    if given.len() > 1 || given.is_empty() && raw.value.is_none() {
        return wrong("a reply needs exactly one of word, integer, nil, error, array, text, value");
    }
    let Some(pattern) = given.pop() else { return Ok(ReplyPattern::Value) };
    // The second element of an array may be a value; the other replies leave no room for one.
    if raw.value.is_some() && !matches!(pattern, ReplyPattern::Array(_)) {
        return wrong("`value` must be alone or with `array`").at("value");
    }
    Ok(pattern)
}

/// The index of the value format with this name, at any Redis key; `None` if that value format has
/// an error of its own.
fn value_named(symbols: &SymbolTable, name: &str) -> Checked<Option<usize>> {
    let mut named = None;
    for (index, value) in symbols.values.iter().enumerate() {
        if value.name != name {
            continue;
        }
        if named.is_some() {
            return wrong(format!("two [[value]] are called `{name}`; give each its own name"))
                .at("value");
        }
        named = Some(index);
    }
    if named.is_none() && !symbols.is_broken(name) {
        return wrong(format!("no [[value]] is called `{name}`")).at("value");
    }
    Ok(named)
}

/// Adds to a reply's conditions the state that its `value` implies: such a value exists. Conditions
/// that name Redis keys themselves are unchanged.
fn add_value(when: &mut Vec<Condition>, key_index: usize, value: usize) {
    let implied = (key_index, KeyIs::Value(value));
    if when.is_empty() {
        when.push(Condition { keys: vec![implied], ..Condition::default() });
        return;
    }
    for condition in when {
        if condition.keys.is_empty() && (condition.other_payload || condition.no_fingerprint) {
            condition.keys.push(implied.clone());
        }
    }
}

fn resolve_condition(symbols: &SymbolTable, raw: &BTreeMap<String, String>) -> Checked<Condition> {
    let mut condition = Condition::default();
    for (role, word) in raw {
        if role == PAYLOAD {
            match word.as_str() {
                "other" => condition.other_payload = true,
                "none" => condition.no_fingerprint = true,
                _ => {
                    let message = format!(
                        "`{PAYLOAD}` must be `other` (the payload differs from the stored one) or \
                        `none` (the record stores no hash of one), not `{word}`"
                    );
                    return wrong(message).at(PAYLOAD);
                }
            }
            continue;
        }
        let Some(index) = symbols.index_named(role) else {
            return wrong(format!("`when` names `{role}`, which [keys] does not have"))
                .at(role.as_str());
        };
        if let Some(state) = KeyIs::from_word(word) {
            condition.keys.push((index, state));
        } else if let Some(value) = symbols.value(index, word) {
            condition.keys.push((index, KeyIs::Value(value)));
        } else if symbols.is_broken(word) {
            // The value format has an error of its own, which is reported. Any state will do here.
            condition.keys.push((index, KeyIs::Present));
        } else {
            return wrong(format!(
                "`when` names `{word}`, which no [[value]] at that role is called"
            ))
            .at(role.as_str());
        }
    }
    Ok(condition)
}

/// Checks that each reply of a call has a meaning of the step. Every call except the last may leave
/// the decision to the next one.
fn check_meanings(call: &Call, step: &str, meanings: &[Meaning], is_last: bool) -> Checked<()> {
    for (index, reply) in call.replies.iter().enumerate() {
        let is_allowed =
            meanings.contains(&reply.means) || (reply.means == Meaning::Next && !is_last);
        if !is_allowed {
            let message =
                format!("a reply of [{step}] cannot mean `{}` here", reply.means.as_str());
            return wrong(message).at("means").at(index).at(REPLIES);
        }
    }
    Ok(())
}
