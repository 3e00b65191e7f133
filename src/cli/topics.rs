//! The help pages for what commands share: connections, output, and terms.

use std::fmt::Write as _;

use clap::Command;
use clap::builder::StyledStr;

use crate::domain::diagnosis::FindingCode;
use crate::exit::Exit;

/// The topics of `idemctl help TOPIC`, each with its first line.
pub(super) const TOPICS: [(&str, &str); 8] = [
    ("incidents", "Eight incidents, and the commands that end them"),
    ("connection", "How idemctl finds the server and connects to it"),
    ("output", "Tables, CSV and JSON, colours, stdout and stderr"),
    ("exit-codes", "Meaning of the exit status of each command"),
    ("findings", "Problems that idemctl can report about a record"),
    ("schemas", "Services that idemctl knows, and the settings of a deployment"),
    ("scans", "How idemctl scans the keyspace, and how to limit the load"),
    ("changes", "How idemctl confirms, backs up, verifies and logs a change"),
];

const INCIDENTS: &str = include_str!("topics/incidents.txt");
const CONNECTION: &str = include_str!("topics/connection.txt");
const OUTPUT: &str = include_str!("topics/output.txt");
const SCHEMAS: &str = include_str!("topics/schemas.txt");
const CHANGES: &str = include_str!("topics/changes.txt");
const SCANS: &str = include_str!("topics/scans.txt");

/// The page of a topic.
pub(super) fn page(root: &Command, topic: &str) -> Option<StyledStr> {
    let (name, about) = TOPICS.iter().find(|(name, _)| *name == topic)?;
    let page = match *name {
        "incidents" => INCIDENTS.to_owned(),
        "connection" => format!("{CONNECTION}{}", options(root, &["Connection", "TLS"])),
        "output" => format!("{OUTPUT}{}", options(root, &["Display"])),
        "schemas" => format!("{SCHEMAS}{}", of_command(root, "list", "Schemas")),
        "changes" => format!("{CHANGES}{}", of_command(root, "purge", "Change")),
        "scans" => format!("{SCANS}{}", of_command(root, "list", "Scan")),
        "exit-codes" => exit_codes(),
        _ => findings(),
    };
    Some(format!("{about}\n\n{}", page.trim_end()).into())
}

fn of_command(root: &Command, command: &str, heading: &str) -> String {
    match root.find_subcommand(command) {
        Some(command) => options(command, &[heading]),
        None => String::new(),
    }
}

/// The options of a command under these headings.
fn options(command: &Command, headings: &[&str]) -> String {
    // clap renders the help of a whole command only, so the options get a command of their own.
    let mut page = Command::new("options")
        .disable_help_flag(true)
        .max_term_width(100)
        .help_template("\n{all-args}");
    for option in command.get_arguments() {
        if let Some(heading) = option.get_help_heading()
            && headings.contains(&heading)
        {
            page = page.arg(option.clone());
        }
    }
    page.render_help().ansi().to_string()
}

fn exit_codes() -> String {
    let mut page = String::new();
    for (exit, meaning) in Exit::ALL {
        let _ = writeln!(page, "  {:>3}  {meaning}", exit.code());
    }
    page.push_str(
        "\n`check` uses the codes of monitoring plugins: 0 OK, 1 WARNING, 2 CRITICAL, 3 UNKNOWN.\n\
        `sandbox -- COMMAND` returns the exit code of the command.",
    );
    page
}

fn findings() -> String {
    let mut page = String::new();
    for code in FindingCode::ALL {
        let _ = writeln!(page, "  {:<16}  {}", code.as_str(), code.meaning());
    }
    page.push_str(
        "\n`~` marks an estimated finding, which depends on a schema's default TTL.\n`idemctl list \
        --finding CODE` lists the records with a finding, `idemctl inspect KEY` shows what to do.",
    );
    page
}
