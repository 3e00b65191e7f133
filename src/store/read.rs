//! Reading records. Nothing here can change anything.

use std::time::Duration;

use redis::{Pipeline, Value};

use super::error::StoreError;
use super::link::Link;
use super::pace::Gait;
use super::reply;
use super::scripts;
use crate::domain::observation::{Content, Expiry, Observation, SeenSlot};

/// How much of each value is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Head {
    /// At most this many bytes.
    Bytes(usize),
    /// All of it.
    Whole,
}

impl Head {
    fn last_index(self) -> i64 {
        match self {
            Self::Bytes(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX) - 1,
            Self::Whole => -1,
        }
    }

    fn as_arg(self) -> i64 {
        match self {
            Self::Bytes(bytes) => i64::try_from(bytes).unwrap_or(i64::MAX),
            Self::Whole => -1,
        }
    }
}

/// How records can be read on this server, found out by trying.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// `EVAL_RO`, from Redis 7.
    ReadOnlyScript,
    /// `EVAL`, before.
    Script,
    /// Plain commands, where scripts are not permitted: not atomic.
    Commands,
}

/// What may only read.
#[derive(Clone)]
pub struct Reader {
    link: Link,
    way: Way,
    gait: Gait,
}

/// What reading one record gave.
pub type Seen = Result<Observation, StoreError>;

impl Reader {
    pub(super) fn new(link: Link) -> Self {
        Self { link, way: Way::ReadOnlyScript, gait: Gait::default() }
    }

    /// The same, which walks the keyspace like this. Single records are read from masters all the same.
    #[must_use]
    pub fn walking(self, gait: Gait) -> Self {
        Self { gait, ..self }
    }

    /// How the keyspace is walked.
    pub(super) fn gait(&self) -> Gait {
        self.gait
    }

    /// The server's name for people.
    pub fn name(&self) -> String {
        self.link.name()
    }

    pub(super) fn link(&self) -> &Link {
        &self.link
    }

    /// Reads records, all in one round trip, each atomically: idle time before anything touches the value, then type,
    /// expiry, memory and the value's head. One result a record, in order: a record may be out of bounds for the user.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub async fn observe(&mut self, records: &[Vec<Vec<u8>>], head: Head) -> Result<Vec<Seen>, StoreError> {
        self.observe_each(records, head).await?.into_iter().map(of_the_record).collect()
    }

    /// The same with an own error for each record that cannot be read, whatever the reason: its node does not answer.
    ///
    /// # Errors
    /// When no record could be read at all.
    pub async fn observe_each(&mut self, records: &[Vec<Vec<u8>>], head: Head) -> Result<Vec<Seen>, StoreError> {
        loop {
            let command = match self.way {
                Way::ReadOnlyScript => "EVAL_RO",
                Way::Script => "EVAL",
                Way::Commands => {
                    let mut seen = self.peek_each(records, head).await;
                    self.measure(seen.iter_mut().flatten()).await?;
                    return Ok(seen);
                }
            };
            let units = self.units(records);
            let replies = self.observe_by(command, &units, head).await;
            if self.units(records) != units {
                // It turned out to be a cluster that keeps the keys of a record apart.
                continue;
            }
            let fallback = replies.iter().find_map(|reply| self.other_way(reply.as_ref().err()?));
            match fallback {
                Some(way) => self.way = way,
                None => {
                    let read = replies.into_iter().zip(&units);
                    let read = read
                        .map(|(reply, keys)| observation(reply?, keys).ok_or_else(|| self.link.unexpected(command)));
                    return Ok(together(records, read.collect()));
                }
            }
        }
    }

    /// What is read in one step each: a record, or each of its Redis keys where a cluster keeps them apart.
    fn units(&self, records: &[Vec<Vec<u8>>]) -> Vec<Vec<Vec<u8>>> {
        let unit = |keys: &Vec<Vec<u8>>| {
            if self.link.parts(keys) { keys.iter().map(|key| vec![key.clone()]).collect() } else { vec![keys.clone()] }
        };
        records.iter().flat_map(unit).collect()
    }

    async fn observe_by(&self, command: &str, records: &[Vec<Vec<u8>>], head: Head) -> Vec<Result<Value, StoreError>> {
        let mut pipeline = redis::pipe();
        for keys in records {
            pipeline.cmd(command).arg(scripts::OBSERVE).arg(keys.len()).arg(keys).arg(head.as_arg());
        }
        self.link.ask_each(&pipeline).await
    }

    /// Another way to read, when this one failed for want of the command or of the right to it.
    fn other_way(&self, error: &StoreError) -> Option<Way> {
        let command_denied = matches!(error, StoreError::Permission { why, .. } if why.contains("command"));
        match self.way {
            Way::ReadOnlyScript if error.is_unknown_command() || command_denied => Some(Way::Script),
            Way::Script if error.is_unknown_command() || command_denied => Some(Way::Commands),
            _ => None,
        }
    }

    /// Reads records with plain commands in one round trip: head and expiry, and the length where the head is not all.
    /// The two keys of a record are read one after the other.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub async fn peek(&self, records: &[Vec<Vec<u8>>], head: Head) -> Result<Vec<Seen>, StoreError> {
        let seen = self.peek_each(records, head).await.into_iter().map(of_the_record);
        let mut seen = seen.collect::<Result<Vec<_>, _>>()?;
        self.measure(seen.iter_mut().flatten()).await?;
        Ok(seen)
    }

    /// The same without lengths, and with an own error for each record that cannot be read, whatever the reason.
    ///
    pub(super) async fn peek_each(&self, records: &[Vec<Vec<u8>>], head: Head) -> Vec<Seen> {
        let mut pipeline = Pipeline::with_capacity(records.len() * 4);
        for key in records.iter().flatten() {
            pipeline.cmd("GETRANGE").arg(key).arg(0).arg(head.last_index());
            pipeline.cmd("PTTL").arg(key);
        }
        let mut replies = self.link.ask_each(&pipeline).await.into_iter();
        let mut peeked = |key: &Vec<u8>| match (replies.next(), replies.next()) {
            (Some(value), Some(pttl)) => self.peeked(key, value, pttl, head),
            _ => Err(self.link.unexpected("GETRANGE")),
        };
        let record = |keys: &Vec<Vec<u8>>| {
            // Each takes its replies, also behind one that has failed.
            let slots: Vec<_> = keys.iter().map(&mut peeked).collect();
            let slots = slots.into_iter().collect::<Result<_, _>>()?;
            Ok(Observation { server_ms: None, atomic: keys.len() == 1, slots })
        };
        records.iter().map(record).collect()
    }

    fn peeked(
        &self,
        key: &[u8],
        value: Result<Value, StoreError>,
        pttl: Result<Value, StoreError>,
        most: Head,
    ) -> Result<SeenSlot, StoreError> {
        let pttl = reply::integer(&pttl?).ok_or_else(|| self.link.unexpected("PTTL"))?;
        let content = match value {
            Err(StoreError::Refused { code, .. }) if code == "WRONGTYPE" => Content::Other(String::new()),
            Err(error) => return Err(error),
            Ok(_) if pttl == -2 => Content::Absent,
            Ok(value) => {
                let head = reply::bytes(value).ok_or_else(|| self.link.unexpected("GETRANGE"))?;
                let length = (most != Head::Bytes(head.len())).then_some(head.len() as u64);
                Content::Text { head, length }
            }
        };
        Ok(SeenSlot { redis_key: key.to_vec(), content, expiry: Expiry::from_pttl(pttl), idle: None, memory: None })
    }

    /// Asks for the lengths and types that are not known yet, in one round trip. What a node of a cluster does not answer
    /// stays unknown.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub async fn measure(&self, seen: impl Iterator<Item = &mut Observation>) -> Result<(), StoreError> {
        let mut open: Vec<_> =
            seen.flat_map(|seen| &mut seen.slots).filter_map(|slot| Some((question(&slot.content)?, slot))).collect();
        let mut pipeline = redis::pipe();
        for (command, slot) in &open {
            pipeline.cmd(command).arg(&slot.redis_key);
        }
        let replies = if self.link.is_cluster() {
            Ok(self.link.ask_each(&pipeline).await)
        } else {
            self.link.ask_all(&pipeline).await
        };
        for ((_, slot), reply) in open.iter_mut().zip(replies?) {
            match (&mut slot.content, reply) {
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

/// What concerns one record alone: that the user may not read it. Any other error is one of the whole.
fn of_the_record(seen: Seen) -> Result<Seen, StoreError> {
    match seen {
        Err(error) if !error.is_permission() || error.wants_slots() => Err(error),
        seen => Ok(seen),
    }
}

/// Puts together what was read of each record; not atomic where its Redis keys were read one after the other.
fn together(records: &[Vec<Vec<u8>>], read: Vec<Seen>) -> Vec<Seen> {
    let mut read = read.into_iter();
    let record = |keys: &Vec<Vec<u8>>| {
        let mut whole = read.next()?;
        while whole.as_ref().is_ok_and(|seen| seen.slots.len() < keys.len()) {
            whole = match (whole, read.next()?) {
                (Ok(mut seen), Ok(mut more)) => {
                    seen.slots.append(&mut more.slots);
                    Ok(Observation { atomic: false, ..seen })
                }
                (_, Err(error)) | (Err(error), _) => Err(error),
            };
        }
        Some(whole)
    };
    records.iter().map_while(record).collect()
}

/// The command that tells what is not known of a value.
fn question(content: &Content) -> Option<&'static str> {
    match content {
        Content::Text { length: None, .. } => Some("STRLEN"),
        Content::Other(kind) if kind.is_empty() => Some("TYPE"),
        _ => None,
    }
}

/// Reads the reply of `observe.lua`.
fn observation(value: Value, keys: &[Vec<u8>]) -> Option<Observation> {
    let mut items = reply::array(value)?.into_iter();
    let server_ms = u64::try_from(reply::integer(&items.next()?)?).ok();
    let slots = keys.iter().map(|key| seen_slot(key, items.next()?)).collect::<Option<_>>()?;
    Some(Observation { server_ms, slots, atomic: true })
}

fn seen_slot(key: &[u8], value: Value) -> Option<SeenSlot> {
    let [kind, pttl, idle, memory, length, head] = <[Value; 6]>::try_from(reply::array(value)?).ok()?;
    let content = match reply::word(kind)?.as_str() {
        "none" => Content::Absent,
        "string" => Content::Text { head: reply::bytes(head)?, length: u64::try_from(reply::integer(&length)?).ok() },
        other => Content::Other(other.to_owned()),
    };
    Some(SeenSlot {
        redis_key: key.to_vec(),
        content,
        expiry: Expiry::from_pttl(reply::integer(&pttl)?),
        idle: u64::try_from(reply::integer(&idle)?).ok().map(Duration::from_secs),
        memory: u64::try_from(reply::integer(&memory)?).ok(),
    })
}
