//! Which records a purge is about.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use super::Args;
use crate::args::StateArg;
use crate::change::bulk::{Chosen, Narrowing, Rule, Scope, Verdict};
use crate::context::Context;
use crate::domain::change::orphan::ORPHANED;
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::Record;
use crate::domain::record::age;
use crate::domain::record::evidence::Evidence;
use crate::domain::record::observation::Content;
use crate::domain::schema::State;
use crate::domain::schema::catalog::LONG_HEAD_BYTES;
use crate::domain::select::glob;
use crate::domain::select::selection::{Judged, Selection};
use crate::exit::Stop;
use crate::store::Action;

/// Schemas, and the filters a record must pass.
pub(super) struct Choice {
    scope: Scope,
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
            evidence: Evidence::Stated,
            key_glob: args.key_glob.as_ref().map(|glob| glob.as_bytes().to_vec()),
            findings: args.finding.clone(),
            ..Selection::default()
        };
        let thresholds = args.thresholds.thresholds();
        let least = if selection.states.contains(&State::Unreadable) { LONG_HEAD_BYTES } else { 0 };
        let lengths = selection.findings.contains(&FindingCode::Oversized);
        let scope = Scope { catalog, thresholds, least, lengths };
        Ok(Self { scope, selection, reads_all: args.max_percent.is_some() })
    }

    /// Passes where what is purged is narrow enough to be changed.
    ///
    /// # Errors
    /// Refused for safety.
    pub(super) fn is_narrow(&self, args: &Args) -> Result<(), Stop> {
        let glob = self.selection.key_glob.as_deref();
        let narrowing = Narrowing { glob, has_key_file: args.key_file.is_some(), schemas: &args.schemas };
        narrowing.check(&self.scope.catalog, self.selection.states.contains(&State::Unreadable))
    }

    /// True when locks that are held are purged too.
    pub(super) fn takes_locks(&self) -> bool {
        self.selection.states.contains(&State::InProgress)
    }
}

impl Rule for Choice {
    /// The schema's name, and the record's state.
    type Group = (String, &'static str);

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn may_choose(&self, key: &[u8]) -> bool {
        self.reads_all || self.selection.passes_key(key)
    }

    /// Every Redis key goes, that of the lock first: were it the result, a retry in between would find the lock alone and
    /// be turned away.
    fn choose(&self, record: &Record) -> Verdict<Self::Group> {
        if record.seen.slots.iter().any(|slot| matches!(slot.content, Content::Other(_))) {
            return Verdict::Passed;
        }
        match self.selection.judge(record) {
            Judged::Passes => {}
            Judged::Fails => return Verdict::Passed,
            Judged::Unproven(missing) => return Verdict::Unproven(missing),
        }
        let lock = record.schema.lock_slot();
        let others = (0..record.seen.slots.len()).filter(|slot| *slot != lock);
        Verdict::Chosen(Chosen {
            group: (record.schema.name.clone(), record.state.as_str()),
            age: record.age,
            slots: std::iter::once(lock).chain(others).collect(),
            action: Some(Action::Remove),
            ends_by_itself: false,
        })
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
    let of_locks = |code: &&FindingCode| [ORPHANED, FindingCode::ExcessTtl, FindingCode::Overdue].contains(code);
    let takes_locks = args.state.contains(&StateArg::InProgress);
    if let Some(code) = args.finding.iter().find(of_locks).filter(|_| !takes_locks) {
        return Err(Stop::usage(format!("--finding {} is of locks, which a purge leaves alone", code.as_str()))
            .hint("`idemctl sweep` removes them after two looks; --state in-progress purges them"));
    }
    if args.finding.contains(&FindingCode::WrongType) {
        return Err(
            Stop::usage("--finding wrong-type: such a Redis key is another program's").hint("find that program first")
        );
    }
    if !args.state.is_empty() {
        return Ok(args.state.iter().map(|state| State::from(*state)).collect());
    }
    let mut states = vec![State::Completed];
    states.extend(args.finding.contains(&FindingCode::Unreadable).then_some(State::Unreadable));
    Ok(states)
}
