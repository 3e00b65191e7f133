//! Which records `purge` may remove at all, whatever its filters are.

use crate::domain::record::Record;
use crate::domain::schema::State;

/// Passes a record of which another program owns no Redis key.
///
/// # Errors
/// Why `purge` does not remove it.
pub(crate) fn check_own_keys(record: &Record) -> Result<(), String> {
    if let Some(wanted) = record.wanted_type() {
        return Err(format!(
            "another program uses one of its Redis keys, which does not hold a {wanted}; find that \
            program first"
        ));
    }
    Ok(())
}

/// Passes a record that `purge` with `--state` of its state removes without destroying more than a
/// record.
///
/// # Errors
/// Why `purge` does not remove it, or must not.
pub(crate) fn check(record: &Record) -> Result<(), String> {
    check_own_keys(record)?;
    if let Some(why) = record.author.unrecognised_because() {
        return Err(other_schema(record, &why));
    }
    match record.state {
        State::InProgress => check_held(record),
        _ => Ok(()),
    }
}

/// That a value is not one of the record's schema.
pub(crate) fn other_schema(record: &Record, why: &str) -> String {
    format!("it does not match schema {} ({why})", record.schema.name)
}

/// Passes a record whose lock holds no more than the lock.
///
/// # Errors
/// What else its Redis key holds.
pub(crate) fn check_held(record: &Record) -> Result<(), String> {
    match &record.schema.write.lock_holds {
        Some(holds) => Err(format!(
            "its Redis key also holds {holds}, which would be destroyed; remove the record with \
            the service's own tools"
        )),
        None => Ok(()),
    }
}
