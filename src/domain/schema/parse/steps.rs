//! `[begin]`, `[renew]`, `[complete]` and `[release]`: what is sent, and what each reply means.

use std::collections::BTreeMap;

use super::Resolver;
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::raw::{RawCall, RawReply, RawStep};
use crate::domain::schema::steps::{Action, Call, Condition, Meaning, Pattern, Reply, SlotIs, Step};

impl Resolver {
    /// A step whose replies may have these meanings, the first of which one reply must have.
    pub(super) fn step(&self, raw: RawStep, name: &str, meanings: &[Meaning]) -> Checked<Step> {
        if raw.call.is_empty() {
            return wrong(format!("[{name}] has no [[{name}.call]]")).at(name);
        }
        let last = raw.call.len() - 1;
        let mut calls = Vec::with_capacity(raw.call.len());
        for (index, call) in raw.call.into_iter().enumerate() {
            let call = self.call(call).and_then(|call| may_mean(call, name, meanings, index == last));
            calls.push(call.at(index).at("call").at(name)?);
        }
        if !calls.iter().flat_map(|call| &call.replies).any(|reply| reply.means == meanings[0]) {
            return wrong(format!("no reply of [{name}] means `{}`", meanings[0].as_str())).at(name);
        }
        Ok(Step { checks_owner: raw.checks_owner, note: raw.note, calls })
    }

    fn call(&self, raw: RawCall) -> Checked<Call> {
        let action = match (raw.script, raw.command) {
            (Some(name), None) if self.scripts.contains_key(&name) => {
                Action::Script { name, keys: raw.keys, args: raw.args }
            }
            (Some(name), None) => return wrong(format!("there is no {name}.lua beside schema.toml")).at("script"),
            (None, Some(command)) if !command.is_empty() => Action::Command(command),
            _ => return wrong("a call has either `script` or `command`"),
        };
        let replies = raw.replies.into_iter().enumerate();
        let replies = replies.map(|(index, reply)| self.reply(reply).at(index).at("replies"));
        Ok(Call { action, replies: replies.collect::<Checked<_>>()? })
    }

    fn reply(&self, raw: RawReply) -> Checked<Reply> {
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
        let when = when.map(|(index, condition)| self.condition(condition).at(index).at("when"));
        Ok(Reply { pattern, means: raw.means, when: when.collect::<Checked<_>>()?, client: raw.client })
    }

    fn condition(&self, raw: &BTreeMap<String, String>) -> Checked<Condition> {
        let slots = raw.iter().map(|(role, word)| {
            let Some(slot) = self.slots.iter().position(|slot| slot.role.as_str() == role) else {
                return wrong(format!("`when` names `{role}`, which [keys] does not have")).at(role.as_str());
            };
            Ok((slot, self.slot_is(slot, word).at(role.as_str())?))
        });
        slots.collect::<Checked<_>>().map(Condition)
    }

    fn slot_is(&self, slot: usize, word: &str) -> Checked<SlotIs> {
        let value = || self.values.iter().position(|case| case.slot == slot && case.name == word).map(SlotIs::Value);
        match SlotIs::of_word(word).or_else(value) {
            Some(is) => Ok(is),
            None => wrong(format!("`when` names `{word}`, which no [[value]] at that slot is called")),
        }
    }
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
