//! `idemctl schema`.

mod adopt;
mod checked;
mod new;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{Output, SchemaArgs, SchemaFolderArgs};
use crate::domain::schema::{Schema, expanded};
use crate::exit::{CommandError, Exit};
use crate::render::schema as render;
use crate::schemas;
use crate::session::Session;

/// List, show, create, adopt and check schemas
///
/// A schema describes how one service stores its records: Redis keys, values, TTLs, and its Lua
/// scripts. Your own schemas are in $XDG_CONFIG_HOME/idemctl/schemas, one folder each. They replace
/// built-in schemas of the same name.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the available schemas
    ///
    /// OWNER shows whether completing checks the lock's owner. BEGIN shows whether one script or
    /// several commands take the lock. With one script, only one request can get it.
    List {
        /// Include schemas of published libraries, which commands use only if --schema or a context
        /// names them
        #[arg(long)]
        libraries: bool,

        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,

        #[command(flatten)]
        folder: SchemaFolderArgs,
    },

    /// Show a schema's Redis keys, values and TTLs, and the meaning of each reply
    Show {
        /// Name of the schema
        name: String,

        /// Print only this script, as it is sent
        #[arg(long, value_name = "NAME", conflicts_with = "output")]
        script: Option<String>,

        /// Print schema.toml with the calls of its `protocol` written out
        #[arg(long, conflicts_with_all = ["output", "script"])]
        expanded: bool,

        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,

        #[command(flatten)]
        folder: SchemaFolderArgs,
    },

    /// Create a schema of your own from another schema or from Redis keys
    New(new::Args),

    /// Add a schema and its prefix to a context
    Adopt(adopt::Args),

    /// Check a schema of your own, with its scripts
    ///
    /// DIR is the folder of a schema or of several schemas; NAME is one of your schemas. Reports
    /// every error as FILE:LINE. Also tests that values read back as they were written, that
    /// scripts use the KEYS and ARGV they receive, and that the steps give the listed and predicted
    /// replies on a temporary local Redis.
    ///
    /// With a server (-u, -h, -s, --context), counts the records that the schema finds there. Warns
    /// about times before 2015 or in the future, which indicate a wrong `timestamp`. Exit status 1
    /// if there is an error.
    Check(checked::Args),
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    match args.command {
        Command::List { libraries, output, folder } => list(session, libraries, output, folder),
        Command::Show { name, expanded: true, folder, .. } => {
            show_expanded(session, &name, &folder)
        }
        Command::Show { name, script, output, folder, .. } => {
            show(session, &name, script.as_deref(), output, folder)
        }
        Command::New(args) => new::new(session, args).await,
        Command::Adopt(args) => adopt::adopt(session, args).await,
        Command::Check(args) => checked::run(session, args).await,
    }
}

fn list(
    session: &mut Session,
    libraries: bool,
    output: Output,
    folder: SchemaFolderArgs,
) -> Result<Exit> {
    // Schemas of libraries are loaded only if they are named.
    let mut named = Vec::new();
    if libraries {
        named.extend(schemas::libraries().map(str::to_owned));
    }
    let catalog = session.catalog(&of_names(named, &folder))?;
    let schemas: Vec<_> = catalog.all().iter().map(|schema| render::schema(schema)).collect();
    session.show(output, "schemas", &schemas, |view| render::table(catalog.all(), view))?;
    if !catalog.drafts.is_empty() {
        session.ui.status(&format!(
            "Drafts, which are read only if --schema or a context names them: {}",
            catalog.drafts.join(", ")
        ));
    }
    Ok(Exit::Done)
}

fn show(
    session: &mut Session,
    name: &str,
    script: Option<&str>,
    output: Output,
    folder: SchemaFolderArgs,
) -> Result<Exit> {
    let catalog = session.catalog(&of_names(vec![name.to_owned()], &folder))?;
    let Some(schema) = catalog.chosen().first() else { return Ok(Exit::No) };
    match script {
        Some(script) => session.ui.data(script_text(schema, script)?)?,
        None => {
            let shown = [render::schema(schema)];
            session.show(output, "schemas", &shown, |view| render::page(schema, view))?;
        }
    }
    Ok(Exit::Done)
}

/// Prints the file of a schema with the calls of its protocol in place of the protocol.
fn show_expanded(session: &mut Session, name: &str, folder: &SchemaFolderArgs) -> Result<Exit> {
    let own = session.settings.schema_dir(folder.schema_dir.as_deref());
    let files = schemas::files_of(own.as_deref(), name)
        .map_err(|error| CommandError::usage(error.to_string()))?;
    let Some(files) = files else {
        // The catalog's error names the schemas that there are.
        session.catalog(&of_names(vec![name.to_owned()], folder))?;
        return Ok(Exit::No);
    };
    let toml = expanded(&files.toml)
        .map_err(|why| CommandError::usage(format!("schema `{name}` cannot be expanded: {why}")))?;
    session.ui.data(toml)?;
    Ok(Exit::Done)
}

fn of_names(schema: Vec<String>, folder: &SchemaFolderArgs) -> SchemaArgs {
    SchemaArgs { schema, folder: folder.clone(), ..SchemaArgs::default() }
}

fn script_text(schema: &Schema, name: &str) -> Result<String> {
    if let Some(script) = schema.scripts.get(name) {
        return Ok(script.text.to_string());
    }
    let known: Vec<_> = schema.scripts.keys().map(String::as_str).collect();
    let hint = if known.is_empty() {
        "it has none".to_owned()
    } else {
        format!("scripts: {}", known.join(", "))
    };
    Err(CommandError::usage(format!("schema `{}` has no script `{name}`", schema.name))
        .hint(hint)
        .into())
}
