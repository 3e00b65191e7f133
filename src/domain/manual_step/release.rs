//! Which records an operator may release through the service's release step.

use super::complete::NotExecutable;
use crate::domain::change::unlock;
use crate::domain::record::Record;
use crate::domain::schema::{OnFailure, State, Step};

/// The service's release step, if the record is a lock, or has one beside its result. A stored
/// result alone is never released, because some services delete the key without checking its value.
///
/// # Errors
/// Why the record must not be released.
pub(crate) fn releasable(record: &Record) -> Result<&Step, NotExecutable> {
    // A service that releases its lock after a failure has the step, even if it is not described.
    let on_failure = record.schema.service.on_failure;
    let is_known = record.schema.begin.is_some() && on_failure != Some(OnFailure::Release);
    let missing =
        if is_known { NotExecutable::NoSuchStep } else { NotExecutable::Undescribed("release") };
    let step = record.schema.release.as_ref().ok_or(missing)?;
    // Some release steps are a plain DEL, which would remove the other program's value.
    if let Some(wanted) = record.wanted_type() {
        return Err(NotExecutable::WrongType(wanted));
    }
    unlock::check_lock_format(record).map_err(NotExecutable::NoLock)?;
    if step.sends_fingerprint() && record.has_binary_fingerprint() {
        let why = "its fingerprint is not text, so that idemctl cannot send it to the release step";
        return Err(NotExecutable::Unreadable(why.to_owned()));
    }
    match record.state {
        State::InProgress => Ok(step),
        State::Completed | State::Failed if record.lock().is_some() => Ok(step),
        State::Completed => Err(NotExecutable::Completed),
        State::Failed => Err(NotExecutable::Failed),
        State::Released => Err(NotExecutable::Released),
        State::Absent => Err(NotExecutable::Absent),
        State::Unreadable => Err(NotExecutable::Unreadable(
            record.unreadable_because().unwrap_or_default().to_owned(),
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::{Content, TimeLeft};
    use crate::domain::samples::{CHI_LOCK, CHI_RESULT, chi, record, text};

    const SOON: TimeLeft = TimeLeft::Millis(9_000);

    #[test]
    fn only_a_lock_is_released() {
        assert!(releasable(&chi(CHI_LOCK, SOON)).is_ok());
        assert_eq!(releasable(&chi(CHI_RESULT, SOON)).err(), Some(NotExecutable::Completed));
        assert!(matches!(releasable(&chi("?", SOON)), Err(NotExecutable::Unreadable(_))));
        let nothing = record("go-chi", &[(Content::Absent, TimeLeft::Millis(0))]);
        assert_eq!(releasable(&nothing).err(), Some(NotExecutable::Absent));
        let left = record("event-consumer", &[(text("1"), SOON), (text("1"), SOON)]);
        assert!(releasable(&left).is_ok());
        let done = record("event-consumer", &[(Content::Absent, SOON), (text("1"), SOON)]);
        assert_eq!(releasable(&done).err(), Some(NotExecutable::Completed));
        let hash = record("go-chi", &[(Content::Other("hash".into()), SOON)]);
        assert_eq!(releasable(&hash).err(), Some(NotExecutable::WrongType("string")));
    }

    #[test]
    fn a_service_without_the_step_never_releases() {
        let lock = record("go-middleware", &[(text(r#"{"status":"PENDING"}"#), SOON)]);
        assert_eq!(releasable(&lock).err(), Some(NotExecutable::NoSuchStep));
    }
}
