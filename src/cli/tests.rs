//! Tests of the complete command line.

use super::*;
use crate::domain::command_row::{COMMANDS, Repeats, row_of};

#[test]
fn the_command_line_is_sound() {
    command().debug_assert();
}

#[test]
fn commands_that_are_not_named_are_not_missed() {
    for line in [
        "idemctl inspect list --only-values",
        "idemctl --user list inspect k --key purge",
        "idemctl schema list -o json",
        "idemctl -n 3 purge --all --reason sweep -y --tls --key k",
        "idemctl frobnicate list",
        "idemctl --reason list",
        "idemctl list --help",
        "idemctl --version",
        "idemctl",
    ] {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let shown = |parsed: Result<Root, clap::Error>| match parsed {
            Ok(root) => format!("{root:?}"),
            Err(error) => error.to_string(),
        };
        assert_eq!(
            shown(parse(&words).map(|parsed| parsed.0)),
            shown(Root::try_parse_from(&words)),
            "{line}"
        );
    }
}

/// Rule: a printed command line has every option for the server and its schemas that its command
/// knows, and no others.
#[test]
fn command_lines_that_are_printed_have_the_options_that_commands_know() {
    let root = command();
    let knows = |command: &clap::Command, id: &str| {
        command.get_arguments().any(|argument| argument.get_id() == id)
    };
    for row in COMMANDS {
        let mut command = &root;
        for word in row.name.split(' ') {
            command = command
                .find_subcommand(word)
                .unwrap_or_else(|| panic!("there is no command {}", row.name));
        }
        // The prefix of `schema adopt` is that of the schema to adopt.
        let has_prefix =
            knows(command, "prefix") && knows(command, "schema") && row.name != "schema adopt";
        match row.repeats {
            Repeats::Nothing => {}
            Repeats::Server => assert!(!knows(command, "schema_dir"), "{}", row.name),
            Repeats::SchemaDir => assert!(knows(command, "schema_dir") && !has_prefix),
            Repeats::Prefix => assert!(knows(command, "schema_dir") && has_prefix, "{}", row.name),
        }
    }
    for command in root.get_subcommands() {
        assert_eq!(row_of(command.get_name()).map(|row| row.name), Some(command.get_name()));
    }
}

#[test]
fn the_own_words_of_a_run_are_those_of_its_subcommand() {
    for (line, own) in [
        (
            "idemctl -p 7000 purge --status 5xx,404 --since 1h -y -n 3",
            "purge --yes --newer-than 1h --status 5xx --status 404",
        ),
        (
            "idemctl sweep --orphaned --schema express --prefix a --dry-run",
            "sweep --orphaned --dry-run",
        ),
        ("idemctl purge --yes -- -k b", "purge --yes -- -k b"),
        ("idemctl list", "list"),
    ] {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let mut given = parse(&words).unwrap().2.own;
        let mut wanted: Vec<_> = own.split(' ').map(str::to_owned).collect();
        // The order of options has no meaning; keys come after all of them.
        let keys = given.iter().position(|word| word == "--").unwrap_or(given.len());
        given[..keys].sort();
        wanted[..keys].sort();
        assert_eq!(given, wanted, "{line}");
    }
}

#[test]
fn the_filters_of_a_run_are_the_options_that_choose_records() {
    for (line, filters) in [
        (
            "idemctl -p 7000 purge --status 5xx,404 --since 1h -y --reason x --rate 5/s --schema express --result-ttl 24h -o json",
            "--rate 5/s --result-ttl 24h --schema express --newer-than 1h --status 5xx --status 404",
        ),
        (
            "idemctl sweep --orphaned --include excess-ttl --owner-alive cmd --yes",
            "--orphaned --include excess-ttl",
        ),
        ("idemctl purge --yes --max 5 -- a b", "--max 5"),
        ("idemctl purge --body-contains secret", "--body-contains (6 bytes)"),
        ("idemctl complete k --status 201 --body secret --schema express", ""),
        ("idemctl restore --only k f", ""),
    ] {
        let words: Vec<OsString> = line.split(' ').map(OsString::from).collect();
        let given = parse(&words).unwrap_or_else(|error| panic!("{line}: {error}")).2.filters;
        let given = given.join(" ");
        // The order of options has no meaning.
        let options = |words: &str| {
            let mut options: Vec<_> =
                words.split("--").map(|option| option.trim().to_owned()).collect();
            options.sort();
            options
        };
        assert_eq!(options(&given), options(filters), "{line}");
    }
}
