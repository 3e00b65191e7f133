//! Reads records that share one Redis key: the members of a set or sorted set, or the fields of a
//! hash.

use std::sync::Arc;

use redis::Value;

use super::cursor::ScanCursor;
use crate::domain::record::{Content, Deadline, KeyState, Observation, TimeLeft};
use crate::domain::schema::{Catalog, MemberType, Schema};
use crate::store::cluster::client::{Client, ClientReply};
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// How many members a page requests, so few that other clients do not wait. Redis returns a small
/// set or hash at once, whatever the COUNT.
const PAGE: usize = 500;

/// A scan of the members at the Redis key of one schema.
struct MemberScan {
    schema: Arc<Schema>,
    members: MemberType,
    redis_key: Vec<u8>,
    cursor: ScanCursor,
}

/// A record: its idempotency key, and what was read of it.
type FoundMember = (Vec<u8>, Observation);

/// A page of members, or the Redis key that cannot be read, and why.
type MemberPage = Result<(Arc<Schema>, Vec<FoundMember>), (Vec<u8>, StoreError)>;

/// The scans of all schemas whose records are members, one after the other.
pub(super) struct MemberScans(Vec<MemberScan>);

impl MemberScans {
    pub(super) fn of_catalog(catalog: &Catalog) -> Self {
        let mut scans = Vec::new();
        for schema in catalog.scanned() {
            let Some(members) = schema.members else { continue };
            let redis_key = redis_key(&schema);
            let mut cursor = ScanCursor::new();
            // How many members there are is not asked, so only the other limits apply.
            let _ = cursor.set_dbsize(None);
            scans.push(MemberScan { schema, members, redis_key, cursor });
        }
        Self(scans)
    }

    /// The next page with its schema; `None` at the end. A Redis key that cannot be read is
    /// returned with its error, and the next call continues with the next schema.
    pub(super) async fn next_page(&mut self, client: &Client) -> Option<MemberPage> {
        while let Some(scan) = self.0.last_mut() {
            match scan.next_page(client).await {
                Ok(Some(page)) => return Some(Ok((Arc::clone(&scan.schema), page))),
                Ok(None) => {
                    self.0.pop();
                }
                Err(error) => {
                    let redis_key = scan.redis_key.clone();
                    self.0.pop();
                    return Some(Err((redis_key, error)));
                }
            }
        }
        None
    }
}

impl MemberScan {
    /// The next page, which may be empty; `None` at the end. A key of another type has no members.
    ///
    /// # Errors
    /// The errors of any read, or why the scan has no end.
    async fn next_page(&mut self, client: &Client) -> Result<Option<Vec<FoundMember>>, StoreError> {
        let Some(cursor) = self.cursor.cursor() else { return Ok(None) };
        let mut pipeline = redis::pipe();
        pipeline.cmd(self.members.scan_command()).arg(&self.redis_key);
        pipeline.arg(cursor).arg("COUNT").arg(PAGE);
        add_expiry(&mut pipeline, &self.redis_key);
        let mut replies = client.ask_each(&pipeline).await.into_iter();
        let page = replies.next().unwrap_or_else(|| Err(client.unexpected("SCAN")));
        let key = KeyExpiry::read(client, &mut replies)?;
        let page = match page {
            Err(error) if error.is_wrong_type() => return Ok(None),
            page => page?,
        };
        let Some((cursor, elements)) = cursor_and_elements(page) else {
            return Err(client.unexpected(self.members.scan_command()));
        };
        self.cursor.note_count(PAGE);
        self.cursor.start_page(&cursor, elements.len()).map_err(|why| StoreError::NotRedis {
            target: client.name(),
            why: format!("its {} has no end: {why}", self.members.scan_command()),
        })?;
        let mut found = Vec::new();
        let mut elements = elements.into_iter();
        while let Some(member) = elements.next() {
            let value = match self.members {
                MemberType::Set => Vec::new(),
                MemberType::Zset | MemberType::Hash => elements.next().unwrap_or_default(),
            };
            if self.cursor.is_new(&member) {
                let seen = key.observation(&self.redis_key, value);
                found.push((member, seen));
            }
        }
        Ok(Some(found))
    }
}

/// Looks up single members, each with its schema, all in one round trip. `None` for a member that
/// does not exist, also if the Redis key has another type. Each has its own error, because the user
/// may not read some of them.
///
/// # Errors
/// The server sent no reply that Redis sends.
pub(crate) async fn look_up(
    client: &Client,
    wanted: &[(Arc<Schema>, Vec<u8>)],
) -> Result<Vec<Result<Option<Observation>, StoreError>>, StoreError> {
    let mut pipeline = redis::pipe();
    for (schema, member) in wanted {
        let redis_key = redis_key(schema);
        let command = schema.members.map_or("HGET", MemberType::lookup_command);
        pipeline.cmd(command).arg(&redis_key).arg(member);
        add_expiry(&mut pipeline, &redis_key);
    }
    let mut replies = client.ask_each(&pipeline).await.into_iter();
    let mut found = Vec::with_capacity(wanted.len());
    for (schema, _) in wanted {
        let value = replies.next().unwrap_or_else(|| Err(client.unexpected("HGET")));
        let key = KeyExpiry::read(client, &mut replies);
        let value = match value {
            Ok(value) => value_of(value),
            Err(error) if error.is_wrong_type() => None,
            Err(error) => {
                found.push(Err(error));
                continue;
            }
        };
        let Some(value) = value else {
            found.push(Ok(None));
            continue;
        };
        found.push(key.map(|key| Some(key.observation(&redis_key(schema), value))));
    }
    Ok(found)
}

/// The Redis key with all records of the schema.
pub(super) fn redis_key(schema: &Schema) -> Vec<u8> {
    schema.keys[schema.lock_key_index()].template.redis_key(b"")
}

/// Asks for the expiry of the Redis key, between two times. In a cluster, another node may answer
/// with its time.
fn add_expiry(pipeline: &mut redis::Pipeline, redis_key: &[u8]) {
    pipeline.cmd("TIME").cmd("PTTL").arg(redis_key).cmd("TIME");
}

/// The expiry of the Redis key, which all members share.
struct KeyExpiry {
    pttl: i64,
    before: Option<u64>,
    after: Option<u64>,
    is_of_cluster: bool,
}

impl KeyExpiry {
    /// Reads the replies to [`add_expiry`]. A Redis user may not be permitted to send TIME.
    fn read(
        client: &Client,
        replies: &mut impl Iterator<Item = ClientReply>,
    ) -> Result<Self, StoreError> {
        let before = replies.next().and_then(Result::ok).and_then(reply::millis);
        let pttl = replies.next().unwrap_or_else(|| Err(client.unexpected("PTTL")));
        let after = replies.next().and_then(Result::ok).and_then(reply::millis);
        // After all three replies were taken, so that the next ones stay in step.
        match reply::integer(&pttl?) {
            Some(pttl) => Ok(Self { pttl, before, after, is_of_cluster: client.is_cluster() }),
            None => Err(client.unexpected("PTTL")),
        }
    }

    fn observation(&self, redis_key: &[u8], value: Vec<u8>) -> Observation {
        // The clocks of a cluster's nodes differ, so the sum of time and TTL would move.
        let deadline = match self.pttl {
            left if left >= 0 && self.is_of_cluster => Deadline::Unknown,
            left => Deadline::from_pttl(left, self.before, self.after),
        };
        let key = KeyState::new(
            redis_key,
            Content::text(value),
            TimeLeft::from_pttl(self.pttl),
            deadline,
        );
        Observation { server_ms: self.after.or(self.before), keys: vec![key], atomic: true }
    }
}

/// The cursor of the next page and the elements of this one, from a reply of SSCAN, ZSCAN or HSCAN.
fn cursor_and_elements(page: Value) -> Option<(Vec<u8>, Vec<Vec<u8>>)> {
    let [cursor, elements] = <[Value; 2]>::try_from(reply::array(page)?).ok()?;
    let mut texts = Vec::new();
    for element in reply::array(elements)? {
        texts.push(value_of(element)?);
    }
    Some((reply::bytes(cursor)?, texts))
}

/// The value of a member: the text of a hash's field, the score in a sorted set, nothing in a set.
/// `None` if the member does not exist.
fn value_of(reply: Value) -> Option<Vec<u8>> {
    match reply {
        // SISMEMBER and HEXISTS.
        Value::Int(0) => None,
        Value::Int(_) => Some(Vec::new()),
        // ZSCORE, with version 3 of the protocol.
        Value::Double(score) => Some(score.to_string().into_bytes()),
        other => reply::bytes(other),
    }
}

impl MemberType {
    fn scan_command(self) -> &'static str {
        match self {
            Self::Set => "SSCAN",
            Self::Zset => "ZSCAN",
            Self::Hash => "HSCAN",
        }
    }

    fn lookup_command(self) -> &'static str {
        match self {
            Self::Set => "SISMEMBER",
            Self::Zset => "ZSCORE",
            Self::Hash => "HGET",
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_member_that_does_not_exist_has_no_value() {
        assert_eq!(value_of(Value::Int(0)), None);
        assert_eq!(value_of(Value::Nil), None);
        assert_eq!(value_of(Value::Int(1)), Some(Vec::new()));
        assert_eq!(value_of(Value::Double(1.5)), Some(b"1.5".to_vec()));
        assert_eq!(value_of(Value::BulkString(Vec::new())), Some(Vec::new()));
    }
}
