//! The look that a change is compared with: sharp enough to tell the record from every other that may take its place.

use super::reader::{Depth, ReadLimit, RecordReader, Seen};
use crate::domain::record::{Content, Deadline, Expiry, Observation, SeenKey};
use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// The most bytes of a value that are read and compared whole. A larger value is told by its beginning, its length and the
/// checksum of its DUMP: reading and comparing 512 bytes whole costs a purge's compare step 1.17 times, a DUMP 1.52 times.
pub const MOST_WHOLE: usize = 4 << 10;

/// The most bytes of a value that are read to tell what it is.
pub const MOST_FURTHER: usize = 16 << 20;

/// The commands that one Redis key takes.
const PER_KEY: usize = 2;

/// The most bytes of values whose checksums are asked for in one write, unless a single record is larger.
const MOST_AT_ONCE: u64 = 4 << 20;

/// What a value counts whose size the server does not tell.
const UNKNOWN: u64 = 256 << 10;

impl RecordReader {
    /// Looks at records on their masters: their values whole up to [`MOST_WHOLE`] or `least` bytes, longer ones with their
    /// checksum, and the moments at which they expire. One result a record, in order; the Redis keys of a record may be
    /// read one after the other, for a change compares all of them in one step.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub async fn look(
        &mut self,
        records: &[Vec<Vec<u8>>],
        least: usize,
    ) -> Result<Vec<Seen>, StoreError> {
        let mut seen: Vec<_> = match least <= MOST_WHOLE && self.client().tells_deadlines().await {
            true => self.read_plainly(records).await.into_iter().map(Some).collect(),
            false => vec![None; records.len()],
        };
        // What plain commands did not tell, the script does: long values, and nodes of another version.
        let is_told = |seen: &Option<Seen>| seen.as_ref().is_some_and(is_told);
        let open: Vec<_> = (0..records.len()).filter(|index| !is_told(&seen[*index])).collect();
        let wanted: Vec<_> = open.iter().map(|index| records[*index].clone()).collect();
        if !wanted.is_empty() {
            let head = ReadLimit::Bytes(least.max(MOST_WHOLE));
            let told = self.observe_checksums(&wanted, head).await?;
            open.into_iter().zip(told).for_each(|(index, told)| seen[index] = Some(told));
        }
        let mut looks = Vec::with_capacity(records.len());
        for seen in seen.into_iter().flatten() {
            // A moment that nobody may ask for compares with none.
            looks.push(seen.and_then(|seen| self.client().can_compare([&seen]).map(|()| seen)));
        }
        Ok(looks)
    }

    /// The same, of values of which [`MOST_WHOLE`] bytes do not tell what they are.
    pub async fn look_further(
        &mut self,
        records: &[Vec<Vec<u8>>],
    ) -> Result<Vec<Seen>, StoreError> {
        self.observe_checksums(records, ReadLimit::Bytes(MOST_FURTHER)).await
    }

    /// True when an error of a look is that of one record or one master of a cluster, which leaves the others to go on with.
    pub fn goes_on_after(&self, error: &StoreError) -> bool {
        self.client().is_cluster() && error.is_of_a_part()
    }

    /// Reads records with the checksums of their values. A checksum takes the server a DUMP, and a server serves nobody else
    /// until it has answered all that came in one write. So one write asks for [`MOST_AT_ONCE`] bytes of values.
    async fn observe_checksums(
        &mut self,
        records: &[Vec<Vec<u8>>],
        head: ReadLimit,
    ) -> Result<Vec<Seen>, StoreError> {
        let sizes = self.sizes(records).await;
        let mut seen = Vec::with_capacity(records.len());
        let mut rest = records;
        for count in shares(&sizes, MOST_AT_ONCE) {
            let (some, more) = rest.split_at(count);
            seen.extend(self.observe_with(some, head, Depth::Checksums).await?);
            rest = more;
        }
        Ok(seen)
    }

    /// How many bytes the values of each record take at the server, as far as it tells.
    async fn sizes(&self, records: &[Vec<Vec<u8>>]) -> Vec<u64> {
        // The size of a single record does not matter, for it is read whatever its size.
        if records.len() < 2 {
            return vec![UNKNOWN; records.len()];
        }
        let keys: Vec<_> = records.iter().flatten().collect();
        let mut sizes = self.numbers(&["STRLEN"], &keys).await;
        // STRLEN is for strings alone.
        let others: Vec<_> = (0..keys.len()).filter(|index| sizes[*index].is_none()).collect();
        let named: Vec<_> = others.iter().map(|index| keys[*index]).collect();
        for (index, size) in
            others.into_iter().zip(self.numbers(&["MEMORY", "USAGE"], &named).await)
        {
            sizes[index] = size;
        }
        let mut sizes = sizes.into_iter().map(|size| size.unwrap_or(UNKNOWN));
        records
            .iter()
            .map(|keys| sizes.by_ref().take(keys.len()).fold(0, u64::saturating_add))
            .collect()
    }

    /// What a command says of each key; `None` where the reply is no number.
    async fn numbers(&self, command: &[&str], keys: &[&Vec<u8>]) -> Vec<Option<u64>> {
        if keys.is_empty() {
            return Vec::new();
        }
        let mut pipeline = redis::Pipeline::with_capacity(keys.len());
        for key in keys {
            pipeline.cmd(command[0]).arg(&command[1..]).arg(key);
        }
        let replies = self.client().ask_each(&pipeline).await.into_iter();
        replies.map(|reply| u64::try_from(reply::integer(&reply.ok()?)?).ok()).collect()
    }

    async fn read_plainly(&self, records: &[Vec<Vec<u8>>]) -> Vec<Seen> {
        let mut pipeline = redis::Pipeline::with_capacity(records.len() * PER_KEY + 1);
        for key in records.iter().flatten() {
            // One byte more tells a value that is longer.
            pipeline.cmd("GETRANGE").arg(key).arg(0).arg(MOST_WHOLE);
            pipeline.cmd("PEXPIRETIME").arg(key);
        }
        // Behind the reads: what is left of a lock that is renewed meanwhile is never more than its TTL.
        pipeline.cmd("TIME");
        let mut replies = self.client().ask_each(&pipeline).await;
        let server_ms = replies.pop().and_then(Result::ok).and_then(reply::millis);
        let mut replies = replies.into_iter();
        let mut look = |key: &Vec<u8>| match (replies.next(), replies.next()) {
            (Some(value), Some(at)) => seen_key(self.client(), key, value?, &at?, server_ms),
            _ => Err(self.client().unexpected("GETRANGE")),
        };
        let record = |keys: &Vec<Vec<u8>>| {
            // Each takes its replies, also behind one that has failed.
            let seen: Vec<_> = keys.iter().map(&mut look).collect();
            let seen = seen.into_iter().collect::<Result<_, _>>()?;
            Ok(Observation { server_ms, atomic: keys.len() == 1, keys: seen })
        };
        records.iter().map(record).collect()
    }
}

fn seen_key(
    client: &Client,
    key: &[u8],
    value: redis::Value,
    at: &redis::Value,
    server_ms: Option<u64>,
) -> Result<SeenKey, StoreError> {
    let at = reply::integer(at).ok_or_else(|| client.unexpected("PEXPIRETIME"))?;
    let deadline = Deadline::from_pexpiretime(at);
    let content = match at {
        -2 => Content::Absent,
        _ => {
            let mut head = reply::bytes(value).ok_or_else(|| client.unexpected("GETRANGE"))?;
            let is_longer = head.len() > MOST_WHOLE;
            head.truncate(MOST_WHOLE);
            Content::Text { length: (!is_longer).then_some(head.len() as u64), head }
        }
    };
    let expiry = Expiry::until(deadline, server_ms.unwrap_or_default());
    Ok(SeenKey::new(key, content, expiry, deadline))
}

/// True when the look is all that can be told of the record.
fn is_told(seen: &Seen) -> bool {
    match seen {
        Ok(seen) => seen.server_ms.is_some() && seen.keys.iter().all(SeenKey::is_comparable),
        Err(error) => error.lost_the_reply(),
    }
}

/// Splits so many sizes into shares of at most this many bytes, each of at least one: how many belong to each.
fn shares(sizes: &[u64], most: u64) -> Vec<usize> {
    let (mut shares, mut bytes) = (Vec::new(), 0_u64);
    for size in sizes {
        bytes = bytes.saturating_add(*size);
        match shares.last_mut() {
            Some(count) if bytes <= most => *count += 1,
            _ => {
                shares.push(1);
                bytes = *size;
            }
        }
    }
    shares
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_share_has_so_many_bytes_or_one_record() {
        for (sizes, wanted) in [
            (&[][..], &[][..]),
            (&[1, 2, 3, 4], &[2, 1, 1]),
            (&[9, 1, 1, 9], &[1, 2, 1]),
            (&[0, 0, 3, 0], &[4]),
            (&[u64::MAX, u64::MAX, 1], &[1, 1, 1]),
        ] {
            assert_eq!(shares(sizes, 3), wanted, "{sizes:?}");
        }
    }
}
