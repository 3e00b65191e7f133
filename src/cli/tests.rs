//! The command line as a whole.

use super::*;

#[test]
fn the_command_line_is_sound() {
    command().debug_assert();
}

#[test]
fn a_command_is_listed_by_the_first_line_of_its_help() {
    let listed = Root::command();
    let built = command();
    for command in listed.get_subcommands() {
        let own = built.find_subcommand(command.get_name()).and_then(clap::Command::get_about);
        assert!(own.is_some(), "{}", command.get_name());
        assert_eq!(command.get_about().map(ToString::to_string), own.map(ToString::to_string));
    }
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
        assert_eq!(shown(parse(&words)), shown(Root::try_parse_from(&words)), "{line}");
    }
}
