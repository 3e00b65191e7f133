//! Reading a `schema.toml`: every name resolved, every error with its line.

mod form;
mod prefix;
mod service;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use super::forms::{BodyEncoding, Encoding, Fields, State, Timestamp, ValueCase, Where};
use super::key_template::KeyTemplate;
use super::location::{At as _, Checked, line_of, wrong};
use super::model::{Origin, Schema, Script, Slot, SlotKey};
use super::prefix::{Prefix, PrefixPlace};
use super::raw::{
    RawBodyEncoding, RawCall, RawEncoding, RawFields, RawFirst, RawKeys, RawMeaning, RawReply, RawSchema, RawSlot,
    RawState, RawStep, RawTimestamp, RawValue, Text,
};
use super::steps::{Action, Call, Condition, First, Meaning, Pattern, Reply, SlotIs, Step};
use crate::domain::step::request::Template;

/// What is wrong with a schema, and on which line of which file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{file}:{line}: {message}")]
pub struct SchemaError {
    /// The file, as it was named.
    pub file: String,
    /// The line, from 1.
    pub line: usize,
    /// What is wrong, and what would be right.
    pub message: String,
}

/// The text of a schema before it is read.
pub struct SchemaSource<'a> {
    /// The file's name for errors.
    pub file: &'a str,
    /// The text of `schema.toml`.
    pub toml: &'a str,
    /// The same as JSON, where there is one: it is read many times faster, and the TOML only to find a line.
    pub json: Option<&'a str>,
    /// The scripts beside it.
    pub scripts: Vec<Script>,
    /// Where both came from.
    pub origin: Origin,
    /// The deployment's prefix for this schema, where one is set.
    pub prefix: Option<&'a str>,
    /// The prefix of every schema whose key templates say where a prefix stands, where one is set.
    pub shared_prefix: Option<&'a str>,
}

/// Reads and checks a schema.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse(source: SchemaSource<'_>) -> Result<Schema, SchemaError> {
    let SchemaSource { file, toml, json, scripts, origin, prefix, shared_prefix } = source;
    let error = |line, message| SchemaError { file: file.to_owned(), line, message };
    let raw: RawSchema = match json {
        Some(json) => serde_json::from_str(json).map_err(|wrong| error(1, wrong.to_string()))?,
        None => toml::from_str(toml).map_err(|wrong| {
            error(line_of(toml, wrong.span().map_or(0, |span| span.start)), wrong.message().to_owned())
        })?,
    };
    let scripts = scripts.into_iter().map(|script| (script.name.clone(), script)).collect();
    let builder = Builder { scripts, slots: Vec::new(), values: Vec::new() };
    builder.schema(raw, (prefix, shared_prefix), origin).map_err(|wrong| error(wrong.line(toml), wrong.message))
}

/// The deployment's prefix for one schema, and the one for every schema whose templates say where a prefix stands.
type Given<'a> = (Option<&'a str>, Option<&'a str>);

/// What has been read so far and later parts refer to.
struct Builder {
    scripts: BTreeMap<String, Script>,
    slots: Vec<SlotKey>,
    values: Vec<ValueCase>,
}

impl Builder {
    fn schema(mut self, raw: RawSchema, given: Given<'_>, origin: Origin) -> Checked<Schema> {
        if raw.format != 1 {
            return wrong(format!("format {} is not known: this idemctl reads format 1", raw.format)).at("format");
        }
        let place = prefix::place(&raw);
        let name = raw.name;
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return wrong("a schema's name is made of letters, digits, `-`, `_` and `.`").at("name");
        }
        let prefix = place.and_then(|place| self.keys(raw.keys, given, place)).at("keys")?;
        for (index, value) in raw.value.into_iter().enumerate() {
            let case = self.value(value).at(index).at("value")?;
            self.values.push(case);
        }
        let write = service::write_format(raw.write).at("write")?;
        let begins = [Meaning::Acquired, Meaning::Conflict, Meaning::Replay, Meaning::Mismatch, Meaning::Fail];
        let begin = self.step(raw.begin, "begin", &begins)?;
        let renew =
            raw.renew.map(|step| self.step(step, "renew", &[Meaning::Renewed, Meaning::Refused])).transpose()?;
        let complete = self.step(raw.complete, "complete", &[Meaning::Stored, Meaning::Refused])?;
        let release =
            raw.release.map(|step| self.step(step, "release", &[Meaning::Released, Meaning::Refused])).transpose()?;
        Ok(Schema {
            name,
            summary: raw.summary,
            older_release_of: raw.older_release_of,
            slots: self.slots,
            takes_prefix: prefix.place.refusal().is_none(),
            prefix,
            lock_ttl: duration(&raw.ttl.lock).at("lock").at("ttl")?,
            result_ttl: duration(&raw.ttl.result).at("result").at("ttl")?,
            stated: Vec::new(),
            values: self.values,
            write,
            begin,
            complete,
            renew,
            release,
            conduct: service::conduct(raw.service).at("service")?,
            scripts: self.scripts,
            origin,
        })
    }

    /// Resolves the key templates; gives the prefix in them.
    fn keys(&mut self, keys: RawKeys, (own, shared): Given<'_>, place: PrefixPlace) -> Checked<Prefix> {
        if !keys.prefix.is_empty() && !prefix::is_written(&keys) {
            return wrong("no template writes `{prefix}`: write it where this one stands").at("prefix");
        }
        let RawKeys { record, lock, result, prefix: default } = keys;
        let named = match (record, lock, result) {
            (Some(record), None, None) => vec![(Slot::Record, record)],
            (None, Some(lock), Some(result)) => vec![(Slot::Lock, lock), (Slot::Result, result)],
            _ => return wrong("[keys] has either `record`, or both `lock` and `result`"),
        };
        let given = match place {
            PrefixPlace::Nowhere(_) => None,
            PrefixPlace::Written => own.or(shared),
            PrefixPlace::InKey | PrefixPlace::InFront => own,
        };
        let prefix = Prefix { text: given.map_or(default, str::to_owned), place };
        for (role, text) in named {
            let template = KeyTemplate::parse(&text, &prefix.text).or_else(wrong).at(role.word())?;
            let template = if prefix.place == PrefixPlace::InFront { template.behind(&prefix.text) } else { template };
            if self.slots.iter().any(|slot| slot.template == template) {
                return wrong("lock and result must have different Redis keys").at(role.word());
            }
            self.slots.push(SlotKey { role, template });
        }
        Ok(prefix)
    }

    fn value(&self, raw: RawValue) -> Checked<ValueCase> {
        let name = raw.name.clone();
        if ["absent", "present", "unreadable", "wrong-type"].contains(&name.as_str()) {
            return wrong(format!("`{name}` is a word that `when` already uses")).at("name");
        }
        let role = slot_of(raw.at);
        let Some(slot) = self.slots.iter().position(|slot| slot.role == role) else {
            return wrong(format!("[keys] has no `{}`", role.word())).at("at");
        };
        if self.values.iter().any(|case| case.slot == slot && case.name == name) {
            return wrong(format!("`{name}` is defined twice at `{}`", role.word())).at("name");
        }
        let encoding = match raw.encoding {
            RawEncoding::Text => Encoding::Text,
            RawEncoding::Json => Encoding::Json,
        };
        if encoding == Encoding::Text && !(raw.fields_are.is_empty() && raw.has.is_empty()) {
            return wrong("`where` and `has` look into JSON: use `equals` with encoding = \"text\"");
        }
        if encoding == Encoding::Json && raw.equals.is_some() {
            return wrong("`equals` compares the whole text: use `where` with encoding = \"json\"").at("equals");
        }
        for (index, path) in raw.has.iter().enumerate() {
            pointer(path, encoding).at(index).at("has")?;
        }
        for (path, value) in &raw.fields_are {
            compared(path, value).at(path.as_str()).at("where")?;
        }
        let closed = form::closed(&raw, encoding)?;
        let tests = Where {
            equals: raw.equals.map(String::into_bytes),
            fields: raw.fields_are.into_iter().collect(),
            has: raw.has,
        };
        Ok(ValueCase {
            name,
            slot,
            encoding,
            tests,
            closed,
            is_marked_opaque: raw.opaque,
            state: match raw.state {
                RawState::InProgress => State::InProgress,
                RawState::Completed => State::Completed,
            },
            fields: fields(raw.fields, encoding).at("fields")?,
            body_encoding: match raw.body_encoding {
                RawBodyEncoding::Text => BodyEncoding::Text,
                RawBodyEncoding::Base64 => BodyEncoding::Base64,
                RawBodyEncoding::Json => BodyEncoding::Json,
            },
            timestamp: match raw.timestamp {
                RawTimestamp::Milliseconds => Timestamp::Milliseconds,
                RawTimestamp::Seconds => Timestamp::Seconds,
                RawTimestamp::Rfc3339 => Timestamp::Rfc3339,
            },
        })
    }

    fn step(&self, raw: RawStep, name: &str, meanings: &[Meaning]) -> Checked<Step> {
        if raw.call.is_empty() {
            return wrong(format!("[{name}] has no [[{name}.call]]")).at(name);
        }
        let last = raw.call.len() - 1;
        let mut calls = Vec::with_capacity(raw.call.len());
        for (index, call) in raw.call.into_iter().enumerate() {
            calls.push(self.call(call, name, meanings, index == last).at(index).at("call").at(name)?);
        }
        if !calls.iter().flat_map(|call| &call.replies).any(|reply| reply.means == meanings[0]) {
            return wrong(format!("no reply of [{name}] means `{}`", meanings[0].word())).at(name);
        }
        Ok(Step { checks_owner: raw.checks_owner, note: raw.note, calls })
    }

    fn call(&self, raw: RawCall, step: &str, meanings: &[Meaning], last: bool) -> Checked<Call> {
        let action = match (raw.script, raw.command) {
            (Some(script), None) => self.script(script, &raw.keys, &raw.args)?,
            (None, Some(command)) if !command.is_empty() => Action::Command(templates(&command).at("command")?),
            _ => return wrong("a call has either `script` or `command`"),
        };
        let mut replies = Vec::with_capacity(raw.replies.len());
        for (index, reply) in raw.replies.into_iter().enumerate() {
            let reply = self.reply(reply).at(index).at("replies")?;
            let allowed = meanings.contains(&reply.means) || (reply.means == Meaning::Next && !last);
            if !allowed {
                return wrong(format!("a reply of [{step}] cannot mean `{}` here", reply.means.word()))
                    .at("means")
                    .at(index)
                    .at("replies");
            }
            replies.push(reply);
        }
        Ok(Call { action, replies })
    }

    fn script(&self, name: String, keys: &[Text<'_>], args: &[Text<'_>]) -> Checked<Action> {
        if !self.scripts.contains_key(&name) {
            return wrong(format!("there is no {name}.lua beside schema.toml")).at("script");
        }
        Ok(Action::Script { name, keys: templates(keys).at("keys")?, args: templates(args).at("args")? })
    }

    fn reply(&self, raw: RawReply) -> Checked<Reply> {
        let patterns = [
            raw.word.map(Pattern::Word),
            raw.integer.map(Pattern::Integer),
            raw.nil.filter(|on| *on).map(|_| Pattern::Nil),
            raw.error.map(Pattern::Error),
            raw.array.map(|first| Pattern::Array(first_of(first))),
            raw.text.filter(|on| *on).map(|_| Pattern::Text),
        ];
        let mut given = patterns.into_iter().flatten();
        let (Some(pattern), None) = (given.next(), given.next()) else {
            return wrong("a reply has exactly one of word, integer, nil, error, array, text");
        };
        let alternatives = raw.when.map_or_else(Vec::new, |when| when.0);
        let mut when = Vec::with_capacity(alternatives.len());
        for (index, condition) in alternatives.into_iter().enumerate() {
            when.push(self.condition(&condition).at(index).at("when")?);
        }
        Ok(Reply { pattern, means: meaning_of(raw.means), when, client: raw.client })
    }

    fn condition(&self, raw: &BTreeMap<Text<'_>, Text<'_>>) -> Checked<Condition> {
        let mut slots = Vec::with_capacity(raw.len());
        for (role, word) in raw {
            let role = &**role;
            let Some(slot) = self.slots.iter().position(|slot| slot.role.word() == role) else {
                return wrong(format!("`when` names `{role}`, which [keys] does not have")).at(role);
            };
            slots.push((slot, self.slot_is(slot, word).at(role)?));
        }
        Ok(Condition(slots))
    }

    fn slot_is(&self, slot: usize, word: &str) -> Checked<SlotIs> {
        Ok(match word {
            "absent" => SlotIs::Absent,
            "present" => SlotIs::Present,
            "unreadable" => SlotIs::Unreadable,
            "wrong-type" => SlotIs::WrongType,
            name => match self.values.iter().position(|case| case.slot == slot && case.name == name) {
                Some(value) => SlotIs::Value(value),
                None => return wrong(format!("`when` names `{name}`, which no [[value]] at that slot is called")),
            },
        })
    }
}

fn template(text: &str, parse: fn(&str) -> Result<Template, String>) -> Checked<Template> {
    parse(text).or_else(wrong)
}

fn templates(texts: &[Text<'_>]) -> Checked<Vec<Template>> {
    texts.iter().enumerate().map(|(index, text)| template(text, Template::of_call).at(index)).collect()
}

fn duration(text: &str) -> Checked<Duration> {
    match humantime::parse_duration(text) {
        Ok(duration) if duration.is_zero() => wrong("a TTL is longer than zero"),
        Ok(duration) => Ok(duration),
        Err(why) => wrong(format!("`{text}` is no duration ({why}): write 30s, 5m or 24h")),
    }
}

fn compared(path: &str, value: &Value) -> Checked<()> {
    if !path.starts_with('/') {
        return wrong(format!("`{path}` is not a JSON pointer: it starts with `/`"));
    }
    if value.is_string() || value.is_boolean() || value.is_i64() {
        return Ok(());
    }
    wrong("`where` compares with a text, a whole number, true or false")
}

fn pointer(path: &str, encoding: Encoding) -> Checked<()> {
    match encoding {
        Encoding::Text if !path.is_empty() => wrong("text has no fields: only \"\", the whole value"),
        Encoding::Json if !path.is_empty() && !path.starts_with('/') => {
            wrong(format!("`{path}` is not a JSON pointer: it starts with `/`, or is empty for the whole value"))
        }
        _ => Ok(()),
    }
}

fn fields(raw: RawFields, encoding: Encoding) -> Checked<Fields> {
    let checked = |name: &str, path: Option<String>| {
        path.as_deref().map_or(Ok(()), |path| pointer(path, encoding)).at(name).map(|()| path)
    };
    Ok(Fields {
        owner: checked("owner", raw.owner)?,
        fingerprint: checked("fingerprint", raw.fingerprint)?,
        created_at: checked("created_at", raw.created_at)?,
        completed_at: checked("completed_at", raw.completed_at)?,
        status: checked("status", raw.status)?,
        headers: checked("headers", raw.headers)?,
        body: checked("body", raw.body)?,
        error: checked("error", raw.error)?,
        blob: checked("blob", raw.blob)?,
    })
}

fn first_of(raw: RawFirst) -> First {
    match raw {
        RawFirst::Integer(number) => First::Integer(number),
        RawFirst::Word(word) => First::Word(word),
    }
}

fn slot_of(raw: RawSlot) -> Slot {
    match raw {
        RawSlot::Record => Slot::Record,
        RawSlot::Lock => Slot::Lock,
        RawSlot::Result => Slot::Result,
    }
}

fn meaning_of(raw: RawMeaning) -> Meaning {
    match raw {
        RawMeaning::Acquired => Meaning::Acquired,
        RawMeaning::Conflict => Meaning::Conflict,
        RawMeaning::Replay => Meaning::Replay,
        RawMeaning::Mismatch => Meaning::Mismatch,
        RawMeaning::Fail => Meaning::Fail,
        RawMeaning::Renewed => Meaning::Renewed,
        RawMeaning::Stored => Meaning::Stored,
        RawMeaning::Refused => Meaning::Refused,
        RawMeaning::Released => Meaning::Released,
        RawMeaning::Next => Meaning::Next,
    }
}
