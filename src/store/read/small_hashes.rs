//! Reads small hashes on a scan's own connection: first the memory of each, and with the next page
//! all fields of the small ones. A script reads larger hashes and values of other types. The script
//! limits how much of a value is read, but takes the server and the client three times as long.

use redis::Value;

use super::key_query::{
    ExpiryCommand, KeyQuery, LengthQuery, ReadTimes, ReplySource as _, ValueQuery, only_of_the_key,
    read_time,
};
use super::plain_reads::MAX_FIELDS;
use crate::domain::record::{Candidate, Content, Deadline, Observation};
use crate::store::cluster::deadlines::{TRIED, is_known};
use crate::store::connection::Connection;
use crate::store::error::StoreError;

/// The most memory in bytes of a hash that is read whole, so that a page of such hashes takes a few
/// megabytes.
const MAX_BYTES: i64 = 4 << 10;

/// The query for each small hash.
const QUERY: KeyQuery = KeyQuery {
    value: ValueQuery::Fields,
    expiry: ExpiryCommand::Pexpiretime,
    length: LengthQuery::Head,
    idle: false,
};

/// A record, and the index of the Redis key by which it was found.
type CandidateKey = (Candidate, usize);

/// The small hashes of a scan.
#[derive(Default)]
pub(super) struct SmallHashes {
    /// The hashes whose replies are expected.
    awaited: Vec<CandidateKey>,
    /// The field whose expiry was requested for each of these. If that field never expires, neither
    /// does the hash.
    probed: Option<Vec<u8>>,
    /// A field of a hash without TTL, for the next page. Such hashes mostly have the same fields.
    probe: Option<Vec<u8>>,
    /// True if fields can expire (from Redis 7.4 on).
    fields_expire: bool,
}

impl SmallHashes {
    /// Asks whether fields can expire.
    pub(super) fn try_field_expiry(stream: &mut Connection) {
        ask_for_field(stream, TRIED.as_bytes(), b"field");
    }

    /// Reads the reply to [`SmallHashes::try_field_expiry`].
    pub(super) async fn read_field_expiry(
        &mut self,
        stream: &mut Connection,
    ) -> Result<(), StoreError> {
        self.fields_expire = match stream.next_reply().await? {
            Ok(_) => true,
            Err(error) => is_known(Err(&error)),
        };
        Ok(())
    }

    /// Requests all fields, and when the hashes expire.
    pub(super) fn ask(&mut self, stream: &mut Connection, candidates: Vec<CandidateKey>) {
        if candidates.is_empty() {
            return;
        }
        self.awaited = candidates;
        // A copy, because `probe` may change while the replies are read.
        self.probed = self.probe.clone();
        for (candidate, _) in &self.awaited {
            QUERY.ask(stream, &candidate.redis_keys);
            if let Some(field) = &self.probed {
                ask_for_field(stream, &candidate.redis_keys[0], field);
            }
        }
        stream.queue(&[b"TIME"]);
    }

    /// Reads the replies to [`SmallHashes::ask`]. A hash that needs the script is returned without
    /// an observation. Either it has another type, the Redis user may not read it, another node
    /// serves it, or it may expire when its fields do.
    pub(super) async fn read(
        &mut self,
        stream: &mut Connection,
    ) -> Result<Vec<(CandidateKey, Option<Observation>)>, StoreError> {
        if self.awaited.is_empty() {
            return Ok(Vec::new());
        }
        let awaited = std::mem::take(&mut self.awaited);
        let mut read = Vec::with_capacity(awaited.len());
        for candidate in awaited {
            let seen = self.read_one(stream, &candidate.0.redis_keys).await?;
            read.push((candidate, seen));
        }
        let after = read_time(stream).await?;
        for (_, seen) in &mut read {
            if let Some(seen) = seen {
                QUERY.set_times(seen, ReadTimes { before: None, after });
            }
        }
        Ok(read)
    }

    /// True if no replies are expected.
    pub(super) fn is_empty(&self) -> bool {
        self.awaited.is_empty()
    }

    async fn read_one(
        &mut self,
        stream: &mut Connection,
        redis_keys: &[Vec<u8>],
    ) -> Result<Option<Observation>, StoreError> {
        let seen = only_of_the_key(QUERY.read(stream, redis_keys).await?)?;
        // Read even after an error, because the replies of the next hash follow.
        let field_stays = self.probed.is_some() && read_field_stays(stream).await?;
        let Ok(seen) = seen else { return Ok(None) };
        match &seen.keys[0].content {
            Content::Absent => {}
            // The script does not read the fields of such a hash, so that every command sees the
            // same.
            Content::Hash(hash) if hash.count > MAX_FIELDS => return Ok(None),
            Content::Hash(hash) => {
                let has_ttl = seen.keys[0].deadline != Deadline::Never;
                // A hash without a TTL of its own expires with the last of its fields.
                if !has_ttl && self.fields_expire && !field_stays {
                    self.probe = hash.fields.first().map(|field| field.name.clone());
                    return Ok(None);
                }
            }
            Content::Text { .. } | Content::Other(_) => return Ok(None),
        }
        Ok(Some(seen))
    }
}

/// Requests the memory of these hashes.
pub(super) fn ask_for_memory<'a>(
    stream: &mut Connection,
    candidates: impl Iterator<Item = &'a Candidate>,
) {
    for candidate in candidates {
        // SAMPLES 0 measures all fields, because a single field may be the large one.
        stream.queue(&[b"MEMORY", b"USAGE", &candidate.redis_keys[0], b"SAMPLES", b"0"]);
    }
}

/// Reads the replies to [`ask_for_memory`]. Returns the small hashes, and the others, including
/// those whose memory the Redis user may not ask for.
pub(super) async fn split_by_memory(
    stream: &mut Connection,
    candidates: Vec<CandidateKey>,
) -> Result<(Vec<CandidateKey>, Vec<CandidateKey>), StoreError> {
    let mut small = Vec::new();
    let mut others = Vec::new();
    for candidate in candidates {
        match stream.next_reply().await? {
            Ok(Value::Int(bytes)) if bytes <= MAX_BYTES => small.push(candidate),
            Ok(Value::Int(_) | Value::Nil) | Err(_) => others.push(candidate),
            Ok(_) => return Err(stream.unexpected("MEMORY USAGE")),
        }
    }
    Ok((small, others))
}

fn ask_for_field(stream: &mut Connection, redis_key: &[u8], field: &[u8]) {
    stream.queue(&[b"HPEXPIRETIME", redis_key, b"FIELDS", b"1", field]);
}

/// Reads whether the field exists and never expires.
async fn read_field_stays(stream: &mut Connection) -> Result<bool, StoreError> {
    match stream.next_reply().await? {
        Ok(Value::Array(times)) => Ok(times == [Value::Int(-1)]),
        Ok(Value::Nil) | Err(_) => Ok(false),
        Ok(_) => Err(stream.unexpected("HPEXPIRETIME")),
    }
}
