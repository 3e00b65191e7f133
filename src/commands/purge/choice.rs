//! Which records a purge is about.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;

use crate::args::{SchemaArgs, StateArg, ThresholdArgs, finding_codes, parse_duration};
use crate::change::bulk::{Chosen, KeyFile, Narrowing, Rule, Scope, Verdict};
use crate::context::Context;
use crate::domain::change::orphan::ORPHANED;
use crate::domain::diagnosis::FindingCode;
use crate::domain::record::{Content, Evidence, Record, age};
use crate::domain::schema::State;
use crate::domain::schema::catalog::LONG_HEAD_BYTES;
use crate::domain::select::{Judged, Selection, glob};
use crate::exit::Stop;
use crate::store::Action;

#[derive(Debug, Args)]
pub(super) struct ChoiceArgs {
    /// Only records in this state [default: completed]
    #[arg(long, value_name = "STATE", value_enum, value_delimiter = ',')]
    state: Vec<StateArg>,

    /// Only records known to be at least this old
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    older_than: Option<Duration>,

    /// Only idempotency keys that match this glob (`*`, `?`, `[a-z]`, `\` escapes)
    #[arg(long = "match", value_name = "GLOB")]
    key_glob: Option<OsString>,

    /// Only records with this finding
    #[arg(long, value_name = "CODE", value_delimiter = ',', value_parser = finding_codes(FindingCode::ALL))]
    finding: Vec<FindingCode>,

    /// Only the records of the idempotency keys or Redis keys in this file (`-`: stdin), one a line
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,

    /// Keys in the file end with NUL instead of a newline
    #[arg(short = '0', long, requires = "key_file")]
    null: bool,

    /// All records that are completed, where nothing else chooses
    #[arg(long)]
    all: bool,
}

impl ChoiceArgs {
    /// The file that names keys, where there is one.
    pub(super) fn open_key_file(&self, context: &Context) -> Result<Option<KeyFile>, Stop> {
        let temp_dir = context.settings.environment().temp_dir();
        self.key_file.as_ref().map(|path| KeyFile::open(path, self.null, &temp_dir)).transpose()
    }

    /// Passes where an option says which records are meant.
    fn check(&self, schemas: &SchemaArgs) -> Result<(), Stop> {
        if let Some(glob) = &self.key_glob {
            glob::check(glob.as_bytes()).map_err(|why| Stop::usage(format!("--match: {why}")))?;
        }
        let narrows = |glob: &OsString| !glob::is_everything(glob.as_bytes());
        let chosen = !self.state.is_empty()
            || self.older_than.is_some()
            || self.key_glob.as_ref().is_some_and(narrows)
            || !self.finding.is_empty()
            || !schemas.schema.is_empty()
            || self.key_file.is_some();
        if chosen || self.all {
            return Ok(());
        }
        Err(Stop::usage("nothing says which records to purge")
            .hint("choose with --state, --older-than, --match, --schema, --finding or --key-file; --all takes all that are completed"))
    }

    /// The states that are purged: completed, unless said otherwise; locks only where their state is named.
    fn states(&self) -> Result<Vec<State>, Stop> {
        let of_locks = |code: &&FindingCode| [ORPHANED, FindingCode::ExcessTtl, FindingCode::Overdue].contains(code);
        let takes_locks = self.state.contains(&StateArg::InProgress);
        if let Some(code) = self.finding.iter().find(of_locks).filter(|_| !takes_locks) {
            return Err(Stop::usage(format!("--finding {} is of locks, which a purge leaves alone", code.as_str()))
                .hint("`idemctl sweep` removes them after two looks; --state in-progress purges them"));
        }
        if self.finding.contains(&FindingCode::WrongType) {
            return Err(Stop::usage("--finding wrong-type: such a Redis key is another program's")
                .hint("find that program first"));
        }
        if !self.state.is_empty() {
            return Ok(self.state.iter().map(|state| State::from(*state)).collect());
        }
        let mut states = vec![State::Completed];
        states.extend(self.finding.contains(&FindingCode::Unreadable).then_some(State::Unreadable));
        Ok(states)
    }
}

pub(super) struct Choice {
    scope: Scope,
    selection: Selection,
    /// True when every record is to be read, to be counted.
    reads_all: bool,
}

impl Choice {
    /// # Errors
    /// Usage: nothing is chosen, or what never can be.
    pub(super) fn new(
        context: &Context,
        args: &ChoiceArgs,
        schemas: &SchemaArgs,
        thresholds: &ThresholdArgs,
        reads_all: bool,
    ) -> anyhow::Result<Self> {
        args.check(schemas)?;
        let catalog = context.catalog(schemas)?;
        if catalog.scanned().is_empty() {
            return Err(Stop::usage("no schema to purge").hint("name one with --schema").into());
        }
        let selection = Selection {
            states: args.states()?,
            older_than: args.older_than.map(age::millis),
            evidence: Evidence::Stated,
            key_glob: args.key_glob.as_ref().map(|glob| glob.as_bytes().to_vec()),
            findings: args.finding.clone(),
            ..Selection::default()
        };
        let thresholds = thresholds.thresholds();
        let least = if selection.states.contains(&State::Unreadable) { LONG_HEAD_BYTES } else { 0 };
        let lengths = selection.findings.contains(&FindingCode::Oversized);
        let scope = Scope { catalog, thresholds, least, lengths };
        Ok(Self { scope, selection, reads_all })
    }

    /// Passes where the choice is narrow enough to be changed.
    pub(super) fn check_narrow(&self, args: &ChoiceArgs, schemas: &SchemaArgs) -> Result<(), Stop> {
        let glob = self.selection.key_glob.as_deref();
        let narrowing = Narrowing { glob, has_key_file: args.key_file.is_some(), schemas };
        narrowing.check(&self.scope.catalog, self.selection.states.contains(&State::Unreadable))
    }

    /// True when locks that are held are purged, too.
    pub(super) fn takes_locks(&self) -> bool {
        self.selection.states.contains(&State::InProgress)
    }
}

impl Rule for Choice {
    /// The schema's name and the record's state.
    type Group = (String, &'static str);

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn may_choose(&self, key: &[u8]) -> bool {
        self.reads_all || self.selection.passes_key(key)
    }

    /// Every Redis key goes, the lock's first: were the result's first, a retry in between would find the lock alone and be
    /// turned away.
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
