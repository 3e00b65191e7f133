//! `docs/json.md` has a section for every command that writes JSON, with a link to each of its schemas; its examples are as the
//! schemas say.

use std::fs;
use std::path::Path;

use super::outputs::OUTPUTS;
use super::validator::{faults, files};

/// A section of the document: its heading and its text.
fn sections(document: &str) -> Vec<(&str, &str)> {
    document.split("\n## ").skip(1).map(|section| section.split_once('\n').unwrap()).collect()
}

/// The names of the schemas that a section links.
fn links(text: &str) -> Vec<&str> {
    let targets = text.split("](schema/").skip(1);
    targets.map(|rest| rest.split_once(')').unwrap().0).collect()
}

fn document() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/json.md")).unwrap()
}

#[test]
fn every_command_has_a_section_that_links_its_schemas() {
    let document = document();
    let sections = sections(&document);
    for (command, schemas) in OUTPUTS {
        let is_its = |heading: &str| heading.split(", ").any(|name| name == command);
        let (_, text) = sections.iter().find(|(heading, _)| is_its(heading)).expect(command);
        let links = links(text);
        assert!(
            schemas.iter().all(|schema| links.contains(schema)),
            "{command}: {links:?} lacks one of {schemas:?}"
        );
    }
    let linked: Vec<_> = sections.iter().flat_map(|(_, text)| links(text)).collect();
    let lost: Vec<_> = files().keys().filter(|name| !linked.contains(&name.as_str())).collect();
    assert!(lost.is_empty(), "docs/json.md does not link {lost:?}");
}

#[test]
fn the_examples_are_as_their_schemas_say() {
    let document = document();
    let mut held = 0;
    for (heading, text) in sections(&document) {
        for example in text.split("```json\n").skip(1) {
            let example: serde_json::Value =
                serde_json::from_str(example.split_once("```").unwrap().0).unwrap();
            let schema = links(text)[0];
            let has_line =
                files()[schema]["$defs"]["line"].is_object() && example["format"].is_null();
            let place = if has_line { format!("{schema}#/$defs/line") } else { schema.to_owned() };
            let found = faults(&place, &[example]);
            assert!(found.is_empty(), "the example of {heading}: {}", found.join("\n"));
            held += 1;
        }
    }
    assert!(held >= 4, "the document has examples");
}
