//! A seeded server of its own, and what the commands write on that server.

use std::collections::BTreeSet;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::Value;

use super::validator::faults;
use crate::simulate::variant::{command, home};
use crate::support::{Run, Running as _, Runs as _, Signal};

/// A form of JSON of a command: the command, the schema, and `json` or `jsonl`.
pub type Form = (String, String, &'static str);

pub struct Stage {
    home: tempfile::TempDir,
    sandbox: Child,
    url: String,
    seen: BTreeSet<Form>,
}

impl Stage {
    /// Twenty records of each schema in mixed states, healthy and sick.
    pub fn start() -> Self {
        let home = home();
        let words = ["sandbox", "--seed", "20"];
        let mut sandbox = command(home.path(), &words)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(sandbox.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let url = line.trim_end().strip_prefix("IDEMCTL_URL=").expect(&line).to_owned();
        Self { home, sandbox, url, seen: BTreeSet::new() }
    }

    pub fn home(&self) -> &Path {
        self.home.path()
    }

    /// The URL of the server.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Writes a file of the home; gives its path.
    pub fn file(&self, name: &str, text: impl AsRef<[u8]>) -> String {
        let path = self.home().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path.display().to_string()
    }

    /// The backups, the oldest first.
    pub fn backups(&self) -> Vec<PathBuf> {
        let folder = fs::read_dir(self.home().join(".local/state/idemctl/backups")).unwrap();
        let mut files: Vec<_> = folder.map(|entry| entry.unwrap().path()).collect();
        files.sort();
        files
    }

    /// Sends the server one plain command.
    pub fn send(&self, words: &[&[u8]]) {
        let mut connection = redis::Client::open(self.url.as_str())
            .and_then(|client| client.get_connection())
            .unwrap();
        let mut sent = redis::Cmd::new();
        words.iter().for_each(|word| {
            sent.arg(*word);
        });
        sent.exec(&mut connection).unwrap();
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command(self.home(), words);
        command.env("IDEMCTL_URL", &self.url);
        command
    }

    pub fn run(&self, words: &[&str]) -> Run {
        self.command(words).run()
    }

    /// Runs a command once for each form, and holds what the command writes against the schema; gives the document.
    pub fn writes(&mut self, of: &str, schema: &str, words: &[&str]) -> Value {
        let document = self.document(of, schema, words);
        self.lines(of, schema, words);
        document
    }

    /// Runs a command with `-o json`, and holds the document against the schema.
    pub fn document(&mut self, of: &str, schema: &str, words: &[&str]) -> Value {
        let document = self.output(of, words, "json").json();
        self.hold(of, schema, ("json", schema), std::slice::from_ref(&document));
        document
    }

    /// Runs a command with `-o jsonl`, and holds each line against the schema.
    pub fn lines(&mut self, of: &str, schema: &str, words: &[&str]) -> Vec<Value> {
        let lines = self.output(of, words, "jsonl").json_lines();
        self.hold(of, schema, ("jsonl", &format!("{schema}#/$defs/line")), &lines);
        lines
    }

    fn output(&self, of: &str, words: &[&str], form: &str) -> Run {
        self.run(&[&of.split(' ').collect::<Vec<_>>(), words, &["-o", form]].concat())
    }

    fn hold(
        &mut self,
        of: &str,
        file: &str,
        (form, schema): (&'static str, &str),
        values: &[Value],
    ) {
        let found = faults(schema, values);
        assert!(found.is_empty(), "{of} -o {form}:\n{}", found.join("\n"));
        if !values.is_empty() {
            self.seen.insert((of.to_owned(), file.to_owned(), form));
        }
    }

    /// The forms in which something was written, and held against its schema.
    pub fn seen(&self) -> &BTreeSet<Form> {
        &self.seen
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.sandbox.signal(Signal::TERM);
        let _ = self.sandbox.wait();
    }
}
