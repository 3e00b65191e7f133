//! What a schema says, in words.

use crate::domain::schema::{
    Action, BodyEncoding, Condition, Encoding, Fields, Origin, Pattern, Reply, Schema, SlotIs, Timestamp, ValueCase,
};
use crate::render::escape;

/// Text out of a schema file, which need not be the operator's own.
pub(super) fn safe(text: &str) -> String {
    escape::text(text.as_bytes())
}

/// Where it came from.
pub(super) fn origin(origin: &Origin) -> String {
    match origin {
        Origin::BuiltIn => "built in".to_owned(),
        Origin::Folder(path) => safe(&path.display().to_string()),
    }
}

/// One key or two.
pub(super) fn layout(schema: &Schema) -> &'static str {
    if schema.slots.len() == 1 { "one key" } else { "lock and result" }
}

/// Its Redis keys' templates.
pub(super) fn templates(schema: &Schema) -> Vec<String> {
    schema.slots.iter().map(|slot| safe(&slot.template.display())).collect()
}

/// How a value is told.
pub(super) fn told_by(case: &ValueCase) -> String {
    let mut tests: Vec<_> = case.tests.fields.iter().map(|(path, value)| format!("{} = {value}", safe(path))).collect();
    tests.extend(case.tests.has.iter().map(|path| format!("{} present", safe(path))));
    match (case.encoding, &case.tests.equals) {
        (_, Some(bytes)) => format!("exactly {}", escape::text(bytes)),
        (Encoding::Text, None) => "any text".to_owned(),
        (Encoding::Json, None) if tests.is_empty() => "any JSON".to_owned(),
        (Encoding::Json, None) => format!("JSON with {}", tests.join(", ")),
    }
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

/// What a value holds, for people.
pub(super) fn holds(case: &ValueCase) -> String {
    let parts = places(&case.fields).into_iter().map(|(name, path)| {
        let encoding = match (name, case.body_encoding) {
            ("body", BodyEncoding::Base64) => " (base64)",
            ("body", BodyEncoding::Json) => " (JSON)",
            _ => "",
        };
        match path {
            "" => format!("{name}: the value itself{encoding}"),
            path => format!("{name} at {}{encoding}", safe(path)),
        }
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// The word for an encoding in `schema.toml`.
pub(super) fn encoding(encoding: Encoding) -> &'static str {
    match encoding {
        Encoding::Text => "text",
        Encoding::Json => "json",
    }
}

/// The word for a body's encoding in `schema.toml`.
pub(super) fn body_encoding(encoding: BodyEncoding) -> &'static str {
    match encoding {
        BodyEncoding::Text => "text",
        BodyEncoding::Base64 => "base64",
        BodyEncoding::Json => "json",
    }
}

/// The word for a timestamp's unit in `schema.toml`.
pub(super) fn timestamp(unit: Timestamp) -> &'static str {
    match unit {
        Timestamp::Milliseconds => "ms",
        Timestamp::Seconds => "s",
        Timestamp::Rfc3339 => "rfc3339",
    }
}

/// What a call sends.
pub(super) fn sent(action: &Action) -> String {
    let words = |templates: &[crate::domain::write::Template]| {
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

/// A reply as it is recognised.
pub(super) fn pattern(pattern: &Pattern) -> String {
    match pattern {
        Pattern::Word(word) => safe(word),
        Pattern::Integer(number) => number.to_string(),
        Pattern::Nil => "nil".to_owned(),
        Pattern::Error(code) if code == "*" => "any error".to_owned(),
        Pattern::Error(code) => format!("error {}", safe(code)),
        Pattern::Array(first) => format!("{{{first}, …}}"),
        Pattern::Text => "<text>".to_owned(),
    }
}

/// When a reply comes.
pub(super) fn when(schema: &Schema, reply: &Reply) -> String {
    let one = |Condition(slots): &Condition| {
        let slots =
            slots.iter().map(|(slot, is)| format!("{} {}", schema.slots[*slot].role.word(), slot_is(schema, is)));
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
