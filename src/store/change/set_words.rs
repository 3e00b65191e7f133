//! The commands that write a value.

use crate::domain::record::Content;

/// The words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

/// Writes this content to a Redis key, with a TTL in milliseconds; `None` never expires. There is
/// no command for absent content, or for a type that idemctl does not write.
pub(crate) fn set_words(redis_key: &[u8], content: &Content, lives_ms: Option<u64>) -> Vec<Words> {
    let key = || redis_key.to_vec();
    let ms = lives_ms.map(|ms| ms.to_string().into_bytes());
    match content {
        Content::Text { head, .. } => {
            let expires = ms.into_iter().flat_map(|ms| [b"PX".to_vec(), ms]);
            vec![[b"SET".to_vec(), key(), head.clone()].into_iter().chain(expires).collect()]
        }
        Content::Hash(hash) if !hash.fields.is_empty() => {
            let fields = hash.clone().into_words();
            let set = [b"HSET".to_vec(), key()].into_iter().chain(fields).collect();
            let expire = ms.map(|ms| vec![b"PEXPIRE".to_vec(), key(), ms]);
            [set].into_iter().chain(expire).collect()
        }
        Content::Absent | Content::Hash(_) | Content::Other(_) => Vec::new(),
    }
}
