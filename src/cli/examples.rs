//! Command lines that use a command: for its help and its manual page. They stand in `examples.txt`, each below its command.

use clap::Command;

const EXAMPLES: &str = include_str!("examples.txt");

/// The command lines for a command, by its name behind `idemctl`.
pub(super) fn of(command: &str) -> impl Iterator<Item = &'static str> {
    let below = EXAMPLES.lines().skip_while(move |line| *line != command).skip(1);
    below.map_while(|line| line.strip_prefix("    "))
}

/// The command with its examples, and so each command in it; `name` is its name behind `idemctl`.
pub(super) fn added_to(command: Command, name: &str) -> Command {
    let lines: String = of(name).map(|line| format!("\n  {line}")).collect();
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
    use clap::error::ErrorKind;

    use super::*;

    #[test]
    fn every_example_is_a_line_of_its_command() {
        let root = crate::cli::command();
        let mut command = "";
        for line in EXAMPLES.lines() {
            let Some(example) = line.strip_prefix("    ") else {
                command = line;
                continue;
            };
            let words = example.split(" > ").next().unwrap_or_default().replace('\'', "");
            let parsed = root.clone().try_get_matches_from(words.split_whitespace());
            let sound = parsed
                .as_ref()
                .map_or_else(|error| error.kind() == ErrorKind::DisplayHelp, |_| true);
            assert!(sound, "{example}: {parsed:?}");
            assert!(example.contains(command), "{example} is no example of {command}");
        }
    }
}
