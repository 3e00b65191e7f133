//! `[keys]`: the key templates, and where a schema lets a deployment's prefix stand, told from what the templates and the
//! steps write.

use crate::domain::schema::key_template::KeyTemplate;
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::prefix::{Prefix, PrefixPlace, Prefixes};
use crate::domain::schema::raw::{RawCall, RawKeys, RawSchema};
use crate::domain::schema::role::{Role, RoleKey};
use crate::domain::schema::value_template::Place;

/// Where a record is, under each prefix that the service has used: the one in use first.
pub(super) fn resolve(raw: &RawSchema, prefixes: Prefixes<'_>) -> Checked<Vec<(Prefix, Vec<RoleKey>)>> {
    let place = place(raw)?;
    let keys = &raw.keys;
    let own = keys.prefix.texts();
    if own.is_empty() {
        return wrong("`prefix` names no prefix").at("prefix");
    }
    if own.iter().any(|prefix| !prefix.is_empty()) && !is_written(keys) {
        return wrong("no template writes `{prefix}`: write it where this one stands").at("prefix");
    }
    let given = match place {
        PrefixPlace::Nowhere(_) => None,
        PrefixPlace::Written => prefixes.own.or(prefixes.shared),
        PrefixPlace::InKey | PrefixPlace::InFront => prefixes.own,
    };
    let texts = given.map_or(own, |given| vec![given]);
    let under = |text: &str| {
        let prefix = Prefix { text: text.to_owned(), place: place.clone() };
        role_keys(raw, &prefix).map(|keys| (prefix, keys))
    };
    texts.into_iter().map(under).collect()
}

/// The Redis keys of a record, the lock's first.
fn role_keys(raw: &RawSchema, prefix: &Prefix) -> Checked<Vec<RoleKey>> {
    let written = &raw.keys;
    let named = match (&written.record, &written.lock, &written.result) {
        (Some(record), None, None) => vec![(Role::Record, record)],
        (None, Some(lock), Some(result)) => vec![(Role::Lock, lock), (Role::Result, result)],
        (None, Some(lock), None) => vec![(Role::Lock, lock)],
        (None, None, Some(result)) => vec![(Role::Result, result)],
        _ => return wrong("[keys] has either `record`, or `lock`, `result` or both"),
    };
    let ignore = written
        .ignore
        .iter()
        .enumerate()
        .map(|(index, text)| KeyTemplate::parse(text, &prefix.text).or_else(wrong).at(index).at("ignore"));
    let ignored = ignore.collect::<Checked<Vec<_>>>()?;
    let mut keys: Vec<RoleKey> = Vec::with_capacity(named.len());
    for (role, text) in named {
        let template = KeyTemplate::parse(text, &prefix.text).or_else(wrong).at(role.as_str())?;
        let template = match &written.key {
            Some(pattern) => template.matching(pattern).or_else(wrong).at("key")?,
            None => template,
        };
        let template = template.without(&ignored);
        let template = if prefix.place == PrefixPlace::InFront { template.behind(&prefix.text) } else { template };
        if keys.iter().any(|key| key.template == template) {
            return wrong("lock and result must have different Redis keys").at(role.as_str());
        }
        keys.push(RoleKey { role, template });
    }
    check_groups(raw, &keys)?;
    Ok(keys)
}

/// What an idempotency key is to idemctl has to be read from each of a record's Redis keys alike.
fn check_groups(raw: &RawSchema, keys: &[RoleKey]) -> Checked<()> {
    let [first, others @ ..] = keys else { return Ok(()) };
    if let Some(other) = others.iter().find(|other| other.template.groups() != first.template.groups()) {
        return wrong("lock and result write the groups and `{key}` alike, from the first to the last")
            .at(other.role.as_str());
    }
    if let Some(fixed) = keys.iter().find(|key| key.template.is_fixed()).filter(|_| keys.len() > 1) {
        let message = "a lock for all keys is a schema of its own, with `record`: no result tells which key holds it";
        return wrong(message).at(fixed.role.as_str());
    }
    let sends_key = |call: &RawCall| call.words().any(|word| word.has(&[Place::Key]));
    match first.template.groups() {
        Some(groups) if raw.calls().any(|(_, _, call)| sends_key(call)) => {
            wrong(format!("a step sends `{{key}}`, which is `{groups}` here: it would have the groups in front"))
        }
        _ => Ok(()),
    }
}

/// Where the prefix stands.
///
/// # Errors
/// A step writes `{prefix}`, and no key template does: begin would take a lock at another Redis key than is read.
fn place(raw: &RawSchema) -> Checked<PrefixPlace> {
    let sent = raw.calls().any(|(_, _, call)| call.words().any(|word| word.has(&[Place::Prefix])));
    match (is_written(&raw.keys), sent) {
        (false, true) => wrong("a step writes `{prefix}`: write it into the templates of [keys] as well"),
        (true, true) => Ok(PrefixPlace::InKey),
        (written, false) => Ok(match bare_key(raw, written) {
            Some(why) => PrefixPlace::Nowhere(why),
            None if written => PrefixPlace::Written,
            None => PrefixPlace::InFront,
        }),
    }
}

/// True when a key template writes `{prefix}`.
fn is_written(keys: &RawKeys) -> bool {
    [&keys.record, &keys.lock, &keys.result].into_iter().flatten().any(|text| text.contains("{prefix}"))
}

/// Why no prefix can stand in the Redis keys: a call sends the key without the prefix, and Redis keys that are made of
/// that key bear no prefix. Where the templates say where the prefix stands, what a script does with its arguments is left
/// to the schema's author.
fn bare_key(raw: &RawSchema, written: bool) -> Option<String> {
    let names_key = |call: &RawCall| {
        let args = if written { &[][..] } else { &call.args };
        let words = call.keys.iter().chain(args).chain(call.command.iter().flatten());
        words.into_iter().any(|word| word.has(&[Place::Key]))
    };
    raw.calls().find(|(_, _, call)| names_key(call)).map(|(step, _, call)| {
        let what = call.script.as_ref().map_or("a command".to_owned(), |script| format!("{script}.lua"));
        format!(
            "[{step}] sends {what} the bare {{key}}, and Redis keys that are made of it would lack the prefix: schema.toml has to write {{prefix}}, in [keys] and before that {{key}}"
        )
    })
}
