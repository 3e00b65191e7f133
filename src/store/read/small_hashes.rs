//! Small hashes on a scan's own connection: first what each weighs, and with the next page all fields of those that weigh
//! little. What weighs more, or is no hash, is read by a script, which bounds what a value may cost: a script takes the server
//! and the client three times as long.

use super::reads::{about_the_key, number, set_expiries, time};
use crate::domain::record::{
    Candidate, Content, Deadline, Expiry, Field, Hash, Observation, SeenKey,
};
use crate::store::cluster::deadlines::{TRIED, is_known};
use crate::store::connection::{Connection, Token};
use crate::store::error::StoreError;

/// The most bytes of memory of a hash that is read whole: a page of such hashes takes a few megabytes.
const MOST_BYTES: i64 = 4 << 10;

/// A record, and by which of its Redis keys the record was found.
type CandidateKey = (Candidate, usize);

/// The small hashes of a scan.
#[derive(Default)]
pub(super) struct SmallHashes {
    /// Those that are asked for.
    awaited: Vec<CandidateKey>,
    /// A field that is asked for its expiry with each of these: where that field stays, so does the hash.
    probed: Option<Vec<u8>>,
    /// A field of a hash without TTL. Such hashes have the same fields for the most part.
    probe: Option<Vec<u8>>,
    /// True where fields can expire (from Redis 7.4 on).
    fields_expire: bool,
}

impl SmallHashes {
    /// Asks whether fields can expire.
    pub(super) fn try_field_expiry(stream: &mut Connection) {
        ask_for_field(stream, TRIED.as_bytes(), b"field");
    }

    /// Reads the reply to [`SmallHashes::try_field_expiry`].
    pub(super) async fn tried(&mut self, stream: &mut Connection) -> Result<(), StoreError> {
        self.fields_expire = match stream.token().await? {
            Token::Error(text) => is_known(Err(&stream.refusal(text))),
            Token::Array(elements) => {
                for _ in 0..elements {
                    stream.token().await?;
                }
                true
            }
            _ => true,
        };
        Ok(())
    }

    /// Asks for all fields, and when the hashes expire.
    pub(super) fn ask(&mut self, stream: &mut Connection, places: Vec<CandidateKey>) {
        if places.is_empty() {
            return;
        }
        (self.awaited, self.probed) = (places, self.probe.clone());
        for (candidate, _) in &self.awaited {
            let redis_key = &candidate.redis_keys[0];
            stream.queue(&[b"HGETALL", redis_key]);
            stream.queue(&[b"PEXPIRETIME", redis_key]);
            if let Some(field) = &self.probed {
                ask_for_field(stream, redis_key, field);
            }
        }
        stream.queue(&[b"TIME"]);
    }

    /// Reads what was asked for; without what is seen of it what a script has to read: another type, what the user may not read,
    /// what another node serves, and a hash that may end when its fields do.
    pub(super) async fn seen(
        &mut self,
        stream: &mut Connection,
    ) -> Result<Vec<(CandidateKey, Option<Observation>)>, StoreError> {
        if self.awaited.is_empty() {
            return Ok(Vec::new());
        }
        let mut seen = Vec::with_capacity(self.awaited.len());
        for place in std::mem::take(&mut self.awaited) {
            let one = self.one(stream, &place.0.redis_keys[0]).await?;
            seen.push((place, one));
        }
        let after = time(stream).await?;
        seen.iter_mut()
            .filter_map(|(_, seen)| seen.as_mut())
            .for_each(|seen| set_expiries(seen, after));
        Ok(seen)
    }

    pub(super) fn is_empty(&self) -> bool {
        self.awaited.is_empty()
    }

    async fn one(
        &mut self,
        stream: &mut Connection,
        redis_key: &[u8],
    ) -> Result<Option<Observation>, StoreError> {
        let content = content(stream).await?;
        let told = number(stream, "PEXPIRETIME").await?.ok();
        let stays = self.probed.is_some() && field_stays(stream).await?;
        let (Some(content), Some(told)) = (content, told) else { return Ok(None) };
        if told == -1 && self.fields_expire && !stays {
            if let Content::Hash(hash) = content {
                self.probe = hash.fields.into_iter().next().map(|field| field.name);
            }
            return Ok(None);
        }
        let seen =
            SeenKey::new(redis_key, content, Expiry::Never, Deadline::from_pexpiretime(told));
        Ok(Some(Observation { server_ms: None, atomic: true, keys: vec![seen] }))
    }
}

/// Asks what these weigh.
pub(super) fn weigh<'a>(stream: &mut Connection, places: impl Iterator<Item = &'a Candidate>) {
    for candidate in places {
        // All samples: one field may be the large one.
        stream.queue(&[b"MEMORY", b"USAGE", &candidate.redis_keys[0], b"SAMPLES", b"0"]);
    }
}

/// Reads the replies to [`weigh`]: what weighs little, and the others; among those what nobody may ask about.
pub(super) async fn weighed(
    stream: &mut Connection,
    places: Vec<CandidateKey>,
) -> Result<(Vec<CandidateKey>, Vec<CandidateKey>), StoreError> {
    let (mut small, mut others) = (Vec::new(), Vec::new());
    for place in places {
        match stream.token().await? {
            Token::Integer(..=MOST_BYTES) => small.push(place),
            Token::Integer(_) | Token::Nil | Token::Error(_) => others.push(place),
            _ => return Err(stream.unexpected("MEMORY USAGE")),
        }
    }
    Ok((small, others))
}

fn ask_for_field(stream: &mut Connection, redis_key: &[u8], field: &[u8]) {
    stream.queue(&[b"HPEXPIRETIME", redis_key, b"FIELDS", b"1", field]);
}

/// Reads whether the field is there and has no expiry.
async fn field_stays(stream: &mut Connection) -> Result<bool, StoreError> {
    match stream.token().await? {
        Token::Array(1) => Ok(stream.token().await? == Token::Integer(-1)),
        Token::Nil | Token::Array(0) | Token::Error(_) => Ok(false),
        _ => Err(stream.unexpected("HPEXPIRETIME")),
    }
}

/// Reads the reply of HGETALL.
async fn content(stream: &mut Connection) -> Result<Option<Content>, StoreError> {
    let elements = match stream.token().await? {
        Token::Array(elements) if elements % 2 == 0 => elements,
        Token::Error(text) => return about_the_key(stream, text).map(|_| None),
        _ => return Err(stream.unexpected("HGETALL")),
    };
    let mut fields = Vec::new();
    for _ in 0..elements / 2 {
        fields.push(Field::whole(text(stream).await?, text(stream).await?));
    }
    let count = fields.len() as u64;
    Ok(Some(if fields.is_empty() {
        Content::Absent
    } else {
        Content::Hash(Box::new(Hash::new(fields, count)))
    }))
}

async fn text(stream: &mut Connection) -> Result<Vec<u8>, StoreError> {
    match stream.token().await? {
        Token::Text(text) => Ok(stream.bytes(text).to_vec()),
        _ => Err(stream.unexpected("HGETALL")),
    }
}
