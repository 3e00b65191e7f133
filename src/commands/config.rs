//! `idemctl config`: what flags, variables and the config file come to.

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{Output, SchemaArgs};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::settings::{self as render, Setting};

/// Show what flags, variables and the config file come to
///
/// Every setting of a command that would run with the same flags here and now. Of passwords only whether there is one is
/// said, and no server is asked. A setting without effect, or for a schema that is not known, is an error with its line.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    what: ConfigSubcommand,
}

#[derive(Debug, Subcommand)]
enum ConfigSubcommand {
    /// Show every effective setting
    Show {
        /// Say where each comes from: a flag, a variable, a line of the config file, or the default
        #[arg(long)]
        origin: bool,

        /// How to show them
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
