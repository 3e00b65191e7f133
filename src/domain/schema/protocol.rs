//! The protocols that a `schema.toml` can name instead of describing each call. A protocol expands
//! to `[begin]`, `[complete]` and `[release]`, written as the file would write them.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use serde::Deserialize;

use super::decoder::{Decoder, Encoding, ValueType};
use super::location::{At as _, Checked, wrong};
use super::model::Script;
use super::protocol_text::{command, is, is_met, placeholder, script, text};
use super::raw::{Protocol, RawSchema, RawStep, RawValue, TtlUnit};
use super::redis_keys::Role;
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

/// The steps of a protocol for one schema.
pub(super) struct ExpandedSteps {
    /// The steps that the file does not describe itself, as TOML.
    pub(super) toml: String,
    /// The scripts that the steps send.
    pub(super) scripts: Vec<Script>,
}

/// The steps in the TOML of [`ExpandedSteps`].
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
    let steps: Steps = match toml::from_str(&expanded.toml) {
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
    for script in expanded.scripts {
        if scripts.contains_key(&script.name) {
            let name = &script.name;
            return wrong(format!("rename {name}.lua: the protocol has a script of that name"))
                .at(PROTOCOL);
        }
        scripts.insert(script.name.clone(), script);
    }
    Ok(())
}

/// True if the file describes the calls of this step itself. Without any, it may have a note about
/// the step of the protocol.
fn has_calls(step: Option<&RawStep>) -> bool {
    step.is_some_and(|step| !step.call.is_empty())
}

/// The steps of the schema's protocol; `None` if the file names none.
///
/// # Errors
/// The schema does not have what the protocol needs.
pub(super) fn expand(raw: &RawSchema) -> Checked<Option<ExpandedSteps>> {
    let Some(protocol) = raw.protocol else { return Ok(None) };
    let expansion = Expansion { raw, toml: String::new() };
    match expansion.expand(protocol) {
        Ok(toml) => {
            let mut scripts = Vec::new();
            for (name, text) in SCRIPTS {
                if toml.contains(&format!("script = \"{name}\"")) {
                    scripts.push(Script { name: name.to_owned(), text: text.into() });
                }
            }
            Ok(Some(ExpandedSteps { toml, scripts }))
        }
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
    let mut text = document.to_string();
    if let Some(steps) = steps {
        text.push_str(&steps.toml);
    }
    Ok(text)
}

/// An expansion in progress.
struct Expansion<'a> {
    raw: &'a RawSchema,
    toml: String,
}

impl<'a> Expansion<'a> {
    fn expand(mut self, protocol: Protocol) -> Result<String, String> {
        self.check(protocol)?;
        let lock = self.role(Role::Lock);
        let result = self.role(Role::Result);
        match protocol {
            Protocol::SetNxGet | Protocol::GetSetNx => self.set_nx_get(protocol),
            Protocol::FencedScript => self.fenced_script(lock, result)?,
        }
        Ok(self.toml)
    }

    /// Checks that the schema has what every step of the protocol needs.
    fn check(&self, protocol: Protocol) -> Result<(), String> {
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
            let is_known = CLIENT_MEANINGS.iter().any(|known| known.as_str() == meaning);
            if !is_known {
                let known: Vec<_> = CLIENT_MEANINGS.iter().map(Meaning::as_str).collect();
                return Err(format!(
                    "no client gets `{meaning}` (in `client`); the meanings are {}",
                    known.join(", ")
                ));
            }
        }
        for (state, name) in [(State::InProgress, "lock_value"), (State::Completed, "result_value")]
        {
            if values(self.raw, state).next().is_none() {
                return Err(format!("no [[value]] has the state `{}`", state.as_str()));
            }
            let write = self.raw.write.as_ref();
            let written = write.and_then(|write| match state {
                State::InProgress => write.lock_value.as_ref(),
                _ => write.result_value.as_ref(),
            });
            if written.is_none() {
                return Err(format!("it sends `{name}`, so [write] needs it"));
            }
        }
        if self.raw.begin.is_none() && values(self.raw, State::Released).next().is_some() {
            return Err("it takes no released record over; describe [begin]".to_owned());
        }
        for value in &self.raw.value {
            if value.kind == Some(ValueType::Hash) {
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
        Ok(())
    }

    fn set_nx_get(&mut self, protocol: Protocol) {
        if self.raw.begin.is_none() {
            let reads_first = protocol == Protocol::GetSetNx;
            let after_lock = if reads_first { Meaning::Conflict } else { Meaning::Next };
            let without_value = if reads_first { Meaning::Next } else { Meaning::Conflict };
            if reads_first {
                self.reads_record(without_value);
            }
            let mut words = vec!["SET", "{record}", "{lock_value}", "NX"];
            words.extend(self.lock_ttl_words());
            self.call("begin", &command(&words));
            self.reply("word = \"OK\"", Meaning::Acquired, Some("{ record = \"absent\" }"));
            self.reply("nil = true", after_lock, None);
            self.end();
            if !reads_first {
                self.reads_record(without_value);
            }
        }
        if !has_calls(self.raw.complete.as_ref()) {
            self.step("complete", false);
            let mut words = vec!["SET", "{record}", "{result_value}"];
            words.extend(self.result_ttl_words());
            self.call("complete", &command(&words));
            self.reply("word = \"OK\"", Meaning::Stored, Some("{}"));
            self.end();
        }
        if self.releases() {
            self.step("release", false);
            self.call("release", &command(&["DEL", "{record}"]));
            let present = is("record", "present");
            self.reply("integer = 1", Meaning::Released, Some(&present));
            self.reply("integer = 0", Meaning::Refused, None);
            self.end();
        }
    }

    /// The call that reads the record; `without` is what its absence means.
    fn reads_record(&mut self, without: Meaning) {
        self.call("begin", &command(&["GET", "{record}"]));
        self.value_replies("record", None);
        self.reply("nil = true", without, None);
        self.wrong_type("record", None);
        self.other_text("record", None);
        self.end();
    }

    fn fenced_script(&mut self, lock: &str, result: &str) -> Result<(), String> {
        let Some(owner) = owner_path(self.raw)? else {
            return Err("it compares the owner, so locks need `fields = { owner = … }`".to_owned());
        };
        // In one Redis key, the script could not tell such a result from the lock.
        let names_owner = |value: &&RawValue| value.is_result() && value.fields.owner.is_some();
        if lock == result
            && let Some(value) = self.raw.value.iter().find(names_owner)
        {
            return Err(format!(
                "its scripts know a lock by its owner, and `{}` names the owner as well; describe \
                [complete] and [release]",
                value.name
            ));
        }
        if self.raw.begin.is_none() {
            let ttl = self.lock_ttl_ms();
            let call = script(
                "fenced_begin",
                &[&placeholder(result), &placeholder(lock)],
                &["{lock_value}", ttl],
            );
            self.call("begin", &call);
            // The script reads the result first, and the lock only if there is no result.
            let read_first = if lock == result { None } else { Some(result) };
            let absent = match read_first {
                None => is(lock, "absent"),
                Some(first) => format!("{{ {lock} = \"absent\", {first} = \"absent\" }}"),
            };
            self.reply("nil = true", Meaning::Acquired, Some(&absent));
            self.wrong_type(lock, read_first);
            self.value_replies(lock, read_first);
            self.other_text(lock, read_first);
            self.end();
        }
        if !has_calls(self.raw.complete.as_ref()) {
            self.step("complete", true);
            let ttl = self.result_ttl_ms();
            let call = script(
                "fenced_complete",
                &[&placeholder(lock), &placeholder(result)],
                &["{owner}", &owner, "{result_value}", ttl],
            );
            self.call("complete", &call);
            let held = self.held(lock);
            self.reply("integer = 1", Meaning::Stored, Some(&held));
            self.reply("integer = 0", Meaning::Refused, Some("{}"));
            let wrong_type = format!("{{ {lock} = \"wrong-type\" }}");
            self.reply("error = \"WRONGTYPE\"", Meaning::Refused, Some(&wrong_type));
            self.end();
        }
        if self.releases() {
            self.step("release", true);
            self.releases_own(lock, &owner);
        }
        Ok(())
    }

    /// True if the release step is to be written. A service that keeps its locks has none.
    fn releases(&self) -> bool {
        !has_calls(self.raw.release.as_ref())
            && self.raw.service.on_failure != Some(OnFailure::Keep)
    }

    /// The word for a role in `when` and in placeholders: `record` if one Redis key has both roles.
    fn role(&self, role: Role) -> &'static str {
        if self.raw.keys.record.is_some() { Role::Record.as_str() } else { role.as_str() }
    }

    /// The replies for the values that the client reads: a result, with or without another payload,
    /// and a lock at this role. The script reads `read_first` before the lock.
    fn value_replies(&mut self, role: &str, read_first: Option<&str>) {
        let mut read = Vec::new();
        // A result first: a lock that may be any text would match the text of a result.
        for state in [State::Completed, State::Failed, State::InProgress] {
            for value in values(self.raw, state) {
                let at = value.at.as_deref().unwrap_or(role);
                if state.is_result() || at == role {
                    read.push((at, value));
                }
            }
        }
        for (at, value) in read {
            let found = format!("value = {}", text(&value.name));
            let name = text(&value.name);
            let is_result = value.is_result();
            if value.fields.fingerprint.is_some() && is_result {
                let other = format!("{{ {at} = {name}, fingerprint = \"other\" }}");
                self.reply(&found, Meaning::Mismatch, Some(&other));
            }
            let means = if is_result { Meaning::Replay } else { Meaning::Conflict };
            let when = match read_first {
                Some(first) if !is_result => format!("{{ {at} = {name}, {first} = \"absent\" }}"),
                _ => format!("{{ {at} = {name} }}"),
            };
            self.reply(&found, means, Some(&when));
        }
    }

    /// The reply for Redis keys of another type.
    fn wrong_type(&mut self, role: &str, read_first: Option<&str>) {
        let when = is_met(role, read_first, "wrong-type");
        self.reply("error = \"WRONGTYPE\"", Meaning::Fail, Some(&when));
    }

    /// The reply for a text that no `[[value]]` matches, unless one matches any text.
    fn other_text(&mut self, role: &str, read_first: Option<&str>) {
        for value in &self.raw.value {
            let at = value.at.as_deref().unwrap_or(role);
            if takes_any_text(value) && (at == role || read_first == Some(at)) {
                return;
            }
        }
        let when = is_met(role, read_first, "unreadable");
        self.reply("text = true", Meaning::Fail, Some(&when));
    }

    /// A condition that holds for each lock.
    fn held(&self, role: &str) -> String {
        let mut held = Vec::new();
        for value in values(self.raw, State::InProgress) {
            held.push(format!("{{ {role} = {} }}", text(&value.name)));
        }
        format!("[{}]", held.join(", "))
    }

    /// The release of a lock that still has its owner.
    fn releases_own(&mut self, role: &str, owner: &str) {
        let call = script("fenced_release", &[&placeholder(role)], &["{owner}", owner]);
        self.call("release", &call);
        let held = self.held(role);
        self.reply("integer = 1", Meaning::Released, Some(&held));
        self.reply("integer = 0", Meaning::Refused, Some("{}"));
        let when = format!("{{ {role} = \"wrong-type\" }}");
        self.reply("error = \"WRONGTYPE\"", Meaning::Refused, Some(&when));
        self.end();
    }

    fn lock_ttl_words(&self) -> Vec<&'static str> {
        match self.raw.ttl_unit {
            _ if self.raw.ttl.lock == Some(NO_TTL) => Vec::new(),
            TtlUnit::Ms => vec!["PX", "{lock_ttl_ms}"],
            TtlUnit::S => vec!["EX", "{lock_ttl}"],
        }
    }

    fn result_ttl_words(&self) -> Vec<&'static str> {
        match self.raw.ttl_unit {
            _ if self.raw.ttl.result == Some(NO_TTL) => Vec::new(),
            TtlUnit::Ms => vec!["PX", "{result_ttl_ms}"],
            TtlUnit::S => vec!["EX", "{result_ttl}"],
        }
    }

    fn lock_ttl_ms(&self) -> &'static str {
        if self.raw.ttl.lock == Some(NO_TTL) { "" } else { "{lock_ttl_ms}" }
    }

    fn result_ttl_ms(&self) -> &'static str {
        if self.raw.ttl.result == Some(NO_TTL) { "" } else { "{result_ttl_ms}" }
    }

    /// Begins a step that has fields of its own, and the note of the file, if there is one.
    fn step(&mut self, name: &str, checks_owner: bool) {
        // Writing to a string cannot fail.
        _ = write!(self.toml, "\n[{name}]\nchecks_owner = {checks_owner}\n");
        let own = if name == "complete" { &self.raw.complete } else { &self.raw.release };
        if let Some(note) = own.as_ref().and_then(|step| step.note.as_ref()) {
            _ = writeln!(self.toml, "note = {}", text(note));
        }
    }

    /// Begins a call of a step; its replies follow.
    fn call(&mut self, step: &str, action: &str) {
        _ = write!(self.toml, "\n[[{step}.call]]\n{action}\nreplies = [\n");
    }

    /// Adds a reply to the call.
    fn reply(&mut self, pattern: &str, means: Meaning, when: Option<&str>) {
        _ = write!(self.toml, "  {{ {pattern}, means = \"{}\"", means.as_str());
        if let Some(when) = when {
            _ = write!(self.toml, ", when = {when}");
        }
        if let Some(client) = self.raw.client.get(means.as_str()) {
            _ = write!(self.toml, ", client = {}", text(client));
        }
        self.toml.push_str(" },\n");
    }

    /// Ends the call.
    fn end(&mut self) {
        self.toml.push_str("]\n");
    }
}

/// The values of this state.
fn values(raw: &RawSchema, state: State) -> impl Iterator<Item = &RawValue> {
    raw.value.iter().filter(move |value| value.state == Some(state))
}

/// Where the lock names its owner, as a JSON array of member names; `None` if it names none.
fn owner_path(raw: &RawSchema) -> Result<Option<String>, String> {
    let mut path: Option<String> = None;
    let locks: Vec<_> = values(raw, State::InProgress).collect();
    for value in &locks {
        let Some(pointer) = &value.fields.owner else { continue };
        let is_json = !matches!(value.encoding, Some(encoding) if encoding != Encoding::Json);
        let is_packed = value.decode.is_some() || !value.decode_at.is_empty();
        if is_packed || !(is_json || pointer.is_empty()) {
            return Err(format!("its scripts cannot read the owner in `{}`", value.name));
        }
        let names: Vec<String> = pointer
            .split('/')
            .skip(1)
            .map(|name| name.replace("~1", "/").replace("~0", "~"))
            .collect();
        let found = serde_json::Value::from(names).to_string();
        if path.as_ref().is_some_and(|path| *path != found) {
            return Err("locks name the owner at different places".to_owned());
        }
        path = Some(found);
    }
    match path {
        Some(_) if locks.iter().any(|value| value.fields.owner.is_none()) => {
            Err("some locks name an owner and some do not".to_owned())
        }
        path => Ok(path),
    }
}
