//! The rule of a command: which records it selects, what it plans for each, and how narrow its
//! selection has to be.

use crate::args::SchemaArgs;
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::{Age, Candidate, FieldSet, Record, TimeLeft};
use crate::domain::schema::Catalog;
use crate::domain::select::glob;
use crate::exit::CommandError;
use crate::scan::RecordFilter;
use crate::session::Session;
use crate::store::KeyAction;

/// What is read of the records that a rule selects from. Each field costs commands or bytes, so a
/// rule sets only what it selects by.
pub struct Scope {
    /// The schemas whose records are read.
    pub catalog: Catalog,
    /// The ages and sizes from which on a record has a finding.
    pub thresholds: Thresholds,
    /// Bytes of each value that a scan reads at least.
    pub min_bytes: usize,
    /// The fields of values that the rule selects by.
    pub needed_fields: FieldSet,
    /// True if the rule selects by the lengths of values.
    pub reads_lengths: bool,
}

/// Which records a command selects, and what it plans for each.
pub trait BulkRule: RecordFilter<Plan = Planned<<Self as BulkRule>::Group>> {
    /// What the selected records are counted by.
    type Group: Ord + Clone + Default;

    /// What is read of the records.
    fn scope(&self) -> &Scope;

    /// True if the deadlines of a page are read first, and then only the values of the records that
    /// [`BulkRule::has_to_be_read`] names. That pays if deadlines exclude most records.
    fn reads_deadlines_first(&self) -> bool {
        false
    }

    /// False if the expiries of a record's Redis keys (`None`: absent) show that the rule does not
    /// select the record.
    fn has_to_be_read(&self, _candidate: &Candidate, _expiries: &[Option<TimeLeft>]) -> bool {
        true
    }

    /// Why the rule does not select a record that its filters accept; `None` if it selects it, or if
    /// the filters leave it out.
    fn refused_because(&self, _record: &Record) -> Option<String> {
        None
    }

    /// Why the rule does not select a record that the operator named.
    fn left_out_because(&self, record: &Record) -> String {
        not_selected(record)
    }
}

/// Why a rule does not select a record that the operator named, by its state.
pub fn not_selected(record: &Record) -> String {
    format!("it is {} and not selected", record.state.as_str())
}

/// What a command plans for a record that it selected.
pub struct Planned<G> {
    /// What the record is counted by.
    pub group: G,
    /// How old the record, or its lock, is.
    pub age: Option<Age>,
    /// The Redis keys that change, in this order, by their indexes in the record.
    pub key_indexes: Vec<usize>,
    /// What is done to these Redis keys.
    pub action: PlannedAction,
    /// True for a lock that expires and may belong to a live worker. It is changed only if
    /// `--owner-alive` says that its owner is dead; otherwise it is left to expire. Never true in a
    /// purge, because the operator has chosen the locks.
    pub needs_dead_owner: bool,
    /// True if the lock names no owner, so that `--owner-alive` cannot be asked about it.
    pub has_no_owner: bool,
}

impl<G> Planned<G> {
    /// True if the lock is left to expire; `asks_owners` is true with `--owner-alive`.
    pub(super) fn is_left_to_expire(&self, asks_owners: bool) -> bool {
        self.needs_dead_owner && (self.has_no_owner || !asks_owners)
    }

    /// True if nothing but the lock changes, and the lock is the service's, whatever another
    /// program wrote beside it.
    pub(super) fn is_only_own_lock(&self, record: &Record) -> bool {
        record.author.is_of_lock() && self.key_indexes == [record.schema.lock_key_index()]
    }
}

/// What is planned for the Redis keys of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlannedAction {
    /// They are removed, or get another TTL.
    Change(KeyAction),
    /// The lock expires by itself before the change would make it expire.
    LeaveToExpire,
}

/// Passes a selection that is narrow enough to be changed, so that values of other programs stay.
/// `key_glob` is `--match`, and `names_keys` is true if keys are named one by one.
/// `changes_unreadable` is true if the command also changes values that do not decode.
///
/// # Errors
/// Usage: refused for safety, with the option that is missing.
pub fn check_narrow(
    catalog: &Catalog,
    schemas: &SchemaArgs,
    key_glob: Option<&[u8]>,
    names_keys: bool,
    changes_unreadable: bool,
) -> Result<(), CommandError> {
    let is_narrow = names_keys || key_glob.is_some_and(glob::has_literal);
    for schema in catalog.scanned() {
        if !schema.has_fixed_prefix() && !is_narrow {
            let name = &schema.name;
            return Err(CommandError::usage(format!(
                "{name} has no fixed prefix, so any Redis key could match it"
            ))
            .hint(NARROW));
        }
    }
    // The value does not tell whose it is, so that the operator has to.
    let is_schema_named = !schemas.schema.is_empty();
    let has_prefix = schemas.prefix.as_ref().is_some_and(|prefix| !prefix.is_empty());
    if changes_unreadable && !(is_schema_named && (is_narrow || has_prefix)) {
        return Err(
            CommandError::usage("an unreadable value may belong to any program").hint(NARROW)
        );
    }
    Ok(())
}

/// How a change is narrowed to the records of one schema.
const NARROW: &str =
    "pass --schema, with --prefix or a --match with fixed text; purge also accepts KEYs";

/// Says in a dry run that the change itself would be refused, and which option is missing.
pub fn warn_of_refusal(session: &mut Session, refused: CommandError) {
    session.ui.warning(&format!("without --dry-run, this is refused: {}", refused.message));
    if let Some(hint) = refused.hint {
        session.ui.hint(&hint);
    }
}
