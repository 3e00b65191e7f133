//! Schemas and records for the unit tests of `domain`.

use std::sync::{Arc, LazyLock};

use proptest::prelude::*;

use super::detect::SchemaSet;
use super::record::decode;
use crate::domain::record::{Content, Deadline, KeyState, Observation, Record, TimeLeft};
use crate::domain::schema;
use crate::domain::schema::{Catalog, Prefixes, Schema, SchemaOrigin, SchemaSource, Script};

/// A schema whose values contain times; none of the built-in ones does.
const TIMED: &str = r#"
format = 2
name = "timed"
[keys]
record = "timed:{key}"
[ttl]
lock = "60s"
result = "24h"
[[value]]
name = "held"
at = "record"
encoding = "json"
where = { "/done" = false }
state = "in-progress"
fields = { owner = "/by", created_at = "/at", fingerprint = "/hash" }
[[value]]
name = "stored"
at = "record"
encoding = "json"
where = { "/done" = true }
state = "completed"
fields = { created_at = "/at", completed_at = "/until" }
[write]
lock_value = '{"done":false}'
result_value = '{"done":true}'
[[begin.call]]
command = ["SET", "{record}", "{lock_value}", "NX"]
replies = [
  { word = "OK", means = "acquired", when = { record = "absent" } },
  { nil = true, means = "conflict", when = { record = "present" } },
]
[[complete.call]]
command = ["SET", "{record}", "{result_value}"]
replies = [{ word = "OK", means = "stored", when = {} }]
"#;

/// Parsed once, because property tests ask for them thousands of times.
static SCHEMAS: LazyLock<Vec<Schema>> =
    LazyLock::new(|| TOMLS.map(|toml| parse(toml, None)).into());

const TOMLS: [&str; 7] = [
    include_str!("../../lua/event-consumer/schema.toml"),
    include_str!("../../lua/event-driven/schema.toml"),
    include_str!("../../lua/express/schema.toml"),
    include_str!("../../lua/go-chi/schema.toml"),
    include_str!("../../lua/go-middleware/schema.toml"),
    include_str!("../../lua/go-middleware-v1/schema.toml"),
    include_str!("../../lua/reference/schema.toml"),
];

/// The built-in schemas, their scripts left out.
pub(crate) fn schemas() -> Vec<Schema> {
    SCHEMAS.clone()
}

fn parse(toml: &str, prefix: Option<&str>) -> Schema {
    let scripts = toml.lines().filter_map(|line| line.strip_prefix("script = \""));
    let script = |name: &str| Script {
        name: name.trim_end_matches('"').to_owned(),
        text: String::new().into(),
    };
    let source = SchemaSource {
        file: "sample",
        toml,
        compiled_in: None,
        scripts: scripts.map(script).collect(),
        origin: SchemaOrigin::BuiltIn,
        prefixes: Prefixes { own: prefix, shared: None },
    };
    schema::parse(source).expect("a sound schema")
}

/// The schema of a file with this text.
pub(crate) fn from_toml(toml: &str) -> Schema {
    parse(toml, None)
}

/// A built-in schema, or `timed`.
pub(crate) fn schema(name: &str) -> Schema {
    SCHEMAS.iter().find(|schema| schema.name == name).cloned().unwrap_or_else(|| parse(TIMED, None))
}

/// All built-in schemas, of which these are named. If a prefix is given, go-chi gets it.
pub(crate) fn catalog(names: &[&str], prefix: Option<&str>) -> Catalog {
    let mut all = schemas();
    if prefix.is_some() {
        let chi = all.iter_mut().find(|schema| schema.name == "go-chi").expect("go-chi");
        *chi = parse(include_str!("../../lua/go-chi/schema.toml"), prefix);
    }
    Catalog::new(all, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
        .expect("known names")
}

/// A string value.
pub(crate) fn text(bytes: impl AsRef<[u8]>) -> Content {
    Content::text(bytes.as_ref().to_vec())
}

/// The record of the idempotency key `k` with these values at its Redis keys, read one thousand
/// seconds after the epoch.
pub(crate) fn seen(schema: &Schema, keys: &[(Content, TimeLeft)]) -> Observation {
    let seen = |((content, time_left), redis_key): (&(Content, TimeLeft), Vec<u8>)| {
        let deadline =
            time_left.millis().map_or(Deadline::Never, |left| Deadline::At(1_000_000 + left));
        KeyState::new(&redis_key, content.clone(), *time_left, deadline)
    };
    let keys = keys.iter().zip(schema.redis_keys(b"k")).map(seen).collect();
    Observation { server_ms: Some(1_000_000), keys, atomic: true }
}

/// The same record, decoded, without findings.
pub(crate) fn record(schema_name: &str, keys: &[(Content, TimeLeft)]) -> Record {
    let schema = Arc::new(schema(schema_name));
    let seen = seen(&schema, keys);
    let readings = decode::decode_all(&schema, &seen);
    Record::new(schema, b"k".to_vec(), seen, readings)
}

/// A record of go-chi with this value.
pub(crate) fn chi(value: &str, time_left: TimeLeft) -> Record {
    record("go-chi", &[(text(value), time_left)])
}

/// A lock of go-chi.
pub(crate) const CHI_LOCK: &str = r#"{"status":0}"#;

/// A result of go-chi.
pub(crate) const CHI_RESULT: &str =
    r#"{"status":1,"response":{"StatusCode":200,"Header":{},"Body":""}}"#;

/// Idempotency keys, Redis keys like those of the schemas, and random bytes.
pub(crate) fn any_key() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(vec![
        "idem:",
        "idempotency:",
        "lock:",
        "done:",
        "started:",
        "result:",
        "pay:",
        ":",
        "idem",
        "order-1",
        "k",
    ]);
    (prop::collection::vec(piece, 0..4), prop::collection::vec(any::<u8>(), 0..4))
        .prop_map(|(pieces, rest)| [pieces.concat().as_bytes(), &rest[..]].concat())
}

/// Any JSON.
pub(crate) fn json() -> impl Strategy<Value = serde_json::Value> {
    use serde_json::Value;
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i32>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "[a-zé\"\\\\😀\u{1}]{0,8}".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
            prop::collection::vec(("[a-c\"é]{1,4}", inner), 0..4)
                .prop_map(|members| Value::Object(members.into_iter().collect())),
        ]
    })
}

/// The built-in schemas as a set in which each accepts a prefix.
pub(crate) struct BuiltIns(Vec<Arc<Schema>>);

/// The built-in schemas as a [`SchemaSet`].
pub(crate) fn schema_set() -> BuiltIns {
    BuiltIns(schemas().into_iter().map(Arc::new).collect())
}

impl SchemaSet for BuiltIns {
    fn all(&self) -> &[Arc<Schema>] {
        &self.0
    }

    fn with_prefix(&self, name: &str, prefix: &str) -> Option<Arc<Schema>> {
        let toml = TOMLS.iter().find(|toml| toml.contains(&format!("\nname = \"{name}\"\n")))?;
        Some(Arc::new(parse(toml, Some(prefix))))
    }
}
