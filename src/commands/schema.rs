//! `idemctl schema`.

mod adopt;
mod checked;
mod new;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{Output, SchemaArgs, SchemaFolderArgs};
use crate::context::Context;
use crate::domain::schema::Schema;
use crate::exit::{CommandError, Exit};
use crate::render::schema as render;
use crate::schemas;

/// List the schemas idemctl knows, show one, or check one of your own
///
/// A schema is how one service stores its records: Redis keys, values, TTLs, and the Lua scripts it runs. Those of your
/// own stand in $XDG_CONFIG_HOME/idemctl/schemas, one folder each, and replace built-in ones of the same name.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// List the schemas idemctl knows
    ///
    /// OWNER says whether completing checks who holds the lock. BEGIN says whether one script takes the lock, so that
    /// only one request can get it by construction, or several commands.
    List {
        /// Those of published libraries too, which no command tries unless --schema or a context names them
        #[arg(long)]
        libraries: bool,

        /// How to show them
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,

        #[command(flatten)]
        folder: SchemaFolderArgs,
    },

    /// Show a schema: Redis keys, values, TTLs, and what each reply to each step means
    Show {
        /// Its name
        name: String,

        /// Print this script as it is sent, and nothing else
        #[arg(long, value_name = "NAME", conflicts_with = "output")]
        script: Option<String>,

        /// How to show it
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,

        #[command(flatten)]
        folder: SchemaFolderArgs,
    },

    /// Make a folder with a schema of your own to start from: a copy of another, or a draft from Redis keys
    New(new::Args),

    /// Let a context's commands read a schema's records
    Adopt(adopt::Args),

    /// Check a schema of your own, with its scripts
    ///
    /// DIR is a schema's folder, or a folder of such folders; NAME is a schema of your own. Reports all that is wrong as FILE:LINE, and beyond what a
    /// parser sees: that what the schema writes reads back as what it says, that scripts use the KEYS and ARGV they are
    /// sent, and that the steps, run on a private server, answer what the replies list and foretell. With a server
    /// named (-u, -h, -s, --context) it counts the records that the schema finds there, and warns of times before 2015 or in
    /// the future, which a wrong `timestamp` reads. Exit status 1 when there is an error.
    Check(checked::Args),
}

impl Args {
    /// True when the exit code answers a question.
    pub fn judges(&self) -> bool {
        matches!(self.command, Command::Check(_))
    }
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    match args.command {
        Command::List { libraries, output, folder } => list(context, libraries, output, folder),
        Command::Show { name, script, output, folder } => {
            show(context, &name, script.as_deref(), output, folder)
        }
        Command::New(args) => new::new(context, args).await,
        Command::Adopt(args) => adopt::adopt(context, args).await,
        Command::Check(args) => checked::run(context, args).await,
    }
}

fn list(
    context: &mut Context,
    libraries: bool,
    output: Output,
    folder: SchemaFolderArgs,
) -> Result<Exit> {
    let named = schemas::libraries().filter(|_| libraries).map(str::to_owned).collect();
    let catalog =
        context.catalog(&SchemaArgs { schema: named, folder, ..SchemaArgs::default() })?;
    let schemas: Vec<_> = catalog.all().iter().map(|schema| render::schema(schema)).collect();
    context.show(output, "schemas", &schemas, |view| render::table(catalog.all(), view))?;
    if !catalog.drafts().is_empty() {
        context.ui.status(&format!(
            "Drafts, which are read only if --schema or a context names them: {}",
            catalog.drafts().join(", ")
        ));
    }
    Ok(Exit::Done)
}

fn show(
    context: &mut Context,
    name: &str,
    script: Option<&str>,
    output: Output,
    folder: SchemaFolderArgs,
) -> Result<Exit> {
    let catalog = context.catalog(&SchemaArgs {
        schema: vec![name.to_owned()],
        folder,
        ..SchemaArgs::default()
    })?;
    let Some(schema) = catalog.chosen().first() else { return Ok(Exit::No) };
    match script {
        Some(script) => context.ui.data(script_text(schema, script)?)?,
        None => {
            let shown = [render::schema(schema)];
            context.show(output, "schemas", &shown, |view| render::page(schema, view))?;
        }
    }
    Ok(Exit::Done)
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
