//! `idemctl man`.

use std::path::PathBuf;

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;
use clap_mangen::Man;
use clap_mangen::roff::{Roff, bold, roman};

use crate::context::Context;
use crate::exit::Exit;

/// Write the manual pages, one for each command
///
/// `man -l DIR/idemctl.1` shows the first one; in a folder man1 of $MANPATH, `man idemctl` finds them.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Where to; made when it is not there
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// What the variables that idemctl reads are for.
const ENVIRONMENT: [(&str, &str); 13] = [
    ("IDEMCTL_URL", "server URL, where no flag names a server"),
    ("IDEMCTL_CONTEXT", "context of the config file"),
    ("IDEMCTL_CONFIG", "config file"),
    ("IDEMCTL_SCHEMA_DIR", "folder with schemas of your own"),
    ("IDEMCTL_SENTINEL_AUTH", "password at the Sentinels"),
    ("REDIS_URL", "server URL, where nothing else names a server"),
    ("REDISCLI_AUTH", "password"),
    ("NO_COLOR", "no colours, when set"),
    ("XDG_CONFIG_HOME", "folder of the config file and the schemas, ~/.config by default"),
    ("XDG_STATE_HOME", "folder of backups and the audit log, ~/.local/state by default"),
    ("SSL_CERT_FILE", "certificates of the issuers to trust with TLS, where no --cacert or --cacertdir says"),
    ("SSL_CERT_DIR", "folder with such files"),
    ("TMPDIR", "folder for the files of a throw-away server, /tmp by default"),
];

const FILES: [(&str, &str); 4] = [
    ("$XDG_CONFIG_HOME/idemctl/config.toml", "contexts: servers and how services are deployed there"),
    ("$XDG_CONFIG_HOME/idemctl/schemas/", "schemas of your own, a folder each"),
    ("$XDG_STATE_HOME/idemctl/backups/", "what was removed, as JSON lines"),
    ("$XDG_STATE_HOME/idemctl/audit.jsonl", "one line for each change"),
];

pub fn run(context: &mut Context, args: Args, root: clap::Command) -> Result<Exit> {
    let shown = args.folder.display();
    let pages = pages(root)?;
    std::fs::create_dir_all(&args.folder).with_context(|| format!("cannot make the folder {shown}"))?;
    for (name, text) in &pages {
        let file = args.folder.join(name);
        std::fs::write(&file, text).with_context(|| format!("cannot write {}", file.display()))?;
    }
    context.ui.status(&format!("{} pages written to {shown}.", pages.len()));
    Ok(Exit::Done)
}

/// Every page with its file name.
fn pages(root: clap::Command) -> std::io::Result<Vec<(String, Vec<u8>)>> {
    // Built once and as a whole, so that the options of all commands are on each page.
    let mut root = root.disable_help_subcommand(true);
    root.build();
    let mut pages = Vec::new();
    add(&root, &mut pages)?;
    Ok(pages)
}

fn add(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) -> std::io::Result<()> {
    let is_root = command.get_display_name().is_none_or(|name| name == "idemctl");
    // No date: the pages of one version are the same whenever they are written.
    let man = Man::new(command.clone()).source(concat!("idemctl ", env!("CARGO_PKG_VERSION"))).manual("idemctl");
    let mut page = Vec::new();
    man.render(&mut page)?;
    let mut more = Roff::new();
    if is_root {
        root_sections(&mut more)
    } else {
        see_also(&mut more)
    }
    page.extend(more.to_roff().into_bytes());
    pages.push((man.get_filename(), page));
    command.get_subcommands().filter(|command| !command.is_hide_set()).try_for_each(|command| add(command, pages))
}

fn root_sections(roff: &mut Roff) {
    roff.control("SH", ["EXIT STATUS"]);
    for (exit, meaning) in Exit::ALL {
        term(roff, &exit.code().to_string(), meaning);
    }
    roff.control("PP", []);
    roff.text([roman("With a command to run, idemctl sandbox returns that command's own status.")]);
    for (title, items) in [("ENVIRONMENT", &ENVIRONMENT[..]), ("FILES", &FILES[..])] {
        roff.control("SH", [title]);
        items.iter().for_each(|(name, meaning)| term(roff, name, meaning));
    }
}

fn see_also(roff: &mut Roff) {
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman("idemctl(1), for exit status, environment and files")]);
}

fn term(roff: &mut Roff, term: &str, meaning: &str) {
    roff.control("TP", []).text([bold(term)]).text([roman(meaning)]);
}
