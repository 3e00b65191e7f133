//! The command lines that idemctl prints: each leads to the server that was named.

use std::process::Command;

use super::run::Run;

/// Options that say which server, each with a value that has no secrets.
const SERVER: [&str; 8] =
    ["--context", "--config", "-h", "-p", "-s", "--sentinel", "--master-name", "-n"];

/// Subcommands that need no server, whatever was named.
const ALONE: [&str; 10] = [
    "help",
    "schema list",
    "schema show",
    "backup",
    "man",
    "completions",
    "context set",
    "context list",
    "context use",
    "context remove",
];

/// The command lines between backticks on stdout and stderr, without the program's name.
pub fn command_lines(run: &Run) -> Vec<String> {
    let mut lines = Vec::new();
    let mut texts = vec![run.stderr.clone()];
    // In JSON a command line is a part of a text, which escapes quotes of its own.
    let documents =
        serde_json::Deserializer::from_slice(&run.stdout).into_iter::<serde_json::Value>();
    match documents.collect::<Result<Vec<_>, _>>() {
        Ok(documents) => documents.iter().for_each(|document| add_texts(document, &mut texts)),
        Err(_) => texts.push(run.text()),
    }
    for text in texts {
        for part in text.split("`idemctl ").skip(1) {
            if let Some((words, _)) = part.split_once('`') {
                lines.push(words.to_owned());
            }
        }
    }
    lines
}

fn add_texts(value: &serde_json::Value, texts: &mut Vec<String>) {
    match value {
        serde_json::Value::String(text) => texts.push(text.clone()),
        serde_json::Value::Array(values) => values.iter().for_each(|value| add_texts(value, texts)),
        serde_json::Value::Object(fields) => {
            fields.values().for_each(|value| add_texts(value, texts))
        }
        _ => {}
    }
}

/// True if the subcommand of this line needs no server.
pub fn needs_no_server(line: &str) -> bool {
    ALONE.iter().any(|alone| line.starts_with(alone))
}

fn word_of(text: &str) -> &str {
    text.split(' ').next().unwrap_or_default()
}

/// Asserts that every command line that a run printed names the server that the run was told to work on.
pub fn lead_back(command: &Command, run: &Run) {
    let given: Vec<_> =
        command.get_args().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut named = Vec::new();
    for pair in given.windows(2).take_while(|pair| pair[0] != "--") {
        if SERVER.contains(&pair[0].as_str()) {
            named.push(format!("{} {}", pair[0], pair[1]));
        }
    }
    // `context set` writes these options into the context, and its hints name the context.
    if given.windows(2).any(|pair| pair == ["context", "set"]) {
        named.retain(|named| named.starts_with("--config"));
    }
    for line in command_lines(run) {
        if needs_no_server(&line) {
            continue;
        }
        // A context is named by the argument, and stores how to connect.
        if let Some((_, set)) = line.split_once("context set ")
            && named.iter().any(|named| *named == format!("--context {}", word_of(set)))
        {
            continue;
        }
        // The operation of another server is undone there.
        let is_elsewhere = line.starts_with('-') && line.contains(" undo ");
        for named in named.iter().filter(|named| !is_elsewhere || named.starts_with("--config")) {
            assert!(
                line.contains(named),
                "{given:?} printed `idemctl {line}`, which does not say {named}"
            );
        }
    }
}
