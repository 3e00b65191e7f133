//! The schemas of `docs/schema/`, and what in a value is not as one of them says.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::LazyLock;

use jsonschema::Registry;
use serde_json::{Value, json};

/// Where the relative names by which the schemas know each other lead to. Nothing is fetched from there.
const BASE: &str = "https://idemctl.invalid/schema/";

static FILES: LazyLock<BTreeMap<String, Value>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    let file = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let schema = serde_json::from_slice(&fs::read(path).unwrap())
            .unwrap_or_else(|error| panic!("{name}: {error}"));
        (name, schema)
    };
    fs::read_dir(folder).unwrap().map(|entry| file(&entry.unwrap().path())).collect()
});

static REGISTRY: LazyLock<Registry<'static>> = LazyLock::new(|| {
    let pairs = FILES.iter().map(|(name, schema)| (format!("{BASE}{name}"), schema));
    Registry::new().extend(pairs).unwrap().prepare().unwrap()
});

/// The schemas by the names of their files.
pub fn files() -> &'static BTreeMap<String, Value> {
    &FILES
}

/// What in the values is not as the schema says; `list.json#/$defs/line` is a part of a file.
pub fn faults(schema: &str, values: &[Value]) -> Vec<String> {
    let root = json!({ "$ref": format!("{BASE}{schema}") });
    let validator = jsonschema::options().with_registry(&REGISTRY).build(&root).unwrap();
    let faults = values.iter().flat_map(|value| validator.iter_errors(value));
    faults.map(|fault| format!("{schema}, {}: {fault}", fault.instance_path())).collect()
}
