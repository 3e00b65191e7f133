//! `idemctl man`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::args::without;
use crate::exit::{CommandError, Exit};
use crate::files;
use crate::session::Session;
use crate::version::RELEASED;

/// Write the manual pages, one per command
///
/// Writes to DIR/man1, DIR/man5 and DIR/man7. If DIR is ~/.local/share/man, `man idemctl` and `man
/// 5 idemctl-schema` find the pages. For another folder, use `man -M DIR idemctl`.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Folder to write to, created if it does not exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// What the variables that idemctl reads are for.
const ENVIRONMENT: [(&str, &str); 13] = [
    ("IDEMCTL_URL", "server URL"),
    ("IDEMCTL_CONTEXT", "context"),
    ("IDEMCTL_CONFIG", "config file"),
    ("IDEMCTL_SCHEMA_DIR", "your own schemas"),
    ("IDEMCTL_SENTINEL_AUTH", "password for the Sentinels"),
    ("REDIS_URL", "server URL, used last"),
    ("REDISCLI_AUTH", "password"),
    ("NO_COLOR", "disables colours, if set"),
    ("XDG_CONFIG_HOME", "default: ~/.config"),
    ("XDG_STATE_HOME", "default: ~/.local/state"),
    ("SSL_CERT_FILE", "CA certificates for TLS"),
    ("SSL_CERT_DIR", "folder with CA certificates"),
    ("TMPDIR", "temporary files; default: /tmp"),
];

/// The pages that do not describe a command, which are written by hand.
const OTHERS: [(&str, &str); 5] = [
    ("idemctl-config.5", include_str!("../../man/idemctl-config.5")),
    ("idemctl-schema.5", include_str!("../../man/idemctl-schema.5")),
    ("idemctl-findings.7", include_str!("../../man/idemctl-findings.7")),
    ("idemctl-checks.7", include_str!("../../man/idemctl-checks.7")),
    ("idemctl-json.7", include_str!("../../man/idemctl-json.7")),
];

/// The headings of the options that every command has.
const GLOBAL: [&str; 3] = ["Connection", "TLS", "Display"];

const FILES: [(&str, &str); 4] = [
    ("$XDG_CONFIG_HOME/idemctl/config.toml", "contexts"),
    ("$XDG_CONFIG_HOME/idemctl/schemas/", "your own schemas"),
    ("$XDG_STATE_HOME/idemctl/backups/", "backups"),
    ("$XDG_STATE_HOME/idemctl/audit/", "the audit log"),
];

pub fn run(session: &mut Session, args: Args, root: clap::Command) -> Result<Exit> {
    let shown = args.folder.display();
    let pages = pages(root)?;
    for (name, text) in &pages {
        let section = args.folder.join(section(name));
        std::fs::create_dir_all(&section)
            .with_context(|| format!("cannot make the folder {}", section.display()))?;
        // Another user could use a link to redirect all pages.
        if section.is_symlink() {
            return Err(CommandError::usage(format!(
                "cannot write pages in {}: it is a link, not a folder",
                section.display()
            ))
            .into());
        }
        let file = section.join(name);
        // Other users may write into the folder, so a page is never written through a link in it.
        files::publish(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    session.ui.status(&format!(
        "{} pages written to {shown}; `man -M {shown} idemctl` shows the first.",
        pages.len()
    ));
    Ok(Exit::Done)
}

/// The folder of a page, which `man` looks for by its section.
fn section(name: &str) -> String {
    let (_, number) = name.rsplit_once('.').unwrap_or((name, "1"));
    format!("man{number}")
}

/// Every page with its file name.
fn pages(root: clap::Command) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    // clap adds the options of all commands to each command when it builds the root.
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add(&root, &mut pages)?;
    for (name, text) in OTHERS {
        pages.push((name.to_owned(), text.as_bytes().to_vec()));
    }
    Ok(pages)
}

fn add(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let is_root = command.get_display_name().is_none_or(|name| name == "idemctl");
    // Only the first page has the options of all commands, which would make the others long.
    let shown = if is_root { command.clone() } else { without(command.clone(), &GLOBAL) };
    let man = Man::new(shown);
    pages.push((man.get_filename(), page(&man, command, is_root)?));
    for command in command.get_subcommands() {
        if !command.is_hide_set() {
            add(command, pages)?;
        }
    }
    Ok(())
}

fn page(man: &Man, command: &clap::Command, is_root: bool) -> std::io::Result<Vec<u8>> {
    let mut page = title(command).to_roff().into_bytes();
    man.render_name_section(&mut page)?;
    page.extend(synopsis(command).to_roff().into_bytes());
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.has_subcommands() {
        man.render_subcommands_section(&mut page)?;
    }
    let mut more = Roff::new();
    examples(&mut more, command);
    if is_root {
        root_sections(&mut more);
    }
    see_also(&mut more, is_root);
    page.extend(more.to_roff().into_bytes());
    Ok(tidy(&String::from_utf8_lossy(&page)).into_bytes())
}

/// The title line. It has the date of the version, so that the pages of one version are always the
/// same.
fn title(command: &clap::Command) -> Roff {
    let name = command.get_display_name().unwrap_or(command.get_name());
    let mut roff = Roff::new();
    roff.control(
        "TH",
        [name, "1", RELEASED, concat!("idemctl ", env!("CARGO_PKG_VERSION")), "idemctl"],
    );
    roff
}

/// The usage line of `--help`. The synopsis of clap_mangen lists every option, and the options have
/// a section of their own.
fn synopsis(command: &clap::Command) -> Roff {
    let usage = command.clone().render_usage().to_string();
    let mut roff = Roff::new();
    roff.control("SH", ["SYNOPSIS"]).text([roman(usage.trim_start_matches("Usage:").trim())]);
    roff
}

fn examples(roff: &mut Roff, command: &clap::Command) {
    let Some(examples) = command.get_before_help() else { return };
    roff.control("SH", ["EXAMPLES"]).control("nf", []);
    for line in examples.to_string().lines() {
        if let Some(example) = line.strip_prefix("  ") {
            roff.text([roman(example)]);
        }
    }
    roff.control("fi", []);
}

/// The page with one vertical space in place of two breaks around an empty line, because `mandoc`
/// warns about these.
fn tidy(page: &str) -> String {
    page.replace(".br\n\n.br\n", ".sp\n")
}

fn root_sections(roff: &mut Roff) {
    roff.control("SH", ["EXIT STATUS"]);
    for (exit, meaning) in Exit::ALL {
        term(roff, &exit.code().to_string(), meaning);
    }
    roff.control("PP", []);
    roff.text([roman("`idemctl sandbox -- COMMAND` returns the exit status of COMMAND.")]);
    for (title, items) in [("ENVIRONMENT", &ENVIRONMENT[..]), ("FILES", &FILES[..])] {
        roff.control("SH", [title]);
        for (name, meaning) in items {
            term(roff, name, meaning);
        }
    }
}

fn see_also(roff: &mut Roff, is_root: bool) {
    let others = [
        "idemctl-config(5)",
        "idemctl-schema(5)",
        "idemctl-findings(7)",
        "idemctl-checks(7)",
        "idemctl-json(7)",
    ]
    .join(", ");
    let first = if is_root { "" } else { "idemctl(1), " };
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(format!("{first}{others}"))]);
}

fn term(roff: &mut Roff, term: &str, meaning: &str) {
    roff.control("TP", []).text([bold(term)]).text([roman(meaning)]);
}
