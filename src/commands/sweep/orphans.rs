//! Which locks a sweep removes or lets expire.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::{Args, ValueEnum};

use crate::args::{FilterArgs, SchemaArgs, finding_codes, parse_duration};
use crate::change::bulk::{BulkRule, Planned, PlannedAction, Scope, check_narrow};
use crate::change::needs_a_stated_lock_ttl;
use crate::domain::change::orphan::{self, INCLUDABLE, ORPHANED, Orphan};
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::record::{Candidate, Evidence, Record, TimeLeft, ValueField, age};
use crate::domain::schema::catalog::LOCK_BYTES;
use crate::domain::schema::{Schema, TtlOf};
use crate::domain::select::{Selected, Selection, unproven};
use crate::exit::CommandError;
use crate::scan::RecordFilter;
use crate::session::Session;
use crate::store::KeyAction;

/// The options that choose locks.
#[derive(Debug, Args)]
pub(super) struct SoughtArgs {
    /// Select locks without expiry (`no-expiry`), also next to a result; they never end by
    /// themselves
    ///
    /// Also selects locks with more than a year left (`excess-ttl`), if their lock TTL is shorter
    /// and their Redis key holds only locks.
    #[arg(long)]
    pub(super) orphaned: bool,

    /// Select locks known to be held longer than this (`overdue`)
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    older_than: Option<Duration>,

    /// Also select locks with this finding
    ///
    /// `unreadable` needs --schema, and --prefix or a --match with fixed text.
    #[arg(
        long,
        value_name = "CODE",
        value_delimiter = ',',
        value_parser = finding_codes(&INCLUDABLE)
    )]
    include: Vec<FindingCode>,

    #[command(flatten)]
    pub(super) filter: FilterArgs,
}

/// `--action`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(super) enum ActionArg {
    /// Remove the lock; the next request executes.
    Unlock,
    /// Set the stated lock TTL, so that a worker that is still running can finish; never adds time.
    Expire,
}

impl SoughtArgs {
    /// The findings that are sought, without that of `--older-than`.
    fn codes(&self) -> Vec<FindingCode> {
        let mut codes = Vec::new();
        if self.orphaned {
            codes.push(ORPHANED);
        }
        // In the order of INCLUDABLE, and each once, whatever the options repeat.
        for code in INCLUDABLE {
            if self.include.contains(&code) {
                codes.push(code);
            }
        }
        codes
    }
}

/// The rule of a sweep: the locks with the findings that are sought.
pub(super) struct Orphans {
    scope: Scope,
    sought: Vec<FindingCode>,
    action: ActionArg,
    selection: Selection,
}

impl Orphans {
    /// The rule of these options.
    ///
    /// # Errors
    /// Usage: there is no schema to sweep, or a lock TTL is needed and none is stated.
    pub(super) fn new(
        session: &mut Session,
        args: &SoughtArgs,
        action: ActionArg,
        schemas: &SchemaArgs,
    ) -> Result<Self> {
        let catalog = session.catalog(schemas)?;
        if catalog.scanned().is_empty() {
            return Err(CommandError::usage("no schema to sweep")
                .hint("name one with --schema")
                .into());
        }
        let mut sought = args.codes();
        if args.older_than.is_some() {
            sought.push(FindingCode::Overdue);
        }
        needs_a_stated_ttl(&catalog.scanned(), &sought, action)?;
        let thresholds =
            Thresholds { overdue_ms: args.older_than.map(age::millis), ..Thresholds::default() };
        let selection = Selection {
            finding_evidence: Evidence::Stated,
            ..args.filter.selection(session, &catalog)?
        };
        let mut needed_fields = selection.scanned_fields();
        if sought.contains(&FindingCode::Overdue) {
            needed_fields.insert(ValueField::Time);
        }
        if sought.contains(&FindingCode::Unreadable) {
            needed_fields.insert(ValueField::End);
        }
        let scope = Scope {
            catalog,
            thresholds,
            min_bytes: LOCK_BYTES,
            needed_fields,
            reads_lengths: false,
        };
        Ok(Self { scope, sought, action, selection })
    }

    /// The codes of the findings that are sought.
    pub(super) fn codes(&self) -> Vec<&'static str> {
        self.sought.iter().map(FindingCode::as_str).collect()
    }

    /// True if values that do not decode are swept.
    pub(super) fn changes_unreadable(&self) -> bool {
        self.sought.contains(&FindingCode::Unreadable)
    }

    /// Passes a selection that is narrow enough to be changed.
    ///
    /// # Errors
    /// Usage: refused for safety, with the option that is missing.
    pub(super) fn check_narrow(&self, schemas: &SchemaArgs) -> Result<(), CommandError> {
        let key_glob = self.selection.key_glob.as_deref();
        check_narrow(&self.scope.catalog, schemas, key_glob, false, self.changes_unreadable())
    }

    fn planned(&self, record: &Record, orphan: Orphan) -> Planned<&'static str> {
        let action = match self.action {
            ActionArg::Unlock => PlannedAction::Change(KeyAction::Remove),
            ActionArg::Expire if orphan::expires_anyway(record, orphan.key_index) => {
                PlannedAction::LeaveToExpire
            }
            ActionArg::Expire => {
                let ttl = record.schema.ttl(TtlOf::Lock).unwrap_or(Duration::MAX);
                PlannedAction::Change(KeyAction::Shorten(age::millis(ttl)))
            }
        };
        // A worker may still hold such a lock, so it is left to expire unless its owner is dead.
        let needs_dead_owner = orphan::needs_dead_owner(record, orphan);
        Planned {
            group: orphan.code.as_str(),
            age: orphan::age(record),
            key_indexes: vec![orphan.key_index],
            action,
            needs_dead_owner,
            has_no_owner: record.owner().is_none() && record.is_owner_known(),
        }
    }
}

impl BulkRule for Orphans {
    /// The code of the finding.
    type Group = &'static str;

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn reads_deadlines_first(&self) -> bool {
        // Other findings need values, or have to report which records lack a stated TTL.
        self.sought == [ORPHANED]
    }

    fn has_to_be_read(&self, candidate: &Candidate, expiries: &[Option<TimeLeft>]) -> bool {
        let Scope { catalog, thresholds, .. } = &self.scope;
        let sought = &self.sought;
        orphan::has_to_be_read(catalog, &self.selection, candidate, expiries, sought, thresholds)
    }
}

impl RecordFilter for Orphans {
    type Plan = Planned<&'static str>;

    fn passes_key(&self, key: &[u8]) -> bool {
        self.selection.passes_key(key)
    }

    fn select(&self, record: &Record) -> Selected<Self::Plan> {
        match orphan::chosen(record, &self.sought, &self.selection) {
            // The lock would get the deployment's lock TTL, and a default may be too short for it.
            Selected::Yes(_)
                if self.action == ActionArg::Expire && !record.schema.states_ttl(TtlOf::Lock) =>
            {
                Selected::Unproven(unproven::Missing::Ttl(TtlOf::Lock))
            }
            Selected::Yes(orphan) => Selected::Yes(self.planned(record, orphan)),
            Selected::Unproven(missing) => Selected::Unproven(missing),
            Selected::No => Selected::No,
        }
    }
}

/// Passes if a lock TTL is stated, or none is needed.
///
/// # Errors
/// Usage: none of the schemas has a lock TTL that the deployment states.
fn needs_a_stated_ttl(
    schemas: &[Arc<Schema>],
    sought: &[FindingCode],
    action: ActionArg,
) -> Result<(), CommandError> {
    let what = match action {
        ActionArg::Expire => "--action expire needs this deployment's lock TTL",
        ActionArg::Unlock if sought.contains(&FindingCode::ExcessTtl) => {
            "--include excess-ttl needs this deployment's lock TTL"
        }
        ActionArg::Unlock => return Ok(()),
    };
    needs_a_stated_lock_ttl(what, schemas)
}
