//! Every link from one document of the project to another leads to a file, and to a heading, that is there; README stays a door.

use std::fs;
use std::path::{Path, PathBuf};

/// The documents of the project: Markdown in its root, in `docs/` and in `lua/`.
fn documents() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    ["", "docs", "lua", "lua/reference"]
        .iter()
        .flat_map(|folder| fs::read_dir(root.join(folder)).unwrap())
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|end| end == "md"))
        .collect()
}

/// The targets of the links `[text](target)` of a document that lead to files of the project.
fn targets(text: &str) -> impl Iterator<Item = &str> {
    text.split("](")
        .skip(1)
        .filter_map(|rest| rest.split_once(')').map(|(target, _)| target))
        .filter(|target| !target.contains("://") && !target.contains(' '))
}

/// The name by which a heading is linked: lower case, hyphens for spaces, no punctuation.
fn anchor(heading: &str) -> String {
    heading
        .trim_start_matches('#')
        .trim()
        .to_lowercase()
        .chars()
        .filter(|letter| letter.is_alphanumeric() || matches!(letter, ' ' | '-' | '_'))
        .map(|letter| if letter == ' ' { '-' } else { letter })
        .collect()
}

fn has_heading(document: &Path, wanted: &str) -> bool {
    fs::read_to_string(document)
        .unwrap()
        .lines()
        .any(|line| line.starts_with('#') && anchor(line) == wanted)
}

/// What is wrong with a link of a document, if anything.
fn broken(document: &Path, target: &str) -> Option<String> {
    let (file, heading) = target.split_once('#').unwrap_or((target, ""));
    let leads_to =
        if file.is_empty() { document.to_owned() } else { document.parent().unwrap().join(file) };
    let there = leads_to.exists() && (heading.is_empty() || has_heading(&leads_to, heading));
    (!there).then(|| format!("{}: {target}", document.display()))
}

#[test]
fn every_link_leads_somewhere() {
    let broken: Vec<_> = documents()
        .iter()
        .flat_map(|document| {
            let text = fs::read_to_string(document).unwrap();
            targets(&text).filter_map(|target| broken(document, target)).collect::<Vec<_>>()
        })
        .collect();
    assert!(broken.is_empty(), "{broken:#?}");
}

#[test]
fn every_document_is_named_in_the_readme() {
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let unnamed: Vec<_> = documents()
        .into_iter()
        .map(|document| document.strip_prefix(root).unwrap().display().to_string())
        .filter(|document| document != "README.md" && !readme.contains(&format!("]({document})")))
        .collect();
    assert!(unnamed.is_empty(), "README leads to every document: {unnamed:?}");
}

#[test]
fn the_readme_is_read_in_one_sitting() {
    let readme =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let lines = readme.lines().count();
    assert!(lines <= 200, "README has {lines} lines, more than 200: the rest belongs in docs/");
}
