//! How a record is completed: over which value, by which owner, for which payload.

use anyhow::Result;

use crate::change;
use crate::domain::manual_step::{self, Completion, NotExecutable, Overrides};
use crate::domain::record::{Content, Record, Response};
use crate::domain::schema::{Schema, Step};
use crate::domain::step::StepInputs;
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::session::Session;

/// The hint for a record that only another override completes.
const TRY_REPLACE: &str = "to replace it with this response, try --replace";

/// The warning about a record without a hash under a schema that compares payloads.
pub(crate) const NO_HASH: &str = "the record has no hash of a payload, so requests with this key \
    may be rejected as having another payload";

/// The options of `complete`.
#[derive(Clone, Copy)]
pub(crate) struct CompleteOptions<'a> {
    /// What the operator permits besides completing a lock.
    pub(crate) overrides: Overrides,
    pub(crate) owner: Option<&'a str>,
    pub(crate) fingerprint: Option<&'a str>,
    pub(crate) dry_run: bool,
}

/// How a record is completed.
pub(crate) struct ChosenCompletion {
    /// What completing does to the record.
    pub(crate) completion: Completion,
    /// The owner; empty if the schema stores no owners.
    pub(crate) owner: Vec<u8>,
    /// True if the operator named the owner.
    is_owner_given: bool,
    /// The hash of the payload that is stored with the result; empty if the schema keeps none.
    fingerprint: String,
}

impl ChosenCompletion {
    /// Decides, and asks for the owner if the schema checks one.
    ///
    /// # Errors
    /// Why this record is not to be completed in this way.
    pub(crate) fn new(
        session: &mut Session,
        asked: CompleteOptions<'_>,
        record: &Record,
        step: &Step,
    ) -> Result<Self> {
        let completion = manual_step::completion_of(record, asked.overrides)
            .map_err(|why| refused(record, &why))?;
        if completion == Completion::Creating {
            change::check_creates_lock(&record.schema)?;
        }
        // Before the operator looks for a fingerprint that would not help.
        if completion == Completion::OfLock && asked.owner.is_none() {
            change::check_owner_has_name(record, step)?;
        }
        let fingerprint = fingerprint(record, completion, asked.fingerprint)?;
        let owner = match completion {
            Completion::OfLock => {
                change::owner_of_lock(session, record, step, asked.owner, asked.dry_run)?
            }
            Completion::Creating | Completion::Replacing => {
                change::owner_of_new_lock(record, asked.owner, true)?
            }
        };
        Ok(Self { completion, owner, is_owner_given: asked.owner.is_some(), fingerprint })
    }

    /// How a lock is completed in the name of its own holder, without asking anybody.
    ///
    /// # Errors
    /// Why this record is not to be completed in this way.
    pub(crate) fn of_lock(record: &Record) -> Result<Self, CommandError> {
        let completion = manual_step::completion_of(record, Overrides::default())
            .map_err(|why| refused(record, &why))?;
        let owner = record.owner().unwrap_or_default().to_vec();
        let fingerprint = fingerprint(record, completion, None)?;
        Ok(Self { completion, owner, is_owner_given: false, fingerprint })
    }

    /// The owner token of the worker that held the lock, or the one that the operator gave. `None`
    /// if the token of the completion is new, so that no worker has it.
    pub(crate) fn original_worker(&self, record: &Record) -> Option<&[u8]> {
        let is_kept = self.completion == Completion::OfLock
            || self.is_owner_given
            || record.owner() == Some(&self.owner[..]);
        if is_kept { Some(&self.owner) } else { None }
    }

    /// The values of the step's placeholders, checked: the result can be written, reads back as a
    /// result, and keeps what retries need.
    ///
    /// # Errors
    /// Permission: the schema keeps times, and the server does not tell the time. Usage: the result
    /// would lose fields of the lock, cannot be written or read back, or would keep another
    /// fingerprint.
    pub(crate) fn checked_inputs<'a>(
        &'a self,
        record: &'a Record,
        response: &'a Response,
        error: Option<&'a str>,
    ) -> Result<StepInputs<'a>, CommandError> {
        let schema = &record.schema;
        let now_ms = change::time_for(schema, record.seen.server_ms, self.needs_time(schema))?;
        let stored = &record.seen.keys[schema.result_key_index()].content;
        let inputs = StepInputs {
            fingerprint: &self.fingerprint,
            error,
            now_ms,
            before: if *stored == Content::Absent { None } else { Some(stored) },
            ..StepInputs::new(schema, &record.key, &self.owner, response)
        };
        // Retries may fail without a field that the lock has and the service reads.
        let lost = manual_step::lost_fields(record, &inputs);
        if !lost.is_empty() {
            return Err(loses(record, &lost));
        }
        check_decodes_again(record, &inputs)?;
        self.check_fingerprint(record, &inputs)?;
        Ok(inputs)
    }

    /// Passes a result that has the fingerprint of the completion. A result may keep the one that
    /// is stored.
    ///
    /// # Errors
    /// Usage: the service would keep the stored fingerprint, or read another one than the given, or
    /// would miss one that the complete step does not store.
    fn check_fingerprint(
        &self,
        record: &Record,
        inputs: &StepInputs<'_>,
    ) -> Result<(), CommandError> {
        let predicted_record = manual_step::predicted_record(record, inputs, None);
        let schema = &record.schema;
        let name = &schema.name;
        let kept = predicted_record.fingerprint().unwrap_or_default();
        if kept.is_empty()
            && !self.fingerprint.is_empty()
            && self.drops_fingerprint(record, &predicted_record)
        {
            return Err(other_fingerprint(name, "none"));
        }
        let Some(kept) = predicted_record.fingerprint() else { return Ok(()) };
        let is_kept = if record.fingerprint() == Some(kept) {
            self.fingerprint == kept
        } else {
            kept.contains(&self.fingerprint)
        };
        if is_kept {
            return Ok(());
        }
        Err(other_fingerprint(name, &escape::text(kept.as_bytes())))
    }

    /// True if the result has a place for a fingerprint, which stays empty. A script may fill it.
    fn drops_fingerprint(&self, record: &Record, predicted_record: &Record) -> bool {
        let schema = &record.schema;
        let sends = schema.complete.as_ref().is_some_and(Step::sends_fingerprint);
        match predicted_record.readings[schema.result_key_index()].decoded() {
            Some(value) => !sends && schema.values[value.format].fields.fingerprint.is_some(),
            None => false,
        }
    }

    /// True if the time is sent or stored.
    pub(crate) fn needs_time(&self, schema: &Schema) -> bool {
        let sends_time = schema.complete.as_ref().is_some_and(|step| schema.sends_time(step));
        // The value of a lock that is taken for the step may contain the time.
        let needs_step_lock = self.completion != Completion::OfLock;
        sends_time || (needs_step_lock && schema.write.keeps_time())
    }

    /// The value of the lock to take for the step, if there is no lock and the step needs one.
    ///
    /// # Errors
    /// Usage: no lock of this request would let the step store.
    pub(crate) fn missing_lock(
        &self,
        record: &Record,
        inputs: &StepInputs<'_>,
    ) -> Result<Option<Content>, CommandError> {
        if self.completion == Completion::OfLock {
            return Ok(None);
        }
        manual_step::lock_for_step(record, inputs)
            .map_err(|why| CommandError::usage(format!("{}: {why}", record.schema.name)))
    }
}

/// Passes a result that can be written, and reads back as a result. Quotes in a key or a
/// fingerprint may break the text that they are part of.
///
/// # Errors
/// Usage: why the result cannot be written or read.
fn check_decodes_again(record: &Record, inputs: &StepInputs<'_>) -> Result<(), CommandError> {
    let why = manual_step::unwritten_result(record, inputs)
        .or_else(|| manual_step::unread_result(record, inputs));
    let Some(why) = why else { return Ok(()) };
    let key = escape::key(&record.key);
    let name = &record.schema.name;
    Err(CommandError::usage(format!("{key}: {name} cannot store this response ({why})"))
        .changed_nothing()
        .hint("check that the body is the one that the service's client gets"))
}

/// The refusal of a completion whose result would not keep the given fingerprint.
fn other_fingerprint(name: &str, kept: &str) -> CommandError {
    CommandError::usage(format!(
        "--fingerprint: the result of {name} would have another fingerprint ({kept})"
    ))
    .changed_nothing()
}

/// That retries may fail because the result would not have these fields.
fn loses(record: &Record, lost: &[String]) -> CommandError {
    let key = escape::key(&record.key);
    let name = &record.schema.name;
    let fields = escape::text(lost.join(", ").as_bytes());
    CommandError::usage(format!(
        "{key}: the result that {name} writes would lose the stored {fields}"
    ))
    .changed_nothing()
    .hint(
        "retries may fail without it; keep it with {kept} in result_value of a schema of your own",
    )
}

/// Whether an override in the hint stores the response is decided when the operator passes it.
fn refused(record: &Record, why: &NotExecutable) -> CommandError {
    let key = escape::key(&record.key);
    let name = &record.schema.name;
    match why {
        NotExecutable::Absent => CommandError::new(Exit::No, format!("{key}: {why} under {name}"))
            .changed_nothing()
            .hint("check --schema and --prefix; if the lock has expired, try --create"),
        NotExecutable::Released => {
            CommandError::new(Exit::No, format!("{key}: {why}")).changed_nothing()
        }
        NotExecutable::Completed | NotExecutable::Failed | NotExecutable::Unreadable(_) => {
            CommandError::usage(format!("{key}: {why}")).hint(TRY_REPLACE)
        }
        NotExecutable::Undescribed(step) => change::undescribed(record, step),
        NotExecutable::WrongType(_) | NotExecutable::NoLock(_) | NotExecutable::NoSuchStep => {
            CommandError::usage(format!("{key}: {why}"))
        }
    }
}

/// The hash of the payload that is stored with the result. Without it, every retry would be
/// rejected because its payload seems to differ.
///
/// # Errors
/// Usage: the option is missing, or the schema or the lock has no use for it.
fn fingerprint(
    record: &Record,
    completion: Completion,
    given: Option<&str>,
) -> Result<String, CommandError> {
    let schema = &record.schema;
    let stored = record.fingerprint();
    if given.is_none() && record.has_binary_fingerprint() {
        let message = format!(
            "the fingerprint of {} is not text, so that idemctl cannot send it to the complete step",
            escape::key(&record.key)
        );
        return Err(CommandError::usage(message).changed_nothing());
    }
    let keeps = keeps_fingerprint(schema);
    // The locks of some services store no hash, so the hash comes with the result.
    let is_the_locks = completion == Completion::OfLock && schema.locks_keep_fingerprint();
    let name = &schema.name;
    if let Some(given) = given {
        if !keeps {
            return Err(no_fingerprint(name));
        }
        if is_the_locks && stored != Some(given) {
            let message = "--fingerprint: the fingerprint of this schema comes from the lock and \
                cannot be changed";
            return Err(CommandError::usage(message).hint("omit --fingerprint"));
        }
        return Ok(given.to_owned());
    }
    if stored.is_none() && keeps && !is_the_locks {
        let hint = match &schema.write.fingerprint_is {
            Some(what) => format!("--fingerprint is {what}"),
            None => "pass the fingerprint that the service computes from the request".to_owned(),
        };
        return Err(CommandError::usage(format!(
            "{name} stores the result with the request's fingerprint, which is needed as \
            --fingerprint"
        ))
        .hint(hint));
    }
    Ok(stored.unwrap_or_default().to_owned())
}

/// The refusal of `--fingerprint` for a schema whose step does not store one.
pub(crate) fn no_fingerprint(name: &str) -> CommandError {
    CommandError::usage(format!("--fingerprint: this step of {name} stores no fingerprint"))
        .hint("omit --fingerprint")
}

/// True if the complete step stores a fingerprint.
fn keeps_fingerprint(schema: &Schema) -> bool {
    schema.write.keeps_fingerprint()
        || schema.complete.as_ref().is_some_and(Step::sends_fingerprint)
}
