//! `idemctl check`: the monitoring plugin.

use std::collections::BTreeMap;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{FilterArgs, SchemaArgs, WalkArgs};
use crate::change::say_coverage;
use crate::context::Context;
use crate::domain::change::orphan::{self, ORPHANED, Told};
use crate::domain::diagnosis::Thresholds;
use crate::domain::diagnosis::health::{Health, Limits};
use crate::domain::record::Record;
use crate::domain::schema::Catalog;
use crate::domain::select::{Coverage, Judged, Selection};
use crate::exit::Exit;
use crate::render::plugin;
use crate::store::read::records;
use crate::store::{ReadLimit, Reader, Walk};

/// Bytes of each value that are read: a lock fits.
const HEAD_BYTES: usize = 128;

/// Say in one line whether locks are stuck, for monitoring
///
/// Prints one line of OK, WARNING, CRITICAL or UNKNOWN with measures on stdout in every case, and ends with exit status 0, 1, 2
/// or 3, as monitoring plugins do. Nothing is changed. CRITICAL: orphaned locks, which will never end by themselves.
/// WARNING: more records of other forms than a schema's own under the schema's prefix. UNKNOWN: the server does not answer or
/// refuses, a part could not be read, or none of the Redis keys there is any schema's and no schema is named.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// WARNING from so many orphaned locks on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    warning: Option<u64>,

    /// CRITICAL from so many orphaned locks on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), default_value_t = 1)]
    critical: u64,

    #[command(flatten)]
    filter: FilterArgs,

    #[command(flatten)]
    walk: WalkArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let limits = Limits { warning: args.warning, critical: args.critical };
    let catalog = context.catalog(&args.schemas)?;
    let selection = args.filter.selection()?;
    let reader = context.reader().await?.walking(args.walk.scan_options());
    let mut met = Coverage::default();
    let mut found = examine(&catalog, reader.clone(), &selection, &mut met).await?;
    if found.gap.is_none() && found.records + found.foreign == 0 && !catalog.is_named() {
        found.gap = nothing_covered(&reader).await?;
    }
    context.ui.data(plugin::health(&found, limits))?;
    context.ui.flush()?;
    say_coverage(context, &met, &catalog);
    Ok(Exit::Command(found.status(limits).code()))
}

/// Walks over all records. An error that ends the walk is kept as a gap, and what was counted until then counts.
async fn examine(catalog: &Catalog, reader: Reader, selection: &Selection, met: &mut Coverage) -> Result<Health> {
    let mut walk = Walk::start(reader, catalog, ReadLimit::Bytes(HEAD_BYTES)).await?.without_lengths();
    let (thresholds, mut found, mut own) = (Thresholds::default(), Health::default(), BTreeMap::new());
    loop {
        match records::next_page(&mut walk, catalog, &thresholds, met, |_| true).await {
            Ok(Some(records)) => {
                for record in &records {
                    count(record, &mut found, &mut own);
                    count_orphan(record, selection, &mut found, met);
                }
            }
            Ok(None) => break,
            Err(error) => {
                found.gap = Some(error.to_string());
                break;
            }
        }
    }
    found.keys = walk.looked_at();
    found.gap = found.gap.or_else(|| walk.forbidden());
    found.foreign = met.foreign.values().sum();
    found.outnumbered = outnumbered(catalog, met, &own);
    Ok(found)
}

fn count(record: &Record, found: &mut Health, own: &mut BTreeMap<String, u64>) {
    found.records += 1;
    match own.get_mut(&record.schema.name) {
        Some(count) => *count += 1,
        None => drop(own.insert(record.schema.name.clone(), 1)),
    }
}

/// Counts an orphaned lock that the operator wants to hear of; one of which nothing proves that is counted as left out.
fn count_orphan(record: &Record, selection: &Selection, found: &mut Health, met: &mut Coverage) {
    if !matches!(orphan::of(record, &[ORPHANED]), Told::Orphan(_)) {
        return;
    }
    match selection.judge(record) {
        Judged::Passes => found.add_orphan(record),
        Judged::Unproven(missing) => met.unproven.add(missing),
        Judged::Fails => {}
    }
}

/// The schemas under whose prefix more foreign records are than records of the schema or of its other releases.
fn outnumbered(catalog: &Catalog, met: &Coverage, own: &BTreeMap<String, u64>) -> Vec<(String, u64, u64)> {
    let of = |(name, foreign): (&String, &u64)| {
        let schema = catalog.all().iter().find(|schema| schema.name == *name)?;
        let alike = catalog.all().iter().filter(|other| other.has_templates_of(schema));
        let own: u64 = alike.filter_map(|alike| own.get(&alike.name)).sum();
        (*foreign > own).then(|| (name.clone(), own, *foreign))
    };
    met.foreign.iter().filter_map(of).collect()
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
