//! `[begin]`, `[renew]`, `[complete]` and `[release]`: what is sent, and what each reply means.

use std::collections::BTreeMap;

use super::names::Names;
use super::shadow;
use crate::domain::schema::location::{AllChecked, At as _, Checked, all, gather, wrong};
use crate::domain::schema::raw::{RawCall, RawReply, RawStep};
use crate::domain::schema::steps::{Action, Call, Condition, KeyIs, Meaning, Pattern, Reply, Step};
use crate::domain::schema::value_template::{Place, Template};

/// What a condition calls the payload by, beside the Redis keys.
const PAYLOAD: &str = "fingerprint";

/// A step whose replies may have these meanings, the first of which one reply must have.
pub(super) fn resolve(names: &Names, raw: RawStep, name: &str, meanings: &[Meaning]) -> AllChecked<Step> {
    if raw.call.is_empty() {
        return all(wrong(format!("[{name}] has no [[{name}.call]]")));
    }
    let last = raw.call.len() - 1;
    let calls = raw.call.into_iter().enumerate().map(|(index, raw)| {
        let call = call(names, raw).and_then(|call| all(may_mean(call, name, meanings, index == last)));
        call.at(index).at("call")
    });
    let calls = gather(calls)?;
    if !calls.iter().flat_map(|call| &call.replies).any(|reply| reply.means == meanings[0]) {
        return all(wrong(format!("no reply of [{name}] means `{}`", meanings[0].as_str())));
    }
    Ok(Step { checks_owner: raw.checks_owner, note: raw.note, calls })
}

fn call(names: &Names, raw: RawCall) -> AllChecked<Call> {
    let action = match (raw.script, raw.command) {
        (Some(name), None) if names.scripts.contains_key(&name) => {
            Action::Script { name, keys: raw.keys, args: raw.args }
        }
        (Some(name), None) => return all(wrong(format!("there is no {name}.lua beside schema.toml")).at("script")),
        (None, Some(command)) if !command.is_empty() => Action::Command(command),
        _ => return all(wrong("a call has either `script` or `command`")),
    };
    let call = Call { action, replies: Vec::new() };
    let words = call.lists().into_iter().flat_map(|(list, words)| {
        let word = move |(index, word)| all(stands_for_something(names, word)).at(index).at(list);
        words.iter().enumerate().map(word)
    });
    let replies = raw.replies.into_iter().enumerate();
    let replies = gather(replies.map(|(index, raw)| all(reply(names, raw).at(index).at("replies"))));
    let replies = both(gather(words), replies)?;
    if let Some((later, earlier)) = shadow::shadowed(&replies, &names.values).filter(|_| names.format > 1) {
        let message = format!(
            "this reply is never met: reply {} of the call takes every such reply; tell the two apart, with `value` by what a text holds",
            earlier + 1
        );
        return all(wrong(message).at(later).at("replies"));
    }
    Ok(Call { replies, ..call })
}

/// The second, unless anything is wrong with either.
fn both<A, B>(first: AllChecked<A>, second: AllChecked<B>) -> AllChecked<B> {
    match (first, second) {
        (Ok(_), second) => second,
        (Err(first), Ok(_)) => Err(first),
        (Err(mut first), Err(second)) => {
            first.extend(second);
            Err(first)
        }
    }
}

/// Passes a word whose placeholders have a Redis key or a TTL of the schema to stand for.
fn stands_for_something(names: &Names, word: &Template) -> Checked<()> {
    if let Some(role) = word.roles().find(|role| names.index_of(*role).is_none()) {
        return wrong(format!("`{{{0}}}` stands for nothing: [keys] has no `{0}`", role.as_str()));
    }
    if let Some(left) = word.leftover().filter(|_| names.format > 1) {
        return wrong(format!("`{left}` is no placeholder of a call, and would be sent as it is"));
    }
    if word.has(&names.unset) {
        let none =
            if word.has(&[Place::LockTtl, Place::ResultTtl]) { "; a TTL of \"none\" is no time to send" } else { "" };
        return wrong(format!("`{}` stands for nothing: neither [ttl] nor [write] gives it{none}", word.display()));
    }
    Ok(())
}

fn reply(names: &Names, raw: RawReply) -> Checked<Reply> {
    let patterns = [
        raw.word.map(Pattern::Word),
        raw.integer.map(Pattern::Integer),
        raw.nil.filter(|on| *on).map(|_| Pattern::Nil),
        raw.error.map(Pattern::Error),
        raw.array.map(Pattern::Array),
        raw.text.filter(|on| *on).map(|_| Pattern::Text),
    ];
    let form = raw.value.as_ref().map(|name| form(names, name)).transpose()?.flatten();
    let mut given = patterns.into_iter().flatten();
    let pattern = match (given.next(), given.next(), &raw.value) {
        (None, None, Some(_)) => Pattern::Form,
        (Some(pattern @ Pattern::Array(_)), None, _) | (Some(pattern), None, None) => pattern,
        (Some(_), None, Some(_)) => return wrong("`value` stands alone, or beside `array`").at("value"),
        _ => return wrong("a reply has exactly one of word, integer, nil, error, array, text, value"),
    };
    let when = raw.when.iter().enumerate();
    let when = when.map(|(index, raw)| condition(names, raw).at(index).at("when"));
    let when = when_of_form(names, form, when.collect::<Checked<_>>()?);
    Ok(Reply { pattern, form, means: raw.means, when, client: raw.client })
}

/// The form of that name, at whatever Redis key; `None` for one that something is wrong with.
fn form(names: &Names, name: &str) -> Checked<Option<usize>> {
    let mut named = names.values.iter().enumerate().filter(|(_, case)| case.name == name).map(|(index, _)| index);
    match (named.next(), named.next()) {
        (Some(form), None) => Ok(Some(form)),
        (None, _) if names.is_broken(name) => Ok(None),
        (None, _) => wrong(format!("no [[value]] is called `{name}`")).at("value"),
        _ => wrong(format!("two [[value]] are called `{name}`: give each its own name")).at("value"),
    }
}

/// A reply with a form comes where such a value stands, unless its conditions say more of the Redis keys.
fn when_of_form(names: &Names, form: Option<usize>, when: Vec<Condition>) -> Vec<Condition> {
    let Some(form) = form else { return when };
    let there = || vec![(names.values[form].role, KeyIs::Value(form))];
    if when.is_empty() {
        return vec![Condition { keys: there(), other_payload: false }];
    }
    let says_more = |condition: Condition| match condition.keys.is_empty() && condition.other_payload {
        true => Condition { keys: there(), ..condition },
        false => condition,
    };
    when.into_iter().map(says_more).collect()
}

fn condition(names: &Names, raw: &BTreeMap<String, String>) -> Checked<Condition> {
    let other_payload = match raw.get(PAYLOAD).map(String::as_str) {
        None => false,
        Some("other") => true,
        Some(word) => {
            let message = format!("`{PAYLOAD}` is `other`, for a payload that is not the stored one, and not `{word}`");
            return wrong(message).at(PAYLOAD);
        }
    };
    let keys = raw.iter().filter(|(role, _)| *role != PAYLOAD).map(|(role, word)| {
        let Some(index) = names.index_named(role) else {
            return wrong(format!("`when` names `{role}`, which [keys] does not have")).at(role.as_str());
        };
        match KeyIs::of_word(word, names.format).or_else(|| names.value(index, word).map(KeyIs::Value)) {
            Some(is) => Ok((index, is)),
            None if names.is_broken(word) => Ok((index, KeyIs::Present)),
            None => {
                wrong(format!("`when` names `{word}`, which no [[value]] at that role is called")).at(role.as_str())
            }
        }
    });
    Ok(Condition { keys: keys.collect::<Checked<_>>()?, other_payload })
}

/// The call, when each of its replies has a meaning of the step; all but the last call may leave the decision to the next.
fn may_mean(call: Call, step: &str, meanings: &[Meaning], is_last: bool) -> Checked<Call> {
    let may = |means| meanings.contains(&means) || (means == Meaning::Next && !is_last);
    match call.replies.iter().enumerate().find(|(_, reply)| !may(reply.means)) {
        Some((index, reply)) => {
            let message = format!("a reply of [{step}] cannot mean `{}` here", reply.means.as_str());
            wrong(message).at("means").at(index).at("replies")
        }
        None => Ok(call),
    }
}
