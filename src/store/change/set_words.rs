//! The commands that write a value.

use crate::domain::record::Content;

/// The words of a command.
pub(crate) type Words = Vec<Vec<u8>>;

pub(super) fn words(words: &[&[u8]]) -> Words {
    words.iter().map(|word| word.to_vec()).collect()
}

/// The commands that write this content to a Redis key, with a TTL in milliseconds; `None` never expires. There is
/// no command for absent content, or for a type that idemctl does not write.
pub(crate) fn set_words(redis_key: &[u8], content: &Content, lives_ms: Option<u64>) -> Vec<Words> {
    let mut commands = Vec::new();
    match content {
        Content::Text { head, .. } => {
            let mut set = vec![b"SET".to_vec(), redis_key.to_vec(), head.clone()];
            if let Some(ms) = lives_ms {
                set.push(b"PX".to_vec());
                set.push(ms.to_string().into_bytes());
            }
            commands.push(set);
        }
        Content::Hash(hash) if !hash.fields.is_empty() => {
            let mut set = vec![b"HSET".to_vec(), redis_key.to_vec()];
            set.extend(hash.clone().into_words());
            commands.push(set);
            // HSET has no option for a TTL.
            if let Some(ms) = lives_ms {
                let ms = ms.to_string().into_bytes();
                commands.push(vec![b"PEXPIRE".to_vec(), redis_key.to_vec(), ms]);
            }
        }
        // HSET without fields is an error.
        Content::Hash(_) => {}
        Content::Absent | Content::Other(_) => {}
    }
    commands
}
