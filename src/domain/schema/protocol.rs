//! The protocols that a `schema.toml` can name instead of describing each call. A protocol expands
//! to `[begin]`, `[complete]` and `[release]`, written as the file would write them.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::Deserialize;

use super::closed_fields::unescaped;
use super::decoder::{Decoder, Encoding};
use super::location::{At as _, Checked, wrong};
use super::model::Script;
use super::raw::{Protocol, RawSchema, RawStep, RawValue, TtlUnit};
use super::service_behavior::OnFailure;
use super::steps::Meaning;
use super::ttl::NO_TTL;
use super::value_format::State;
use super::written;

/// The field of `schema.toml` that names the protocol.
pub(super) const PROTOCOL: &str = "protocol";

/// The field with the unit of the TTLs that the protocol sends.
const TTL_UNIT: &str = "ttl_unit";

/// The scripts of the protocols, by name.
const SCRIPTS: [(&str, &str); 3] = [
    ("fenced_begin", include_str!("../../../lua/protocols/fenced_begin.lua")),
    ("fenced_complete", include_str!("../../../lua/protocols/fenced_complete.lua")),
    ("fenced_release", include_str!("../../../lua/protocols/fenced_release.lua")),
];

/// The meanings whose replies lead to a response for the client.
const CLIENT_MEANINGS: [Meaning; 4] =
    [Meaning::Conflict, Meaning::Replay, Meaning::Mismatch, Meaning::Fail];

/// The steps of a protocol, as its TOML has them.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Steps {
    begin: Option<RawStep>,
    complete: Option<RawStep>,
    release: Option<RawStep>,
}

/// Adds the steps of the schema's protocol, except those that the file describes itself.
pub(super) fn add_steps(
    raw: &mut RawSchema,
    scripts: &mut BTreeMap<String, Script>,
) -> Checked<()> {
    let Some(expanded) = expand(raw)? else {
        if !raw.client.is_empty() {
            return wrong("`client` belongs to `protocol`; here, write `client` in the replies")
                .at("client");
        }
        if raw.ttl_unit != TtlUnit::default() {
            return wrong("`ttl_unit` belongs to `protocol`; here, write the calls").at(TTL_UNIT);
        }
        return Ok(());
    };
    let steps: Steps = match toml::from_str(&expanded) {
        Ok(steps) => steps,
        Err(error) => return wrong(error.message().to_owned()).at(PROTOCOL),
    };
    raw.begin = raw.begin.take().or(steps.begin);
    for (own, of_protocol) in
        [(&mut raw.complete, steps.complete), (&mut raw.release, steps.release)]
    {
        if has_calls(own.as_ref()) {
            continue;
        }
        if own.as_ref().is_some_and(|own| own.checks_owner) {
            return wrong("`checks_owner` belongs to the calls, which the protocol supplies here")
                .at(PROTOCOL);
        }
        // A step that the protocol does not have stays without calls, which is an error.
        if of_protocol.is_some() {
            *own = of_protocol;
        }
    }
    for (name, text) in SCRIPTS {
        if !expanded.contains(&format!("script = \"{name}\"")) {
            continue;
        }
        let script = Script { name: name.to_owned(), text: text.into() };
        if scripts.insert(script.name.clone(), script).is_some() {
            return wrong(format!("rename {name}.lua: the protocol has a script of that name"))
                .at(PROTOCOL);
        }
    }
    Ok(())
}

/// True if the file describes the calls of this step itself. Without any, it may have a note about
/// the step of the protocol.
fn has_calls(step: Option<&RawStep>) -> bool {
    step.is_some_and(|step| !step.call.is_empty())
}

/// The steps of the schema's protocol that the file does not describe itself, as TOML; `None` if
/// the file names no protocol.
///
/// # Errors
/// The schema does not have what the protocol needs.
fn expand(raw: &RawSchema) -> Checked<Option<String>> {
    let Some(protocol) = raw.protocol else { return Ok(None) };
    let is_one_key = raw.keys.record.is_some();
    let (lock, result) = if is_one_key { ("record", "record") } else { ("lock", "result") };
    let expansion = Expansion { raw, lock, result };
    let file = match protocol {
        Protocol::SetNxGet => include_str!("../../../lua/protocols/set-nx-get.toml"),
        Protocol::GetSetNx => include_str!("../../../lua/protocols/get-set-nx.toml"),
        Protocol::FencedScript => include_str!("../../../lua/protocols/fenced-script.toml"),
    };
    match expansion.check(protocol) {
        Ok(()) => Ok(Some(expansion.filled(file))),
        Err(why) => {
            wrong(format!("`{}` does not fit this schema: {why}", protocol.as_str())).at(PROTOCOL)
        }
    }
}

/// True if any text has this format. Codecs refuse some, such as those without their prefix.
fn takes_any_text(value: &RawValue) -> bool {
    let decoder = value.decode.as_ref().map(|words| Decoder::parse(words));
    let has_codec = matches!(decoder, Some(Ok(decoder)) if !decoder.codecs.is_empty());
    value.opaque && !has_codec
}

/// A `schema.toml` with the calls of its protocol in place of the protocol, and with the formats
/// that `[write]` describes.
///
/// # Errors
/// Why the file cannot be read, or does not have what the protocol needs.
pub(crate) fn expanded(toml: &str) -> Result<String, String> {
    let mut raw: RawSchema = toml::from_str(toml).map_err(|error| error.message().to_owned())?;
    let mut document: toml_edit::DocumentMut =
        toml.parse().map_err(|error: toml_edit::TomlError| error.message().to_owned())?;
    written::expand(&raw, &mut document).map_err(|wrong| wrong.message)?;
    written::add_formats(&mut raw).map_err(|wrong| wrong.message)?;
    let steps = expand(&raw).map_err(|wrong| wrong.message)?;
    document.remove(PROTOCOL);
    document.remove("client");
    document.remove(TTL_UNIT);
    if steps.is_some() {
        for (name, step) in [("complete", &raw.complete), ("release", &raw.release)] {
            if !has_calls(step.as_ref()) {
                document.remove(name);
            }
        }
    }
    Ok(document.to_string() + &steps.unwrap_or_default())
}

/// A schema whose protocol is expanded.
#[derive(Clone, Copy)]
struct Expansion<'a> {
    raw: &'a RawSchema,
    /// The word for the lock's Redis key in `when` and in placeholders; `record` if it is also the
    /// result's.
    lock: &'a str,
    result: &'a str,
}

impl Expansion<'_> {
    /// Checks that the schema has what every step of the protocol needs.
    fn check(self, protocol: Protocol) -> Result<(), String> {
        let keys = &self.raw.keys;
        let is_one_key = keys.record.is_some();
        match protocol {
            Protocol::SetNxGet | Protocol::GetSetNx if !is_one_key => {
                return Err("it has one Redis key, so [keys] needs `record`".to_owned());
            }
            Protocol::FencedScript
                if !is_one_key && (keys.lock.is_none() || keys.result.is_none()) =>
            {
                return Err("[keys] needs `record`, or `lock` and `result`".to_owned());
            }
            _ => {}
        }
        if protocol == Protocol::FencedScript && self.raw.ttl_unit != TtlUnit::default() {
            return Err(
                "its scripts take TTLs in milliseconds, so `ttl_unit` does not fit".to_owned()
            );
        }
        for meaning in self.raw.client.keys() {
            let known = CLIENT_MEANINGS.map(|known| known.as_str());
            if !known.contains(&meaning.as_str()) {
                return Err(format!(
                    "no client gets `{meaning}` (in `client`); the meanings are {}",
                    known.join(", ")
                ));
            }
        }
        let [lock_value, result_value] = match &self.raw.write {
            Some(write) => [&write.lock_value, &write.result_value],
            None => [&None, &None],
        };
        for (state, name, written) in [
            (State::InProgress, "lock_value", lock_value),
            (State::Completed, "result_value", result_value),
        ] {
            if values(self.raw, state).next().is_none() {
                return Err(format!("no [[value]] has the state `{}`", state.as_str()));
            }
            if written.is_none() {
                return Err(format!("it sends `{name}`, so [write] needs it"));
            }
        }
        if self.raw.begin.is_none() && values(self.raw, State::Released).next().is_some() {
            return Err("it takes no released record over; describe [begin]".to_owned());
        }
        for value in &self.raw.value {
            if value.kind == Some(Encoding::Hash) {
                return Err(format!("it stores strings, and `{}` is another type", value.name));
            }
            // `SET NX` and `EXISTS` see a value whose contained expiry has passed as any other.
            if self.raw.begin.is_none() && value.expires_at.is_some() {
                return Err(format!(
                    "it takes no expired value over, and `{}` has `expires_at`; describe [begin]",
                    value.name
                ));
            }
        }
        if protocol == Protocol::FencedScript { self.check_owner() } else { Ok(()) }
    }

    /// Checks that `fenced-script` can tell the owner of a lock.
    fn check_owner(self) -> Result<(), String> {
        if owner_path(self.raw).is_none() {
            return Err(
                "it compares the owner, so each lock needs `fields = { owner = … }`, at one place \
                of plain JSON"
                    .to_owned(),
            );
        }
        // In one Redis key, the script could not tell such a result from the lock.
        let names_owner = |value: &&RawValue| value.is_result() && value.fields.owner.is_some();
        if self.lock == self.result
            && let Some(value) = self.raw.value.iter().find(names_owner)
        {
            return Err(format!(
                "its scripts know a lock by its owner, and `{}` names the owner as well; describe \
                [complete] and [release]",
                value.name
            ));
        }
        Ok(())
    }

    /// The parts of a protocol's file that the schema does not describe itself, with the marks
    /// filled in.
    fn filled(self, file: &str) -> String {
        let mut toml = String::new();
        for part in file.split("## ").skip(1) {
            let Some((step, text)) = part.split_once('\n') else { continue };
            let is_wanted = match step {
                "begin" => self.raw.begin.is_none(),
                "complete" => !has_calls(self.raw.complete.as_ref()),
                _ => self.releases(),
            };
            if !is_wanted {
                continue;
            }
            // What is filled in is not searched for marks: it comes from the operator.
            for (number, text) in text.split('@').enumerate() {
                if number % 2 == 0 { toml.push_str(text) } else { toml += &self.mark(text) }
            }
        }
        toml
    }

    /// The text in place of a mark.
    fn mark(self, name: &str) -> String {
        let Self { raw, lock, result } = self;
        let ms = |ttl, word: &str| if ttl == Some(NO_TTL) { "" } else { word }.to_owned();
        match name {
            "LOCK" => lock.to_owned(),
            "RESULT" => result.to_owned(),
            "VALUES" => self.value_replies(),
            "DAMAGED" => self.damaged_replies(),
            "WITHOUT_RESULT" => self.without_result(),
            "CONFLICT" => self.means(Meaning::Conflict),
            "NEXT" => self.means(Meaning::Next),
            "LOCK_TTL" => self.sent_ttl(raw.ttl.lock, "lock"),
            "RESULT_TTL" => self.sent_ttl(raw.ttl.result, "result"),
            "LOCK_TTL_MS" => ms(raw.ttl.lock, "{lock_ttl_ms}"),
            "RESULT_TTL_MS" => ms(raw.ttl.result, "{result_ttl_ms}"),
            "COMPLETE_NOTE" => note(raw.complete.as_ref()),
            "RELEASE_NOTE" => note(raw.release.as_ref()),
            // Behind a fixed text, the scripts compare the whole lock.
            "SENT_OWNER" if has_wrapped_owner(raw) => "lock_value".to_owned(),
            "SENT_OWNER" => "owner".to_owned(),
            "OWNER" => text(&owner_path(raw).unwrap_or_default()),
            // HELD: the record is a lock.
            _ => {
                let mut held = Vec::new();
                for value in values(raw, State::InProgress) {
                    held.push(format!("{{ {lock} = {} }}", text(&value.name)));
                }
                held.join(", ")
            }
        }
    }

    /// True if the release step is to be written. A service that keeps its locks has none.
    fn releases(self) -> bool {
        !has_calls(self.raw.release.as_ref())
            && self.raw.service.on_failure != Some(OnFailure::Keep)
    }

    /// The rest of a condition about the lock: its script reads the result first, and the lock only
    /// if there is no result.
    fn without_result(self) -> String {
        let Self { lock, result, .. } = self;
        if lock == result { String::new() } else { format!(", {result} = \"absent\"") }
    }

    /// The replies for the values that the client reads: a result, with or without another payload,
    /// and a lock.
    fn value_replies(self) -> String {
        let mut replies = String::new();
        // A result first: a lock that may be any text would match the text of a result.
        for state in [State::Completed, State::Failed, State::InProgress] {
            for value in values(self.raw, state) {
                let at = value.at.as_deref().unwrap_or(self.lock);
                let name = text(&value.name);
                let (mut means, mut behind) = (self.means(Meaning::Replay), String::new());
                if state == State::InProgress {
                    if at != self.lock {
                        continue;
                    }
                    (means, behind) = (self.means(Meaning::Conflict), self.without_result());
                } else if value.fields.fingerprint.is_some() {
                    let other = self.means(Meaning::Mismatch);
                    replies += &format!(
                        "  {{ value = {name}, {other}, when = {{ {at} = {name}, fingerprint = \
                        \"other\" }} }},\n"
                    );
                }
                replies += &format!(
                    "  {{ value = {name}, {means}, when = {{ {at} = {name}{behind} }} }},\n"
                );
            }
        }
        replies
    }

    /// The replies for Redis keys of another type, and for a text that no `[[value]]` matches,
    /// unless one matches any text.
    fn damaged_replies(self) -> String {
        let Self { raw, lock, result } = self;
        let mut replies = String::new();
        let fails = self.means(Meaning::Fail);
        let behind = self.without_result();
        for (pattern, state) in
            [("error = \"WRONGTYPE\"", "wrong-type"), ("text = true", "unreadable")]
        {
            if state == "unreadable" && raw.value.iter().any(takes_any_text) {
                continue;
            }
            let mut when = format!("{{ {lock} = \"{state}\"{behind} }}");
            if lock != result {
                when = format!("[{{ {result} = \"{state}\" }}, {when}]");
            }
            replies += &format!("  {{ {pattern}, {fails}, when = {when} }},\n");
        }
        replies
    }

    /// The last words of a SET with a TTL; nothing without one.
    fn sent_ttl(self, ttl: Option<Duration>, of: &str) -> String {
        match self.raw.ttl_unit {
            _ if ttl == Some(NO_TTL) => String::new(),
            TtlUnit::Ms => format!(r#", "PX", "{{{of}_ttl_ms}}""#),
            TtlUnit::S => format!(r#", "EX", "{{{of}_ttl}}""#),
        }
    }

    /// The meaning of a reply, and what the client gets.
    fn means(self, meaning: Meaning) -> String {
        let meaning = meaning.as_str();
        match self.raw.client.get(meaning) {
            Some(client) => format!("means = \"{meaning}\", client = {}", text(client)),
            None => format!("means = \"{meaning}\""),
        }
    }
}

/// The line with the note of the file about a step of the protocol; empty if there is none.
fn note(step: Option<&RawStep>) -> String {
    match step.and_then(|step| step.note.as_ref()) {
        Some(note) => format!("note = {}\n", text(note)),
        None => String::new(),
    }
}

/// A text as TOML.
fn text(text: &str) -> String {
    toml_edit::Value::from(text).to_string()
}

/// The values of this state.
fn values(raw: &RawSchema, state: State) -> impl Iterator<Item = &RawValue> {
    raw.value.iter().filter(move |value| value.state == Some(state))
}

/// True if every lock is its owner between fixed texts.
fn has_wrapped_owner(raw: &RawSchema) -> bool {
    values(raw, State::InProgress).all(is_wrapped_owner)
}

fn is_wrapped_owner(value: &RawValue) -> bool {
    let Some(decode) = &value.decode else { return false };
    let is_fixed = |word: &String| {
        word == "text" || word.starts_with("prefix=") || word.starts_with("suffix=")
    };
    value.fields.owner.as_deref() == Some("") && decode.iter().all(is_fixed)
}

/// Where each lock names its owner, as a JSON array of member names. `None` if the scripts cannot
/// read it at one place of all locks.
fn owner_path(raw: &RawSchema) -> Option<String> {
    let mut paths = BTreeSet::new();
    for value in values(raw, State::InProgress) {
        let pointer = value.fields.owner.as_ref()?;
        let is_json = value.encoding.is_none_or(|encoding| encoding == Encoding::Json);
        let is_packed = value.decode.is_some() || !value.decode_at.is_empty();
        if !has_wrapped_owner(raw) && (is_packed || !(is_json || pointer.is_empty())) {
            return None;
        }
        let names: Vec<_> = pointer.split('/').skip(1).map(unescaped).collect();
        paths.insert(serde_json::Value::from(names).to_string());
    }
    let path = paths.pop_first();
    if paths.is_empty() { path } else { None }
}
