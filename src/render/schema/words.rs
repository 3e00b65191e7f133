//! The properties of a schema, in words.

use crate::domain::duration;
use crate::domain::record::age::millis;
use crate::domain::schema::{
    Action, BodyEncoding, ClosedFields, Condition, Decoder, Encoding, ExpiresAt, First, KeyIs,
    Member, OnFailure, OnHangUp, PayloadUse, PrefixPlace, Reply, ReplyPattern, Schema,
    SchemaOrigin, ServiceBehavior, Template, TtlOf, ValueFormat, WithoutRedis,
};
use crate::render::escape;
use crate::render::words::lease;

/// Text from a schema file, escaped because the operator may not have written the file.
pub(super) fn safe(text: &str) -> String {
    escape::text(text.as_bytes())
}

/// The origin of a schema.
pub(super) fn origin(origin: &SchemaOrigin) -> String {
    match origin {
        SchemaOrigin::BuiltIn => "built in".to_owned(),
        SchemaOrigin::Folder(path) => safe(&path.display().to_string()),
    }
}

/// How the Redis keys of a schema hold its records.
pub(super) fn layout(schema: &Schema) -> &'static str {
    if schema.has_separate_result() { "lock and result" } else { "one key" }
}

/// The templates of a schema's Redis keys.
pub(super) fn templates(schema: &Schema) -> Vec<String> {
    copied(&schema.templates())
}

/// The templates of the Redis keys that a schema ignores.
pub(super) fn ignored(schema: &Schema) -> Vec<String> {
    copied(&schema.ignored())
}

/// Templates in the syntax of schema files, in which a backslash is already an escape.
fn copied(templates: &[String]) -> Vec<String> {
    templates.iter().map(|template| escape::again(template)).collect()
}

/// The prefix in use, and the place for a deployment's prefix.
pub(super) fn prefix(schema: &Schema) -> String {
    let prefix = &schema.prefix;
    let mut text = if prefix.text.is_empty() { "none".to_owned() } else { safe(&prefix.text) };
    for (other, _) in &schema.other_places {
        text += &format!("; also under {}", safe(&other.text));
    }
    let place = match &prefix.place {
        PrefixPlace::Written => "where [keys] writes {prefix}",
        PrefixPlace::InFront => "in front of the Redis keys",
        PrefixPlace::InKey => "as part of the key that is sent to scripts",
        PrefixPlace::Nowhere(why) => {
            return format!("{text}; a deployment cannot set one: {}", safe(why));
        }
    };
    format!("{text}; a deployment sets one with --prefix, {place}")
}

/// The TTL that the service sets, or `none`.
pub(super) fn ttl(schema: &Schema, of: TtlOf) -> String {
    match schema.ttl(of) {
        Some(ttl) => duration::short(millis(ttl)),
        None => "none".to_owned(),
    }
}

/// Whether the complete step compares the owner of the lock.
pub(super) fn owner_check(schema: &Schema) -> &'static str {
    match &schema.complete {
        None => "unknown",
        Some(step) if step.checks_owner => "checked",
        Some(_) => "no",
    }
}

/// How the begin step takes the lock.
pub(super) fn begins_with(schema: &Schema) -> &'static str {
    match (&schema.begin, schema.begins_with_a_script()) {
        (None, _) => "unknown",
        (Some(_), true) => "script",
        (Some(_), false) => "commands",
    }
}

/// How the values of a format are recognised.
pub(super) fn told_by(case: &ValueFormat) -> String {
    let mut tests = Vec::new();
    for (path, value) in &case.tests.fields {
        tests.push(format!("{} = {value}", safe(path)));
    }
    if !case.tests.has.is_empty() {
        let present: Vec<_> = case.tests.has.iter().map(|path| safe(path)).collect();
        tests.push(format!("{} present", present.join(", ")));
    }
    if let Some(closed) = &case.closed {
        tests.push(written(closed));
    }
    let told = match (case.encoding(), &case.tests.equals) {
        (_, Some(bytes)) => format!("exactly {}", escape::text(bytes)),
        (Encoding::Text, None) => "any text (recognised by its Redis key alone)".to_owned(),
        (encoding, None) if encoding.other_type().is_some() && tests.is_empty() => {
            format!("any {} (its content is not checked)", encoding.language())
        }
        (encoding, None) if encoding.is_shown_only() => {
            format!("any {} (recognised by its first bytes)", encoding.language())
        }
        (encoding, None) if tests.is_empty() => format!("any {}", encoding.language()),
        (encoding, None) => format!("{} with {}", encoding.language(), tests.join(", ")),
    };
    let mut inside = Vec::new();
    for (path, decoder) in &case.decoding.inside {
        let encoding = decoder.encoding.language();
        inside.push(format!("{encoding}{} in {}", codecs(decoder), safe(path)));
    }
    let inside = if inside.is_empty() { String::new() } else { format!("; {}", inside.join(", ")) };
    format!("{told}{}{inside}", codecs(&case.decoding.value))
}

/// The codecs around an encoded value, from the inside out.
fn codecs(decoder: &Decoder) -> String {
    let mut text = String::new();
    // Codecs are listed from the outside in; the sentence names the innermost first.
    for codec in decoder.codecs.iter().rev() {
        text += &format!(" in {}", safe(&codec.word()));
    }
    text
}

/// The fields of a closed value format, except those that identify it.
fn written(closed: &ClosedFields) -> String {
    type MemberTest = fn(&Member) -> bool;
    let kinds: [(&str, MemberTest); 3] = [
        ("always", |member| member.is_required && member.level.is_none()),
        ("optional", |member| !member.is_required && member.level.is_none()),
        ("null allowed in", |member| member.may_be_null),
    ];
    let mut parts = Vec::new();
    for (word, belongs) in kinds {
        let paths: Vec<_> = closed.paths(belongs).iter().map(|path| safe(path)).collect();
        if !paths.is_empty() {
            parts.push(format!("{word} {}", paths.join(", ")));
        }
    }
    format!("no other fields ({})", parts.join("; "))
}

/// The meaning of a value and its fields.
pub(super) fn holds(case: &ValueFormat) -> String {
    let mut parts = Vec::new();
    for (name, path) in case.fields.pointers() {
        let encoding = match (name, case.body_encoding) {
            ("body", BodyEncoding::Base64) => " (base64)",
            ("body", BodyEncoding::Json) => " (JSON)",
            ("body" | "headers", BodyEncoding::Bytes) => " (arrays of bytes)",
            _ => "",
        };
        let name = match name {
            "created_at" => "start time",
            "completed_at" => "end time",
            name => name,
        };
        // The empty JSON pointer addresses the whole document.
        parts.push(match path {
            "" => format!("{name}: the value itself{encoding}"),
            path => format!("{name} at {}{encoding}", safe(path)),
        });
    }
    if let Some(expires_at) = &case.expires_at {
        parts.push(ends(expires_at));
    }
    parts.join(", ")
}

/// The field that holds a value's contained expiry, and the consequence of that expiry.
fn ends(expires_at: &ExpiresAt) -> String {
    let ExpiresAt { field, plus, unit, clock, past } = expires_at;
    let unit = unit.as_str();
    let clock = clock.as_str();
    let past = past.as_str();
    let plus = lease(*plus);
    format!("{past} past {}{plus} ({unit}, by the {clock}'s clock)", safe(field))
}

/// The behaviour of a service around its steps, for people: the event, and the reaction.
pub(super) fn conduct(conduct: &ServiceBehavior) -> Vec<[String; 2]> {
    let on_failure = conduct.on_failure.map(|does| match does {
        OnFailure::Store => "the error is stored",
        OnFailure::Release => "the lock is released",
        OnFailure::Keep => "the lock remains",
    });
    let on_hang_up = conduct.on_hang_up.map(|does| match does {
        OnHangUp::Release => "the lock is released",
        OnHangUp::GoOn => "the handler continues",
    });
    let without_redis = conduct.without_redis.map(|does| match does {
        WithoutRedis::Refuse => "rejected (fail closed)",
        WithoutRedis::Execute => "executed (fail open)",
    });
    let payload = conduct.payload.map(|payload| match payload {
        PayloadUse::Ignored => "not compared",
        PayloadUse::InKey => "part of the key",
    });
    let stored = conduct.stores.as_ref().map(|codes| format!("status {}", codes.as_text()));
    let mut rows = Vec::new();
    for (event, reaction) in [
        ("Handler fails", on_failure),
        ("Client disconnects", on_hang_up),
        ("Redis unreachable", without_redis),
        ("Stored responses", stored.as_deref()),
        ("Payload", payload),
        ("Sample body", conduct.sample_body.as_deref()),
    ] {
        rows.extend(reaction.map(|reaction| [event, reaction].map(str::to_owned)));
    }
    rows
}

/// The command or script that a call sends.
pub(super) fn sent(action: &Action) -> String {
    match action {
        Action::Command(command) => displayed(command),
        Action::Script { name, keys, args } => {
            let mut text = format!("script {}", safe(name));
            for (name, templates) in [("KEYS", keys), ("ARGV", args)] {
                if !templates.is_empty() {
                    text += &format!("  {name} {}", displayed(templates));
                }
            }
            text
        }
    }
}

/// Templates in the syntax of schema files, separated by spaces.
fn displayed(templates: &[Template]) -> String {
    let words: Vec<_> = templates.iter().map(|template| safe(&template.display())).collect();
    words.join(" ")
}

/// The replies that a rule matches.
pub(super) fn pattern(schema: &Schema, reply: &Reply) -> String {
    let mut value_format = None;
    if let Some(index) = reply.value {
        value_format = Some(format!("<{}>", safe(&schema.values[index].name)));
    }
    match &reply.pattern {
        ReplyPattern::Word(word) => safe(word),
        ReplyPattern::Integer(number) => number.to_string(),
        ReplyPattern::Nil => "nil".to_owned(),
        ReplyPattern::Error(code) if code == "*" => "any error".to_owned(),
        ReplyPattern::Error(code) => format!("error {}", safe(code)),
        ReplyPattern::Array(first) => {
            let first = match first {
                First::Integer(first) => first.to_string(),
                First::Word(first) => safe(first),
            };
            format!("{{{first}, {}}}", value_format.as_deref().unwrap_or("…"))
        }
        ReplyPattern::Text => "<text>".to_owned(),
        ReplyPattern::Value => value_format.unwrap_or_default(),
    }
}

/// The conditions under which a reply is predicted.
pub(super) fn when(schema: &Schema, reply: &Reply) -> String {
    if reply.when.is_empty() {
        return "not described".to_owned();
    }
    // A condition without any requirement is true in every state, whatever the others require.
    if reply.when.contains(&Condition::default()) {
        return "always".to_owned();
    }
    let mut alternatives = Vec::new();
    for condition in &reply.when {
        let mut requirements = Vec::new();
        for (key_index, is) in &condition.keys {
            let name = schema.keys[*key_index].role.as_str();
            requirements.push(format!("{name} {}", key_is(schema, is)));
        }
        if condition.other_payload {
            requirements.push("for a different payload".to_owned());
        }
        if condition.no_fingerprint {
            requirements.push("without a stored fingerprint".to_owned());
        }
        alternatives.push(requirements.join(", "));
    }
    alternatives.join(", or ")
}

/// A condition on a Redis key, as in `schema.toml`.
pub(super) fn key_is(schema: &Schema, is: &KeyIs) -> String {
    match is {
        KeyIs::Absent => "absent".to_owned(),
        KeyIs::Present => "present".to_owned(),
        KeyIs::Unreadable => "unreadable".to_owned(),
        KeyIs::EmptyText => "empty-text".to_owned(),
        KeyIs::WrongType => "wrong-type".to_owned(),
        KeyIs::Reclaimable => "reclaimable".to_owned(),
        KeyIs::Value(case) => safe(&schema.values[*case].name),
    }
}
