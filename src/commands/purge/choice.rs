//! Which records a purge is about.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use super::Args;
use crate::args::StateArg;
use crate::context::Context;
use crate::domain::catalog::{Catalog, LONG_HEAD_BYTES};
use crate::domain::diagnosis::{CODES, Thresholds};
use crate::domain::observation::Content;
use crate::domain::orphan::{ORPHANED, OVERDUE, UNREADABLE};
use crate::domain::record::Record;
use crate::domain::schema::State;
use crate::domain::selection::Selection;
use crate::domain::{age, glob};
use crate::exit::Stop;
use crate::store::{Head, Reader, StoreError, Walk};

/// The finding of a Redis key that holds no string: it is another program's, and never purged.
const WRONG_TYPE: &str = "wrong-type";

/// The finding that takes a value's length.
const OVERSIZED: &str = "oversized";

/// Schemas, and the filters a record must pass.
pub(super) struct Choice {
    pub(super) catalog: Catalog,
    pub(super) thresholds: Thresholds,
    selection: Selection,
    /// True when every record is to be read, to be counted.
    reads_all: bool,
}

impl Choice {
    /// Makes sense of the options.
    ///
    /// # Errors
    /// Usage: nothing is chosen, or what never can be.
    pub(super) fn new(context: &Context, args: &Args) -> anyhow::Result<Self> {
        something_is_chosen(args)?;
        let catalog = context.catalog(&args.schemas)?;
        if catalog.scanned().is_empty() {
            return Err(Stop::usage("no schema to purge").hint("name one with --schema").into());
        }
        let selection = Selection {
            states: states(args)?,
            older_than: args.older_than.map(age::millis),
            key_glob: args.key_glob.as_ref().map(|glob| glob.as_bytes().to_vec()),
            findings: CODES.into_iter().filter(|code| args.finding.iter().any(|asked| asked == code)).collect(),
            ..Selection::default()
        };
        let thresholds = args.thresholds.thresholds();
        Ok(Self { catalog, thresholds, selection, reads_all: args.max_percent.is_some() })
    }

    /// How much of each value is read at first: what tells what a record of any of the schemas is.
    pub(super) fn head(&self) -> Head {
        let telling = self.catalog.chosen().iter().map(|schema| schema.head_bytes()).max();
        Head::Bytes(self.least().max(telling.unwrap_or(0)))
    }

    /// How much is read of a value whose schema needs less.
    fn least(&self) -> usize {
        let unreadable = self.selection.states.contains(&State::Unreadable);
        if unreadable { LONG_HEAD_BYTES } else { 0 }
    }

    /// Starts a walk for what may be chosen.
    ///
    /// # Errors
    /// As every read.
    pub(super) async fn walk(&self, reader: Reader) -> Result<Walk, StoreError> {
        let walk = Walk::start(reader, &self.catalog, Head::Bytes(self.least())).await?;
        let by_size = self.selection.findings.contains(&OVERSIZED);
        Ok(if by_size { walk } else { walk.without_lengths() })
    }

    /// True unless the idempotency key alone tells that the record need not be read.
    pub(super) fn may_choose(&self, key: &[u8]) -> bool {
        self.reads_all || self.selection.passes_key(key)
    }

    /// True when the record is to be purged.
    pub(super) fn chooses(&self, record: &Record) -> bool {
        let is_strings = record.seen.slots.iter().all(|slot| !matches!(slot.content, Content::Other(_)));
        is_strings && self.selection.passes(record)
    }

    /// True when a walk would find the record: schemas without a literal prefix have to be named, also for a key.
    pub(super) fn scans(&self, record: &Record) -> bool {
        self.catalog.scanned().iter().any(|schema| schema.name == record.schema.name)
    }

    /// True when locks that are held are purged too.
    pub(super) fn takes_locks(&self) -> bool {
        self.selection.states.contains(&State::InProgress)
    }
}

fn something_is_chosen(args: &Args) -> Result<(), Stop> {
    if let Some(glob) = &args.key_glob {
        glob::check(glob.as_bytes()).map_err(|why| Stop::usage(format!("--match: {why}")))?;
    }
    let narrows = |glob: &OsString| !glob::is_everything(glob.as_bytes());
    let chosen = !args.state.is_empty()
        || args.older_than.is_some()
        || args.key_glob.as_ref().is_some_and(narrows)
        || !args.finding.is_empty()
        || !args.schemas.schema.is_empty()
        || args.key_file.is_some();
    if chosen || args.all {
        return Ok(());
    }
    Err(Stop::usage("nothing says which records to purge")
        .hint("choose with --state, --older-than, --match, --schema, --finding or --key-file; --all takes all that are completed"))
}

/// Completed ones, unless said otherwise; locks never unless asked for by state.
fn states(args: &Args) -> Result<Vec<State>, Stop> {
    let of_locks = |code: &String| ORPHANED[..2].contains(&code.as_str()) || code == OVERDUE;
    let takes_locks = args.state.contains(&StateArg::InProgress);
    if let Some(code) = args.finding.iter().find(|code| of_locks(code)).filter(|_| !takes_locks) {
        return Err(Stop::usage(format!("--finding {code} is of locks, which a purge leaves alone"))
            .hint("`idemctl sweep` removes them after two looks; --state in-progress purges them"));
    }
    if args.finding.iter().any(|code| code == WRONG_TYPE) {
        return Err(Stop::usage(format!("--finding {WRONG_TYPE}: such a Redis key is another program's"))
            .hint("find that program first"));
    }
    if !args.state.is_empty() {
        return Ok(args.state.iter().map(|state| State::from(*state)).collect());
    }
    let mut states = vec![State::Completed];
    states.extend(args.finding.iter().any(|code| code == UNREADABLE).then_some(State::Unreadable));
    Ok(states)
}
