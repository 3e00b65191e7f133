//! `idemctl schema`.

use std::path::PathBuf;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{Output, SchemaArgs, SchemaFolderArgs};
use crate::context::Context;
use crate::domain::schema::Schema;
use crate::exit::{Exit, Stop};
use crate::render::{escape, schema as render};
use crate::schemas::check::{self, Report};

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

    /// Check a schema of your own, with its scripts
    ///
    /// DIR is a schema's folder, or a folder of such folders. Reports what is wrong as FILE:LINE, and beyond what a
    /// parser sees: that what the schema writes reads back as what it says, that the next request gets what the replies
    /// foretell, and that scripts use the KEYS and ARGV they are sent. Exit status 1 when there is an error.
    Check {
        /// A schema's folder, or a folder of such folders
        #[arg(value_name = "DIR")]
        folder: PathBuf,
    },
}

pub fn run(context: &mut Context, args: Args) -> Result<Exit> {
    match args.command {
        Command::List { output, folder } => list(context, output, folder),
        Command::Show { name, script, output, folder } => show(context, &name, script.as_deref(), output, folder),
        Command::Check { folder } => check(context, folder),
    }
}

fn list(context: &mut Context, output: Output, folder: SchemaFolderArgs) -> Result<Exit> {
    let catalog = context.catalog(&SchemaArgs { folder, ..SchemaArgs::default() })?;
    let schemas: Vec<_> = catalog.all().iter().map(|schema| render::schema(schema)).collect();
    context.show(output, "schemas", &schemas, |view| render::table(catalog.all(), view))?;
    Ok(Exit::Done)
}

fn show(
    context: &mut Context,
    name: &str,
    script: Option<&str>,
    output: Output,
    folder: SchemaFolderArgs,
) -> Result<Exit> {
    let catalog = context.catalog(&SchemaArgs { schema: vec![name.to_owned()], folder, ..SchemaArgs::default() })?;
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
    let hint = if known.is_empty() { "it has none".to_owned() } else { format!("scripts: {}", known.join(", ")) };
    Err(Stop::usage(format!("schema `{}` has no script `{name}`", schema.name)).hint(hint).into())
}

fn check(context: &mut Context, folder: PathBuf) -> Result<Exit> {
    let shown = folder.display().to_string();
    let reports = check::check(&folder).map_err(|error| Stop::usage(format!("cannot read {shown}: {error}")))?;
    let Some(reports) = reports else {
        let hint = "a schema is a folder with a schema.toml and its scripts";
        return Err(Stop::usage(format!("there is no schema.toml in {shown}, nor in the folders below it"))
            .hint(hint)
            .into());
    };
    for report in &reports {
        context.ui.data(lines(report))?;
    }
    Ok(if reports.iter().any(Report::is_wrong) { Exit::No } else { Exit::Done })
}

/// A line for each problem, as compilers write them, and a line for the verdict.
fn lines(report: &Report) -> String {
    let mut text = String::new();
    for problem in &report.problems {
        let word = if problem.is_error { "error" } else { "warning" };
        let what = &problem.what;
        text.push_str(&format!("{}:{}: {word}: {}\n", what.file, what.line, what.message));
    }
    let name = report.name.clone().unwrap_or_else(|| report.folder.display().to_string());
    let verdict = if report.is_wrong() { "wrong" } else { "ok" };
    // A message quotes what stands in the files, control characters included, but for its line ends.
    let escaped = text.lines().map(|line| format!("{}\n", escape::text(line.as_bytes())));
    escaped.chain([format!("{}: {verdict}\n", escape::text(name.as_bytes()))]).collect()
}
