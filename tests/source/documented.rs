//! `lua/README.md` names every field, word and placeholder that a `schema.toml` may have.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

fn file(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// What stands in backquotes, and the names that stand before `=` in there.
fn named(readme: &str) -> BTreeSet<String> {
    // Code blocks are examples, and an example explains nothing.
    let prose: String = readme.split("\n```").step_by(2).collect();
    let quoted = prose.split('`').skip(1).step_by(2).map(|text| text.trim_matches(['[', ']']));
    // `[[begin.call]]` explains `call`.
    let name = |text: &str| {
        text.split(" = ").next().and_then(|name| name.rsplit('.').next()).map(str::to_owned)
    };
    quoted.filter_map(name).collect()
}

/// The names that a file of the schema's room accepts: fields of the structs, and words of the enums that are read.
fn accepted(code: &str) -> BTreeSet<String> {
    // What a type is, from its `derive` on; only such types are read.
    let types = code
        .split("#[derive(")
        .skip(1)
        .filter(|text| text.split(')').next().is_some_and(|of| of.contains("Deserialize")));
    types.flat_map(|text| names_of(text.split("\n}").next().unwrap_or(text))).collect()
}

/// The names that a type accepts: a struct those of its fields, an enum those of its variants.
fn names_of(code: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    if code.contains("(untagged") {
        return names;
    }
    let (mut renamed, mut skipped) = (None, false);
    for line in code.lines().map(str::trim).filter(|line| !line.starts_with("///")) {
        renamed =
            line.split_once("rename = \"").and_then(|(_, rest)| rest.split('"').next()).or(renamed);
        skipped |= line.contains("skip_deserializing");
        let field =
            ["pub ", "pub(crate) ", "pub(super) "].iter().find_map(|word| line.strip_prefix(word));
        if let Some((field, _)) = field.and_then(|rest| rest.split_once(':')) {
            names.insert(renamed.take().unwrap_or(field).to_owned());
        } else if let Some(word) =
            line.strip_suffix(',').filter(|word| !skipped && !word.contains(':'))
        {
            names.insert(renamed.take().map_or_else(|| kebab(word), str::to_owned));
        } else if line.ends_with(',') {
            skipped = false;
        }
    }
    names
}

fn kebab(word: &str) -> String {
    let dashed = word
        .char_indices()
        .map(|(at, c)| if at > 0 && c.is_uppercase() { format!("-{c}") } else { c.to_string() });
    dashed.collect::<String>().to_lowercase()
}

/// The placeholders of calls, values and responses, braces included.
fn placeholders(template: &str) -> BTreeSet<String> {
    let pairs = template
        .lines()
        .filter_map(|line| line.trim().strip_prefix("(\"")?.split_once("\", Placeholder::"));
    pairs.map(|(name, _)| format!("{{{name}}}")).collect()
}

#[test]
fn the_readme_explains_all_that_a_schema_may_say() {
    let files = [
        "raw",
        "decoder",
        "protocol",
        "redis_keys",
        "service_behavior",
        "steps",
        "value_format",
        "write_format",
    ];
    let raw: BTreeSet<_> = files
        .iter()
        .flat_map(|name| accepted(&file(&format!("src/domain/schema/{name}.rs"))))
        .collect();
    let places = placeholders(&file("src/domain/schema/value_template.rs"));
    assert!(
        raw.len() > 60 && places.len() > 15,
        "{} names, {} placeholders",
        raw.len(),
        places.len()
    );
    let named = named(&file("lua/README.md"));
    let missing: Vec<_> = raw.union(&places).filter(|name| !named.contains(*name)).collect();
    assert!(missing.is_empty(), "lua/README.md does not explain {missing:?}");
}

#[test]
fn fields_words_and_placeholders_are_found() {
    let raw = "#[derive(Debug)]\nenum No {\n    Unread,\n}\n#[derive(Deserialize)]\npub(super) struct A {\n    #[serde(rename = \"where\")]\n    pub fields_are: u8,\n    pub has: u8,\n}\n\
               #[derive(Clone, Deserialize)]\n#[serde(rename_all = \"kebab-case\")]\npub enum B {\n    #[serde(skip_deserializing)]\n    Never,\n    InProgress,\n    #[serde(rename = \"ms\")]\n    Milliseconds,\n}\n\
               #[derive(Deserialize)]\n#[serde(untagged)]\npub(super) enum C {\n    Word(String),\n}\n";
    let expected = ["where", "has", "in-progress", "ms"].map(str::to_owned);
    assert_eq!(accepted(raw), expected.into());
    assert_eq!(placeholders("    (\"now\", Placeholder::Now),\n"), ["{now}".to_owned()].into());
    assert_eq!(
        named("`a = 1` b `[[c]]`\n```\n`d`\n```\n`e`"),
        ["a", "c", "e"].map(str::to_owned).into()
    );
}

#[test]
fn the_findings_of_the_document_are_those_of_the_help() {
    let document = file("docs/operations.md");
    for code in idemctl::domain::diagnosis::FindingCode::ALL {
        let row = format!("| `{}` | {} |", code.as_str(), code.meaning());
        assert!(document.contains(&row), "docs/operations.md lacks {row}");
    }
}

/// Rule: `--version --verbose` names the servers of the document.
#[test]
fn the_servers_of_the_tests_are_those_of_the_version() {
    let row = idemctl::version::TESTED_WITH.replace(", ", " | ");
    assert!(file("docs/reliability.md").contains(&format!("\n| | {row} |\n")), "{row}");
}

/// Rule: the newest version in CHANGELOG.md is this one, on the day that the manual pages bear, or not yet released.
#[test]
fn the_changelog_has_this_version_and_its_day() {
    let log = fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/CHANGELOG.md")).unwrap();
    let newest =
        log.lines().find(|line| line.starts_with("## [") && *line != "## [Unreleased]").unwrap();
    let heading = |day: &str| format!("## [{}] - {day}", env!("CARGO_PKG_VERSION"));
    assert!(
        [heading(idemctl::version::RELEASED), heading("unreleased")].contains(&newest.to_owned()),
        "{newest}"
    );
}
