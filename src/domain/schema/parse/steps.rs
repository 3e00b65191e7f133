//! `[begin]`, `[renew]`, `[complete]` and `[release]`: what is sent, and what each reply means.

use std::collections::BTreeMap;

use super::names::Names;
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::raw::{RawCall, RawReply, RawStep};
use crate::domain::schema::steps::{Action, Call, Condition, Meaning, Pattern, Reply, SlotIs, Step};

/// A step whose replies may have these meanings, the first of which one reply must have.
pub(super) fn resolve(names: &Names, raw: RawStep, name: &str, meanings: &[Meaning]) -> Checked<Step> {
    if raw.call.is_empty() {
        return wrong(format!("[{name}] has no [[{name}.call]]"));
    }
    let last = raw.call.len() - 1;
    let calls = raw.call.into_iter().enumerate().map(|(index, raw)| {
        let call = call(names, raw).and_then(|call| may_mean(call, name, meanings, index == last));
        call.at(index).at("call")
    });
    let calls = calls.collect::<Checked<Vec<_>>>()?;
    if !calls.iter().flat_map(|call| &call.replies).any(|reply| reply.means == meanings[0]) {
        return wrong(format!("no reply of [{name}] means `{}`", meanings[0].as_str()));
    }
    Ok(Step { checks_owner: raw.checks_owner, note: raw.note, calls })
}

fn call(names: &Names, raw: RawCall) -> Checked<Call> {
    let action = match (raw.script, raw.command) {
        (Some(name), None) if names.scripts.contains_key(&name) => {
            Action::Script { name, keys: raw.keys, args: raw.args }
        }
        (Some(name), None) => return wrong(format!("there is no {name}.lua beside schema.toml")).at("script"),
        (None, Some(command)) if !command.is_empty() => Action::Command(command),
        _ => return wrong("a call has either `script` or `command`"),
    };
    let replies = raw.replies.into_iter().enumerate();
    let replies = replies.map(|(index, raw)| reply(names, raw).at(index).at("replies"));
    Ok(Call { action, replies: replies.collect::<Checked<_>>()? })
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
    let mut given = patterns.into_iter().flatten();
    let (Some(pattern), None) = (given.next(), given.next()) else {
        return wrong("a reply has exactly one of word, integer, nil, error, array, text");
    };
    let when = raw.when.iter().enumerate();
    let when = when.map(|(index, raw)| condition(names, raw).at(index).at("when"));
    Ok(Reply { pattern, means: raw.means, when: when.collect::<Checked<_>>()?, client: raw.client })
}

fn condition(names: &Names, raw: &BTreeMap<String, String>) -> Checked<Condition> {
    let slots = raw.iter().map(|(role, word)| {
        let Some(slot) = names.slot(role) else {
            return wrong(format!("`when` names `{role}`, which [keys] does not have")).at(role.as_str());
        };
        match SlotIs::of_word(word).or_else(|| names.value(slot, word).map(SlotIs::Value)) {
            Some(is) => Ok((slot, is)),
            None => {
                wrong(format!("`when` names `{word}`, which no [[value]] at that slot is called")).at(role.as_str())
            }
        }
    });
    slots.collect::<Checked<_>>().map(Condition)
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
