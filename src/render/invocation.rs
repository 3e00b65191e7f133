//! Command lines that idemctl prints. Each addresses the server of this run, and is safe to paste
//! into a shell.

use std::borrow::Cow;
use std::fmt::Display;

use crate::domain::command_row::{CommandRow, Repeats, row_of};
use crate::domain::record::{Record, RecordName};

/// The placeholder for the name of a record in advice.
const KEY: &str = "KEY";

/// The common part of all command lines that idemctl prints: the options for the server and the
/// schemas of this run. All words are quoted for a shell.
#[derive(Debug, Clone, Default)]
pub struct Invocation {
    server: Vec<String>,
    schema_dir: Vec<String>,
    /// `--schema` and `--prefix`, which belong together, or only `--schema` if the run reads
    /// schemas that are read only if they are named.
    prefix: Vec<String>,
    /// The words of this run.
    run: RunWords,
}

/// The words of a run that printed command lines and the audit log repeat.
#[derive(Debug, Clone, Default)]
pub struct RunWords {
    /// The subcommand with its own options and arguments, without `--schema`.
    pub own: Vec<String>,
    /// The options that select records, each as `--name value`.
    pub filters: Vec<String>,
    /// Those of the filters that depend on the contents of records.
    pub selection: Vec<String>,
}

impl Invocation {
    /// Adds an option for the connection, if it has a value.
    pub(crate) fn option(&mut self, name: &str, value: Option<impl Display>) {
        self.server.extend(option(name, value));
    }

    /// Adds a flag for the connection, if it is set.
    pub(crate) fn flag(&mut self, name: &str, is_set: bool) {
        if is_set {
            self.server.push(name.to_owned());
        }
    }

    /// Sets the directory of schemas, and the prefix that was given together with its schema.
    pub(crate) fn set_schemas(
        &mut self,
        schema_dir: Option<impl Display>,
        prefix: Option<(&str, &str)>,
    ) {
        self.schema_dir = option("--schema-dir", schema_dir);
        let (schema, prefix) = prefix.unzip();
        self.prefix = [option("--schema", schema), option("--prefix", prefix)].concat();
    }

    /// Sets the schemas of this run, because other runs read one of them only if it is named. A
    /// schema that was given together with a prefix is repeated already.
    pub(crate) fn set_named_schemas(&mut self, schemas: &[String]) {
        if self.prefix.is_empty() {
            self.prefix = option("--schema", Some(schemas.join(",")));
        }
    }

    /// A command line for a shell. `words` are the subcommand and its arguments, without quotes.
    pub fn command_line<W: AsRef<str>>(&self, words: impl IntoIterator<Item = W>) -> String {
        self.completed(&quoted(words).join(" "))
    }

    /// Sets the words of this run.
    pub(crate) fn set_run(&mut self, run: RunWords) {
        self.run = RunWords {
            own: quoted(run.own),
            filters: quoted(run.filters),
            selection: quoted(run.selection),
        };
    }

    /// The filters that depend on the contents of records, quoted for a shell; `None` if all
    /// records are selected.
    pub fn selection(&self) -> Option<String> {
        Some(self.run.selection.join(" ")).filter(|words| !words.is_empty())
    }

    /// The options of this run that select records, quoted for a shell; `None` if there are none.
    pub fn filters(&self) -> Option<String> {
        Some(self.run.filters.join(" ")).filter(|words| !words.is_empty())
    }

    /// The command line of this run with these options added.
    pub fn again(&self, options: &[String]) -> String {
        let Some((subcommand, own)) = self.run.own.split_first() else {
            return "idemctl".to_owned();
        };
        let mut line = vec![subcommand.clone()];
        line.extend(quoted(options));
        line.extend_from_slice(own);
        self.completed(&line.join(" "))
    }

    /// The command line that creates a context for the server of this run. A context cannot store
    /// `--askpass`, so the password must come from a file.
    pub(crate) fn making_a_context(&self) -> String {
        let mut line = "idemctl".to_owned();
        let mut needs_password = false;
        for word in &self.server {
            match word.as_str() {
                "--askpass" => needs_password = true,
                word => line = format!("{line} {word}"),
            }
        }
        line.push_str(" context set NEW-NAME");
        if needs_password {
            line.push_str(" --password-file FILE");
        }
        line
    }

    /// A complete command line around words that are already quoted for a shell.
    fn completed(&self, words: &str) -> String {
        let row = row_of(words).filter(|row| row.repeats != Repeats::Nothing);
        let Some(CommandRow { name, repeats, .. }) = row else {
            return format!("idemctl {words}");
        };
        let mut line = vec!["idemctl"];
        line.extend(self.server.iter().map(String::as_str));
        line.push(name);
        // Lines about the schemas of this run have their options already.
        if *repeats != Repeats::Server && !words.contains("--schema-dir") {
            line.extend(self.schema_dir.iter().map(String::as_str));
        }
        if *repeats == Repeats::Prefix {
            // Advice has a command line for each record, and few of these name a schema.
            let mut given = Vec::new();
            if words.contains("--schema") {
                given = shlex::split(words).unwrap_or_default();
            }
            let named = given.iter().skip_while(|word| *word != "--schema").nth(1);
            let has_prefix = given.iter().any(|word| word.starts_with("--prefix"));
            // If the command line names a schema, the prefix of another schema would be wrong.
            let inserted = match (named, self.prefix.as_slice()) {
                (None, prefix) => prefix,
                (Some(name), [_, schema, prefix @ ..])
                    if !has_prefix && argument(name) == *schema =>
                {
                    prefix
                }
                _ => &[],
            };
            line.extend(inserted.iter().map(String::as_str));
        }
        line.join(" ") + &words[name.len()..]
    }

    /// Completes each command line in a text, from `` `idemctl `` to the next backtick, so that it
    /// addresses the server of this run. A complete one stays unchanged, because it begins with an
    /// option.
    pub fn complete<'a>(&self, text: &'a str) -> Cow<'a, str> {
        const BEGINNING: &str = "`idemctl ";
        let is_bare =
            self.server.is_empty() && self.schema_dir.is_empty() && self.prefix.is_empty();
        // Without options there is nothing to insert. Most runs and most texts end here.
        if is_bare || !text.contains(BEGINNING) {
            return Cow::Borrowed(text);
        }
        let mut completed = String::with_capacity(text.len() + 64);
        let mut rest = text;
        while let Some(at) = rest.find(BEGINNING) {
            let (before, behind) = rest.split_at(at + BEGINNING.len());
            let (words, after) = behind.split_at(behind.find('`').unwrap_or(behind.len()));
            completed.push_str(&before[..at + 1]);
            completed.push_str(&self.completed(words));
            rest = after;
        }
        completed.push_str(rest);
        Cow::Owned(completed)
    }

    /// Inserts the record's name and the server into the command lines of its findings' advice.
    pub fn fill_in_advice(&self, record: &mut Record) {
        if record.findings.is_empty() {
            return;
        }
        let name = argument_of(record);
        for finding in &mut record.findings {
            let named = named(&finding.advice, &name);
            finding.advice = self.complete(&named).into_owned();
        }
    }
}

/// Words quoted for a shell.
fn quoted<W: AsRef<str>>(words: impl IntoIterator<Item = W>) -> Vec<String> {
    words.into_iter().map(|word| self::word(word.as_ref())).collect()
}

fn option(name: &str, value: Option<impl Display>) -> Vec<String> {
    let Some(value) = value else { return Vec::new() };
    quoted(option_words(name, &value.to_string()))
}

/// An option and its value as separate words. A value that begins with `-` is joined to its long
/// option with `=`, because as a separate word it would read as an option.
pub fn option_words(name: &str, value: &str) -> Vec<String> {
    if value.starts_with('-') && name.starts_with("--") {
        return vec![format!("{name}={value}")];
    }
    vec![name.to_owned(), value.to_owned()]
}

/// The text with `name` in place of each `KEY` within a command line.
fn named(text: &str, name: &str) -> String {
    let mut named = String::with_capacity(text.len() + name.len());
    for (number, part) in text.split('`').enumerate() {
        if number > 0 {
            named.push('`');
        }
        // Every second part is between two backticks.
        let is_command_line = number % 2 == 1 && part.starts_with("idemctl ");
        if is_command_line {
            named.push_str(&part.replace(KEY, name))
        } else {
            named.push_str(part)
        }
    }
    named
}

/// The record's name as an argument for a shell.
pub fn argument_of(record: &Record) -> String {
    argument(&name_of(record))
}

/// The record's name without backticks, because backticks delimit command lines.
pub fn name_of(record: &Record) -> String {
    let name = RecordName::of(record);
    let text = name.text();
    if text.contains('`') { name.quoted().replace('`', "\\x60") } else { text }
}

/// A key or a name as an argument for a shell, with `--` before a text that begins like an option.
pub fn argument(text: &str) -> String {
    let word = word(text);
    if text.starts_with('-') { format!("-- {word}") } else { word }
}

/// A word of a command line, quoted if a shell would interpret it. The result is one line of
/// printable characters, whoever chose the text. Other characters become escapes of `$'…'`, which
/// bash, zsh and ksh read. This includes backticks, because a command line in a sentence ends with
/// one.
pub fn word(text: &str) -> String {
    if !text.contains('\0') && !text.chars().all(is_printed) {
        return ansi_c_quoted(text);
    }
    match shlex::try_quote(text) {
        Ok(quoted) => quoted.into_owned(),
        // No argument can contain a NUL.
        Err(_) => "''".to_owned(),
    }
}

fn is_printed(character: char) -> bool {
    match character {
        '`' => false,
        // `escape_debug` would escape these, although a terminal prints them.
        '"' | '\'' | '\\' => true,
        _ => character.escape_debug().count() == 1,
    }
}

fn ansi_c_quoted(text: &str) -> String {
    let mut quoted = String::from("$'");
    for character in text.chars() {
        match character {
            // Within `$'…'` only these two and control characters need an escape.
            '\'' | '\\' => quoted.extend(['\\', character]),
            '\n' => quoted.push_str("\\n"),
            '\r' => quoted.push_str("\\r"),
            '\t' => quoted.push_str("\\t"),
            _ if is_printed(character) => quoted.push(character),
            _ => {
                // Three octal digits are the maximum, so a digit after the escape cannot become a
                // part of it.
                for byte in character.encode_utf8(&mut [0; 4]).bytes() {
                    quoted.push_str(&format!("\\{byte:03o}"));
                }
            }
        }
    }
    quoted.push('\'');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn invocation() -> Invocation {
        let mut invocation = Invocation::default();
        invocation.option("-p", Some(7000));
        invocation.set_schemas(Some("my schemas"), Some(("express", "shop:")));
        invocation
    }

    #[test]
    fn each_command_line_of_a_text_is_completed_once() {
        let text = "see `idemctl list`, `idemctl log show`, `idemctl help list` and `--all`; idemctl is a program";
        let completed = "see `idemctl -p 7000 list --schema-dir 'my schemas' --schema express --prefix shop:`, `idemctl -p 7000 \
                         log show`, `idemctl help list` and `--all`; idemctl is a program";
        assert_eq!(invocation().complete(text), completed);
        assert_eq!(Invocation::default().complete(text), text);
        let of_another = invocation().complete("`idemctl list --schema go-chi`").into_owned();
        assert_eq!(of_another, "`idemctl -p 7000 list --schema-dir 'my schemas' --schema go-chi`");
        // The prefix belongs to this schema.
        let of_this = invocation().complete("`idemctl list --schema express`").into_owned();
        let options = "--schema-dir 'my schemas' --prefix shop: --schema express";
        assert_eq!(of_this, format!("`idemctl -p 7000 list {options}`"));
        let several = invocation().complete("`idemctl list --schema express,go-chi`").into_owned();
        assert!(!several.contains("shop:"), "{several}");
        let mut again = invocation();
        let own = ["sweep", "--orphaned"].map(str::to_owned).to_vec();
        again.set_run(RunWords { own, ..RunWords::default() });
        let again = again.again(&["--schema", "express", "--lock-ttl", "5m"].map(str::to_owned));
        let own = "--schema express --lock-ttl 5m --orphaned";
        assert_eq!(
            again,
            format!("idemctl -p 7000 sweep --schema-dir 'my schemas' --prefix shop: {own}")
        );
        let has_one = "`idemctl list --schema express --prefix other:`";
        assert!(!invocation().complete(has_one).contains("shop:"));
        let mut of_library = Invocation::default();
        of_library.set_named_schemas(&["idempo".to_owned()]);
        let unnamed = of_library.complete("`idemctl sweep --orphaned`").into_owned();
        assert_eq!(unnamed, "`idemctl sweep --schema idempo --orphaned`");
        let named = "`idemctl list --schema idempo`";
        assert_eq!(of_library.complete(named), named);
        let quoted = invocation().complete("`idemctl purge --reason 'x --schema y'`").into_owned();
        assert!(quoted.contains("--schema express --prefix shop: --reason"), "{quoted}");
    }

    #[test]
    fn a_command_line_that_is_complete_stays_as_it_is() {
        let line = format!("`{}`", invocation().command_line(["inspect", "a b"]));
        assert_eq!(
            line,
            "`idemctl -p 7000 inspect --schema-dir 'my schemas' --schema express --prefix shop: 'a b'`"
        );
        assert_eq!(invocation().complete(&line), line);
        assert_eq!(
            invocation().complete("`idemctl listen`, `idemctl "),
            "`idemctl listen`, `idemctl "
        );
    }

    /// Rule: a printed word is one line of printable characters, and a shell reads it back as the
    /// original text.
    #[test]
    fn a_word_is_printable_and_a_shell_reads_it_back() {
        for text in [
            "x'\n  Adopt  idemctl purge --all\x1b[8m #:",
            "e\u{202e}:",
            "a`id`\\",
            "tab\t1\r7",
            "é ünï",
            "$HOME",
        ] {
            let quoted = word(text);
            assert!(
                quoted.chars().all(|character| !character.is_control() && character != '\u{202e}'),
                "{quoted}"
            );
            assert!(!quoted.contains('`'), "{quoted}");
            let script = format!("printf %s {quoted}");
            let read = std::process::Command::new("bash").args(["-c", &script]).output().unwrap();
            assert_eq!(String::from_utf8(read.stdout).unwrap(), text, "{quoted}");
        }
    }

    #[test]
    fn a_value_that_begins_like_an_option_is_joined_to_its_option() {
        assert_eq!(option_words("--prefix", "-h:"), ["--prefix=-h:"]);
        assert_eq!(option_words("--prefix", "shop:"), ["--prefix", "shop:"]);
        let mut invocation = Invocation::default();
        invocation.set_schemas(None::<&str>, Some(("express", "-h:")));
        let line = invocation.command_line(["list"]);
        assert_eq!(line, "idemctl list --schema express '--prefix=-h:'");
    }

    #[test]
    fn a_key_that_a_client_chose_is_one_word() {
        for (key, shown) in [
            ("plain:1", "plain:1"),
            ("a;touch X;$(id)", "'a;touch X;$(id)'"),
            ("it's", "\"it's\""),
            ("-rf", "-- -rf"),
            ("~", "'~'"),
        ] {
            assert_eq!(argument(key), shown);
        }
        assert_eq!(
            named("a KEY: `idemctl force-unlock KEY` or `KEY`", "x"),
            "a KEY: `idemctl force-unlock x` or `KEY`"
        );
    }
}
