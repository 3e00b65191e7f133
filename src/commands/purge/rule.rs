//! Which records a purge removes.

use clap::Args;

use crate::args::{KeysArgs, SchemaArgs, SelectArgs, StateArg, ThresholdArgs};
use crate::change::bulk::{BulkRule, Planned, PlannedAction, Scope, check_narrow, not_selected};
use crate::domain::change::{purgeable, unlock};
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::record::{Evidence, FieldSet, Record};
use crate::domain::schema::{Catalog, State};
use crate::domain::select::{Selected, Selection};
use crate::exit::CommandError;
use crate::scan::RecordFilter;
use crate::session::Session;
use crate::session::key_list::KeyList;
use crate::store::KeyAction;

/// Bytes of the longest string that Redis stores by default (`proto-max-bulk-len`).
const LONGEST_VALUE: usize = 512 << 20;

/// The options that select records.
#[derive(Debug, Default, Args)]
pub(super) struct ChoiceArgs {
    #[command(flatten)]
    pub(super) keys: KeysArgs,

    /// Select all completed records, if no other option selects records
    #[arg(long)]
    all: bool,

    #[command(flatten)]
    pub(super) select: SelectArgs,
}

impl ChoiceArgs {
    /// Passes if an option selects records.
    ///
    /// # Errors
    /// Usage: none does. A purge of everything is asked for with --all.
    fn check(&self, schemas: &SchemaArgs) -> Result<(), CommandError> {
        let names_schema = !schemas.schema.is_empty();
        if self.select.narrows() || names_schema || self.keys.are_given() || self.all {
            return Ok(());
        }
        Err(CommandError::usage("no records are selected").hint(
            "name keys, or select records with --state, --older-than, --match, --schema, --finding \
            or --key-file; --all selects all completed records",
        ))
    }

    /// The states that are purged: completed, unless said otherwise; locks only if their state is
    /// named, because a worker may still hold them.
    ///
    /// # Errors
    /// Usage: a finding is about records that a purge leaves alone.
    fn states(&self) -> Result<Vec<State>, CommandError> {
        let removes_locks = self.select.state.contains(&StateArg::InProgress);
        for code in &self.select.finding {
            if code.is_of_lock_without_result() && !removes_locks {
                return Err(CommandError::usage(format!(
                    "--finding {} selects locks, which purge does not remove by default",
                    code.as_str()
                ))
                .hint(
                    "use `idemctl sweep --orphaned` to remove them after a recheck, or add --state \
                    in-progress to purge them",
                ));
            }
        }
        if !self.select.state.is_empty() {
            return Ok(self.select.state.iter().map(|state| State::from(*state)).collect());
        }
        let mut states = vec![State::Completed];
        if self.select.finding.contains(&FindingCode::Unreadable) {
            states.push(State::Unreadable);
        }
        Ok(states)
    }
}

/// The rule of a purge: what the options choose is removed with all of its Redis keys. Or that of a
/// plan: each of its records is removed.
pub(super) struct PurgeRule {
    scope: Scope,
    selection: Selection,
    /// True if every record is read, because a percentage of all is asked for.
    reads_all: bool,
    /// True for a plan of locks: results beside them stay.
    pub(super) only_locks: bool,
}

impl PurgeRule {
    /// The rule of a plan, whose filters were evaluated when it was made.
    pub(super) fn of_plan(catalog: Catalog, only_locks: bool) -> Self {
        let scope = Scope {
            catalog,
            thresholds: Thresholds::default(),
            min_bytes: 0,
            needed_fields: FieldSet::NONE,
            reads_lengths: false,
        };
        Self { scope, selection: Selection::default(), reads_all: false, only_locks }
    }

    /// The rule of these options.
    ///
    /// # Errors
    /// Usage: nothing is chosen, or what a purge never removes.
    pub(super) fn new(
        session: &mut Session,
        args: &ChoiceArgs,
        schemas: &SchemaArgs,
        thresholds: &ThresholdArgs,
        reads_all: bool,
        keys: Option<&mut KeyList>,
    ) -> anyhow::Result<Self> {
        args.check(schemas)?;
        let catalog = match keys {
            Some(keys) => session.catalog_to_change(schemas, keys)?,
            None => session.catalog(schemas)?,
        };
        if catalog.scanned().is_empty() {
            return Err(CommandError::usage("no schema to purge")
                .hint("name one with --schema")
                .into());
        }
        let selection = Selection {
            states: args.states()?,
            finding_evidence: Evidence::Stated,
            ..args.select.selection(session, &catalog, thresholds)?
        };
        let thresholds = thresholds.thresholds();
        // A body is searched to its end.
        let min_bytes = if selection.reads_bodies() { LONGEST_VALUE } else { 0 };
        // Each length costs a command, so lengths are read only if they decide which
        // records are selected.
        let reads_lengths = selection.findings.contains(&FindingCode::Oversized);
        let needed_fields = selection.scanned_fields();
        let scope = Scope { catalog, thresholds, min_bytes, needed_fields, reads_lengths };
        Ok(Self { scope, selection, reads_all, only_locks: false })
    }

    /// Passes a selection that is narrow enough to be changed.
    ///
    /// # Errors
    /// Usage: refused for safety, with the option that is missing.
    pub(super) fn check_narrow(
        &self,
        args: &ChoiceArgs,
        schemas: &SchemaArgs,
    ) -> Result<(), CommandError> {
        let key_glob = self.selection.key_glob.as_deref();
        let changes_unreadable = self.selection.states.contains(&State::Unreadable);
        let names_keys = args.keys.are_given();
        check_narrow(&self.scope.catalog, schemas, key_glob, names_keys, changes_unreadable)
    }

    /// What is done to the records, as the log says it.
    pub(super) fn done(&self) -> &'static str {
        if self.only_locks { "unlocked" } else { "purged" }
    }

    /// The Redis keys to remove, by their indexes: every one, the lock first. If a cluster keeps the
    /// keys in several slots, they are removed one slot after the other. If the result were first, a
    /// retry in between would find the lock alone and be rejected.
    ///
    /// # Errors
    /// Why the record stays.
    fn key_indexes(&self, record: &Record) -> Result<Vec<usize>, String> {
        if self.only_locks {
            return Ok(vec![unlock::removable(record)?]);
        }
        // A Redis key of another type belongs to another program, whatever its name is.
        purgeable::check_own_keys(record)?;
        let lock = record.schema.lock_key_index();
        let mut key_indexes = vec![lock];
        for key_index in 0..record.seen.keys.len() {
            if key_index != lock {
                key_indexes.push(key_index);
            }
        }
        Ok(key_indexes)
    }
}

/// A group of the records that a purge counts together: the schema's name and the records' state.
type PurgeGroup = (String, &'static str);

impl BulkRule for PurgeRule {
    type Group = PurgeGroup;

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn refused_because(&self, record: &Record) -> Option<String> {
        match self.selection.selects(record) {
            Selected::Yes(()) => purgeable::check_own_keys(record).err(),
            Selected::No | Selected::Unproven(_) => None,
        }
    }

    fn left_out_because(&self, record: &Record) -> String {
        let state = record.state.as_str();
        // Without --state, a purge selects completed records.
        let has_own_option = matches!(record.state, State::Failed | State::Released);
        if has_own_option && self.selection.states == [State::Completed] {
            return format!("it is {state}, and only --state {state} selects it");
        }
        not_selected(record)
    }
}

impl RecordFilter for PurgeRule {
    type Plan = Planned<PurgeGroup>;

    fn passes_key(&self, key: &[u8]) -> bool {
        self.reads_all || self.selection.passes_key(key)
    }

    fn is_about(&self, record: &Record) -> bool {
        self.selection.is_about(record)
    }

    fn select(&self, record: &Record) -> Selected<Self::Plan> {
        let Ok(key_indexes) = self.key_indexes(record) else { return Selected::No };
        match self.selection.selects(record) {
            Selected::Yes(()) => {}
            Selected::No => return Selected::No,
            // Missing evidence, e.g. for an age or a field, never selects a record for a change.
            Selected::Unproven(missing) => return Selected::Unproven(missing),
        }
        Selected::Yes(Planned {
            group: (record.schema.name.clone(), record.state.as_str()),
            age: record.age,
            key_indexes,
            action: PlannedAction::Change(KeyAction::Remove),
            needs_dead_owner: false,
            has_no_owner: false,
        })
    }
}

/// The options that limit a purge.
#[derive(Debug, Default, Args)]
pub(super) struct LimitArgs {
    /// Refuse if more records are selected than this, and never remove more
    #[arg(long, value_name = "N", value_parser = parse_count, allow_negative_numbers = true)]
    pub(super) max: Option<u64>,

    /// Refuse to remove more than this percentage of the schemas' records
    #[arg(
        long,
        value_name = "PERCENT",
        value_parser = parse_percent,
        conflicts_with_all = ["key_file", "keys"],
        allow_negative_numbers = true
    )]
    pub(super) max_percent: Option<f64>,
}

impl LimitArgs {
    /// True if an option bounds how many records are chosen, so that they are counted before any is
    /// removed.
    pub(super) fn is_given(&self) -> bool {
        self.max.is_some() || self.max_percent.is_some()
    }

    /// How many records may be removed, if `total` of `records` are chosen: as many as the options
    /// allow, because there may be more by then; without options, as many as were counted.
    ///
    /// # Errors
    /// Refused: more are chosen than the options allow.
    pub(super) fn limit_for(&self, total: u64, records: u64) -> Result<u64, CommandError> {
        if total == 0 {
            return Ok(0);
        }
        let mut most = total;
        if let Some(max) = self.max {
            if total > max {
                return Err(too_many(total, max, "--max"));
            }
            most = max;
        }
        let Some(percent) = self.max_percent else { return Ok(most) };
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a percentage of a count, rounded down"
        )]
        let part = (records as f64 * percent / 100.0) as u64;
        if total > part {
            let by = format!("--max-percent {percent} of {records}");
            return Err(too_many(total, part, &by));
        }
        // Only --max permits more than were shown.
        Ok(most.min(part))
    }
}

/// That more records are selected than an option allows.
fn too_many(total: u64, allowed: u64, by: &str) -> CommandError {
    CommandError::usage(format!(
        "{total} records are selected, but {by} allows {allowed}; nothing was changed"
    ))
    .hint("select fewer records, or allow more")
}

fn parse_count(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| "a number of records must be a whole number, and 0 or more".to_owned())
}

/// Parses `5`, `0.5` or `5%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.strip_suffix('%').unwrap_or(text);
    match number.parse() {
        // This also refuses NaN, which no range contains.
        Ok(percent) if (0.0..=100.0).contains(&percent) => Ok(percent),
        _ => Err("a percentage must be a number from 0 to 100".to_owned()),
    }
}

#[cfg(test)]
mod limit_tests {
    use super::*;

    #[test]
    fn only_max_permits_more_than_were_shown() {
        let limit = |max, max_percent| LimitArgs { max, max_percent };
        // Ten of a hundred records were selected and shown.
        assert_eq!(limit(None, None).limit_for(10, 100).unwrap(), 10);
        assert_eq!(limit(None, Some(50.0)).limit_for(10, 100).unwrap(), 10);
        assert_eq!(limit(Some(20), None).limit_for(10, 100).unwrap(), 20);
        assert_eq!(limit(Some(20), Some(15.0)).limit_for(10, 100).unwrap(), 15);
        assert!(limit(None, Some(5.0)).limit_for(10, 100).is_err());
        assert!(limit(Some(9), None).limit_for(10, 100).is_err());
    }
}
