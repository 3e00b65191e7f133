//! Which records an operator may complete, and which lock the service's complete step must find.

use crate::domain::record::{Content, Reading, Record, decode};
use crate::domain::schema::value_template::Placeholder;
use crate::domain::schema::{Call, Meaning, State, Template};
use crate::domain::step::StepInputs;
use crate::domain::step::next_request::possible_meaning;

/// How completing changes a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Completion {
    /// It completes the existing lock.
    OfLock,
    /// It stores the result although there is no record.
    Creating,
    /// It replaces the existing value with the result.
    Replacing,
}

/// Permissions beyond completing a lock; each overrides a refusal.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Overrides {
    /// Store a result although there is no record.
    pub(crate) create: bool,
    /// Store the result over another result, or over a value that cannot be read.
    pub(crate) replace: bool,
}

/// Why a record is not completed or released.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotExecutable {
    #[error("the key has no record")]
    Absent,
    #[error("the record is already completed")]
    Completed,
    #[error("a failure is stored")]
    Failed,
    #[error("the lock was released")]
    Released,
    #[error("the stored value cannot be read: {0}")]
    Unreadable(String),
    /// The lock's value deviates from the format of locks.
    #[error("{0}")]
    NoLock(String),
    /// Another program's value.
    #[error(
        "another program uses this Redis key, which does not hold a {0}; find that program first"
    )]
    WrongType(&'static str),
    /// The service never does that.
    #[error("the service has no release step")]
    NoSuchStep,
    /// The schema describes records, and not what the service does.
    #[error("the schema does not describe the {0} step")]
    Undescribed(&'static str),
}

/// How completing would change this record.
///
/// # Errors
/// Why the record cannot be completed, or which override permits it.
pub(crate) fn completion_of(
    record: &Record,
    overrides: Overrides,
) -> Result<Completion, NotExecutable> {
    // No override permits this, because the value belongs to another program.
    if let Some(wanted) = record.wanted_type() {
        return Err(NotExecutable::WrongType(wanted));
    }
    match record.state {
        State::InProgress => Ok(Completion::OfLock),
        State::Absent if overrides.create => Ok(Completion::Creating),
        State::Absent => Err(NotExecutable::Absent),
        State::Completed | State::Failed | State::Unreadable if overrides.replace => {
            Ok(Completion::Replacing)
        }
        State::Completed => Err(NotExecutable::Completed),
        State::Failed => Err(NotExecutable::Failed),
        State::Released => Err(NotExecutable::Released),
        State::Unreadable => Err(NotExecutable::Unreadable(
            record.unreadable_because().unwrap_or_default().to_owned(),
        )),
    }
}

/// The lock that the complete step must find, if the record has none of this owner. `None` if the
/// step stores a result without one.
///
/// # Errors
/// Why the step would not store the result, even with a lock for this request; or that another
/// owner holds a lock, which must not be overwritten, because its worker may still be running.
pub(crate) fn lock_for_step(
    record: &Record,
    inputs: &StepInputs<'_>,
) -> Result<Option<Content>, String> {
    let schema = &record.schema;
    let lock_index = schema.lock_key_index();
    let checks_owner = match &schema.complete {
        Some(step) => step.checks_owner,
        None => false,
    };
    if !checks_owner && is_stored(record, &record.readings) {
        // Without a previous value, the result keeps fields of a lock that is only imagined.
        let keeps = schema.write.result_value.as_ref().is_some_and(Template::keeps);
        if record.state == State::Absent && keeps {
            read_as_meant(inputs, &inputs.lock())?;
        }
        return Ok(None);
    }
    // Beside a result, with a Redis key of its own.
    if schema.has_separate_result()
        && let Some(lock) = record.readings[lock_index].decoded()
        && let Some(holder) = &lock.owner
        && holder != inputs.owner
    {
        return Err(
            "another owner holds a lock beside the result; pass that owner as --owner, or \
            remove the lock with force-unlock if its worker is dead"
                .to_owned(),
        );
    }
    let lock = inputs.lock();
    let mut readings = record.readings.clone();
    readings[lock_index] = read_as_meant(inputs, &lock)?;
    if is_stored(record, &readings) {
        Ok(Some(lock))
    } else {
        Err("its complete step would reject a lock that is taken for it".to_owned())
    }
}

/// Passes a begin step that writes a lock which the service reads as it was meant.
///
/// # Errors
/// Why it would read something else.
pub(crate) fn check_begun_lock(inputs: &StepInputs<'_>) -> Result<(), String> {
    let schema = inputs.schema;
    let mut words = schema.begin_calls().iter().flat_map(Call::words);
    // A script that gets the parts escapes them itself.
    if !words.any(|word| word.has(&[Placeholder::LockValue])) {
        return Ok(());
    }
    read_as_meant(inputs, &inputs.lock()).map(|_| ())
}

/// The reading of a request's lock, if it has the request's owner and fingerprint. A lock that the
/// service cannot read would block the key until it expires.
///
/// # Errors
/// Why the service would read something else.
fn read_as_meant(inputs: &StepInputs<'_>, lock: &Content) -> Result<Reading, String> {
    let schema = inputs.schema;
    let reading = decode::decode_value(schema, schema.lock_key_index(), lock);
    let template = schema.write.lock_value.as_ref();
    let writes_fingerprint = template.is_some_and(|text| text.has(&[Placeholder::Fingerprint]));
    let is_meant = match reading.decoded() {
        Some(held) if schema.values[held.format].state == State::InProgress => {
            let keeps_owner = schema.values[held.format].fields.owner.is_some();
            let has_owner = !keeps_owner || held.owner.as_deref() == Some(inputs.owner);
            // The field may have other text around it.
            let read = held.fingerprint.as_ref().filter(|_| writes_fingerprint);
            has_owner && read.is_none_or(|read| read.contains(inputs.fingerprint))
        }
        _ => false,
    };
    if is_meant {
        return Ok(reading);
    }
    Err("a lock with this owner and fingerprint cannot be read back; omit quotes and backslashes"
        .to_owned())
}

/// True if the schema predicts that the complete step stores its result, given these values of the
/// record's Redis keys.
fn is_stored(record: &Record, readings: &[Reading]) -> bool {
    let Some(step) = &record.schema.complete else { return false };
    possible_meaning(step, readings, false) == Some(Meaning::Stored)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Response, TimeLeft};
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    const NO: Overrides = Overrides { create: false, replace: false };
    const ALL: Overrides = Overrides { create: true, replace: true };
    const SOON: TimeLeft = TimeLeft::Millis(9_000);

    fn absent(schema: &str) -> Record {
        let nothing =
            [(Content::Absent, TimeLeft::Millis(0)), (Content::Absent, TimeLeft::Millis(0))];
        record(schema, &nothing[..crate::domain::samples::schema(schema).keys.len()])
    }

    fn held(record: &Record, owner: &str) -> Result<Option<String>, String> {
        let response = Response { status: Some(201), ..Response::default() };
        let inputs = StepInputs::new(&record.schema, b"k", owner, &response);
        lock_for_step(record, &inputs)
            .map(|lock| lock.map(|_| String::from_utf8(inputs.lock_value()).unwrap()))
    }

    #[test]
    fn a_lock_is_completed_and_the_rest_needs_leave() {
        assert_eq!(completion_of(&chi(CHI_LOCK, SOON), NO), Ok(Completion::OfLock));
        assert_eq!(completion_of(&chi(CHI_LOCK, SOON), ALL), Ok(Completion::OfLock));
        assert_eq!(completion_of(&absent("go-chi"), NO), Err(NotExecutable::Absent));
        assert_eq!(completion_of(&absent("go-chi"), ALL), Ok(Completion::Creating));
        assert_eq!(completion_of(&chi(CHI_RESULT, SOON), NO), Err(NotExecutable::Completed));
        assert_eq!(completion_of(&chi(CHI_RESULT, SOON), ALL), Ok(Completion::Replacing));
        assert!(matches!(
            completion_of(&chi("?", SOON), Overrides { create: true, ..NO }),
            Err(NotExecutable::Unreadable(_))
        ));
        assert_eq!(completion_of(&chi("?", SOON), ALL), Ok(Completion::Replacing));
    }

    #[test]
    fn another_programs_value_is_never_replaced() {
        let other =
            |schema, keys: &[(Content, TimeLeft)]| completion_of(&record(schema, keys), ALL);
        let hash = (Content::Other("hash".to_owned()), SOON);
        assert_eq!(
            other("go-chi", std::slice::from_ref(&hash)),
            Err(NotExecutable::WrongType("string"))
        );
        assert_eq!(
            other("event-consumer", &[hash, (text("1"), SOON)]),
            Err(NotExecutable::WrongType("string"))
        );
    }

    #[test]
    fn a_lock_beside_a_result_is_completed() {
        let left = record("event-consumer", &[(text("1"), SOON), (text("1"), SOON)]);
        assert_eq!(completion_of(&left, NO), Err(NotExecutable::Completed));
    }

    #[test]
    fn a_lock_is_taken_first_where_the_step_wants_one() {
        assert_eq!(held(&absent("go-chi"), ""), Ok(None));
        assert_eq!(held(&absent("event-consumer"), ""), Ok(None));
        assert_eq!(held(&absent("go-middleware-v1"), ""), Ok(None));
        assert_eq!(
            held(&absent("go-middleware"), ""),
            Ok(Some(r#"{"status":"PENDING"}"#.to_owned()))
        );
        assert_eq!(
            held(&absent("express"), ""),
            Ok(Some(r#"{"status":"IN_PROGRESS"}"#.to_owned()))
        );
        assert_eq!(held(&absent("event-driven"), "w-1"), Ok(Some("w-1".to_owned())));
        assert!(held(&absent("reference"), "w-1").unwrap().unwrap().contains(r#""owner":"w-1""#));
        let stored = record("express", &[(text(r#"{"status":"COMPLETED"}"#), SOON)]);
        assert_eq!(held(&stored, ""), Ok(None), "its step writes over anything");
    }

    #[test]
    fn an_owner_that_a_lock_cannot_hold_is_refused() {
        for owner in ["a\"b", "a\\b"] {
            assert!(held(&absent("reference"), owner).is_err(), "{owner:?}");
        }
        assert!(
            held(&absent("event-driven"), "a\"b").is_ok(),
            "there the owner is the whole value"
        );
    }
}
