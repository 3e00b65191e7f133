//! A schema as JSON.

use serde_json::{Map, Value, json};

use super::words;
use crate::domain::record::age::millis;
use crate::domain::schema::Template;
use crate::domain::schema::{
    Action, Call, Condition, First, Member, Reply, ReplyPattern, Schema, SchemaOrigin,
    ServiceBehavior, StatusCodes, Step, TtlOf, ValueFormat, WriteFormat,
};
use crate::domain::step::fencing;

/// A schema with everything that its file defines.
pub fn schema(schema: &Schema) -> Value {
    let path = match &schema.origin {
        SchemaOrigin::BuiltIn => None,
        SchemaOrigin::Folder(path) => Some(path.display().to_string()),
    };
    let mut keys = Vec::new();
    for (key, template) in schema.keys.iter().zip(schema.templates()) {
        keys.push(json!({ "slot": key.role.as_str(), "template": template }));
    }
    let mut values = Vec::new();
    for format in &schema.values {
        values.push(value(schema, format));
    }
    // Without a begin or complete step nothing is known about it, so these are null, not false.
    let begins_with_a_script = schema.begin.as_ref().map(|_| schema.begins_with_a_script());
    let checks_owner = schema.complete.as_ref().map(|step| step.checks_owner);
    let late_worker = fencing::of(schema).map(|late| {
        json!({
            "fenced_off": late.is_fenced_off(),
            "stores_when_absent": late.stores_when_absent,
            "stores_when_retaken": late.stores_when_retaken,
        })
    });
    json!({
        "name": schema.name,
        "summary": schema.summary,
        "origin": if path.is_none() { "built-in" } else { "folder" },
        "path": path,
        "older_release_of": schema.older_release_of,
        "layout": words::layout(schema),
        "keys": keys,
        "key_pattern": schema.key_pattern(),
        "ignored": schema.ignored(),
        "takes_prefix": schema.takes_prefix,
        "prefix": prefix(schema),
        "lock_ttl_ms": schema.ttl(TtlOf::Lock).map(millis),
        "result_ttl_ms": schema.ttl(TtlOf::Result).map(millis),
        "checks_owner": checks_owner,
        "begins_with_a_script": begins_with_a_script,
        "values": values,
        "write": write(&schema.write),
        "begin": step(schema, schema.begin.as_ref()),
        "complete": step(schema, schema.complete.as_ref()),
        "renew": step(schema, schema.renew.as_ref()),
        "release": step(schema, schema.release.as_ref()),
        "service": conduct(&schema.service),
        "late_worker": late_worker,
        "scripts": schema.scripts.keys().collect::<Vec<_>>(),
    })
}

fn write(write: &WriteFormat) -> Value {
    json!({
        "lock_value": optional_template(&write.lock_value),
        "result_value": optional_template(&write.result_value),
        "failed_value": optional_template(&write.failed_value),
        "response": optional_template(&write.response),
        "no_body": write.no_body,
        "header_names": write.header_names.as_str(),
        "headers_as": write.headers_as.as_str(),
        "numbers": write.numbers.as_str(),
        "empty_as_null": write.empty_as_null,
        "escape_html": write.escape_html,
        "fingerprint_is": write.fingerprint_is,
        "lock_needs": write.lock_needs,
        "lock_holds": write.lock_holds,
        "bytes_at": write.bytes_at,
    })
}

/// A template in the syntax of schema files; null if there is none.
fn optional_template(template: &Option<Template>) -> Option<String> {
    template.as_ref().map(Template::display)
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
    let mut fields = Map::new();
    for (name, path) in case.fields.pointers() {
        fields.insert(name.to_owned(), json!(path));
    }
    let mut expires_at = Value::Null;
    if let Some(expiry) = &case.expires_at {
        expires_at = json!({
            "field": expiry.field,
            "plus_ms": expiry.plus_ms(),
            "unit": expiry.unit.as_str(),
            "clock": expiry.clock.as_str(),
            "past": expiry.past.as_str(),
        });
    }
    let is_strict = case.closed.as_ref().is_some_and(|closed| closed.is_strict);
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
        // The word of `schema.toml` for it, which is part of the output's contract.
        "closed": case.is_distinctive(),
        "opaque": case.is_opaque(),
        "required": paths(case, |member| member.is_required && member.level.is_none()),
        "optional": paths(case, |member| !member.is_required && member.level.is_none()),
        "null": paths(case, |member| member.may_be_null),
        "strict": is_strict,
        "fields": fields,
        "body_encoding": case.body_encoding.as_str(),
        "body_is": case.body_is.as_str(),
        "timestamp": case.timestamp.as_str(),
        "expires_at": expires_at,
    })
}

/// The decoders of fields that contain encoded documents, by pointer.
fn inside(case: &ValueFormat) -> Map<String, Value> {
    let mut inside = Map::new();
    for (path, decoder) in &case.decoding.inside {
        inside.insert(path.clone(), json!(decoder.words()));
    }
    inside
}

/// The pointers of selected fields of a value format; null if the format allows any fields.
fn paths(case: &ValueFormat, passes: fn(&Member) -> bool) -> Option<Vec<String>> {
    Some(case.closed.as_ref()?.paths(passes))
}

/// A step with its calls; null if the schema does not describe it.
fn step(schema: &Schema, step: Option<&Step>) -> Value {
    let Some(step) = step else { return Value::Null };
    let calls: Vec<_> = step.calls.iter().map(|made| call(schema, made)).collect();
    json!({
        "checks_owner": step.checks_owner,
        "gives_ttl": step.gives_ttl,
        "note": step.note,
        "calls": calls,
    })
}

fn conduct(conduct: &ServiceBehavior) -> Value {
    json!({
        "on_failure": conduct.on_failure.map(|does| does.as_str()),
        "on_hang_up": conduct.on_hang_up.map(|does| does.as_str()),
        "without_redis": conduct.without_redis.map(|does| does.as_str()),
        "stores": conduct.stores.as_ref().map(StatusCodes::as_text),
        "payload": conduct.payload.map(|payload| payload.as_str()),
        "sample_body": conduct.sample_body,
    })
}

fn call(schema: &Schema, call: &Call) -> Value {
    let mut fields = match &call.action {
        Action::Script { name, keys, args } => {
            json!({ "script": name, "keys": displayed(keys), "args": displayed(args) })
        }
        Action::Command(command) => json!({ "command": displayed(command) }),
    };
    fields["replies"] = call.replies.iter().map(|known| reply(schema, known)).collect();
    fields
}

/// Templates in the syntax of schema files.
fn displayed(templates: &[Template]) -> Vec<String> {
    templates.iter().map(Template::display).collect()
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
    fields["means"] = json!(reply.means.as_str());
    fields["when"] = reply.when.iter().map(|alternative| condition(schema, alternative)).collect();
    fields["client"] = json!(reply.client.as_deref());
    fields
}

/// A condition by the names of the Redis keys, as in `schema.toml`.
fn condition(schema: &Schema, condition: &Condition) -> Value {
    let mut fields = Map::new();
    for (key_index, is) in &condition.keys {
        let name = schema.keys[*key_index].role.as_str().to_owned();
        fields.insert(name, json!(words::key_is(schema, is)));
    }
    if condition.other_payload {
        fields.insert("fingerprint".to_owned(), json!("other"));
    }
    if condition.no_fingerprint {
        fields.insert("fingerprint".to_owned(), json!("none"));
    }
    Value::Object(fields)
}
