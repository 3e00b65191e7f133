//! `idemctl check`: the monitoring plugin.

mod alarms;
mod health;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::alarms::AlarmArgs;
use crate::args::{FilterArgs, Output, SchemaArgs, ThresholdArgs, WalkArgs};
use crate::change::{say_coverage, write_report};
use crate::context::Context;
use crate::exit::Exit;
use crate::render::plugin;
use crate::store::Reader;

/// Say in one line whether locks are stuck, for monitoring
///
/// Prints one line of OK, WARNING, CRITICAL or UNKNOWN with measures on stdout in every case, and ends with exit status 0, 1, 2
/// or 3, as monitoring plugins do. Nothing is changed.
///
/// CRITICAL: orphaned locks, which will never end by themselves. WARNING, or what --include says: locks with more time left
/// than the stated lock TTL (`excess-ttl`), and with --overdue locks that are older (`overdue`). WARNING: more records of other
/// forms than a schema's own under the schema's prefix. UNKNOWN: the server does not answer or refuses, a part could not be
/// read, nothing tells how old a lock is, or none of the Redis keys there is any schema's and no schema is named.
///
/// Values are read only if no deadline tells what is sought; the counts of records come from a random sample of at most 1,000.
/// A context's defaults: [contexts.NAME.check] overdue = "5m", include = ["excess-ttl=CRITICAL"].
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    alarms: AlarmArgs,

    #[command(flatten)]
    thresholds: ThresholdArgs,

    /// The line (table), or one JSON object, in one line with jsonl
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,

    #[command(flatten)]
    filter: FilterArgs,

    #[command(flatten)]
    walk: WalkArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let catalog = context.catalog(&args.schemas)?;
    let sought = args.alarms.sought(&context.settings, args.thresholds.clone(), &catalog)?;
    let selection = args.filter.selection()?;
    let reader = context.reader().await?.walking(args.walk.scan_options());
    let (mut found, met) = health::examine(&catalog, reader.clone(), &selection, &sought).await?;
    let is_nothing = found.records + found.foreign + found.found.total() == 0;
    // Schemas that somebody named may have no records yet. If one of them was skipped, its records may be those keys.
    let may_be_empty = catalog.is_named() && catalog.skipped().next().is_none();
    if found.gap.is_none() && is_nothing && !may_be_empty {
        found.gap = nothing_covered(&reader).await?;
    }
    if found.gap.is_none() && !catalog.unreadable().is_empty() {
        found.gap = Some(format!("no schema could be read from the files of {}", catalog.unreadable().join(", ")));
    }
    match args.output {
        Output::Table => context.ui.data(plugin::health(&found, &sought.limits))?,
        Output::Json | Output::Jsonl => {
            write_report(context, args.output, &plugin::health_json(&found, &sought.limits))?
        }
    }
    context.ui.flush()?;
    say_coverage(context, &met, &catalog);
    Ok(Exit::Command(found.status(&sought.limits).code()))
}

/// The message that no Redis key of the server is any schema's; `None` where the server has no Redis keys.
async fn nothing_covered(reader: &Reader) -> Result<Option<String>> {
    let held = reader.keys_held().await?;
    let why = format!(
        "none of the {held} Redis keys of {} is any schema's: name the schemas of its services with --schema",
        reader.name()
    );
    Ok((held > 0).then_some(why))
}
