//! `[keys]`: the key templates, and the place of a deployment's prefix, which depends on the
//! templates and the steps.

use crate::domain::schema::key_template::KeyTemplate;
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::raw::{RawKeys, RawSchema};
use crate::domain::schema::redis_keys::{Prefix, PrefixPlace, Prefixes};
use crate::domain::schema::redis_keys::{Role, RoleKey};
use crate::domain::schema::value_template::Placeholder;

/// The Redis keys of a record under each prefix that the service has used. The first is the prefix
/// in use.
pub(super) fn resolve(
    raw: &RawSchema,
    prefixes: Prefixes<'_>,
) -> Checked<Vec<(Prefix, Vec<RoleKey>)>> {
    let place = place(raw)?;
    let keys = &raw.keys;
    let own = keys.prefix.texts();
    if own.is_empty() {
        return wrong("`prefix` names no prefix").at("prefix");
    }
    if own.iter().any(|prefix| !prefix.is_empty()) && !is_written(keys) {
        return wrong(
            "no template contains `{prefix}`; replace this prefix in the templates with it",
        )
        .at("prefix");
    }
    // With `InKey`, the prefix is part of the key that scripts receive, and not of Redis keys.
    let given = match place {
        PrefixPlace::Nowhere(_) => None,
        PrefixPlace::Written => prefixes.own.or(prefixes.shared),
        PrefixPlace::InKey | PrefixPlace::InFront => prefixes.own,
    };
    // A deployment's prefix replaces all prefixes that the schema names.
    let texts = match given {
        Some(given) => vec![given],
        None => own.clone(),
    };
    let mut places = Vec::with_capacity(texts.len());
    for text in texts {
        let is_own = own.first() == Some(&text);
        let is_set = given.is_some();
        let prefix = Prefix { text: text.to_owned(), place: place.clone(), is_own, is_set };
        let keys = role_keys(raw, &prefix)?;
        places.push((prefix, keys));
    }
    Ok(places)
}

/// The Redis keys of a record, the lock's first.
fn role_keys(raw: &RawSchema, prefix: &Prefix) -> Checked<Vec<RoleKey>> {
    let written = &raw.keys;
    let roles = match (&written.record, &written.lock, &written.result) {
        (Some(record), None, None) => vec![(Role::Record, record)],
        (None, Some(lock), Some(result)) => vec![(Role::Lock, lock), (Role::Result, result)],
        (None, Some(lock), None) => vec![(Role::Lock, lock)],
        (None, None, Some(result)) => vec![(Role::Result, result)],
        _ => return wrong("[keys] needs either `record`, or `lock`, `result` or both"),
    };
    let mut ignored = Vec::with_capacity(written.ignore.len());
    for (index, text) in written.ignore.iter().enumerate() {
        ignored.push(KeyTemplate::parse(text, &prefix.text).or_else(wrong).at(index).at("ignore")?);
    }
    let mut keys: Vec<RoleKey> = Vec::with_capacity(roles.len());
    for (role, text) in roles {
        let name = role.as_str();
        let mut template = KeyTemplate::parse(text, &prefix.text).or_else(wrong).at(name)?;
        if let Some(pattern) = &written.key {
            template = template.matching(pattern).or_else(wrong).at("key")?;
        }
        // Before the prefix is added, because the prefix applies to the ignored templates as well.
        template = template.without(&ignored);
        if prefix.place == PrefixPlace::InFront {
            template = template.behind(&prefix.text);
        }
        if keys.iter().any(|key| key.template == template) {
            return wrong("`lock` and `result` must have different Redis keys").at(name);
        }
        keys.push(RoleKey { role, template });
    }
    check_groups(raw, &keys)?;
    Ok(keys)
}

/// Checks that idemctl reads the same idempotency key from each Redis key of a record.
fn check_groups(raw: &RawSchema, keys: &[RoleKey]) -> Checked<()> {
    let [first, others @ ..] = keys else { return Ok(()) };
    let groups = first.template.groups();
    for other in others {
        if other.template.groups() != groups {
            return wrong(
                "`lock` and `result` must have the same text from the first to the last of the \
                groups and `{key}`",
            )
            .at(other.role.as_str());
        }
    }
    if let Some(fixed) = keys.iter().find(|key| key.template.is_fixed() && keys.len() > 1) {
        return wrong(
            "describe a lock for all keys as its own schema, with `record`, because no result \
            shows which key holds it",
        )
        .at(fixed.role.as_str());
    }
    // The script would build its Redis keys from a key that already contains the groups.
    match groups {
        Some(groups) if sends(raw, Placeholder::Key) => wrong(format!(
            "a step sends `{{key}}`, which is `{groups}` here, with the groups; send `{{record}}` or \
            another Redis key of [keys] instead"
        )),
        _ => Ok(()),
    }
}

/// The place of a deployment's prefix in the Redis keys.
///
/// # Errors
/// A step uses `{prefix}`, but no key template does. Begin would set a lock at a Redis key that
/// idemctl does not read.
fn place(raw: &RawSchema) -> Checked<PrefixPlace> {
    let in_templates = is_written(&raw.keys);
    if sends(raw, Placeholder::Prefix) {
        if !in_templates {
            return wrong("a step uses `{prefix}`; use it in the templates of [keys] as well");
        }
        return Ok(PrefixPlace::InKey);
    }
    if let Some(why) = bare_key(raw, in_templates) {
        return Ok(PrefixPlace::Nowhere(why));
    }
    Ok(if in_templates { PrefixPlace::Written } else { PrefixPlace::InFront })
}

/// True if a word of a call contains this placeholder.
fn sends(raw: &RawSchema, placeholder: Placeholder) -> bool {
    raw.calls().any(|(_, _, call)| call.words().any(|word| word.has(&[placeholder])))
}

/// True if a key template contains `{prefix}`.
fn is_written(keys: &RawKeys) -> bool {
    let templates = [&keys.record, &keys.lock, &keys.result];
    templates.into_iter().flatten().any(|text| text.contains("{prefix}"))
}

/// Why a deployment cannot set a prefix: a call sends the key without the prefix, and Redis keys
/// built from that key would lack it. If the templates contain `{prefix}`, the schema's author is
/// responsible for what a script does with its arguments.
fn bare_key(raw: &RawSchema, in_templates: bool) -> Option<String> {
    for (step, _, call) in raw.calls() {
        let mut sends_key = false;
        for (list, words) in call.lists() {
            if list == "args" && in_templates {
                continue;
            }
            sends_key |= words.iter().any(|word| word.has(&[Placeholder::Key]));
        }
        if !sends_key {
            continue;
        }
        let what = match &call.script {
            Some(script) => format!("{script}.lua"),
            None => "a command".to_owned(),
        };
        return Some(format!(
            "[{step}] sends {what} the {{key}} alone, so Redis keys made from it would lack the \
            prefix; write {{prefix}} in [keys] and before that {{key}}"
        ));
    }
    None
}
