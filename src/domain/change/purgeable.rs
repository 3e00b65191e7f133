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

/// The Redis keys that `purge` removes, by their indexes in the record, the lock first. If a cluster
/// keeps the keys in several slots, they are removed one slot after the other. If the result were
/// first, a retry in between would find the lock alone and be rejected.
///
/// # Errors
/// The errors of [`check_own_keys`].
pub(crate) fn key_indexes(record: &Record) -> Result<Vec<usize>, String> {
    // A Redis key of another type belongs to another program, whatever its name is.
    check_own_keys(record)?;
    let lock = record.schema.lock_key_index();
    let mut key_indexes = vec![lock];
    for key_index in 0..record.seen.keys.len() {
        if key_index != lock {
            key_indexes.push(key_index);
        }
    }
    Ok(key_indexes)
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
