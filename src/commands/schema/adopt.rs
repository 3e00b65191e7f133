//! `idemctl schema adopt`.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{SchemaArgs, SchemaFolderArgs};
use crate::domain::detect::SchemaSet as _;
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::FieldSet;
use crate::domain::schema::Schema;
use crate::domain::select::Selection;
use crate::exit::{self, CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::{escape, words};
use crate::scan::{Lengths, Scan, ScanQuery};
use crate::session::Session;
use crate::settings::{self, Adoption, NOTHING_TO_WRITE, not_confirmed, previous};
use crate::store::ReadLimit;

/// Add a schema and its prefix to a context
///
/// Shows the settings that the context lacks, and asks before it writes them: the schema's name, if
/// the context lists schemas, and the prefix of its keys. The rest of the config file stays as it
/// is, and the previous file is kept next to it. `idemctl detect` prints the command to run.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Name of the schema
    name: String,

    /// Prefix of this deployment's keys; `idemctl schema show NAME` shows its place in the key
    #[arg(long, value_name = "TEXT")]
    prefix: Option<String>,

    /// Do not ask for confirmation
    #[arg(short, long)]
    yes: bool,

    #[command(flatten)]
    folder: SchemaFolderArgs,
}

pub(super) async fn adopt(session: &mut Session, args: Args) -> Result<Exit> {
    let Args { name, prefix, yes, folder } = args;
    let args = SchemaArgs { folder, ..SchemaArgs::default() };
    let schemas = session.all_schemas(&args.folder)?;
    let deployed = schemas
        .deployed(&name, prefix.as_deref())
        .map_err(|error| session.settings.not_loaded(&error, &args))?;
    let Some(schema) = deployed else {
        let known: Vec<_> = schemas.all().iter().map(|schema| schema.name.as_str()).collect();
        return Err(CommandError::no_schema(&name, &known).into());
    };
    let Some(used) = session.settings.context_name().map(str::to_owned) else {
        return Err(no_context(session));
    };
    let catalog = session.catalog(&args)?;
    let current = catalog.all().iter().find(|current| current.name == name).cloned();
    let is_read_unasked = current.is_some();
    // The context may have configured a prefix before.
    let has_fixed_prefix = match &current {
        Some(current) => current.has_fixed_prefix() || schema.has_fixed_prefix(),
        None => schema.has_fixed_prefix(),
    };
    // Any Redis key may belong to such a schema, so that scans would skip it.
    if !has_fixed_prefix {
        return Err(CommandError::usage(format!(
            "{name} has no fixed prefix; pass the prefix of its keys with --prefix"
        ))
        .into());
    }
    let adoption = Adoption { schema: &name, prefix: prefix.as_deref(), is_read_unasked };
    // A copy, because the questions below change the context.
    let file = session.settings.file().clone();
    let adopted = settings::adopt(&file, &used, &adoption)?;
    let path = file.path().map(|path| path.display().to_string()).unwrap_or_default();
    if adopted.lines.is_empty() {
        session.ui.status(NOTHING_TO_WRITE);
        return Ok(Exit::Done);
    }
    let server = session.settings.target().to_string();
    session.ui.status(&format!("Context {used} ({server}) in {path} will contain:"));
    for line in &adopted.lines {
        session.ui.status(&format!("  {}", escape::text(line.as_bytes())));
    }
    // Another prefix replaces the current one. Records under the current prefix are then no longer
    // monitored, so the operator has to know about them before the question.
    if let Some(current) = current
        && current.has_fixed_prefix()
        && !current.has_templates_of(&schema)
    {
        warn_of_unrecognised(session, &current).await?;
    }
    if !yes && !session.ui.confirm("Write these settings?").await? {
        return Err(not_confirmed().into());
    }
    let former = adopted.save()?;
    session.ui.status("Written.");
    if let Some(former) = former {
        session.ui.status(&previous(&former));
    }
    session.ui.hint(&format!("`list --schema {name}` with the context {used} lists its records"));
    Ok(Exit::Done)
}

/// Warns about the records that the schema reads now, under the prefix that it will no longer have.
///
/// # Errors
/// Interrupted.
async fn warn_of_unrecognised(session: &mut Session, current: &Schema) -> Result<()> {
    let prefixes: Vec<_> =
        current.keys.iter().map(|key| escape::text(key.template.prefix())).collect();
    let prefixes = prefixes.join(" and ");
    let name = &current.name;
    match count(session, current).await {
        Ok(0) => {}
        Ok(records) => session.ui.warning(&format!(
            "{} under {prefixes} will no longer be recognised by {name}",
            words::counted(records, "record")
        )),
        Err(error) if exit::of(&error) == Exit::Interrupted => return Err(error),
        // Adopting a schema changes only the config file, so it works without the server.
        Err(error) => session.ui.warning(&format!(
            "records under {prefixes} will no longer be recognised by {name}, and idemctl could \
            not count them: {error:#}"
        )),
    }
    Ok(())
}

/// How many records of a schema, as the context configures it, the server has.
async fn count(session: &mut Session, schema: &Schema) -> Result<u64> {
    let args = SchemaArgs { schema: vec![schema.name.clone()], ..SchemaArgs::default() };
    let catalog = session.catalog(&args)?;
    let reader = session.connect_reader().await?;
    let server = reader.name();
    let interrupt = Interrupt::listen()?;
    let query = ScanQuery {
        catalog: &catalog,
        thresholds: Thresholds::default(),
        first_read: ReadLimit::Bytes(0),
        needed: FieldSet::NONE,
        lengths: Lengths::None,
    };
    let mut scan =
        Scan::start(reader, query, &interrupt, session.ui.progress("keys scanned")).await?;
    let mut count = 0;
    while let Some(page) = scan.next_page(&Selection::default()).await {
        count += page.selected.len() as u64;
    }
    let report = scan.finish();
    let so_far = words::among(&words::counted(count, "record"), report.keys, &server);
    report.require_complete("the count is", &so_far)?;
    Ok(count)
}

fn no_context(session: &Session) -> anyhow::Error {
    let hint = if session.settings.asks_for_its_server() {
        let server = session.settings.target();
        let line = session.ui.invocation().making_a_context();
        format!("create a context for {server} with `{line}`; then add --context NEW-NAME")
    } else {
        "pass --context NAME; `idemctl context set NAME` with -u, -h, -p or -s creates one"
            .to_owned()
    };
    CommandError::usage("a schema is adopted in a context, but no context is selected")
        .hint(hint)
        .into()
}
