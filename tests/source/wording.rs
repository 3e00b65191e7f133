//! Words that made readers stop stay out of everything that a person reads: documents, manual pages and messages.

use std::fs;
use std::path::Path;

use crate::rust_source::Source;

/// A phrase in lower case, and what to write in its place. Each is wrong wherever it stands, so that the test has no false
/// alarms. Patterns that need judgement are for reviewers.
const BANNED: [(&str, &str); 20] = [
    ("turned away", "rejected"),
    ("for ever", "never expires"),
    ("anew", "again"),
    ("throw-away server", "temporary local Redis"),
    ("private server", "temporary local Redis"),
    ("foretold", "predicted"),
    ("foretells", "predicts"),
    ("still at it", "still running"),
    ("is at it", "is still running"),
    ("made by hand", "run manually"),
    ("take back an operation", "undo an operation"),
    ("taken anew", "re-acquired"),
    ("nobody's", "unrecognised"),
    ("is no string", "is not a string"),
    ("what stands there", "the current value"),
    ("what stood there", "the previous value"),
    ("what is left is", "the remaining ... are"),
    ("proves nothing", "idemctl cannot rely on it"),
    ("nobody saw that", "not verified"),
    ("as far as the schemas tell", "according to the schemas"),
];

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// The files of a folder whose names end so, by their paths in the project.
fn files(folder: &str, ends: &[&str]) -> Vec<String> {
    let mut files = Vec::new();
    for entry in fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join(folder)).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if ends.iter().any(|end| name.ends_with(end)) {
            files.push(format!("{folder}/{name}"));
        }
    }
    files
}

/// The text of a document without code, which may show the output of other programs.
fn prose(document: &str) -> String {
    let mut prose = String::new();
    for (index, part) in document.split("\n```").enumerate() {
        if index % 2 == 0 {
            for (index, text) in part.split('`').enumerate() {
                prose.push_str(if index % 2 == 0 { text } else { " " });
            }
        }
        prose.push('\n');
    }
    prose
}

/// The banned phrases in a text, with what to write in their place.
fn banned_in(text: &str) -> Vec<String> {
    let words: Vec<_> = text.split_whitespace().collect();
    let text = words.join(" ").to_lowercase();
    let mut found = Vec::new();
    for (phrase, better) in BANNED {
        for (at, _) in text.match_indices(phrase) {
            let is_part_of_a_word = |next: Option<char>| next.is_some_and(char::is_alphanumeric);
            let before = text[..at].chars().next_back();
            let after = text[at + phrase.len()..].chars().next();
            if !is_part_of_a_word(before) && !is_part_of_a_word(after) {
                found.push(format!("`{phrase}`, write `{better}`"));
            }
        }
    }
    found
}

#[test]
fn banned_phrases_are_found_as_whole_words() {
    assert_eq!(banned_in("It is\nForetold here."), ["`foretold`, write `predicted`"]);
    assert_eq!(banned_in("renewed, forever"), [""; 0]);
    assert_eq!(prose("a `b` c\n```\nanew\n```\nd"), "a   c\n\n\nd\n");
}

#[test]
fn documents_manual_pages_and_messages_have_no_banned_phrases() {
    let mut documents = vec![
        "README.md".to_owned(),
        "CONTRIBUTING.md".to_owned(),
        "SHORTCOMINGS.md".to_owned(),
        "SECURITY.md".to_owned(),
        "STABILITY.md".to_owned(),
        "lua/README.md".to_owned(),
        "lua/reference/README.md".to_owned(),
    ];
    documents.extend(files("docs", &[".md"]));
    let mut found = Vec::new();
    for document in documents {
        for phrase in banned_in(&prose(&read(&document))) {
            found.push(format!("{document}: {phrase}"));
        }
    }
    // The manual pages have the text of every --help page.
    for page in files("man", &[".1", ".5", ".7"]) {
        for phrase in banned_in(&read(&page)) {
            found.push(format!("{page}: {phrase}"));
        }
    }
    for source in Source::of_crate() {
        for message in &source.strings {
            // A single word may be a name in JSON.
            if !message.contains(' ') {
                continue;
            }
            for phrase in banned_in(message) {
                found.push(format!("{}: {phrase}: {message}", source.file));
            }
        }
    }
    assert!(found.is_empty(), "{} banned phrases:\n{}", found.len(), found.join("\n"));
}
