//! A schema as JSON.

use serde_json::{Map, Value, json};

use super::words;
use crate::domain::record::age::millis;
use crate::domain::schema::Template;
use crate::domain::schema::{
    Action, Call, Condition, First, KeyIs, Member, Reply, ReplyPattern, Schema, SchemaOrigin,
    ServiceBehavior, Step, TtlOf, ValueFormat, WriteFormat,
};
use crate::domain::step::fencing;

/// A schema with everything that its file defines.
pub fn schema(schema: &Schema) -> Value {
    let late = fencing::of(schema);
    let path = match &schema.origin {
        SchemaOrigin::BuiltIn => None,
        SchemaOrigin::Folder(path) => Some(path.display().to_string()),
    };
    json!({
        "name": schema.name,
        "summary": schema.summary,
        "origin": if path.is_none() { "built-in" } else { "folder" },
        "path": path,
        "older_release_of": schema.older_release_of,
        "layout": words::layout(schema),
        "keys": schema.keys.iter().zip(schema.templates()).map(|(key, template)| json!({
            "slot": key.role.as_str(),
            "template": template,
        })).collect::<Vec<_>>(),
        "key_pattern": schema.key_pattern(),
        "ignored": schema.ignored(),
        "takes_prefix": schema.takes_prefix,
        "prefix": prefix(schema),
        "key_hash": schema.key_hash.map(|hash| hash.to_string()),
        "lock_ttl_ms": schema.ttl(TtlOf::Lock).map(millis),
        "result_ttl_ms": schema.ttl(TtlOf::Result).map(millis),
        "checks_owner": schema.complete.as_ref().map(|step| step.checks_owner),
        "begins_with_a_script": schema.begin.as_ref().map(|_| schema.begins_with_a_script()),
        "values": schema.values.iter().map(|case| value(schema, case)).collect::<Vec<_>>(),
        "write": write(&schema.write),
        "begin": schema.begin.as_ref().map(|begin| step(schema, begin)),
        "complete": schema.complete.as_ref().map(|complete| step(schema, complete)),
        "renew": schema.renew.as_ref().map(|renew| step(schema, renew)),
        "release": schema.release.as_ref().map(|release| step(schema, release)),
        "service": conduct(&schema.service),
        "late_worker": late.map(|late| json!({
            "fenced_off": late.is_fenced_off(),
            "stores_when_absent": late.stores_when_absent,
            "stores_when_retaken": late.stores_when_retaken,
        })),
        "scripts": schema.scripts.keys().collect::<Vec<_>>(),
    })
}

fn write(write: &WriteFormat) -> Value {
    let template = |template: &Option<Template>| template.as_ref().map(Template::display);
    json!({
        "lock_value": template(&write.lock_value),
        "result_value": template(&write.result_value),
        "failed_value": template(&write.failed_value),
        "response": template(&write.response),
        "no_body": write.no_body,
        "header_names": write.header_names.as_str(),
        "escape_html": write.escape_html,
        "fingerprint_is": write.fingerprint_is,
        "bytes_at": write.bytes_at,
    })
}

/// The prefix in use, the place for a deployment's prefix, and further prefixes under which records
/// are searched.
fn prefix(schema: &Schema) -> Value {
    json!({
        "text": schema.prefix.text,
        "place": schema.prefix.place.as_str(),
        "refusal": schema.prefix.place.refusal(),
        "others": schema.other_places.iter().map(|(prefix, _)| &prefix.text).collect::<Vec<_>>(),
    })
}

fn value(schema: &Schema, case: &ValueFormat) -> Value {
    let fields: Map<_, _> = words::places(&case.fields)
        .into_iter()
        .map(|(name, path)| (name.to_owned(), json!(path)))
        .collect();
    json!({
        "name": case.name,
        "slot": schema.keys[case.key_index].role.as_str(),
        "encoding": case.encoding().as_str(),
        "decode": case.decoding.value.words(),
        "decode_at": inside(case),
        "state": case.state.as_str(),
        "equals": case.tests.equals.as_deref().map(String::from_utf8_lossy),
        "where": case.tests.fields.iter().cloned().collect::<Map<_, _>>(),
        "has": case.tests.has,
        "closed": case.is_closed(),
        "opaque": case.is_opaque(),
        "required": paths(case, |member| member.is_required && member.level.is_none()),
        "optional": paths(case, |member| !member.is_required && member.level.is_none()),
        "null": paths(case, |member| member.may_be_null),
        "strict": case.closed.as_ref().is_some_and(|closed| closed.is_strict),
        "fields": fields,
        "body_encoding": case.body_encoding.as_str(),
        "timestamp": case.timestamp.as_str(),
        "expires_at": case.expires_at.as_ref().map(|expires_at| json!({
            "field": expires_at.field,
            "unit": expires_at.unit.as_str(),
            "clock": expires_at.clock.as_str(),
            "past": expires_at.past.as_str(),
        })),
    })
}

/// The decoders of fields that contain encoded documents, by pointer.
fn inside(case: &ValueFormat) -> Map<String, Value> {
    let inside = case.decoding.inside.iter();
    inside.map(|(path, decoder)| (path.clone(), json!(decoder.words()))).collect()
}

/// The pointers of selected fields of a value format; null if the format allows any fields.
fn paths(case: &ValueFormat, passes: fn(&Member) -> bool) -> Value {
    case.closed.as_ref().map_or(Value::Null, |closed| json!(closed.paths(passes)))
}

fn step(schema: &Schema, step: &Step) -> Value {
    json!({
        "checks_owner": step.checks_owner,
        "note": step.note,
        "calls": step.calls.iter().map(|made| call(schema, made)).collect::<Vec<_>>(),
    })
}

fn conduct(conduct: &ServiceBehavior) -> Value {
    json!({
        "on_failure": conduct.on_failure.map(|does| does.as_str()),
        "on_hang_up": conduct.on_hang_up.map(|does| does.as_str()),
        "without_redis": conduct.without_redis.map(|does| does.as_str()),
        "stores": conduct.stores.as_ref().map(words::stores),
    })
}

fn call(schema: &Schema, call: &Call) -> Value {
    let list = |templates: &[Template]| templates.iter().map(Template::display).collect::<Vec<_>>();
    let mut fields = match &call.action {
        Action::Script { name, keys, args } => {
            json!({ "script": name, "keys": list(keys), "args": list(args) })
        }
        Action::Command(command) => json!({ "command": list(command) }),
    };
    fields["replies"] = call.replies.iter().map(|known| reply(schema, known)).collect();
    fields
}

fn reply(schema: &Schema, reply: &Reply) -> Value {
    let mut fields = match &reply.pattern {
        ReplyPattern::Word(word) => json!({ "word": word }),
        ReplyPattern::Integer(number) => json!({ "integer": number }),
        ReplyPattern::Nil => json!({ "nil": true }),
        ReplyPattern::Error(code) => json!({ "error": code }),
        ReplyPattern::Array(First::Integer(first)) => json!({ "array": first }),
        ReplyPattern::Array(First::Word(first)) => json!({ "array": first }),
        ReplyPattern::Text => json!({ "text": true }),
        ReplyPattern::Value => json!({}),
    };
    if let Some(value) = reply.value {
        fields["value"] = json!(schema.values[value].name);
    }
    let condition = |condition: &Condition| {
        let key = |(key_index, is): &(usize, KeyIs)| {
            (schema.keys[*key_index].role.as_str().to_owned(), json!(words::key_is(schema, is)))
        };
        let payload = condition.other_payload.then(|| ("fingerprint".to_owned(), json!("other")));
        condition.keys.iter().map(key).chain(payload).collect::<Map<_, _>>()
    };
    fields["means"] = json!(reply.means.as_str());
    fields["when"] = reply.when.iter().map(condition).map(Value::Object).collect();
    fields["client"] = json!(reply.client);
    fields
}
