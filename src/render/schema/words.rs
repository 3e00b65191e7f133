//! What a schema says, in words.

use std::ops::RangeInclusive;

use crate::domain::schema::{
    Action, BodyEncoding, Closed, Condition, Conduct, Encoding, Fields, First, Member, OnFailure, OnHangUp, Origin,
    Pattern, Prefix, PrefixPlace, Reply, Schema, SlotIs, ValueCase, WithoutRedis,
};
use crate::render::escape;

/// Text out of a schema file, which need not be the operator's own.
pub(super) fn safe(text: &str) -> String {
    escape::text(text.as_bytes())
}

pub(super) fn origin(origin: &Origin) -> String {
    match origin {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::Folder(path) => safe(&path.display().to_string()),
    }
}

pub(super) fn layout(schema: &Schema) -> &'static str {
    if schema.slots.len() == 1 { "one key" } else { "lock and result" }
}

pub(super) fn templates(schema: &Schema) -> Vec<String> {
    schema.slots.iter().map(|slot| safe(&slot.template.display())).collect()
}

/// The prefix in use, and where a deployment's stands.
pub(super) fn prefix(prefix: &Prefix) -> String {
    let text = if prefix.text.is_empty() { "none".to_owned() } else { safe(&prefix.text) };
    let place = match &prefix.place {
        PrefixPlace::Written => "where [keys] writes {prefix}",
        PrefixPlace::InFront => "in front of the Redis keys",
        PrefixPlace::InKey => "as a part of the key that scripts are sent",
        PrefixPlace::Nowhere(why) => return format!("{text}, and a deployment sets none: {}", safe(why)),
    };
    format!("{text}; a deployment sets one with --prefix, {place}")
}

pub(super) fn told_by(case: &ValueCase) -> String {
    let mut tests: Vec<_> = case.tests.fields.iter().map(|(path, value)| format!("{} = {value}", safe(path))).collect();
    if !case.tests.has.is_empty() {
        let there: Vec<_> = case.tests.has.iter().map(|path| safe(path)).collect();
        tests.push(format!("{} present", there.join(", ")));
    }
    tests.extend(case.closed.as_ref().map(written));
    match (case.encoding, &case.tests.equals) {
        (_, Some(bytes)) => format!("exactly {}", escape::text(bytes)),
        (Encoding::Text, None) => "any text (opaque: the Redis key alone claims it)".to_owned(),
        (Encoding::Json, None) if tests.is_empty() => "any JSON".to_owned(),
        (Encoding::Json, None) => format!("JSON with {}", tests.join(", ")),
    }
}

/// The fields of a closed form, beyond those that tell it.
fn written(closed: &Closed) -> String {
    let list = |passes: fn(&Member) -> bool| closed.paths(passes).iter().map(|path| safe(path)).collect::<Vec<_>>();
    let parts = [
        ("always", list(|member| member.is_required && member.level.is_none())),
        ("perhaps", list(|member| !member.is_required && member.level.is_none())),
        ("null allowed in", list(|member| member.may_be_null)),
    ];
    let parts = parts.into_iter().filter(|(_, paths)| !paths.is_empty());
    let parts: Vec<_> = parts.map(|(word, paths)| format!("{word} {}", paths.join(", "))).collect();
    format!("no other fields ({})", parts.join("; "))
}

/// The fields a value has, by name, with their places.
pub(super) fn places(fields: &Fields) -> Vec<(&'static str, &str)> {
    let all = [
        ("owner", &fields.owner),
        ("fingerprint", &fields.fingerprint),
        ("created_at", &fields.created_at),
        ("completed_at", &fields.completed_at),
        ("status", &fields.status),
        ("headers", &fields.headers),
        ("body", &fields.body),
        ("error", &fields.error),
        ("blob", &fields.blob),
    ];
    all.into_iter().filter_map(|(name, place)| Some((name, place.as_deref()?))).collect()
}

pub(super) fn holds(case: &ValueCase) -> String {
    let parts = places(&case.fields).into_iter().map(|(name, path)| {
        let encoding = match (name, case.body_encoding) {
            ("body", BodyEncoding::Base64) => " (base64)",
            ("body", BodyEncoding::Json) => " (JSON)",
            _ => "",
        };
        let name = match name {
            "created_at" => "start time",
            "completed_at" => "end time",
            name => name,
        };
        match path {
            "" => format!("{name}: the value itself{encoding}"),
            path => format!("{name} at {}{encoding}", safe(path)),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// The range of status codes that are stored, as in `schema.toml`.
pub(super) fn stores(codes: &RangeInclusive<i64>) -> String {
    format!("{}-{}", codes.start(), codes.end())
}

/// What a service does around its steps, for people: when, and what then.
pub(super) fn conduct(conduct: &Conduct) -> Vec<[String; 2]> {
    let failure = conduct.on_failure.map(|does| match does {
        OnFailure::Store => "the error is stored as a result",
        OnFailure::Release => "the lock is released",
        OnFailure::Keep => "nothing is done: the lock stays until its TTL ends",
    });
    let hang_up = conduct.on_hang_up.map(|does| match does {
        OnHangUp::Release => "the lock is released, while the handler still runs",
        OnHangUp::GoOn => "the handler goes on and its result is stored",
    });
    let without = conduct.without_redis.map(|does| match does {
        WithoutRedis::Refuse => "requests are refused (fail closed)",
        WithoutRedis::Execute => "requests are executed all the same (fail open)",
    });
    let told = [
        ("The handler fails", failure.map(str::to_owned)),
        ("The client hangs up", hang_up.map(str::to_owned)),
        ("Redis is not reachable", without.map(str::to_owned)),
        ("Responses stored", conduct.stores.as_ref().map(|codes| format!("status {}", stores(codes)))),
    ];
    told.into_iter().filter_map(|(when, does)| Some([when.to_owned(), does?])).collect()
}

pub(super) fn sent(action: &Action) -> String {
    let words = |templates: &[crate::domain::schema::Template]| {
        templates.iter().map(|template| safe(&template.display())).collect::<Vec<_>>().join(" ")
    };
    match action {
        Action::Command(command) => words(command),
        Action::Script { name, keys, args } => {
            let part = |name: &str, list: &[_]| {
                if list.is_empty() { String::new() } else { format!("  {name} {}", words(list)) }
            };
            format!("script {}{}{}", safe(name), part("KEYS", keys), part("ARGV", args))
        }
    }
}

pub(super) fn pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Word(word) => safe(word),
        Pattern::Integer(number) => number.to_string(),
        Pattern::Nil => "nil".to_owned(),
        Pattern::Error(code) if code == "*" => "any error".to_owned(),
        Pattern::Error(code) => format!("error {}", safe(code)),
        Pattern::Array(First::Integer(first)) => format!("{{{first}, …}}"),
        Pattern::Array(First::Word(first)) => format!("{{{}, …}}", safe(first)),
        Pattern::Text => "<text>".to_owned(),
    }
}

pub(super) fn when(schema: &Schema, reply: &Reply) -> String {
    let one = |Condition(slots): &Condition| {
        let slots =
            slots.iter().map(|(slot, is)| format!("{} {}", schema.slots[*slot].role.as_str(), slot_is(schema, is)));
        slots.collect::<Vec<_>>().join(", ")
    };
    match reply.when.as_slice() {
        [] => "not foreseen".to_owned(),
        alternatives if alternatives.iter().any(|condition| condition.0.is_empty()) => "always".to_owned(),
        alternatives => alternatives.iter().map(one).collect::<Vec<_>>().join(", or "),
    }
}

/// What a condition asks of a slot, as in `schema.toml`.
pub(super) fn slot_is(schema: &Schema, is: &SlotIs) -> String {
    match is {
        SlotIs::Absent => "absent".to_owned(),
        SlotIs::Present => "present".to_owned(),
        SlotIs::Unreadable => "unreadable".to_owned(),
        SlotIs::WrongType => "wrong-type".to_owned(),
        SlotIs::Value(case) => safe(&schema.values[*case].name),
    }
}
