//! `tests/yardstick/` lists what a user or a script can see: every option, exit code, JSON field and message. Its diff shows
//! what a change adds and takes away. `make generate` writes it.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use clap::Command;
use idemctl::exit::Exit;
use proc_macro2::{Delimiter, TokenStream, TokenTree};
use serde_json::Value;
use syn::LitStr;

use crate::generated::hold;
use crate::rust_source::Source;

/// A message has at least so many words.
const WORDS: usize = 3;

/// One line per positional argument and option of each command, with its value and the words that it takes.
fn options() -> String {
    let mut lines = Vec::new();
    collect_options(&idemctl::cli::command(), "", &mut lines);
    lines.concat()
}

fn collect_options(command: &Command, path: &str, lines: &mut Vec<String>) {
    for arg in command.get_arguments() {
        // The options of all commands are those of the root.
        if arg.is_global_set() && !path.is_empty() {
            continue;
        }
        let words: Vec<_> = arg.get_possible_values();
        let words: Vec<_> = words.iter().map(|value| value.get_name()).collect();
        let words = if words.is_empty() { String::new() } else { format!(" {}", words.join("|")) };
        lines.push(format!("idemctl{path} {arg}{words}\n"));
    }
    for subcommand in command.get_subcommands() {
        lines.push(format!("idemctl{path} {}\n", subcommand.get_name()));
        collect_options(subcommand, &format!("{path} {}", subcommand.get_name()), lines);
    }
}

fn exit_codes() -> String {
    let line = |(exit, meaning): (Exit, &str)| format!("{} {meaning}\n", exit.code());
    Exit::ALL.map(line).concat()
}

/// One line per field that `docs/schema/` describes, with its types, or the words that it has.
fn json() -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/schema");
    let mut lines = BTreeSet::new();
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let schema: Value = serde_json::from_slice(&fs::read(&path).unwrap()).unwrap();
        collect_fields(&schema, path.file_name().unwrap().to_str().unwrap(), &mut lines);
    }
    lines.into_iter().collect()
}

fn collect_fields(schema: &Value, place: &str, lines: &mut BTreeSet<String>) {
    match schema {
        Value::Object(members) => {
            if let Some(Value::Object(fields)) = members.get("properties") {
                for (name, field) in fields {
                    lines.insert(format!("{place} {name} {}\n", kind(field)));
                }
            }
            for (name, member) in members {
                collect_fields(member, &format!("{place}/{name}"), lines);
            }
        }
        Value::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                collect_fields(item, &format!("{place}/{index}"), lines);
            }
        }
        _ => {}
    }
}

fn kind(field: &Value) -> String {
    for word in ["const", "enum", "$ref", "type"] {
        if let Some(value) = field.get(word) {
            return value.to_string();
        }
    }
    "any".to_owned()
}

/// The texts of three words or more in the strings of `src/`, one per line, sorted.
fn messages() -> String {
    let mut found = BTreeSet::new();
    for source in Source::of_crate() {
        let tokens = source.text.parse().unwrap_or_else(|error| panic!("{}: {error}", source.file));
        collect_messages(tokens, &mut found);
    }
    found.into_iter().map(|text| text + "\n").collect()
}

/// True at the body or the semicolon with which an item ends.
fn ends_item(token: &TokenTree) -> bool {
    match token {
        TokenTree::Group(group) => group.delimiter() == Delimiter::Brace,
        TokenTree::Punct(mark) => mark.as_char() == ';',
        _ => false,
    }
}

fn collect_messages(tokens: TokenStream, found: &mut BTreeSet<String>) {
    let mut tokens = tokens.into_iter().peekable();
    while let Some(token) = tokens.next() {
        match token {
            TokenTree::Punct(mark) if mark.as_char() == '#' => {
                // An attribute of the file has a `!` before its brackets.
                if matches!(tokens.peek(), Some(TokenTree::Punct(_))) {
                    tokens.next();
                }
                let Some(TokenTree::Group(attribute)) = tokens.peek() else { continue };
                let text = attribute.stream().to_string();
                let is_doc = text.starts_with("doc");
                let is_for_tests = text == "cfg (test)";
                if is_doc || is_for_tests {
                    tokens.next();
                }
                if is_for_tests {
                    tokens.by_ref().find(ends_item);
                }
            }
            TokenTree::Group(group) => collect_messages(group.stream(), found),
            TokenTree::Literal(literal) => {
                if let Ok(text) = syn::parse_str::<LitStr>(&literal.to_string())
                    && text.value().split_whitespace().count() >= WORDS
                {
                    found.insert(text.value().replace('\n', "\\n"));
                }
            }
            _ => {}
        }
    }
}

#[test]
fn the_yardstick_is_fresh() {
    let files = [
        ("options.txt", options()),
        ("exit-codes.txt", exit_codes()),
        ("json.txt", json()),
        ("messages.txt", messages()),
    ];
    hold("tests/yardstick", &files.map(|(name, text)| (name.to_owned(), text.into_bytes())).into());
}

#[test]
fn a_message_is_found_wherever_it_is_written() {
    let text = "//! a doc comment of the file\n/// a doc comment here\nfn f() { bail!(\"cannot read {}: {error}\", \"too short\"); }\n\
                #[error(\"no such key here\")] struct E;\n#[cfg(test)] mod tests { const A: &str = \"only for a test\"; }\n\
                const B: &str = \"lines of a\n text\"; #[cfg(test)] mod other; const C: &str = \"the last one.\";";
    let mut found = BTreeSet::new();
    collect_messages(text.parse().unwrap(), &mut found);
    let wanted =
        ["cannot read {}: {error}", "lines of a\\n text", "no such key here", "the last one."];
    assert_eq!(found, wanted.map(str::to_owned).into());
}
