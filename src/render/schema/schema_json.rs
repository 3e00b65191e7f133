//! A schema as JSON.

use serde_json::{Map, Value, json};

use super::words;
use crate::domain::record::age::millis;
use crate::domain::schema::Template;
use crate::domain::schema::{
    Action, Call, Condition, Conduct, First, Member, Origin, Pattern, Reply, Schema, Step, ValueCase,
};
use crate::domain::step::fencing;

pub fn schema(schema: &Schema) -> Value {
    let late = fencing::of(schema);
    let path = match &schema.origin {
        Origin::BuiltIn => None,
        Origin::Folder(path) => Some(path.display().to_string()),
    };
    json!({
        "name": schema.name,
        "summary": schema.summary,
        "origin": if path.is_none() { "built-in" } else { "folder" },
        "path": path,
        "older_release_of": schema.older_release_of,
        "layout": words::layout(schema),
        "keys": schema.slots.iter().map(|slot| json!({
            "slot": slot.role.as_str(),
            "template": slot.template.display(),
        })).collect::<Vec<_>>(),
        "takes_prefix": schema.takes_prefix,
        "prefix": {
            "text": schema.prefix.text,
            "place": schema.prefix.place.as_str(),
            "refusal": schema.prefix.place.refusal(),
        },
        "lock_ttl_ms": millis(schema.lock_ttl),
        "result_ttl_ms": millis(schema.result_ttl),
        "checks_owner": schema.complete.checks_owner,
        "begins_with_a_script": schema.begins_with_a_script(),
        "values": schema.values.iter().map(|case| value(schema, case)).collect::<Vec<_>>(),
        "write": {
            "lock_value": schema.write.lock_value.display(),
            "result_value": schema.write.result_value.display(),
            "failed_value": schema.write.failed_value.as_ref().map(Template::display),
            "response": schema.write.response.as_ref().map(Template::display),
            "no_body": schema.write.no_body,
            "header_names": schema.write.header_names.as_str(),
            "escape_html": schema.write.escape_html,
        },
        "begin": step(schema, &schema.begin),
        "complete": step(schema, &schema.complete),
        "renew": schema.renew.as_ref().map(|renew| step(schema, renew)),
        "release": schema.release.as_ref().map(|release| step(schema, release)),
        "service": conduct(&schema.conduct),
        "late_worker": {
            "fenced_off": late.is_fenced_off(),
            "stores_when_absent": late.stores_when_absent,
            "stores_when_retaken": late.stores_when_retaken,
        },
        "scripts": schema.scripts.keys().collect::<Vec<_>>(),
    })
}

fn value(schema: &Schema, case: &ValueCase) -> Value {
    let fields: Map<_, _> =
        words::places(&case.fields).into_iter().map(|(name, path)| (name.to_owned(), json!(path))).collect();
    json!({
        "name": case.name,
        "slot": schema.slots[case.slot].role.as_str(),
        "encoding": case.encoding.as_str(),
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
    })
}

/// The pointers of a closed form's fields that pass; null for a form that is none.
fn paths(case: &ValueCase, passes: fn(&Member) -> bool) -> Value {
    case.closed.as_ref().map_or(Value::Null, |closed| json!(closed.paths(passes)))
}

fn step(schema: &Schema, step: &Step) -> Value {
    json!({
        "checks_owner": step.checks_owner,
        "note": step.note,
        "calls": step.calls.iter().map(|made| call(schema, made)).collect::<Vec<_>>(),
    })
}

fn conduct(conduct: &Conduct) -> Value {
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
        Action::Script { name, keys, args } => json!({ "script": name, "keys": list(keys), "args": list(args) }),
        Action::Command(command) => json!({ "command": list(command) }),
    };
    fields["replies"] = call.replies.iter().map(|known| reply(schema, known)).collect();
    fields
}

fn reply(schema: &Schema, reply: &Reply) -> Value {
    let mut fields = match &reply.pattern {
        Pattern::Word(word) => json!({ "word": word }),
        Pattern::Integer(number) => json!({ "integer": number }),
        Pattern::Nil => json!({ "nil": true }),
        Pattern::Error(code) => json!({ "error": code }),
        Pattern::Array(First::Integer(first)) => json!({ "array": first }),
        Pattern::Array(First::Word(first)) => json!({ "array": first }),
        Pattern::Text => json!({ "text": true }),
    };
    let condition = |Condition(slots): &Condition| {
        slots
            .iter()
            .map(|(slot, is)| (schema.slots[*slot].role.as_str().to_owned(), json!(words::slot_is(schema, is))))
            .collect::<Map<_, _>>()
    };
    fields["means"] = json!(reply.means.as_str());
    fields["when"] = reply.when.iter().map(condition).map(Value::Object).collect();
    fields["client"] = json!(reply.client);
    fields
}
