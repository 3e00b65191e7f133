//! The Redis keys of a backup, brought back in batches, noted, and told.

use anyhow::Result;

use super::rows::{RestoredRows, keys_of};
use super::source::{CheckedBackup, KeysToRestore};
use crate::change::{self, AuditLog, Noted};
use crate::domain::history::OUTCOME_UNKNOWN;
use crate::domain::record::KeyIdentity;
use crate::exit::{self, CommandError};
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::store::backup::{Held, HeldKey};
use crate::store::{Client, KeyResult, StoreError, Writer};

/// Records that are restored in a round trip, and noted together, at most. A purge changes as many
/// at a time.
const BATCH: usize = 500;

/// Bytes of values that a round trip restores at most, unless a single record is larger. They are in
/// memory together, and the limit is that of one call which changes records (`MAX_BYTES` in
/// `store/change/batch.rs`).
const BATCH_BYTES: usize = 4 << 20;

/// The warning for a cluster that keeps the Redis keys of a record apart.
const APART: &str = "this cluster keeps the Redis keys of a record in different slots, so idemctl \
    cannot check and restore them in the same atomic step; it checks immediately before";

/// What is done with what a backup holds.
pub enum Mode<'a> {
    /// Tells what would come back.
    Looks(&'a Client),
    /// Brings it back and notes it.
    Restores(&'a Writer, &'a mut AuditLog),
}

impl Mode<'_> {
    /// True if a cluster keeps the Redis keys of a record apart.
    fn parts_any(&self, batch: &[Held], of: &KeysToRestore<'_>) -> bool {
        batch.iter().flat_map(|held| of.returns(held)).any(|record| match self {
            Self::Looks(client) => client.parts_record(&record),
            Self::Restores(writer, _) => writer.parts_record(&record),
        })
    }

    /// What became of a batch, and how bringing it back ended.
    async fn take(
        &mut self,
        session: &Session,
        batch: &[Held],
        of: &KeysToRestore<'_>,
        file: &str,
    ) -> Result<Taken> {
        let returns: Vec<_> = batch.iter().flat_map(|held| of.returns(held)).collect();
        let (writer, audit_log) = match self {
            Self::Looks(client) => {
                return Ok((client.would_restore(&returns).await?.concat(), Ok(())));
            }
            Self::Restores(writer, audit_log) => (writer, audit_log),
        };
        let (restored, ended) = writer.restore(&returns).await;
        let restored = restored.concat();
        let mut ended = ended.map_err(anyhow::Error::from);
        let mut back = Vec::new();
        let mut unknown = Vec::new();
        for ((held, key), became) in keys_of(batch).zip(&restored) {
            match became {
                Ok(outcome) if outcome.is_back() => back.push(noted_of(held, key, true)),
                Err(StoreError::OutcomeUnknown { .. }) => unknown.push(noted_of(held, key, false)),
                Ok(_) | Err(_) => {}
            }
        }
        for (what, noted) in [("restored", back), (OUTCOME_UNKNOWN, unknown)] {
            // A Redis key that is back is shown even if the change could not be noted.
            let told = audit_log
                .note(noted.into_iter(), what, &writer.name(), Some(file), session.now())
                .await;
            ended = ended.and(told.map_err(anyhow::Error::from));
        }
        Ok((restored, ended))
    }
}

/// The outcome of each Redis key of a batch, and how bringing it back ended.
type Taken = (Vec<KeyResult>, Result<()>);

/// Brings the wanted Redis keys of a backup back; false when Ctrl-C came before the end.
pub async fn bring_back(
    session: &mut Session,
    of: &KeysToRestore<'_>,
    source: &mut CheckedBackup,
    mode: &mut Mode<'_>,
    rows: &mut RestoredRows,
    interrupt: &Interrupt,
) -> Result<bool> {
    let progress = session.ui.progress_of("Redis keys", Some(source.wanted));
    let file = source.file.clone();
    let mut told_apart = false;
    let mut beyond = None;
    let mut batch = next_batch(source, of, &mut beyond)?;
    while !batch.is_empty() {
        if interrupt.is_raised() {
            return Ok(false);
        }
        if !told_apart && mode.parts_any(&batch, of) {
            told_apart = true;
            session.ui.warning(APART);
        }
        // The next records are read while the server restores these.
        let taking = mode.take(session, &batch, of, &file);
        let reading = async { next_batch(source, of, &mut beyond) };
        let (taken, next) = tokio::join!(taking, reading);
        let (outcomes, ended) = taken?;
        let refusal = rows.add(session, &batch, outcomes);
        progress.set_position(rows.seen());
        if let Some(refusal) = refusal {
            return Err(refusal.into());
        }
        ended?;
        batch = next?;
    }
    Ok(true)
}

/// The next records. `beyond` keeps the one that is too large for this round trip.
fn next_batch(
    source: &mut CheckedBackup,
    of: &KeysToRestore<'_>,
    beyond: &mut Option<Held>,
) -> Result<Vec<Held>, CommandError> {
    let mut batch: Vec<Held> = beyond.take().into_iter().collect();
    let mut bytes: usize = batch.iter().map(size).sum();
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        let Some(held) = source.next()? else { break };
        if of.holds(&held) {
            bytes += size(&held);
            if bytes > BATCH_BYTES && !batch.is_empty() {
                *beyond = Some(held);
            } else {
                batch.push(held);
            }
        }
    }
    Ok(batch)
}

fn size(held: &Held) -> usize {
    held.keys.iter().map(|key| key.saved.dump.len()).sum()
}

/// A Redis key that came back to a place that was empty.
fn noted_of<'a>(held: &'a Held, key: &'a HeldKey, is_back: bool) -> Noted<'a> {
    Noted {
        name: held.name.clone(),
        redis_key: &key.saved.redis_key,
        before: is_back.then_some(KeyIdentity::ABSENT),
        after: is_back.then(|| key.saved.identity()),
    }
}

/// Says how far it got with `count` Redis keys, and passes its error on.
pub fn finish(
    session: &mut Session,
    dry_run: bool,
    rows: &RestoredRows,
    ended: Result<bool>,
    count: u64,
) -> Result<()> {
    let so_far = rows.summary(count);
    change::print_read_back(session, rows.read_back);
    if dry_run {
        rows.warn_of_endless(session);
    }
    match ended {
        Ok(true) if dry_run => {
            session.ui.status(&format!("{so_far}. Dry run: nothing was changed."))
        }
        Ok(true) => session.ui.status(&format!("{so_far}.")),
        Ok(false) => {
            return Err(CommandError::interrupted(format!("interrupted: {so_far}"))
                .hint(rows.goes_on())
                .into());
        }
        Err(error) if rows.seen() == 0 => return Err(error),
        Err(error) => {
            let mut stop = exit::between(&error, rows.restored() > 0, &so_far);
            if stop.hint.as_deref() == Some(exit::GOES_ON) {
                stop.hint = Some(rows.goes_on());
            }
            return Err(stop.into());
        }
    }
    Ok(())
}
