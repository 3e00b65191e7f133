//! The read with which a change is compared. It is exact enough to distinguish the record from any
//! later one at the same Redis keys.

use redis::Pipeline;

use super::key_query::{
    CommandQueue as _, ExpiryCommand, KeyQuery, PipelineReplies, ReadLimit, ReadTimes, read_time,
};
use super::reader::{ReadDetail, ReadResult, RecordReader, RedisKeys};
use crate::domain::record::KeyState;
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// The most bytes of a value that are read and compared whole. A larger value is compared by its
/// beginning, its length and the checksum of its DUMP. For values of 512 bytes, a purge's compare
/// step takes 1.3 times as long with a DUMP as with whole values.
pub const MAX_WHOLE: usize = 4 << 10;

/// The most bytes of a value that are read to decode it, as many as a scan reads of a value that
/// never expires.
pub const MAX_FURTHER: usize = 16 << 20;

/// How many commands one Redis key takes.
const COMMANDS_PER_KEY: usize = 2;

/// The most bytes of values whose checksums are asked for in one write, unless a single record is
/// larger.
pub(super) const MAX_CHECKSUM_BYTES: u64 = 4 << 20;

/// The size in bytes that a value counts with if the server does not report it. One write then asks
/// for at most 16 of them.
const UNKNOWN_SIZE: u64 = 256 << 10;

impl RecordReader {
    /// Reads records on their masters, with the times at which they expire. Values of up to
    /// [`MAX_WHOLE`] or `least` bytes are read whole, longer ones with their checksum. Returns one
    /// result per record, in order. The Redis keys of a record may be read one after the other,
    /// because a change compares all of them in one step.
    ///
    /// # Errors
    /// The server could not be asked at all.
    pub async fn read_for_change(
        &mut self,
        groups: &[RedisKeys],
        least: usize,
    ) -> Result<Vec<ReadResult>, StoreError> {
        // Plain commands take the server less time than a script, and read most records: their
        // values are short.
        let mut read: Vec<Option<ReadResult>> = vec![None; groups.len()];
        if least <= MAX_WHOLE && self.client().tells_deadlines().await {
            for (index, seen) in self.read_whole_values(groups).await.into_iter().enumerate() {
                if is_final(&seen) {
                    read[index] = Some(seen);
                }
            }
        }
        // The script reads the rest: long values, and those of nodes of another version.
        let open: Vec<usize> = (0..groups.len()).filter(|index| read[*index].is_none()).collect();
        if !open.is_empty() {
            let wanted: Vec<_> = open.iter().map(|index| groups[*index].clone()).collect();
            let head = ReadLimit::Bytes(least.max(MAX_WHOLE));
            let told = self.read_with_checksums(&wanted, head).await?;
            for (index, seen) in open.into_iter().zip(told) {
                read[index] = Some(seen);
            }
        }
        let mut comparable = Vec::with_capacity(groups.len());
        for seen in read.into_iter().flatten() {
            // Without its expiry, a key cannot be compared.
            comparable.push(match seen {
                Ok(seen) => self.client().can_compare([&seen]).map(|()| seen),
                Err(error) => Err(error),
            });
        }
        Ok(comparable)
    }

    /// Like [`Self::read_for_change`], for values that cannot be decoded from [`MAX_WHOLE`] bytes:
    /// up to [`MAX_FURTHER`] bytes of each.
    ///
    /// # Errors
    /// The server could not be asked at all.
    pub async fn read_further_for_change(
        &mut self,
        groups: &[RedisKeys],
    ) -> Result<Vec<ReadResult>, StoreError> {
        self.read_with_checksums(groups, ReadLimit::Bytes(MAX_FURTHER)).await
    }

    /// True if an error of a read concerns one record or one master of a cluster, and the others
    /// can still be read.
    pub fn can_read_others_after(&self, error: &StoreError) -> bool {
        self.client().is_cluster() && error.concerns_one_node()
    }

    /// Reads records with the checksums of their values. A checksum takes the server a DUMP, and
    /// all commands of one write keep other clients waiting. So one write asks for
    /// [`MAX_CHECKSUM_BYTES`] bytes of values.
    async fn read_with_checksums(
        &mut self,
        groups: &[RedisKeys],
        head: ReadLimit,
    ) -> Result<Vec<ReadResult>, StoreError> {
        let sizes = self.read_sizes(groups).await;
        let mut read = Vec::with_capacity(groups.len());
        let mut rest = groups;
        for count in shares(&sizes, MAX_CHECKSUM_BYTES) {
            let (some, more) = rest.split_at(count);
            read.extend(self.read_with(some, head, ReadDetail::Checksums).await?);
            rest = more;
        }
        Ok(read)
    }

    /// How many bytes the values of each record take at the server, as far as the server reports
    /// it.
    async fn read_sizes(&self, groups: &[RedisKeys]) -> Vec<u64> {
        // The size of a single record does not matter, because it is read whatever its size.
        if groups.len() < 2 {
            return vec![UNKNOWN_SIZE; groups.len()];
        }
        let redis_keys: Vec<&[u8]> = groups.iter().flatten().map(Vec::as_slice).collect();
        let mut sizes = self.read_numbers(&[b"STRLEN"], &redis_keys).await;
        // STRLEN is an error for all other types.
        let others: Vec<usize> = (0..sizes.len()).filter(|index| sizes[*index].is_none()).collect();
        let others_keys: Vec<&[u8]> = others.iter().map(|index| redis_keys[*index]).collect();
        let memory = self.read_numbers(&[b"MEMORY", b"USAGE"], &others_keys).await;
        for (index, size) in others.into_iter().zip(memory) {
            sizes[index] = size;
        }
        let mut sizes = sizes.into_iter();
        let mut sums = Vec::with_capacity(groups.len());
        for record in groups {
            let mut sum: u64 = 0;
            for size in sizes.by_ref().take(record.len()) {
                sum = sum.saturating_add(size.unwrap_or(UNKNOWN_SIZE));
            }
            sums.push(sum);
        }
        sums
    }

    /// The number that a command replies for each Redis key; `None` for any other reply.
    pub(super) async fn read_numbers(
        &self,
        command: &[&[u8]],
        redis_keys: &[&[u8]],
    ) -> Vec<Option<u64>> {
        if redis_keys.is_empty() {
            return Vec::new();
        }
        let mut pipeline = Pipeline::with_capacity(redis_keys.len());
        for redis_key in redis_keys {
            pipeline.add(&[command, &[redis_key]].concat());
        }
        let mut numbers = Vec::with_capacity(redis_keys.len());
        for reply in self.client().ask_each(&pipeline).await {
            let mut number = None;
            if let Ok(reply) = reply
                && let Some(integer) = reply::integer(&reply)
            {
                number = u64::try_from(integer).ok();
            }
            numbers.push(number);
        }
        numbers
    }

    /// Reads strings of up to [`MAX_WHOLE`] bytes whole with plain commands, on a server that
    /// knows PEXPIRETIME.
    async fn read_whole_values(&self, groups: &[RedisKeys]) -> Vec<ReadResult> {
        let query = KeyQuery {
            expiry: ExpiryCommand::Pexpiretime,
            ..KeyQuery::heads(ReadLimit::Bytes(MAX_WHOLE))
        };
        let keys: usize = groups.iter().map(Vec::len).sum();
        let mut pipeline = Pipeline::with_capacity(keys * COMMANDS_PER_KEY + 1);
        for redis_keys in groups {
            query.ask(&mut pipeline, redis_keys);
        }
        // TIME is read last, so that a lock which is renewed meanwhile never seems to have more
        // left than its TTL.
        pipeline.add(&[b"TIME"]);
        let mut replies = PipelineReplies::to(self.client(), &pipeline).await;
        let mut read = Vec::with_capacity(groups.len());
        for redis_keys in groups {
            read.push(query.read(&mut replies, redis_keys).await.flatten());
        }
        let after = read_time(&mut replies).await.unwrap_or_default();
        for seen in read.iter_mut().flatten() {
            query.set_times(seen, ReadTimes { before: None, after });
        }
        read
    }
}

/// True if the script would read no more of a record than plain commands did.
fn is_final(seen: &ReadResult) -> bool {
    match seen {
        Ok(seen) => seen.server_ms.is_some() && seen.keys.iter().all(KeyState::is_comparable),
        // A node that does not answer is not asked again.
        Err(error) => error.lost_the_reply(),
    }
}

/// Splits sizes into shares of at most `most` bytes, each of at least one: how many sizes belong to
/// each share.
fn shares(sizes: &[u64], most: u64) -> Vec<usize> {
    let mut shares: Vec<usize> = Vec::new();
    let mut bytes: u64 = 0;
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
