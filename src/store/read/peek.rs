//! Reading records with plain commands: what a scan cannot read on a node's own connection, and what no script may read.

use redis::{Pipeline, Value};

use super::reader::{ReadLimit, RecordReader, Seen};
use crate::domain::record::{Content, Deadline, Expiry, Observation, SeenKey};
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl RecordReader {
    /// Reads records with plain commands in one round trip: head and expiry, and the length where the head is not all.
    /// The two keys of a record are read one after the other. Each record that cannot be read has its own error, whatever the
    /// reason.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub async fn peek(
        &self,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
    ) -> Result<Vec<Seen>, StoreError> {
        let mut seen = self.peek_each(records, head).await;
        self.measure(seen.iter_mut().flatten()).await?;
        self.peek_fields(seen.iter_mut().flatten().flat_map(|seen| &mut seen.keys).collect(), head)
            .await?;
        Ok(seen)
    }

    /// The same without lengths, and with an own error for each record that cannot be read, whatever the reason.
    ///
    pub(in crate::store) async fn peek_each(
        &self,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
    ) -> Vec<Seen> {
        let mut pipeline = Pipeline::with_capacity(records.len() * 4);
        for key in records.iter().flatten() {
            pipeline.cmd("GETRANGE").arg(key).arg(0).arg(head.last_index());
            pipeline.cmd("PTTL").arg(key);
        }
        let mut replies = self.client().ask_each(&pipeline).await.into_iter();
        let mut peeked = |key: &Vec<u8>| match (replies.next(), replies.next()) {
            (Some(value), Some(pttl)) => self.peeked(key, value, pttl, head),
            _ => Err(self.client().unexpected("GETRANGE")),
        };
        let record = |keys: &Vec<Vec<u8>>| {
            // Each takes its replies, also behind one that has failed.
            let seen: Vec<_> = keys.iter().map(&mut peeked).collect();
            let seen = seen.into_iter().collect::<Result<_, _>>()?;
            Ok(Observation { server_ms: None, atomic: keys.len() == 1, keys: seen })
        };
        records.iter().map(record).collect()
    }

    /// When the Redis keys of records expire. Nothing is read of a value that is there.
    pub(in crate::store) async fn peek_deadlines(&self, records: &[Vec<Vec<u8>>]) -> Vec<Seen> {
        let mut pipeline = Pipeline::with_capacity(records.len() * 2);
        for key in records.iter().flatten() {
            pipeline.cmd("PTTL").arg(key);
        }
        let mut replies = self.client().ask_each(&pipeline).await.into_iter();
        let mut seen = Vec::with_capacity(records.len());
        for redis_keys in records {
            let replies: Vec<_> = replies.by_ref().take(redis_keys.len()).collect();
            seen.push(self.with_deadlines(redis_keys, replies));
        }
        seen
    }

    fn with_deadlines(
        &self,
        redis_keys: &[Vec<u8>],
        replies: Vec<Result<Value, StoreError>>,
    ) -> Seen {
        let mut keys = Vec::with_capacity(redis_keys.len());
        for (key, reply) in redis_keys.iter().zip(replies) {
            let pttl = reply::integer(&reply?).ok_or_else(|| self.client().unexpected("PTTL"))?;
            let content = if pttl == -2 { Content::Absent } else { Content::unread() };
            keys.push(SeenKey::new(
                key,
                content,
                Expiry::from_pttl(pttl),
                Deadline::from_pttl(pttl, None, None),
            ));
        }
        Ok(Observation { server_ms: None, atomic: keys.len() == 1, keys })
    }

    fn peeked(
        &self,
        key: &[u8],
        value: Result<Value, StoreError>,
        pttl: Result<Value, StoreError>,
        most: ReadLimit,
    ) -> Result<SeenKey, StoreError> {
        let pttl = reply::integer(&pttl?).ok_or_else(|| self.client().unexpected("PTTL"))?;
        let content = match value {
            Err(StoreError::Refused { code, .. }) if code == "WRONGTYPE" => {
                Content::Other(String::new())
            }
            Err(error) => return Err(error),
            Ok(_) if pttl == -2 => Content::Absent,
            Ok(value) => {
                let head =
                    reply::bytes(value).ok_or_else(|| self.client().unexpected("GETRANGE"))?;
                let length = (most != ReadLimit::Bytes(head.len())).then_some(head.len() as u64);
                Content::Text { head, length }
            }
        };
        let deadline = Deadline::from_pttl(pttl, None, None);
        Ok(SeenKey::new(key, content, Expiry::from_pttl(pttl), deadline))
    }

    /// Asks for the lengths and types that are not known yet, in one round trip. What a node of a cluster does not answer
    /// stays unknown.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub async fn measure(
        &self,
        seen: impl Iterator<Item = &mut Observation>,
    ) -> Result<(), StoreError> {
        let mut open: Vec<_> = seen
            .flat_map(|seen| &mut seen.keys)
            .filter_map(|key| Some((question(&key.content)?, key)))
            .collect();
        let mut pipeline = redis::pipe();
        for (command, key) in &open {
            pipeline.cmd(command).arg(&key.redis_key);
        }
        let replies = if self.client().is_cluster() {
            Ok(self.client().ask_each(&pipeline).await)
        } else {
            self.client().ask_all(&pipeline).await
        };
        for ((_, key), reply) in open.iter_mut().zip(replies?) {
            match (&mut key.content, reply) {
                (Content::Text { head, length }, Ok(Value::Int(now))) => {
                    *length = Some(u64::try_from(now).unwrap_or(0).max(head.len() as u64));
                }
                (Content::Other(kind), Ok(value)) => *kind = reply::word(value).unwrap_or_default(),
                // It changed meanwhile, or may not be asked: what was read stays as it is.
                _ => {}
            }
        }
        Ok(())
    }
}

/// The command that tells what is not known of a value.
fn question(content: &Content) -> Option<&'static str> {
    match content {
        Content::Text { length: None, .. } => Some("STRLEN"),
        Content::Other(kind) if kind.is_empty() => Some("TYPE"),
        _ => None,
    }
}
