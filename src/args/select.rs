//! The options that select records or locks, which are the same in every command.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::time::{Duration, SystemTime};

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, ValueEnum};

use super::Output;
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::duration::parse_duration;
use crate::domain::record::age::millis;
use crate::domain::schema::{Catalog, State};
use crate::domain::select::glob;
use crate::domain::select::selection::Selection;
use crate::domain::select::status_class::StatusClass;
use crate::exit::CommandError;
use crate::render::escape;
use crate::session::Session;

/// The options that select records, if locks and results are searched.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Select")]
pub(crate) struct SelectArgs {
    /// Only records in this state
    #[arg(long, value_name = "STATE", value_enum, value_delimiter = ',')]
    pub(crate) state: Vec<StateArg>,

    /// Only records known to be at least this old
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    older_than: Option<Duration>,

    /// Only records without expiry
    #[arg(long)]
    no_expiry: bool,

    /// Only stored responses with this HTTP status, e.g. 201 or 5xx
    #[arg(long, value_name = "STATUS", value_delimiter = ',')]
    status: Vec<StatusClass>,

    /// Only responses whose body contains these bytes; reads whole values
    #[arg(long, value_name = "TEXT")]
    body_contains: Option<OsString>,

    /// Only records with this finding; see `idemctl help findings`
    #[arg(
        long,
        value_name = "CODE",
        value_delimiter = ',',
        value_parser = finding_codes(&FindingCode::of_recognised_records())
    )]
    pub(crate) finding: Vec<FindingCode>,

    #[command(flatten)]
    pub(crate) filter: FilterArgs,
}

/// The options that select records, or some of the locks that are searched anyway.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Select")]
pub(crate) struct FilterArgs {
    /// Only records known to be at most this old
    #[arg(
        long,
        visible_alias = "since",
        value_name = "DURATION",
        value_parser = parse_duration,
        allow_hyphen_values = true
    )]
    newer_than: Option<Duration>,

    /// Only records that expire in less than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    ttl_below: Option<Duration>,

    /// Only records that expire in more than this, or never
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    ttl_above: Option<Duration>,

    /// Only locks whose owner matches this glob
    #[arg(long, value_name = "GLOB")]
    owner: Option<OsString>,

    /// Only records whose payload fingerprint matches this glob
    #[arg(long, value_name = "GLOB")]
    fingerprint: Option<OsString>,

    /// Only idempotency keys that match this glob
    ///
    /// `*`, `?` and `[a-z]` are as in Redis, and `\` escapes them.
    #[arg(long = "match", value_name = "GLOB")]
    pub(crate) key_glob: Option<OsString>,
}

impl SelectArgs {
    /// The filters of the options, for a scan of the catalog's schemas. They also select findings
    /// that follow from a schema's defaults.
    ///
    /// # Errors
    /// Usage: an invalid glob, an empty text, or a filter by a field that no schema describes.
    pub(crate) fn selection(
        &self,
        session: &mut Session,
        catalog: &Catalog,
        thresholds: &ThresholdArgs,
    ) -> Result<Selection, CommandError> {
        if self.finding.contains(&FindingCode::Overdue) && thresholds.overdue.is_none() {
            return Err(CommandError::usage("--finding overdue needs --overdue DURATION"));
        }
        let selection = self.selection_of_snapshot()?;
        check_fields(session, &selection, catalog)?;
        Ok(selection)
    }

    /// The filters of the options, for a snapshot, whose records have all fields of their schemas.
    ///
    /// # Errors
    /// Usage: an invalid glob, or an empty text.
    pub(crate) fn selection_of_snapshot(&self) -> Result<Selection, CommandError> {
        if let Some(text) = &self.body_contains
            && text.as_bytes().trim_ascii().is_empty()
        {
            // Every body contains an empty text, so a shell variable that is not set would select
            // all responses.
            return Err(CommandError::usage("--body-contains: the text is empty"));
        }
        Ok(Selection {
            states: self.state.iter().map(|state| State::from(*state)).collect(),
            older_than: self.older_than.map(millis),
            no_expiry: self.no_expiry,
            statuses: self.status.clone(),
            body_contains: self.body_contains.as_ref().map(bytes),
            findings: self.finding.clone(),
            ..self.filter.unchecked_selection()?
        })
    }

    /// True if an option excludes any record.
    pub(crate) fn narrows(&self) -> bool {
        !self.state.is_empty()
            || self.older_than.is_some()
            || self.no_expiry
            || !self.status.is_empty()
            || self.body_contains.is_some()
            || !self.finding.is_empty()
            || self.filter.narrows()
    }
}

impl FilterArgs {
    /// As [`SelectArgs::selection`].
    pub(crate) fn selection(
        &self,
        session: &mut Session,
        catalog: &Catalog,
    ) -> Result<Selection, CommandError> {
        let selection = self.unchecked_selection()?;
        check_fields(session, &selection, catalog)?;
        Ok(selection)
    }

    fn unchecked_selection(&self) -> Result<Selection, CommandError> {
        for (option, pattern) in [
            ("--match", &self.key_glob),
            ("--owner", &self.owner),
            ("--fingerprint", &self.fingerprint),
        ] {
            if let Some(pattern) = pattern {
                glob::check(pattern.as_bytes())
                    .map_err(|why| CommandError::usage(format!("{option}: {why}")))?;
            }
        }
        Ok(Selection {
            newer_than: self.newer_than.map(millis),
            ttl_below: self.ttl_below.map(millis),
            ttl_above: self.ttl_above.map(millis),
            owner_glob: self.owner.as_ref().map(bytes),
            fingerprint_glob: self.fingerprint.as_ref().map(bytes),
            key_glob: self.key_glob.as_ref().map(bytes),
            ..Selection::default()
        })
    }

    /// True if an option excludes any record. `--match '*'` does not, so it cannot replace the
    /// --all of a purge.
    pub(crate) fn narrows(&self) -> bool {
        self.newer_than.is_some()
            || self.ttl_below.is_some()
            || self.ttl_above.is_some()
            || self.owner.is_some()
            || self.fingerprint.is_some()
            || self.key_glob.as_ref().is_some_and(|glob| !glob::is_everything(glob.as_bytes()))
    }

    /// The remark that `--match` seems to be meant for a Redis key, or for a part of a key.
    pub(crate) fn remark(&self, catalog: &Catalog) -> Option<String> {
        let pattern = self.key_glob.as_ref()?.as_bytes();
        let shown = escape::text(pattern);
        for schema in catalog.chosen() {
            for key in &schema.keys {
                let prefix = key.template.prefix();
                // Every key begins with an empty prefix, so it shows nothing about the pattern.
                if prefix.is_empty() {
                    continue;
                }
                if let Some(rest) = pattern.strip_prefix(prefix) {
                    let rest = escape::text(rest);
                    return Some(format!(
                        "--match compares idempotency keys, and {shown} looks like a Redis key: \
                        --match '{rest}' has its idempotency key"
                    ));
                }
            }
        }
        if pattern.iter().any(|byte| b"*?[\\".contains(byte)) {
            return None;
        }
        Some(format!(
            "--match {shown} has no wildcard, so it means that one key: '*{shown}*' finds it as a \
            part"
        ))
    }
}

/// Notes which schemas do not describe a field of a filter: none of their records is selected,
/// whatever the service stores. Of the schemas that nobody named, only those of the operator's own
/// folders count, because most of the others are not in use.
///
/// # Errors
/// Usage: no schema describes the field. An empty result would say that there are no such records.
fn check_fields(
    session: &mut Session,
    selection: &Selection,
    catalog: &Catalog,
) -> Result<(), CommandError> {
    let schemas = catalog.scanned();
    for (option, field) in selection.field_options() {
        let mut without = Vec::new();
        let mut to_note = Vec::new();
        for schema in &schemas {
            if schema.describes(field) || without.contains(&schema.name) {
                continue;
            }
            without.push(schema.name.clone());
            if catalog.names_schemas() || !schema.is_built_in() {
                to_note.push(schema.name.clone());
            }
        }
        let has_field = schemas.iter().any(|schema| schema.describes(field));
        if !has_field && !schemas.is_empty() {
            return Err(CommandError::usage(format!(
                "{option} can select no record, because no schema has a field `{field}` ({})",
                without.join(", ")
            ))
            .hint(format!(
                "if the service stores it, describe it in `fields` of schema.toml; otherwise leave \
                {option} out"
            )));
        }
        if !to_note.is_empty() {
            session.ui.note(&format!(
                "{option} selects no record of {}, whose schema has no field `{field}`",
                to_note.join(", ")
            ));
        }
    }
    Ok(())
}

fn bytes(text: &OsString) -> Vec<u8> {
    text.as_bytes().to_vec()
}

/// `--state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub(crate) enum StateArg {
    /// A lock is held.
    InProgress,
    /// A result is stored.
    Completed,
    /// A failure is stored.
    Failed,
    /// The lock was given up, and the record remains.
    Released,
    /// The schema cannot read it.
    Unreadable,
}

impl From<StateArg> for State {
    fn from(arg: StateArg) -> Self {
        match arg {
            StateArg::InProgress => Self::InProgress,
            StateArg::Completed => Self::Completed,
            StateArg::Failed => Self::Failed,
            StateArg::Released => Self::Released,
            StateArg::Unreadable => Self::Unreadable,
        }
    }
}

/// Reads these codes of findings.
pub(crate) fn finding_codes(codes: &[FindingCode]) -> impl TypedValueParser<Value = FindingCode> {
    PossibleValuesParser::new(codes.iter().map(FindingCode::as_str))
        .try_map(|code| code.parse::<FindingCode>())
}

/// Thresholds of findings.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct ThresholdArgs {
    /// Report locks held longer than this as `overdue`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    pub(crate) overdue: Option<Duration>,
}

impl ThresholdArgs {
    /// The thresholds.
    pub(crate) fn thresholds(&self) -> Thresholds {
        Thresholds { overdue_ms: self.overdue.map(millis), ..Thresholds::default() }
    }
}

/// What is deleted, and whether idemctl asks.
#[derive(Debug, Args)]
pub(crate) struct PruneArgs {
    /// Delete only what is older than this
    #[arg(long, value_name = "DURATION", value_parser = parse_duration)]
    older_than: Duration,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    pub(crate) output: Output,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    pub(crate) yes: bool,

    /// Show what would be done, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

impl PruneArgs {
    /// The time before which something is old.
    pub(crate) fn before(&self, now: SystemTime) -> SystemTime {
        now.checked_sub(self.older_than).unwrap_or(SystemTime::UNIX_EPOCH)
    }
}

/// Keys given as arguments, in a file, or on stdin.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct KeysArgs {
    /// Idempotency keys, Redis keys, or names (`SCHEMA/KEY`) from `list -o name`; `-` reads stdin,
    /// one per line
    #[arg(value_name = "KEY")]
    pub(crate) keys: Vec<OsString>,

    /// File with keys or names, one per line (`-`: stdin)
    #[arg(long, value_name = "FILE", conflicts_with = "keys")]
    pub(crate) key_file: Option<PathBuf>,

    /// Keys in the file or on stdin end with NUL instead of a newline
    ///
    /// A last key without NUL is refused, because it may be cut off.
    #[arg(short = '0', long)]
    pub(crate) null: bool,
}

impl KeysArgs {
    pub(crate) fn are_given(&self) -> bool {
        !self.keys.is_empty() || self.key_file.is_some()
    }

    pub(crate) fn are_on_stdin(&self) -> bool {
        let is_file_stdin = match &self.key_file {
            Some(file) => file.as_os_str() == "-",
            None => false,
        };
        is_file_stdin || self.keys.iter().any(|key| key == "-")
    }
}
