//! The versions of the file format: what format 1 has to say, and what format 2 lets a file leave out.

use std::time::Duration;

use crate::domain::schema::forms::{State, Timestamp};
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::opening::Encoding;
use crate::domain::schema::raw::{OneOrMore, RawKeys, RawReply, RawSchema, RawTtl, RawValue};
use crate::domain::schema::role::RoleKey;
use crate::domain::schema::ttl::{FOR_EVER, TtlOf};
use crate::domain::schema::value_template::Place;
use crate::domain::schema::write_format::WriteFormat;

const FORMATS: std::ops::RangeInclusive<u32> = 1..=2;

/// Passes a file whose format is known, and that says all that its format asks for.
pub(super) fn check(raw: &RawSchema) -> Checked<()> {
    if !FORMATS.contains(&raw.format) {
        let (first, last) = (FORMATS.start(), FORMATS.end());
        let message = format!("format {} is not known: this idemctl reads formats {first} and {last}", raw.format);
        return wrong(message).at("format");
    }
    if raw.format == 1 { says_all(raw) } else { Ok(()) }
}

/// Format 1 knows nothing optional that format 2 lets a file leave out.
fn says_all(raw: &RawSchema) -> Checked<()> {
    let (write, ttl) = (raw.write.as_ref(), &raw.ttl);
    is_there("write", write.is_some())?;
    is_there("lock_value", write.is_some_and(|write| write.lock_value.is_some())).at("write")?;
    is_there("result_value", write.is_some_and(|write| write.result_value.is_some())).at("write")?;
    if let Some((name, newer)) =
        write.and_then(|write| write.values().find_map(|(name, text)| Some((name, text.newer()?))))
    {
        return wrong(format!("`{newer}` is of format 2: write `format = 2`")).at(name).at("write");
    }
    for (name, is_said) in [
        ("bytes_at", write.is_some_and(|write| !write.bytes_at.is_empty())),
        ("fingerprint_is", write.is_some_and(|write| write.fingerprint_is.is_some())),
    ] {
        if is_said {
            return wrong(format!("`{name}` is of format 2: write `format = 2`")).at(name).at("write");
        }
    }
    is_there("begin", raw.begin.is_some())?;
    is_there("complete", raw.complete.is_some())?;
    for (name, ttl) in [("lock", ttl.lock), ("result", ttl.result)] {
        is_there(name, ttl.is_some()).at("ttl")?;
        if ttl == Some(FOR_EVER) {
            return wrong("`none` is of format 2: write `format = 2`").at(name).at("ttl");
        }
    }
    values_say_all(raw)?;
    for (step, call) in raw.calls() {
        if let Some(time) = call.words().find_map(|word| word.time()) {
            return wrong(format!("`{{{time}}}` is of format 2: write `format = 2`")).at("call").at(step);
        }
        let is_newer = |reply: &RawReply| {
            reply.value.is_some() || reply.when.iter().any(|condition| condition.contains_key("fingerprint"))
        };
        if let Some(index) = call.replies.iter().position(is_newer) {
            let message = "`value` and `fingerprint` of a reply are of format 2: write `format = 2`";
            return wrong(message).at(index).at("replies").at("call").at(step);
        }
    }
    keys_are_old(&raw.keys).at("keys")?;
    if raw.keys.record.is_none() && (raw.keys.lock.is_none() || raw.keys.result.is_none()) {
        return wrong("[keys] has either `record`, or both `lock` and `result`").at("keys");
    }
    Ok(())
}

fn values_say_all(raw: &RawSchema) -> Checked<()> {
    for (index, value) in raw.value.iter().enumerate() {
        is_there("at", value.at.is_some()).at(index).at("value")?;
        let newer = value.decode.is_some() || value.kind.is_some();
        is_there("encoding", newer || value.encoding.is_some()).at(index).at("value")?;
        let newer = [
            ("decode", value.decode.is_some()),
            ("decode_at", !value.decode_at.is_empty()),
            ("type", value.kind.is_some()),
            ("encoding", value.encoding.is_some_and(|encoding| !matches!(encoding, Encoding::Text | Encoding::Json))),
        ];
        of_format_2(&newer).at(index).at("value")?;
        of_format_2(&[("content_type", value.fields.content_type.is_some())]).at("fields").at(index).at("value")?;
        if value.expires_at.is_some() {
            return wrong("`expires_at` is of format 2: write `format = 2`").at("expires_at").at(index).at("value");
        }
    }
    Ok(())
}

fn keys_are_old(keys: &RawKeys) -> Checked<()> {
    let has_list = matches!(keys.prefix, OneOrMore::More(_));
    let newer = [
        ("prefix", has_list),
        ("key", keys.key.is_some()),
        ("ignore", !keys.ignore.is_empty()),
        ("hash", keys.hash.is_some()),
    ];
    of_format_2(&newer)
}

/// Passes what format 1 has.
fn of_format_2(fields: &[(&str, bool)]) -> Checked<()> {
    match fields.iter().find(|(_, is_written)| *is_written) {
        Some((name, _)) => wrong(format!("this `{name}` is of format 2: write `format = 2`")).at(*name),
        None => Ok(()),
    }
}

fn is_there(field: &str, is_there: bool) -> Checked<()> {
    if is_there {
        Ok(())
    } else {
        wrong(format!("missing field `{field}`, which format 2 alone lets a file leave out"))
    }
}

/// The place of a value: where there is one Redis key it need not be said.
pub(super) fn place(raw: &RawValue, keys: &[RoleKey]) -> Checked<usize> {
    let Some(role) = raw.at else {
        return match keys {
            [_] => Ok(0),
            _ => wrong("`at` is missing: does the value stand at `lock` or at `result`?"),
        };
    };
    match keys.iter().position(|key| key.role == role) {
        Some(index) => Ok(index),
        None => wrong(format!("[keys] has no `{}`", role.as_str())).at("at"),
    }
}

/// The encoding of a value: what looks into JSON says it, and so does what compares a text.
pub(super) fn encoding(raw: &RawValue) -> Checked<Encoding> {
    let of_json = !raw.fields_are.is_empty() || !raw.has.is_empty() || raw.required.is_some();
    match raw.encoding {
        Some(encoding) => Ok(encoding),
        None if raw.equals.is_some() || raw.opaque => Ok(Encoding::Text),
        None if of_json => Ok(Encoding::Json),
        None => wrong(
            "what tells this value? Write `where` or `has` for JSON, `equals` for one text, `opaque = true` for any",
        ),
    }
}

/// Passes values whose placeholders have a TTL, or a value of before, to stand for.
pub(super) fn written(write: &WriteFormat, lock_ttl: Duration, result_ttl: Duration) -> Checked<()> {
    for (name, text) in write.values() {
        if let Some(left) = text.leftover() {
            return wrong(format!("`{left}` is no placeholder of a value, and would be written as it is"))
                .at(name)
                .at("write");
        }
        for (of, ttl) in [(TtlOf::Lock, lock_ttl), (TtlOf::Result, result_ttl)] {
            if ttl == FOR_EVER && text.has(&Timestamp::ALL.map(|unit| Place::Expires(of, unit))) {
                let message = format!("it is to end with a {0} TTL, and [ttl] gives no {0} TTL", of.as_str());
                return wrong(message).at(name).at("write");
            }
        }
        if name == "lock_value" && text.keeps() {
            return wrong("a lock keeps nothing: `{kept}` goes with `result_value` and `failed_value`")
                .at(name)
                .at("write");
        }
    }
    Ok(())
}

/// The TTLs of locks and results; [`FOR_EVER`] for what no form of the schema is.
pub(super) fn ttls(ttl: &RawTtl, states: &[State]) -> Checked<(Duration, Duration)> {
    let of = |name: &str, ttl: Option<Duration>, state: State| match ttl {
        Some(ttl) => Ok(ttl),
        None if !states.contains(&state) => Ok(FOR_EVER),
        None => wrong(format!(
            "missing field `{name}`: write how long the service lets it live, such as {name} = \"24h\", or \"none\" for no TTL"
        )),
    };
    Ok((of("lock", ttl.lock, State::InProgress)?, of("result", ttl.result, State::Completed)?))
}
