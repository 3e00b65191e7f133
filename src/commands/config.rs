//! `idemctl config`: the effective settings from flags, variables and the config file.

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{Output, SchemaArgs};
use crate::exit::Exit;
use crate::render::settings::{self as render, Setting};
use crate::session::Session;

/// Show the effective settings from options, environment variables and the config file
///
/// Shows every setting that a command with the same options would use. Passwords are shown only as
/// set or not set, and idemctl does not connect. A setting that has no effect, or is for an unknown
/// schema, is an error with its line number.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    what: ConfigSubcommand,
}

#[derive(Debug, Subcommand)]
enum ConfigSubcommand {
    /// Show every effective setting
    Show {
        /// Show the origin of each: an option, a variable, a line of the config file, or the
        /// default
        #[arg(long)]
        origin: bool,

        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
}

pub fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let ConfigSubcommand::Show { origin, output } = args.what;
    // Loading the schemas checks the settings for them, as every other command does.
    session.catalog(&SchemaArgs::default())?;
    let rows = session.settings.rows();
    let mut settings = Vec::with_capacity(rows.len());
    for row in &rows {
        let value = row.value.as_deref();
        settings.push(Setting { name: &row.name, value, origin: &row.origin });
    }
    session
        .show(output, "settings", &settings, |view| render::settings(&settings, origin, view))?;
    Ok(Exit::Done)
}
