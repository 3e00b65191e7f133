//! `format = 1`: the older file format. A file of format 1 is converted to format 2 here, before
//! anything else reads it.
//!
//! Format 1 requires more fields, and has fewer words. Both are checked first, so that idemctl does
//! not accept a file that an older idemctl rejects. Then the parts that the two formats read
//! differently are rewritten.

use crate::domain::schema::decoder::Encoding;
use crate::domain::schema::location::{At as _, CALL, Checked, REPLIES, wrong};
use crate::domain::schema::raw::{OneOrMore, RawKeys, RawReply, RawSchema, RawValue};
use crate::domain::schema::service_behavior::EffectBehavior;
use crate::domain::schema::steps::RECLAIMABLE;
use crate::domain::schema::ttl::NO_TTL;
use crate::domain::schema::value_format::{BodyIs, State};
use crate::domain::schema::write_format::{HeadersAs, Numbers, WriteFormat};

/// Converts the file to format 2.
///
/// # Errors
/// A field is missing that format 1 requires, or the file uses a field or a word of format 2.
pub(super) fn convert(mut raw: RawSchema) -> Checked<RawSchema> {
    if raw.protocol.is_some() {
        return newer("protocol").at("protocol");
    }
    if raw.effect != EffectBehavior::default() {
        return newer("effect").at("effect");
    }
    if raw.service.sample_body.is_some() {
        return newer("sample_body").at("sample_body").at("service");
    }
    check_write(raw.write.as_ref()).at("write")?;
    require("write", raw.write.is_some())?;
    require("begin", raw.begin.is_some())?;
    require("complete", raw.complete.is_some())?;
    for (name, ttl) in [("lock", raw.ttl.lock), ("result", raw.ttl.result)] {
        require(name, ttl.is_some()).at("ttl")?;
        if ttl == Some(NO_TTL) {
            return newer("none").at(name).at("ttl");
        }
    }
    for (index, value) in raw.value.iter().enumerate() {
        check_value(value).at(index).at("value")?;
    }
    check_steps(&raw)?;
    check_keys(&raw.keys).at("keys")?;

    let keys = &mut raw.keys;
    for (name, template) in
        [("record", &mut keys.record), ("lock", &mut keys.lock), ("result", &mut keys.result)]
    {
        if let Some(text) = template {
            *text = key_template(text).or_else(wrong).at(name).at("keys")?;
        }
    }
    raw.format = 2;
    Ok(raw)
}

/// Converts a key template of format 1 to format 2.
///
/// In format 1 only `{key}` and `{prefix}` are special. A backslash is literal, and so is a brace
/// without a closing brace. Format 2 reads a backslash as an escape.
///
/// # Errors
/// The template has any other placeholder, or no `{key}`.
fn key_template(text: &str) -> Result<String, String> {
    let mut converted = String::with_capacity(text.len());
    let mut has_key = false;
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        if let Some((name, after)) = placeholder(rest) {
            if name != "key" && name != "prefix" {
                return Err(format!(
                    "`{{{name}}}` is a placeholder other than {{key}} and {{prefix}}"
                ));
            }
            has_key |= name == "key";
            converted.push('{');
            converted.push_str(name);
            converted.push('}');
            rest = after;
            continue;
        }
        // Format 2 would read these characters as placeholders or escapes.
        if matches!(character, '{' | '}' | '\\') {
            converted.push('\\');
        }
        converted.push(character);
        rest = &rest[character.len_utf8()..];
    }
    if has_key { Ok(converted) } else { Err(format!("`{text}` has no {{key}}")) }
}

/// The name of the placeholder at the beginning of the text, and the text after the placeholder.
fn placeholder(text: &str) -> Option<(&str, &str)> {
    let (name, after) = text.strip_prefix('{')?.split_once('}')?;
    if name.contains('{') { None } else { Some((name, after)) }
}

fn check_write(write: Option<&WriteFormat>) -> Checked<()> {
    let Some(write) = write else { return Ok(()) };
    require("lock_value", write.lock_value.is_some())?;
    require("result_value", write.result_value.is_some())?;
    for (name, text) in write.values() {
        if let Some(placeholder) = text.newer() {
            return newer(&placeholder).at(name);
        }
    }
    refuse_newer(&[
        ("bytes_at", !write.bytes_at.is_empty()),
        ("fingerprint_is", write.fingerprint_is.is_some()),
        ("lock_needs", write.lock_needs.is_some()),
        ("lock_holds", write.lock_holds.is_some()),
        ("headers_as", write.headers_as != HeadersAs::default()),
        ("empty_as_null", write.empty_as_null),
        ("numbers", write.numbers != Numbers::default()),
    ])
}

fn check_value(value: &RawValue) -> Checked<()> {
    require("at", value.at.is_some())?;
    refuse_newer(&[("decode", value.decode.is_some()), ("type", value.kind.is_some())])?;
    require("encoding", value.encoding.is_some())?;
    if let Some(encoding) = value.encoding
        && !matches!(encoding, Encoding::Text | Encoding::Json)
    {
        return newer(encoding.as_str()).at("encoding");
    }
    refuse_newer(&[
        ("written", value.written.is_some()),
        ("decode_at", !value.decode_at.is_empty()),
        ("expires_at", value.expires_at.is_some()),
        ("needs_ttl", value.needs_ttl),
        ("ttl", value.ttl.is_some()),
        ("body_is", value.body_is != BodyIs::default()),
    ])?;
    require("state", value.state.is_some())?;
    if let Some(state @ (State::Failed | State::Released)) = value.state {
        return newer(state.as_str()).at("state");
    }
    refuse_newer(&[("content_type", value.fields.content_type.is_some())]).at("fields")
}

fn check_steps(raw: &RawSchema) -> Checked<()> {
    let gives_ttl = raw.begin.as_ref().is_some_and(|begin| begin.gives_ttl);
    refuse_newer(&[("gives_ttl", gives_ttl)]).at("begin")?;
    for (step, index, call) in raw.calls() {
        if let Some(name) = call.words().find_map(|word| word.newer_in_call()) {
            return newer(&format!("{{{name}}}")).at(index).at(CALL).at(step);
        }
        for (at, reply) in call.replies.iter().enumerate() {
            check_reply(raw, reply).at(at).at(REPLIES).at(index).at(CALL).at(step)?;
        }
    }
    Ok(())
}

fn check_reply(raw: &RawSchema, reply: &RawReply) -> Checked<()> {
    refuse_newer(&[("value", reply.value.is_some())])?;
    for condition in &reply.when {
        for (role, word) in condition {
            if role == "fingerprint" {
                return newer(role).at("when");
            }
            // Before `reclaimable` was a word, a value format could have it as its name.
            if word == RECLAIMABLE && !has_value(raw, role, word) {
                return newer(word).at("when");
            }
        }
    }
    Ok(())
}

/// True if the file describes a value format with this name at the Redis key with this role.
fn has_value(raw: &RawSchema, role: &str, name: &str) -> bool {
    for value in &raw.value {
        if value.at.as_deref() == Some(role) && value.name == name {
            return true;
        }
    }
    false
}

fn check_keys(keys: &RawKeys) -> Checked<()> {
    if matches!(keys.prefix, OneOrMore::More(_)) {
        return wrong("a list of prefixes needs `format = 2`").at("prefix");
    }
    refuse_newer(&[
        ("key", keys.key.is_some()),
        ("ignore", !keys.ignore.is_empty()),
        ("hash", keys.hash.is_some()),
        ("parts", !keys.parts.is_empty()),
        ("members", keys.members.is_some()),
    ])?;
    if keys.record.is_none() && (keys.lock.is_none() || keys.result.is_none()) {
        return wrong("[keys] needs either `record`, or both `lock` and `result`");
    }
    Ok(())
}

fn require(field: &str, is_written: bool) -> Checked<()> {
    if is_written {
        return Ok(());
    }
    wrong(format!("missing field `{field}`, which is optional only in format 2"))
}

/// Rejects the first of these fields that the file has. All were added with format 2.
fn refuse_newer(fields: &[(&str, bool)]) -> Checked<()> {
    for (field, is_written) in fields {
        if *is_written {
            return newer(field).at(*field);
        }
    }
    Ok(())
}

fn newer<T>(word: &str) -> Checked<T> {
    wrong(format!("`{word}` needs `format = 2`"))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::schema::key_template::KeyTemplate;

    #[test]
    fn characters_that_format_2_reads_differently_are_escaped() {
        for (text, converted) in [
            ("idem:{key}", "idem:{key}"),
            ("{prefix}lock:{{key}}", r"{prefix}lock:\{{key}\}"),
            (r"a\b:{key}", r"a\\b:{key}"),
            (r"\{key}", r"\\{key}"),
            ("a{b:{key}", r"a\{b:{key}"),
            ("{key}:é{", r"{key}:é\{"),
        ] {
            assert_eq!(key_template(text).as_deref(), Ok(converted), "{text}");
        }
    }

    #[test]
    fn groups_and_templates_without_a_key_need_format_2() {
        assert_eq!(key_template("idem:").unwrap_err(), "`idem:` has no {key}");
        for text in ["{tenant}:{key}", "{}:{key}", r"asynq:\{default\}:{key}"] {
            assert!(
                key_template(text).unwrap_err().contains("other than {key} and {prefix}"),
                "{text}"
            );
        }
    }

    proptest! {
        /// Rule: a converted template builds the same Redis keys as the service, which replaces
        /// only the key and the prefix.
        #[test]
        fn a_converted_template_builds_the_same_redis_keys(
            text in r"(\{prefix\})?[{}\\:a]{0,4}\{key\}[{}\\:a]{0,4}",
        ) {
            let Ok(converted) = key_template(&text) else { return Ok(()) };
            let template = KeyTemplate::parse(&converted, "shop:").unwrap();
            let redis_key = text.replace("{prefix}", "shop:").replace("{key}", "order-1");
            prop_assert_eq!(template.redis_key(b"order-1"), redis_key.as_bytes());
            prop_assert_eq!(template.idempotency_key(redis_key.as_bytes()), Some(&b"order-1"[..]));
        }
    }
}
