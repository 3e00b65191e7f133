//! A look at records that an operation changed: whether they are still what it left, and what they go back to.

use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::units::{KeyChange, Unit};
use crate::change::restore::{Ending, Row};
use crate::domain::record::{Expiry, KeyIdentity, Observation, SeenKey, locate};
use crate::domain::schema::{Catalog, Schema};
use crate::exit::Stop;
use crate::store::backup::{About, BackupReader, Saved};
use crate::store::{Client, Former};

/// A record that was looked at.
pub(super) struct Looked {
    pub(super) about: About,
    /// The whole record, where its schema is known.
    pub(super) record: Observation,
    /// The Redis keys that the operation changed.
    pub(super) part: Observation,
    pub(super) goes: Goes,
}

/// What becomes of a record.
pub(super) enum Goes {
    /// Each Redis key of the part goes back to this.
    Back(Vec<Former>),
    /// The record is left alone.
    Stays(Ending),
}

/// Looks at the records of these units, each under its own schema where that is known.
///
/// # Errors
/// When the server could not be asked, or a backup cannot be read.
pub(super) async fn look(client: &Client, catalog: &Catalog, units: &[Unit]) -> Result<Vec<Looked>> {
    let places: Vec<_> = units.iter().map(|unit| Place::of(unit, catalog)).collect();
    let wanted: Vec<_> = places.iter().map(|place| place.redis_keys.clone()).collect();
    let after = units.iter().flat_map(|unit| &unit.changes).filter_map(|change| change.after.as_ref());
    let checksums = after.into_iter().any(KeyIdentity::needs_checksum);
    let seen = client.look_whole(&wanted, checksums).await?;
    let looked = units.iter().zip(places).zip(seen).map(|((unit, place), seen)| Looked::of(unit, place, seen?));
    looked.collect()
}

/// Where a record is.
struct Place {
    schema: Option<Arc<Schema>>,
    redis_keys: Vec<Vec<u8>>,
}

impl Place {
    fn of(unit: &Unit, catalog: &Catalog) -> Self {
        let changed: Vec<_> = unit.changes.iter().map(|change| change.redis_key.clone()).collect();
        let schema = catalog.all().iter().find(|schema| schema.name == unit.schema).cloned();
        let whole = schema.map(|schema| (schema.redis_keys(&unit.key), schema));
        match whole.filter(|(keys, _)| changed.iter().all(|key| keys.contains(key))) {
            Some((redis_keys, schema)) => Self { schema: Some(schema), redis_keys },
            None => Self { schema: None, redis_keys: changed },
        }
    }
}

impl Looked {
    fn of(unit: &Unit, place: Place, record: Observation) -> Result<Self> {
        let is_part = |key: &&SeenKey| unit.changes.iter().any(|change| change.redis_key == key.redis_key);
        let keys: Vec<_> = record.keys.iter().filter(is_part).cloned().collect();
        let part = Observation { keys, ..record.clone() };
        let state =
            place.schema.map_or("", |schema| locate::read_as(&schema, &unit.key, record.clone()).state.as_str());
        let about = About { schema: unit.schema.clone(), key: unit.key.clone(), state };
        let goes = goes(unit, &part)?;
        Ok(Self { about, record, part, goes })
    }

    /// What is told of a Redis key of the part, and how its change ends if it is made.
    pub(super) fn row(&self, index: usize) -> (Row<'_>, Ending) {
        let former = match &self.goes {
            Goes::Back(former) => Some(&former[index]),
            Goes::Stays(_) => None,
        };
        let (ending, left) = match (&self.goes, former) {
            (Goes::Stays(ending), _) => (*ending, None),
            (_, Some(Former::Nothing) | None) => (Ending::Removed, None),
            (_, Some(former)) => (Ending::Restored, Some(self.left(former))),
        };
        let About { schema, key, state } = &self.about;
        (Row { outcome: "", redis_key: &self.part.keys[index].redis_key, schema, key, state, left }, ending)
    }

    fn left(&self, former: &Former) -> Expiry {
        match former.expires_at_ms() {
            Some(at) => Expiry::In(at.saturating_sub(self.part.server_ms.unwrap_or_default())),
            None => Expiry::Never,
        }
    }
}

/// Only a record all of which is still what the operation left goes back.
fn goes(unit: &Unit, now: &Observation) -> Result<Goes> {
    let mut former = Vec::with_capacity(now.keys.len());
    for key in &now.keys {
        let Some(change) = unit.changes.iter().find(|change| change.redis_key == key.redis_key) else { continue };
        let Some(after) = &change.after else { return Ok(Goes::Stays(Ending::Untold)) };
        if !after.is_still(key) {
            return Ok(Goes::Stays(Ending::Changed));
        }
        match before(change, after, now.server_ms)? {
            Some(before) => former.push(before),
            None => return Ok(Goes::Stays(Ending::Untold)),
        }
    }
    Ok(Goes::Back(former))
}

/// What a Redis key was before; `None` where nobody knows. What has expired since is nothing by now.
fn before(change: &KeyChange, after: &KeyIdentity, now_ms: Option<u64>) -> Result<Option<Former>, Stop> {
    let Some(before) = &change.before else { return Ok(None) };
    let is_over = |at: Option<u64>| at.zip(now_ms).is_some_and(|(at, now)| at <= now);
    if before.is_absent() || is_over(before.expires_at_ms()) {
        return Ok(Some(Former::Nothing));
    }
    if before.has_same_value(after) {
        return Ok(Some(Former::Until(before.expires_at_ms())));
    }
    let Some(file) = &change.backup else { return Ok(None) };
    let saved = saved(Path::new(file), &change.redis_key)?;
    Ok(saved.map(|saved| Former::Dump(saved.dump, saved.expires_at_ms)))
}

/// What a backup holds of a Redis key.
fn saved(file: &Path, redis_key: &[u8]) -> Result<Option<Saved>, Stop> {
    let wrong = |error: crate::store::backup::BackupError| Stop::usage(error.to_string()).hint("nothing was changed");
    let mut found = None;
    let mut reader = BackupReader::open(file, |_| {}).map_err(wrong)?;
    while let Some(held) = reader.next_held().map_err(wrong)? {
        for key in held.keys {
            if key.saved.redis_key == redis_key {
                found = Some(key.saved);
            }
        }
    }
    Ok(found)
}
