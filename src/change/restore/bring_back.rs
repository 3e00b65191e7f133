//! The Redis keys of a backup, brought back in batches, noted, and told.

use anyhow::Result;

use super::rows::RestoredRows;
use super::source::{CheckedBackup, KeysToRestore};
use crate::change::{self, AuditLog, Noted};
use crate::domain::history::OUTCOME_UNKNOWN;
use crate::domain::record::KeyIdentity;
use crate::exit::{self, CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::store::backup::{Held, HeldKey};
use crate::store::{Client, RestoreResult, StoreError, Writer};

/// Records that a round trip brings back at most. Larger batches delay other clients.
const BATCH: usize = 100;

/// Bytes of values after which a round trip takes no more records. They are in memory together, and
/// the limit is that of one call which changes records (`MAX_BYTES` in `store/change/batch.rs`).
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
        let mut returns = Vec::with_capacity(batch.len());
        let mut counts = Vec::with_capacity(batch.len());
        for held in batch {
            let of_record = of.returns(held);
            counts.push(of_record.len());
            returns.extend(of_record);
        }
        let (writer, audit_log) = match self {
            Self::Looks(client) => {
                return Ok((per_record(client.would_restore(&returns).await?, &counts), Ok(())));
            }
            Self::Restores(writer, audit_log) => (writer, audit_log),
        };
        let (restored, ended) = writer.restore(&returns).await;
        let restored = per_record(restored, &counts);
        let mut ended = ended.map_err(anyhow::Error::from);
        let mut back = Vec::new();
        let mut unknown = Vec::new();
        for (held, became) in batch.iter().zip(&restored) {
            for (key, became) in held.keys.iter().zip(became) {
                match became {
                    Ok(outcome) if outcome.is_back() => back.push(noted_of(held, key, true)),
                    Err(StoreError::OutcomeUnknown { .. }) => {
                        unknown.push(noted_of(held, key, false))
                    }
                    Ok(_) | Err(_) => {}
                }
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

type Taken = (Vec<RestoreResult>, Result<()>);

/// One result for each record, some of which come back in more than one call.
fn per_record(results: Vec<RestoreResult>, counts: &[usize]) -> Vec<RestoreResult> {
    let mut results = results.into_iter();
    let mut records = Vec::with_capacity(counts.len());
    for count in counts {
        let of_record: Vec<_> = results.by_ref().take(*count).collect();
        if of_record.is_empty() {
            break;
        }
        records.push(of_record.into_iter().flatten().collect());
    }
    records
}

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
    let mut told_apart = false;
    loop {
        let batch = next_batch(source, of)?;
        if batch.is_empty() {
            return Ok(true);
        }
        if interrupt.is_raised() {
            return Ok(false);
        }
        if !told_apart && mode.parts_any(&batch, of) {
            told_apart = true;
            session.ui.warning(APART);
        }
        let file = source.file.clone();
        let (outcomes, ended) = mode.take(session, &batch, of, &file).await?;
        let refusal = rows.add(session, &batch, outcomes);
        progress.set_position(rows.seen());
        if let Some(refusal) = refusal {
            return Err(refused(refusal));
        }
        ended?;
    }
}

fn next_batch(
    source: &mut CheckedBackup,
    of: &KeysToRestore<'_>,
) -> Result<Vec<Held>, CommandError> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        match source.next()? {
            None => break,
            Some(held) if of.holds(&held) => {
                bytes += held.keys.iter().map(|key| key.saved.dump.len()).sum::<usize>();
                batch.push(held);
            }
            Some(_) => {}
        }
    }
    Ok(batch)
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

/// A refusal of the values' bytes. The backup's own checksum holds, so the server does not know the
/// format of the bytes.
fn refused(error: StoreError) -> anyhow::Error {
    let text = error.to_string();
    if !text.contains("DUMP payload version") && !text.contains("Bad data format") {
        return error.into();
    }
    CommandError::new(
        Exit::RefusedForNow,
        format!("the server cannot read the format of the values in this backup: {text}"),
    )
    .hint(
        "the values come from a newer Redis or from another kind of server; restore to the original \
        version or a newer one",
    )
    .into()
}
