//! `idemctl schema`.

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{SchemaArgs, SchemaFolderArgs};
use crate::context::Context;
use crate::exit::Exit;

/// List the schemas idemctl knows, show one, or check one of your own
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the schemas idemctl knows
    List {
        #[command(flatten)]
        folder: SchemaFolderArgs,
    },
}

/// Runs `idemctl schema`.
///
/// # Errors
/// A schema that cannot be read.
pub fn run(context: &mut Context, args: Args) -> Result<Exit> {
    match args.command {
        Command::List { folder } => {
            let catalog = context.catalog(&SchemaArgs { folder, ..SchemaArgs::default() })?;
            for schema in catalog.all() {
                context.ui.data(format!("{}  {}\n", schema.name, schema.summary))?;
            }
            Ok(Exit::Done)
        }
    }
}
