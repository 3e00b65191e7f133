//! The help pages. A command's own options and examples fit on one screen; shared options have
//! pages of their own.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use clap::builder::StyledStr;
use clap::{Arg, Command};

use crate::args::without;
use crate::cli::{command, topics};
use crate::domain::command_row::COMMANDS;
use crate::exit::Exit;
use crate::render::escape;
use crate::render::style::Color;
use crate::terminal::ui::Ui;

/// The headings of the options that commands share, and the page that explains them.
const SHARED: [(&str, &str); 6] = [
    ("Change", "changes"),
    ("Schemas", "schemas"),
    ("Connection", "connection"),
    ("TLS", "connection"),
    ("Display", "output"),
    ("Scan", "scans"),
];

/// Examples come before options, because most readers look for them.
const PAGE: &str =
    "{about-with-newline}\n{usage-heading} {usage}\n{before-help}{all-args}{after-help}";

/// The first examples of the front page.
const FIRST: [&str; 3] = [
    "idemctl inspect KEY         why does a client get 409 again and again?",
    "idemctl force-unlock KEY    the worker that holds the lock is dead",
    "idemctl check               many locks are stuck; then: idemctl sweep --orphaned",
];

/// The maximum width of a page in columns.
const WIDTH: usize = 100;

/// Answers `help`, `help COMMAND` and `help TOPIC`.
pub(super) fn answer(words: &[OsString]) -> Exit {
    if let Some(page) = asked(&command(), words) {
        return show(&page);
    }
    let mut ui = Ui::new(Color::Auto);
    let asked: Vec<_> = words.iter().map(|word| escape::text(word.as_bytes())).collect();
    ui.error(&format!("there is no help on `{}`", asked.join(" ")));
    ui.hint("`idemctl help` lists the commands and the topics");
    Exit::Usage
}

/// Answers `WORDS --help`.
pub(super) fn show_one_screen(words: &[OsString]) -> Exit {
    show(&on_one_screen(&command(), words))
}

fn show(page: &StyledStr) -> Exit {
    let mut ui = Ui::new(Color::Auto);
    let text = if ui.is_colored() { page.ansi().to_string() } else { page.to_string() };
    // A closed pipe, as in `--help | head`, is not an error.
    if ui.data(format!("{}\n", text.trim_end())).is_ok() {
        let _ = ui.flush();
    }
    Exit::Done
}

/// The page for `help WORDS`, which is a topic or the complete help of a command; `None` for other
/// words.
fn asked(root: &Command, words: &[OsString]) -> Option<StyledStr> {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    if let [word] = &words[..]
        && let Some(topic) = topics::page(root, word)
    {
        return Some(topic);
    }
    let (command, name) = find(root, &words);
    let asked = words.iter().filter(|word| !word.starts_with('-')).count();
    // A word that names no command gets an error, not the page of the command before it.
    if name.split_whitespace().count() < asked {
        return None;
    }
    Some(if name.is_empty() { of_root(command) } else { whole(command) })
}

/// The possible next words after `idemctl help`, if the last word is incomplete.
pub(super) fn begun(root: &Command, typed: &[OsString]) -> Vec<String> {
    let words: Vec<_> = typed.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let mut complete = match words.iter().position(|word| word == "help") {
        Some(help) => words[help + 1..].to_vec(),
        None => Vec::new(),
    };
    complete.pop();
    let (command, _) = find(root, &complete);
    let mut names = Vec::new();
    for inner in command.get_subcommands() {
        names.push(inner.get_name().to_owned());
    }
    if complete.is_empty() {
        for (topic, _) in topics::TOPICS {
            names.push(topic.to_owned());
        }
    }
    names
}

/// The page for `WORDS --help`, which fits on one screen.
fn on_one_screen(root: &Command, words: &[OsString]) -> StyledStr {
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy().into_owned()).collect();
    let (command, name) = find(root, &words);
    if name.is_empty() {
        return of_root(command);
    }
    let footer = format!(
        "`idemctl help {name}` has all details, `idemctl help TOPIC` the shared options:{}",
        shared(command)
    );
    let page = page(command, &SHARED.map(|(heading, _)| heading));
    page.mut_args(without_long_lists).after_help(footer).render_help()
}

/// The option without its possible values, if they are too many for one screen.
fn without_long_lists(option: Arg) -> Arg {
    if option.get_possible_values().len() > 7 { option.hide_possible_values(true) } else { option }
}

/// The innermost command that the words name, and its name after `idemctl`.
fn find<'a>(root: &'a Command, words: &[String]) -> (&'a Command, String) {
    let mut found = (root, Vec::new());
    for word in words {
        if let Some(inner) = found.0.find_subcommand(word) {
            found.1.push(inner.get_name());
            found.0 = inner;
        }
    }
    (found.0, found.1.join(" "))
}

/// The complete help of a command, except for the connection options.
fn whole(command: &Command) -> StyledStr {
    let template = PAGE
        .replace("{about-with-newline}", "{about-with-newline}\n")
        .replace("\n\n{usage", "\n{usage");
    // Every command has these options, so they have pages of their own.
    page(command, &["Connection", "TLS", "Display"])
        .help_template(template)
        .after_long_help("Connection options: idemctl help connection")
        .render_long_help()
}

/// The page that `idemctl` prints: first what most readers look for, then every command.
fn of_root(root: &Command) -> StyledStr {
    let about = root.get_about().unwrap_or_default();
    let mut page = format!("{about}\nUsage: idemctl [OPTIONS] COMMAND\n{}\n\n", FIRST.join("\n"));
    let mut last = None;
    for row in COMMANDS {
        let Some(command) = root.find_subcommand(row.name) else { continue };
        let heading = if last == Some(row.group) { "" } else { row.group.heading() };
        last = Some(row.group);
        let about = command.get_about().unwrap_or_default();
        page.push_str(&format!("{heading:<8}{:<14}{about}\n", row.name));
    }
    let topics: Vec<_> = topics::TOPICS.iter().map(|(name, _)| *name).collect();
    let topics = topics.join(" ");
    page.push_str(&format!("\nidemctl help COMMAND, or idemctl help TOPIC:\n        {topics}\n"));
    page.into()
}

/// The command's help without the options under these headings.
fn page(command: &Command, hidden: &[&str]) -> Command {
    without(command.clone(), hidden).max_term_width(WIDTH).help_template(PAGE)
}

/// The pages that explain the options that a command shares with others.
fn shared(command: &Command) -> String {
    let mut lines = String::new();
    for topic in ["changes", "schemas", "scans", "connection", "output"] {
        let mut names = Vec::new();
        for option in command.get_arguments() {
            if topic_of(option) == Some(topic) {
                names.push(name(option));
            }
        }
        if !names.is_empty() {
            lines.push_str(&format!("\n  {topic:<12}{}", few(&names)));
        }
    }
    lines
}

fn topic_of(option: &Arg) -> Option<&'static str> {
    let heading = option.get_help_heading()?;
    for (shared, topic) in SHARED {
        if shared == heading {
            return Some(topic);
        }
    }
    None
}

fn name(option: &Arg) -> String {
    match (option.get_short(), option.get_long()) {
        (Some(short), Some(long)) => format!("-{short}/--{long}"),
        (_, Some(long)) => format!("--{long}"),
        (Some(short), None) => format!("-{short}"),
        (None, None) => option.get_id().to_string(),
    }
}

/// As many names as fit on a line.
fn few(names: &[String]) -> String {
    let mut line = String::new();
    for name in names {
        if line.len() + name.len() > 72 {
            return line + ", …";
        }
        line = if line.is_empty() { name.clone() } else { format!("{line}, {name}") };
    }
    line
}

/// The example command lines of a command, by its name after `idemctl`.
pub(super) fn of(command: &str) -> &'static [&'static str] {
    let row = COMMANDS.iter().find(|row| row.name == command);
    row.map_or(&[], |row| row.examples)
}

/// The command and all its subcommands with their examples; `name` is its name after `idemctl`.
pub(super) fn added_to(command: Command, name: &str) -> Command {
    let lines: String = of(name).iter().map(|line| format!("\n  {line}")).collect();
    let command = if lines.is_empty() {
        command
    } else {
        command.before_help(format!("\nExamples:{lines}\n"))
    };
    command.mut_subcommands(|inner| {
        let name = format!("{name} {}", inner.get_name());
        added_to(inner, name.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All commands with their names after `idemctl`.
    fn commands(command: &Command, name: &str, all: &mut Vec<(String, Command)>) {
        for inner in command.get_subcommands().filter(|inner| !inner.is_hide_set()) {
            let name = format!("{name} {}", inner.get_name()).trim().to_owned();
            all.push((name.clone(), inner.clone()));
            commands(inner, &name, all);
        }
    }

    #[test]
    fn every_command_fits_on_a_screen_and_has_two_examples() {
        let root = command();
        let mut all = Vec::new();
        commands(&root, "", &mut all);
        assert!(all.len() > 20);
        for (name, _) in all {
            let words: Vec<OsString> = name.split(' ').map(OsString::from).collect();
            let page = on_one_screen(&root, &words).to_string();
            assert!(page.lines().count() <= 50, "{name}: {} lines\n{page}", page.lines().count());
            assert!(of(&name).len() >= 2, "{name} has no examples");
        }
    }
}

#[cfg(test)]
mod examples_tests {
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn every_example_is_a_line_of_its_command() {
        let root = command();
        for row in COMMANDS {
            for example in row.examples {
                let words = example.split(" > ").next().unwrap_or_default().replace('\'', "");
                let parsed = root.clone().try_get_matches_from(words.split_whitespace());
                let sound = parsed
                    .as_ref()
                    .map_or_else(|error| error.kind() == ErrorKind::DisplayHelp, |_| true);
                assert!(sound, "{example}: {parsed:?}");
                assert!(example.contains(row.name), "{example} is no example of {}", row.name);
            }
        }
    }

    #[test]
    fn the_front_page_has_every_command_on_a_small_screen() {
        let root = command();
        let page = of_root(&root).to_string();
        assert!(page.lines().count() <= 40, "{page}");
        for line in page.lines() {
            assert!(line.chars().count() <= 80, "{line}");
        }
        for command in root.get_subcommands().filter(|command| !command.is_hide_set()) {
            let name = format!(" {} ", command.get_name());
            assert!(page.lines().any(|line| line.contains(&name)), "{name}\n{page}");
        }
    }
}
