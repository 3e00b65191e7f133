//! `idemctl config`: what flags, variables and the config file come to.

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{Output, SchemaArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::settings::{self as render, Setting};

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

pub fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let ConfigSubcommand::Show { origin, output } = args.what;
    context.catalog(&SchemaArgs::default())?;
    let rows = context.settings.rows();
    let settings: Vec<_> = rows
        .iter()
        .map(|row| Setting { name: &row.name, value: row.value.as_deref(), origin: &row.origin })
        .collect();
    context
        .show(output, "settings", &settings, |view| render::settings(&settings, origin, view))?;
    Ok(Exit::Done)
}
