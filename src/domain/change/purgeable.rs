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
        return Err(format!("it does not match schema {} ({why})", record.schema.name));
    }
    match &record.schema.write.lock_holds {
        Some(holds) if record.state == State::InProgress => Err(format!(
            "its Redis key also holds {holds}, which `purge` would destroy; remove the record with \
            the service's own tools"
        )),
        _ => Ok(()),
    }
}
