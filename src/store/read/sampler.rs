//! Samples a whole keyspace, with values of any type: some Redis keys of each master, and the
//! beginning of each value.

use std::collections::VecDeque;

use fastrand::Rng;
use tokio::time::{Instant, sleep_until};

use super::gaps::Gaps;
use super::key_query::{KeyQuery, ReadLimit};
use super::reader::{ReadResult, RecordReader, RedisKeys};
use super::sampled_node::SampledNode;
use crate::domain::record::{Content, KeyState};
use crate::domain::select::Rate;
use crate::store::error::StoreError;

/// The Redis keys of a page: few enough that other clients do not wait, and that random cursors
/// spread.
const PAGE: usize = 100;

/// The bytes of a value by which most formats can be recognised.
const HEAD: ReadLimit = ReadLimit::Bytes(512);

/// The bytes that are read of some longer values, because the state may follow the response.
const FURTHER: ReadLimit = ReadLimit::Bytes(16 * 1024);

/// How many values of a page are read further, so that a page of large values stays a small
/// request.
const MAX_FURTHER: usize = 4;

/// A sample, page by page.
pub struct Sampler {
    reader: RecordReader,
    random: Rng,
    rate: Option<Rate>,
    /// The earliest time for the next page.
    due: Instant,
    nodes: VecDeque<SampledNode>,
    /// How many Redis keys exist; `None` if the Redis user may not ask.
    pub(crate) there: Option<u64>,
    gaps: Gaps,
    /// Redis keys that the Redis user may not read, and why.
    forbidden: Option<(u64, StoreError)>,
    sampled: u64,
}

impl Sampler {
    /// Asks each master how many Redis keys it has, to sample this many of them all.
    ///
    /// # Errors
    /// No node can be reached.
    pub async fn start(
        reader: RecordReader,
        wanted: usize,
        random: Rng,
        rate: Option<Rate>,
    ) -> Result<Self, StoreError> {
        let mut sampler = Self::open(reader, random, rate).await?;
        let there = sampler.there;
        let nodes = sampler.nodes.len();
        let page = page(rate);
        for node in &mut sampler.nodes {
            node.want(part(node.size, there, wanted, nodes), page);
        }
        Ok(sampler)
    }

    /// Samples Redis keys that match a glob, at most so many on each master.
    ///
    /// # Errors
    /// No node can be reached.
    pub async fn matching(
        reader: RecordReader,
        glob: &[u8],
        wanted: usize,
        rate: Option<Rate>,
    ) -> Result<Self, StoreError> {
        let mut sampler = Self::open(reader, Rng::new(), rate).await?;
        for node in &mut sampler.nodes {
            node.want_matching(wanted, glob);
        }
        Ok(sampler)
    }

    async fn open(
        reader: RecordReader,
        random: Rng,
        rate: Option<Rate>,
    ) -> Result<Self, StoreError> {
        let client = reader.client().clone();
        let mut nodes = VecDeque::new();
        let (masters, _, mut gaps) = Gaps::open(&client).await?;
        for master in masters {
            match SampledNode::open(&client, master).await {
                Ok(node) => nodes.push_back(node),
                Err(error) => gaps.miss_node(error),
            }
        }
        if nodes.is_empty()
            && let Some(error) = gaps.pop_node()
        {
            return Err(client.explain_error(error).await);
        }
        // Unknown if one of the nodes does not report its number.
        let there = nodes.iter().map(|node| node.size).sum();
        Ok(Self {
            reader,
            random,
            rate,
            due: Instant::now(),
            nodes,
            there,
            gaps,
            forbidden: None,
            sampled: 0,
        })
    }

    /// The next page of samples, perhaps none; `None` at the end.
    ///
    /// # Errors
    /// The errors of any read of a single server. For a cluster, those of the last node that
    /// answers.
    pub async fn next(&mut self) -> Result<Option<Vec<KeyState>>, StoreError> {
        sleep_until(self.due).await;
        let Some(mut node) = self.nodes.pop_front() else { return self.end() };
        match node.next(self.reader.client(), page(self.rate), &mut self.random).await {
            // This node is done, but the others may have more.
            Ok(None) => Ok(Some(Vec::new())),
            Ok(Some(keys)) => {
                self.nodes.push_back(node);
                if let Some(rate) = self.rate {
                    self.due = self.due.max(Instant::now()) + rate.time_for(keys.len());
                }
                match self.read(&keys).await {
                    Ok(seen) => Ok(Some(seen)),
                    Err(error) => self.miss(error),
                }
            }
            Err(error) => self.miss(error),
        }
    }

    /// A warning about Redis keys that the Redis user may not read; `None` if there are none.
    pub fn forbidden(&self) -> Option<String> {
        let (count, why) = self.forbidden.as_ref()?;
        let keys = if *count == 1 { "key was" } else { "keys were" };
        Some(format!("{count} Redis {keys} skipped: {why}"))
    }

    /// The parts of a cluster that could not be read; `None` if there are no gaps.
    pub fn missed(&self) -> Option<StoreError> {
        self.gaps.error()
    }

    /// Leaves out a node of a cluster, or a page of it.
    ///
    /// # Errors
    /// The error, if there is only one node.
    fn miss(&mut self, why: StoreError) -> Result<Option<Vec<KeyState>>, StoreError> {
        if self.gaps.masters() < 2 {
            return Err(why);
        }
        self.gaps.miss_node(why);
        Ok(Some(Vec::new()))
    }

    /// The end of the sample.
    ///
    /// # Errors
    /// The Redis user may read none of the keys.
    fn end(&self) -> Result<Option<Vec<KeyState>>, StoreError> {
        match &self.forbidden {
            Some((_, why)) if self.sampled == 0 => Err(why.clone()),
            _ => Ok(None),
        }
    }

    /// Reads types and expiries, and the beginnings of the values that a schema may read.
    async fn read(&mut self, keys: &[Vec<u8>]) -> Result<Vec<KeyState>, StoreError> {
        let one_key_each: Vec<_> = keys.iter().map(|key| vec![key.clone()]).collect();
        let types = self.reader.read_query(&one_key_each, KeyQuery::types()).await;
        let mut sampled = Vec::new();
        let mut to_read = Vec::new();
        for (redis_keys, seen) in one_key_each.into_iter().zip(types) {
            match seen {
                Ok(seen) => match &seen.keys[0].content {
                    Content::Absent => {}
                    Content::Text { .. } | Content::Hash(_) => to_read.push(redis_keys),
                    Content::Other(kind) if kind == "hash" => to_read.push(redis_keys),
                    // A schema reads no other type, and reading the value would count as an error
                    // on the server.
                    Content::Other(_) => sampled.extend(seen.keys),
                },
                Err(error) if error.lost_the_reply() || error.lacks_slot_map_right() => {
                    return Err(error);
                }
                // A Redis user who may not ask for the type may still read the value.
                Err(_) => to_read.push(redis_keys),
            }
        }
        let mut read = self.reader.read_by_commands(&to_read, HEAD).await?;
        self.read_further(&to_read, &mut read).await?;
        for (redis_keys, seen) in to_read.iter().zip(read) {
            match seen {
                Ok(seen) => {
                    for key in seen.keys {
                        if !key.content.is_absent() {
                            sampled.push(key);
                        }
                    }
                }
                Err(why) if why.is_permission() && !why.lacks_slot_map_right() => {
                    self.forbidden.get_or_insert((0, why)).0 += 1;
                }
                Err(why) => self.gaps.miss_record(&redis_keys[0], why)?,
            }
        }
        self.sampled += sampled.len() as u64;
        Ok(sampled)
    }

    /// Reads more of the first values that are longer than the part that was read.
    async fn read_further(
        &self,
        groups: &[RedisKeys],
        read: &mut [ReadResult],
    ) -> Result<(), StoreError> {
        let mut cut = Vec::new();
        for (index, seen) in read.iter().enumerate() {
            let is_cut =
                seen.as_ref().is_ok_and(|seen| seen.keys.iter().any(|key| !key.content.is_whole()));
            if is_cut && cut.len() < MAX_FURTHER {
                cut.push(index);
            }
        }
        let wanted: Vec<_> = cut.iter().map(|index| groups[*index].clone()).collect();
        let longer = self.reader.read_by_commands(&wanted, FURTHER).await?;
        for (index, seen) in cut.into_iter().zip(longer) {
            read[index] = seen;
        }
        Ok(())
    }
}

/// How many Redis keys a page has.
fn page(rate: Option<Rate>) -> usize {
    match rate {
        Some(rate) => rate.at_a_time(PAGE),
        None => PAGE,
    }
}

/// How many Redis keys of a node are sampled. This is its share by `size` of all keys, or all of
/// them if there are not too many.
fn part(size: Option<u64>, there: Option<u64>, wanted: usize, nodes: usize) -> usize {
    let (Some(size), Some(there)) = (size, there) else { return wanted.div_ceil(nodes.max(1)) };
    if there <= wanted as u64 {
        // Other clients may add keys meanwhile.
        return wanted;
    }
    let part = u128::from(size) * wanted as u128 / u128::from(there.max(1));
    usize::try_from(part).unwrap_or(wanted).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_node_gives_its_part_and_a_small_keyspace_all() {
        assert_eq!(part(Some(30), Some(100), 10, 3), 3);
        assert_eq!(part(Some(1), Some(1_000_000), 5_000, 3), 1, "each node gives one at least");
        assert_eq!(part(Some(30), Some(100), 100, 3), 100);
        assert_eq!(part(None, None, 5_000, 3), 1_667);
        assert_eq!(part(Some(u64::MAX), Some(u64::MAX), 5_000, 1), 5_000);
    }
}
