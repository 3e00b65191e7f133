//! Reading a `schema.toml`: every name resolved, every error with its line.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::time::Duration;

use serde_json::Value;
use toml::Spanned;

use super::model::{
    Action, BodyEncoding, Call, Condition, Encoding, Fields, Meaning, Origin, Pattern, Reply, Schema, Script, Slot,
    SlotIs, SlotKey, State, Step, Timestamp, ValueCase, Where, WriteFormat,
};
use super::raw::{
    RawBodyEncoding, RawCall, RawEncoding, RawFields, RawKeys, RawMeaning, RawReply, RawSchema, RawSlot, RawState,
    RawStep, RawTimestamp, RawValue, RawWhen, Scalar,
};
use crate::domain::template::KeyTemplate;
use crate::domain::write::Template;

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
    /// The scripts beside it.
    pub scripts: Vec<Script>,
    /// Where both came from.
    pub origin: Origin,
    /// The deployment's prefix, where one is set.
    pub prefix: Option<&'a str>,
}

/// Reads and checks a schema.
///
/// # Errors
/// The first thing that is wrong, with its line.
pub fn parse(source: SchemaSource<'_>) -> Result<Schema, SchemaError> {
    let at = |span: Option<Range<usize>>, message: String| SchemaError {
        file: source.file.to_owned(),
        line: line_of(source.toml, span.map_or(0, |span| span.start)),
        message,
    };
    let raw: RawSchema = toml::from_str(source.toml).map_err(|error| at(error.span(), error.message().to_owned()))?;
    let mut builder = Builder { scripts: &source.scripts, slots: Vec::new(), values: Vec::new() };
    builder.schema(raw, source.prefix, source.origin.clone()).map_err(|Wrong(span, message)| at(Some(span), message))
}

fn line_of(text: &str, offset: usize) -> usize {
    text.as_bytes().iter().take(offset).filter(|byte| **byte == b'\n').count() + 1
}

struct Wrong(Range<usize>, String);

type Checked<T> = Result<T, Wrong>;

fn wrong<T, S>(at: &Spanned<S>, message: impl Into<String>) -> Checked<T> {
    Err(Wrong(at.span(), message.into()))
}

/// What has been read so far and later parts refer to.
struct Builder<'a> {
    scripts: &'a [Script],
    slots: Vec<SlotKey>,
    values: Vec<ValueCase>,
}

impl Builder<'_> {
    fn schema(&mut self, raw: RawSchema, prefix: Option<&str>, origin: Origin) -> Checked<Schema> {
        if *raw.format.get_ref() != 1 {
            return wrong(
                &raw.format,
                format!("format {} is not known: this idemctl reads format 1", raw.format.get_ref()),
            );
        }
        let name = raw.name.get_ref().clone();
        if name.is_empty() || !name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte)) {
            return wrong(&raw.name, "a schema's name is made of letters, digits, `-`, `_` and `.`");
        }
        let takes_prefix = self.keys(raw.keys, prefix)?;
        for value in raw.value {
            let case = self.value(value)?;
            self.values.push(case);
        }
        let write = WriteFormat {
            lock_value: template(&raw.write.lock_value, Template::of_value)?,
            result_value: template(&raw.write.result_value, Template::of_value)?,
            escape_html: raw.write.escape_html,
        };
        let begin =
            self.step(raw.begin, "begin", &[Meaning::Acquired, Meaning::Conflict, Meaning::Replay, Meaning::Fail])?;
        let complete = self.step(raw.complete, "complete", &[Meaning::Stored, Meaning::Refused])?;
        let release =
            raw.release.map(|step| self.step(step, "release", &[Meaning::Released, Meaning::Refused])).transpose()?;
        Ok(Schema {
            name,
            summary: raw.summary,
            older_release_of: raw.older_release_of,
            slots: std::mem::take(&mut self.slots),
            takes_prefix,
            lock_ttl: duration(&raw.ttl.lock)?,
            result_ttl: duration(&raw.ttl.result)?,
            values: std::mem::take(&mut self.values),
            write,
            begin,
            complete,
            release,
            scripts: self
                .scripts
                .iter()
                .map(|script| (script.name.clone(), script.clone()))
                .collect::<BTreeMap<_, _>>(),
            origin,
        })
    }

    /// Resolves the key templates; true when one of them takes a prefix.
    fn keys(&mut self, keys: Spanned<RawKeys>, prefix: Option<&str>) -> Checked<bool> {
        let span = keys.span();
        let RawKeys { record, lock, result, prefix: default } = keys.into_inner();
        let named = match (record, lock, result) {
            (Some(record), None, None) => vec![(Slot::Record, record)],
            (None, Some(lock), Some(result)) => vec![(Slot::Lock, lock), (Slot::Result, result)],
            _ => return Err(Wrong(span, "[keys] has either `record`, or both `lock` and `result`".into())),
        };
        let mut takes_prefix = false;
        for (role, text) in named {
            takes_prefix |= text.get_ref().contains("{prefix}");
            let template = KeyTemplate::parse(text.get_ref(), prefix.unwrap_or(&default))
                .map_err(|why| Wrong(text.span(), why))?;
            if self.slots.iter().any(|slot| slot.template == template) {
                return wrong(&text, "lock and result must have different Redis keys");
            }
            self.slots.push(SlotKey { role, template });
        }
        Ok(takes_prefix)
    }

    fn value(&self, raw: Spanned<RawValue>) -> Checked<ValueCase> {
        let span = raw.span();
        let raw = raw.into_inner();
        let name = raw.name.get_ref().clone();
        if ["absent", "present", "unreadable", "wrong-type"].contains(&name.as_str()) {
            return wrong(&raw.name, format!("`{name}` is a word that `when` already uses"));
        }
        let role = slot_of(*raw.at.get_ref());
        let Some(slot) = self.slots.iter().position(|slot| slot.role == role) else {
            return wrong(&raw.at, format!("[keys] has no `{}`", role.word()));
        };
        if self.values.iter().any(|case| case.slot == slot && case.name == name) {
            return wrong(&raw.name, format!("`{name}` is defined twice at `{}`", role.word()));
        }
        let encoding = match raw.encoding {
            RawEncoding::Text => Encoding::Text,
            RawEncoding::Json => Encoding::Json,
        };
        if encoding == Encoding::Text && !(raw.fields_are.is_empty() && raw.has.is_empty()) {
            return Err(Wrong(span, "`where` and `has` look into JSON: use `equals` with encoding = \"text\"".into()));
        }
        if let (Encoding::Json, Some(equals)) = (encoding, &raw.equals) {
            return wrong(equals, "`equals` compares the whole text: use `where` with encoding = \"json\"");
        }
        for path in &raw.has {
            pointer(path, encoding)?;
        }
        if let Some(path) = raw.fields_are.keys().find(|path| !path.starts_with('/')) {
            return Err(Wrong(span, format!("`{path}` is not a JSON pointer: it starts with `/`")));
        }
        let tests = Where {
            equals: raw.equals.map(|text| text.into_inner().into_bytes()),
            fields: raw.fields_are.into_iter().map(|(path, scalar)| (path, scalar_value(scalar))).collect(),
            has: raw.has.into_iter().map(Spanned::into_inner).collect(),
        };
        Ok(ValueCase {
            name,
            slot,
            encoding,
            tests,
            state: match raw.state {
                RawState::InProgress => State::InProgress,
                RawState::Completed => State::Completed,
            },
            fields: fields(raw.fields, encoding)?,
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

    fn step(&self, raw: Spanned<RawStep>, name: &str, meanings: &[Meaning]) -> Checked<Step> {
        let span = raw.span();
        let raw = raw.into_inner();
        if raw.call.is_empty() {
            return Err(Wrong(span, format!("[{name}] has no [[{name}.call]]")));
        }
        let last = raw.call.len() - 1;
        let mut calls = Vec::with_capacity(raw.call.len());
        for (index, call) in raw.call.into_iter().enumerate() {
            calls.push(self.call(call, name, meanings, index == last)?);
        }
        let said: BTreeSet<_> = calls.iter().flat_map(|call| &call.replies).map(|reply| reply.means as u8).collect();
        if !said.contains(&(meanings[0] as u8)) {
            return Err(Wrong(span, format!("no reply of [{name}] means `{}`", meanings[0].word())));
        }
        Ok(Step { checks_owner: raw.checks_owner, note: raw.note, calls })
    }

    fn call(&self, raw: Spanned<RawCall>, step: &str, meanings: &[Meaning], last: bool) -> Checked<Call> {
        let span = raw.span();
        let raw = raw.into_inner();
        let action = match (raw.script, raw.command) {
            (Some(script), None) => self.script(&script, &raw.keys, &raw.args)?,
            (None, Some(command)) if !command.is_empty() => {
                Action::Command(command.iter().map(|word| template(word, Template::of_call)).collect::<Checked<_>>()?)
            }
            _ => return Err(Wrong(span, "a call has either `script` or `command`".into())),
        };
        let mut replies = Vec::with_capacity(raw.replies.len());
        for reply in raw.replies {
            let at = reply.span();
            let reply = self.reply(reply)?;
            let allowed = meanings.contains(&reply.means) || (reply.means == Meaning::Next && !last);
            if !allowed {
                return Err(Wrong(at, format!("a reply of [{step}] cannot mean `{}` here", reply.means.word())));
            }
            replies.push(reply);
        }
        Ok(Call { action, replies })
    }

    fn script(&self, name: &Spanned<String>, keys: &[Spanned<String>], args: &[Spanned<String>]) -> Checked<Action> {
        if !self.scripts.iter().any(|script| &script.name == name.get_ref()) {
            return wrong(name, format!("there is no {}.lua beside schema.toml", name.get_ref()));
        }
        Ok(Action::Script {
            name: name.get_ref().clone(),
            keys: keys.iter().map(|key| template(key, Template::of_call)).collect::<Checked<_>>()?,
            args: args.iter().map(|arg| template(arg, Template::of_call)).collect::<Checked<_>>()?,
        })
    }

    fn reply(&self, raw: Spanned<RawReply>) -> Checked<Reply> {
        let span = raw.span();
        let raw = raw.into_inner();
        let mut patterns = Vec::new();
        patterns.extend(raw.word.map(Pattern::Word));
        patterns.extend(raw.integer.map(Pattern::Integer));
        patterns.extend(raw.nil.filter(|on| *on).map(|_| Pattern::Nil));
        patterns.extend(raw.error.map(Pattern::Error));
        patterns.extend(raw.array.map(Pattern::Array));
        patterns.extend(raw.text.filter(|on| *on).map(|_| Pattern::Text));
        let Ok([pattern]) = <[Pattern; 1]>::try_from(patterns) else {
            return Err(Wrong(span, "a reply has exactly one of word, integer, nil, error, array, text".into()));
        };
        let alternatives = match raw.when {
            None => Vec::new(),
            Some(RawWhen::One(condition)) => vec![condition],
            Some(RawWhen::Any(conditions)) => conditions,
        };
        let when = alternatives
            .into_iter()
            .map(|condition| self.condition(condition).map_err(|why| Wrong(span.clone(), why)))
            .collect::<Checked<_>>()?;
        Ok(Reply { pattern, means: meaning_of(*raw.means.get_ref()), when, client: raw.client })
    }

    fn condition(&self, raw: BTreeMap<String, String>) -> Result<Condition, String> {
        let mut slots = Vec::with_capacity(raw.len());
        for (role, word) in raw {
            let slot = self
                .slots
                .iter()
                .position(|slot| slot.role.word() == role)
                .ok_or_else(|| format!("`when` names `{role}`, which [keys] does not have"))?;
            slots.push((slot, self.slot_is(slot, &word)?));
        }
        Ok(Condition(slots))
    }

    fn slot_is(&self, slot: usize, word: &str) -> Result<SlotIs, String> {
        Ok(match word {
            "absent" => SlotIs::Absent,
            "present" => SlotIs::Present,
            "unreadable" => SlotIs::Unreadable,
            "wrong-type" => SlotIs::WrongType,
            name => SlotIs::Value(
                self.values
                    .iter()
                    .position(|case| case.slot == slot && case.name == name)
                    .ok_or_else(|| format!("`when` names `{name}`, which no [[value]] at that slot is called"))?,
            ),
        })
    }
}

fn template(text: &Spanned<String>, parse: fn(&str) -> Result<Template, String>) -> Checked<Template> {
    parse(text.get_ref()).map_err(|why| Wrong(text.span(), why))
}

fn duration(text: &Spanned<String>) -> Checked<Duration> {
    match humantime::parse_duration(text.get_ref()) {
        Ok(duration) if duration.is_zero() => wrong(text, "a TTL is longer than zero"),
        Ok(duration) => Ok(duration),
        Err(why) => wrong(text, format!("`{}` is no duration ({why}): write 30s, 5m or 24h", text.get_ref())),
    }
}

fn pointer(path: &Spanned<String>, encoding: Encoding) -> Checked<String> {
    let text = path.get_ref();
    match encoding {
        Encoding::Text if !text.is_empty() => wrong(path, "text has no fields: only \"\", the whole value"),
        Encoding::Json if !text.is_empty() && !text.starts_with('/') => {
            wrong(path, format!("`{text}` is not a JSON pointer: it starts with `/`, or is empty for the whole value"))
        }
        _ => Ok(text.clone()),
    }
}

fn fields(raw: RawFields, encoding: Encoding) -> Checked<Fields> {
    let checked = |path: Option<Spanned<String>>| path.map(|path| pointer(&path, encoding)).transpose();
    Ok(Fields {
        owner: checked(raw.owner)?,
        fingerprint: checked(raw.fingerprint)?,
        created_at: checked(raw.created_at)?,
        completed_at: checked(raw.completed_at)?,
        status: checked(raw.status)?,
        headers: checked(raw.headers)?,
        body: checked(raw.body)?,
        error: checked(raw.error)?,
        blob: checked(raw.blob)?,
    })
}

fn slot_of(raw: RawSlot) -> Slot {
    match raw {
        RawSlot::Record => Slot::Record,
        RawSlot::Lock => Slot::Lock,
        RawSlot::Result => Slot::Result,
    }
}

fn scalar_value(scalar: Scalar) -> Value {
    match scalar {
        Scalar::Flag(flag) => Value::from(flag),
        Scalar::Integer(number) => Value::from(number),
        Scalar::Text(text) => Value::from(text),
    }
}

fn meaning_of(raw: RawMeaning) -> Meaning {
    match raw {
        RawMeaning::Acquired => Meaning::Acquired,
        RawMeaning::Conflict => Meaning::Conflict,
        RawMeaning::Replay => Meaning::Replay,
        RawMeaning::Fail => Meaning::Fail,
        RawMeaning::Stored => Meaning::Stored,
        RawMeaning::Refused => Meaning::Refused,
        RawMeaning::Released => Meaning::Released,
        RawMeaning::Next => Meaning::Next,
    }
}
