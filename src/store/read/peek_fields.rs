//! The fields of hashes by plain commands, where no script may read them: first how many, then their names, then how long
//! their values are, then those values that are short enough.

use redis::{Cmd, Value};

use super::reader::{ReadLimit, RecordReader};
use crate::domain::record::{Content, Field, Hash, SeenKey};
use crate::store::connection::reply;
use crate::store::error::StoreError;

/// As `fields.lua` has it.
const MOST_FIELDS: u64 = 256;

impl RecordReader {
    /// Reads the fields of what turned out to be hashes. What a node does not tell stays unknown.
    ///
    /// # Errors
    /// When the server could not be asked at all.
    pub(super) async fn peek_fields(
        &self,
        seen: Vec<&mut SeenKey>,
        head: ReadLimit,
    ) -> Result<(), StoreError> {
        let mut hashes: Vec<_> =
            seen.into_iter().filter(|key| key.content.other_type() == Some("hash")).collect();
        let keys: Vec<_> = hashes.iter().map(|hash| hash.redis_key.clone()).collect();
        if keys.is_empty() {
            return Ok(());
        }
        let counts = self.ask_of(keys.iter().map(|key| command("HLEN", key, &[]))).await?;
        let counts: Vec<_> = counts.into_iter().map(|count| length(count.as_ref())).collect();
        let few: Vec<_> = (0..keys.len())
            .filter(|index| counts[*index].is_some_and(|count| count <= MOST_FIELDS))
            .collect();
        let names =
            self.ask_of(few.iter().map(|index| command("HKEYS", &keys[*index], &[]))).await?;
        let names = few.iter().zip(names).flat_map(|(index, names)| {
            let names = names.and_then(reply::array).unwrap_or_default().into_iter();
            names.filter_map(reply::bytes).map(|name| (*index, name)).collect::<Vec<_>>()
        });
        let names: Vec<_> = names.collect();
        let lengths = self
            .ask_of(names.iter().map(|(index, name)| command("HSTRLEN", &keys[*index], name)))
            .await?;
        let mut fields: Vec<(usize, Field)> = names
            .into_iter()
            .zip(lengths)
            .filter_map(|((index, name), told)| {
                Some((index, Field { name, head: Vec::new(), length: length(told.as_ref())? }))
            })
            .collect();
        let is_short = |field: &Field| match head {
            ReadLimit::Whole => true,
            ReadLimit::Bytes(most) => {
                usize::try_from(field.length).is_ok_and(|length| length <= most)
            }
        };
        let mut short: Vec<_> = fields.iter_mut().filter(|(_, field)| is_short(field)).collect();
        let values = self
            .ask_of(short.iter().map(|(index, field)| command("HGET", &keys[*index], &field.name)))
            .await?;
        for ((_, field), value) in short.iter_mut().zip(values) {
            field.head = value.and_then(reply::bytes).unwrap_or_default();
        }
        for (index, hash) in hashes.iter_mut().enumerate() {
            let Some(count) = counts[index] else { continue };
            let of_hash =
                fields.iter().filter(|(of, _)| *of == index).map(|(_, field)| field.clone());
            hash.content = Content::Hash(Box::new(Hash::new(of_hash.collect(), count)));
        }
        Ok(())
    }

    async fn ask_of(
        &self,
        commands: impl Iterator<Item = Cmd>,
    ) -> Result<Vec<Option<Value>>, StoreError> {
        let mut pipeline = redis::pipe();
        let mut count = 0;
        for command in commands {
            pipeline.add_command(command);
            count += 1;
        }
        if count == 0 {
            return Ok(Vec::new());
        }
        Ok(self.client().ask_each(&pipeline).await.into_iter().map(Result::ok).collect())
    }
}

fn command(name: &str, key: &[u8], field: &[u8]) -> Cmd {
    let mut command = redis::cmd(name);
    command.arg(key);
    if !field.is_empty() || name.starts_with("HSTR") || name == "HGET" {
        command.arg(field);
    }
    command
}

fn length(told: Option<&Value>) -> Option<u64> {
    told.and_then(reply::integer).and_then(|length| u64::try_from(length).ok())
}
