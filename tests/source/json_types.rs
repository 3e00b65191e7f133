//! `docs/schema/` says what the types say that become JSON: the fields of each struct, which of
//! them may be left out or null, and the words of each enum.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::Value;
use syn::{Attribute, Field, Fields, Item, LitStr, Meta};

/// A struct, or one and what is flattened into it, by file and name; and the place of its schema.
const STRUCTS: [(&[(&str, &str)], &str); 20] = [
    (&[("render/record_json.rs", "RecordJson")], "record.json#/$defs/fields"),
    (&[("render/record_json.rs", "OwnExpiry")], "record.json#/$defs/own_expiry"),
    (&[("render/record_json.rs", "NextRequestJson")], "record.json#/$defs/next_request"),
    (&[("render/record_json.rs", "FindingJson")], "record.json#/$defs/finding"),
    (&[("domain/snapshot/print.rs", "KeyPrint")], "record.json#/$defs/identity"),
    (&[("domain/snapshot/list_scope.rs", "ListScope")], "list.json#/$defs/scope"),
    (
        &[("domain/history/operation.rs", "Operation"), ("render/history.rs", "ShownOperation")],
        "log.json#/$defs/line",
    ),
    (&[("domain/history/entry.rs", "AuditEntry")], "changes.json#/$defs/line"),
    (&[("domain/record/key_identity.rs", "WrittenIdentity")], "changes.json#/$defs/identity"),
    (&[("domain/change/provenance.rs", "Provenance")], "changes.json#/$defs/place"),
    (&[("domain/change/provenance.rs", "Service")], "changes.json#/$defs/place/properties/service"),
    (&[("render/detected.rs", "GroupFields")], "detect.json#/$defs/line"),
    (&[("render/backups.rs", "BackupSummary")], "backups.json#/$defs/line"),
    (&[("render/settings.rs", "Setting")], "settings.json#/$defs/line"),
    (&[("render/settings.rs", "NamedContext")], "contexts.json#/$defs/line"),
    (&[("render/connection_test.rs", "Check")], "context-test.json#/$defs/line"),
    (&[("domain/doctor/counterexample.rs", "Counterexample")], "doctor.json#/$defs/counterexample"),
    (&[("domain/doctor/statement.rs", "UnexploredSchema")], "doctor.json#/$defs/unexplored"),
    (&[("domain/doctor/refusal.rs", "RefusedFact")], "doctor.json#/$defs/refused"),
    (&[("domain/doctor/statement.rs", "Acceptance")], "doctor.json#/$defs/accepted"),
];

/// An enum by file and name, and the places of its words.
const ENUMS: [(&str, &str, &str); 40] = [
    ("domain/schema/value_format.rs", "State", "record.json#/$defs/fields/properties/state"),
    ("domain/schema/value_format.rs", "State", "stats.json#/$defs/line/properties/state"),
    ("domain/schema/value_format.rs", "State", "purge.json#/$defs/group/properties/state"),
    ("domain/schema/value_format.rs", "State", "schemas.json#/$defs/value/properties/state"),
    ("domain/schema/decoder.rs", "Encoding", "schemas.json#/$defs/value/properties/encoding"),
    (
        "domain/schema/value_format.rs",
        "BodyEncoding",
        "schemas.json#/$defs/value/properties/body_encoding",
    ),
    (
        "domain/schema/value_format.rs",
        "Timestamp",
        "schemas.json#/$defs/value/properties/timestamp",
    ),
    ("domain/schema/value_format.rs", "Clock", "record.json#/$defs/own_expiry/properties/clock"),
    (
        "domain/schema/value_format.rs",
        "PastExpiry",
        "record.json#/$defs/own_expiry/properties/past",
    ),
    (
        "domain/schema/key_template.rs",
        "Exclusion",
        "inspect.json#/$defs/unclaimed/properties/left_out_by/items/properties/word",
    ),
    ("domain/schema/redis_keys.rs", "Role", "schemas.json#/$defs/value/properties/slot"),
    (
        "domain/schema/redis_keys.rs",
        "PrefixPlace",
        "schemas.json#/$defs/line/properties/prefix/properties/place",
    ),
    ("domain/schema/steps.rs", "Meaning", "schemas.json#/$defs/reply/properties/means"),
    (
        "domain/schema/write_format.rs",
        "HeaderNames",
        "schemas.json#/$defs/line/properties/write/properties/header_names",
    ),
    (
        "domain/schema/service_behavior.rs",
        "OnFailure",
        "schemas.json#/$defs/line/properties/service/properties/on_failure",
    ),
    (
        "domain/schema/service_behavior.rs",
        "OnHangUp",
        "schemas.json#/$defs/line/properties/service/properties/on_hang_up",
    ),
    (
        "domain/schema/service_behavior.rs",
        "WithoutRedis",
        "schemas.json#/$defs/line/properties/service/properties/without_redis",
    ),
    ("domain/record/age.rs", "AgeSource", "record.json#/$defs/fields/properties/age_source"),
    ("domain/record/evidence.rs", "Evidence", "record.json#/$defs/fields/properties/age_evidence"),
    ("domain/diagnosis/finding.rs", "FindingCode", "record.json#/$defs/finding/properties/code"),
    ("domain/diagnosis/finding.rs", "FindingCode", "stats.json#/$defs/line/properties/finding"),
    ("domain/diagnosis/finding.rs", "Severity", "record.json#/$defs/finding/properties/severity"),
    ("domain/step/next_request.rs", "Answer", "record.json#/$defs/next_request/properties/answer"),
    ("domain/detect/group.rs", "Confidence", "detect.json#/$defs/line/properties/confidence"),
    ("domain/snapshot/difference.rs", "DifferenceKind", "diff.json#/$defs/line/properties/what"),
    ("domain/snapshot/difference.rs", "HowRecordEnded", "diff.json#/$defs/line/properties/how"),
    ("domain/diagnosis/health.rs", "Status", "check.json#/$defs/status"),
    ("domain/change/outcome_counts.rs", "Ended", "sweep.json#/properties/outcome"),
    ("domain/race/event.rs", "RaceAct", "race.json#/$defs/event/properties/step"),
    ("domain/race/event.rs", "RaceAnswer", "race.json#/$defs/event/properties/reply"),
    ("domain/race/run.rs", "RaceVerdict", "race.json#/$defs/line/properties/verdict"),
    ("domain/race/strategy.rs", "Strategy", "race.json#/$defs/line/properties/strategy"),
    (
        "domain/race/verdict.rs",
        "RaceRule",
        "race.json#/$defs/line/properties/first_offence/anyOf/0/properties/rule",
    ),
    (
        "domain/simulation/verdict.rs",
        "ScenarioVerdict",
        "simulate.json#/$defs/line/properties/verdict",
    ),
    ("domain/exploration/fault.rs", "Fault", "explore.json#/$defs/trace_line/properties/fault"),
    (
        "domain/exploration/fault.rs",
        "Assumption",
        "explore.json#/$defs/line/properties/assume/items",
    ),
    ("domain/doctor/judgement.rs", "CheckSeverity", "doctor.json#/$defs/line/properties/severity"),
    ("domain/doctor/judgement.rs", "FactEvidence", "doctor.json#/$defs/line/properties/evidence"),
    ("domain/doctor/doctor_check.rs", "CheckGroup", "doctor.json#/$defs/line/properties/group"),
    ("render/style.rs", "NameColor", "contexts.json#/$defs/line/properties/color"),
];

/// What a field may be.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
struct May {
    be_null: bool,
    be_left_out: bool,
}

fn items(text: &str) -> Vec<Item> {
    syn::parse_file(text).unwrap().items
}

/// What stands in attributes of this name: words, and names with their texts.
fn said(attributes: &[Attribute], of: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for attribute in attributes.iter().filter(|attribute| attribute.path().is_ident(of)) {
        let Meta::List(_) = &attribute.meta else { continue };
        let parsed = attribute.parse_nested_meta(|meta| {
            let text = meta.value().ok().map(|value| value.parse::<LitStr>()).transpose()?;
            let name = meta.path.get_ident().map(ToString::to_string).unwrap_or_default();
            found.insert(name, text.map(|text| text.value()).unwrap_or_default());
            Ok(())
        });
        parsed.unwrap();
    }
    found
}

/// The fields that a struct becomes, flattened ones left out.
fn fields_of(text: &str, name: &str) -> BTreeMap<String, May> {
    let found = items(text).into_iter().find_map(|item| match item {
        Item::Struct(item) if item.ident == name => Some(item.fields),
        _ => None,
    });
    let Some(Fields::Named(fields)) = found else { panic!("no struct {name} with names") };
    let field = |field: &Field| {
        let says = said(&field.attrs, "serde");
        let own = field.ident.as_ref().unwrap().to_string();
        let be_left_out = says.contains_key("skip_serializing_if");
        let is_option =
            matches!(&field.ty, syn::Type::Path(path) if path.path.segments[0].ident == "Option");
        let may = May { be_null: is_option && !be_left_out, be_left_out };
        let is_a_field = !says.contains_key("flatten") && !says.contains_key("skip");
        is_a_field.then(|| (says.get("rename").cloned().unwrap_or(own), may))
    };
    fields.named.iter().filter_map(field).collect()
}

/// The words that an enum becomes.
fn words_of(text: &str, name: &str) -> BTreeSet<String> {
    let found = items(text).into_iter().find_map(|item| match item {
        Item::Enum(item) if item.ident == name => Some(item),
        _ => None,
    });
    let found = found.unwrap_or_else(|| panic!("no enum {name}"));
    let word = |variant: &syn::Variant| {
        let own = said(&variant.attrs, "strum").get("serialize").cloned();
        own.unwrap_or_else(|| kebab(&variant.ident.to_string()))
    };
    found.variants.iter().map(word).collect()
}

fn kebab(word: &str) -> String {
    let letters = word.char_indices().flat_map(|(at, letter)| {
        let dash = (at > 0 && letter.is_uppercase()).then_some('-');
        dash.into_iter().chain([letter.to_ascii_lowercase()])
    });
    letters.collect()
}

/// A part of a schema, as `record.json#/$defs/fields` names it.
fn part(place: &str) -> Value {
    let (file, pointer) = place.split_once('#').unwrap();
    let schema: Value =
        serde_json::from_str(&fs::read_to_string(root().join("docs/schema").join(file)).unwrap())
            .unwrap();
    schema.pointer(pointer).unwrap_or_else(|| panic!("{place} is not there")).clone()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn source(file: &str) -> String {
    fs::read_to_string(root().join("src").join(file)).unwrap()
}

/// The fields that a schema describes.
fn described(schema: &Value) -> BTreeMap<String, May> {
    let required = schema["required"].as_array().unwrap();
    let field = |(name, says): (&String, &Value)| {
        let be_left_out = !required.contains(&Value::from(name.as_str()));
        (name.clone(), May { be_null: takes_null(says), be_left_out })
    };
    schema["properties"].as_object().unwrap().iter().map(field).collect()
}

/// True where null is as the schema says.
fn takes_null(says: &Value) -> bool {
    let is_null = |word: &Value| word == "null" || word.is_null();
    let lists = ["type", "enum"]
        .map(|list| says[list].as_array().is_some_and(|words| words.iter().any(is_null)));
    let any = says["anyOf"]
        .as_array()
        .is_some_and(|schemas| schemas.iter().any(|schema| schema["type"] == "null"));
    let is_open = says.as_object().is_some_and(|says| says.keys().eq(["description"]));
    lists.contains(&true) || any || is_open
}

#[test]
fn the_schemas_have_the_fields_of_the_types() {
    for (types, place) in STRUCTS {
        let fields: BTreeMap<_, _> =
            types.iter().flat_map(|(file, name)| fields_of(&source(file), name)).collect();
        assert_eq!(described(&part(place)), fields, "{place} beside {types:?}");
    }
}

#[test]
fn the_schemas_have_the_words_of_the_types() {
    for (file, name, place) in ENUMS {
        let words = part(place)["enum"].as_array().expect(place).clone();
        let words: BTreeSet<_> =
            words.iter().filter_map(Value::as_str).map(str::to_owned).collect();
        assert_eq!(words, words_of(&source(file), name), "{place} beside {name} of {file}");
    }
}

#[test]
fn fields_and_words_are_found() {
    let text = "struct A { #[serde(flatten)] f: B, a: u8, b: Option<u8>, #[serde(rename = \"type\")] kind: String,\n\
                #[serde(default, skip_serializing_if = \"Option::is_none\")] c: Option<u8> }\n\
                enum E { OneTwo, #[strum(serialize = \"n/a\")] #[serde(rename = \"x\")] Other(u8), Rfc3339 }";
    let may = |be_null, be_left_out| May { be_null, be_left_out };
    let fields = [
        ("a", may(false, false)),
        ("b", may(true, false)),
        ("c", may(false, true)),
        ("type", may(false, false)),
    ];
    assert_eq!(fields_of(text, "A"), fields.map(|(name, may)| (name.to_owned(), may)).into());
    assert_eq!(words_of(text, "E"), ["one-two", "n/a", "rfc3339"].map(str::to_owned).into());
}
