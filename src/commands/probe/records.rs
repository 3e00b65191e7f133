//! The records of keys in Redis.

use anyhow::Result;

use super::options::Args;
use crate::args::ConfirmArgs;
use crate::domain::diagnosis::Thresholds;
use crate::domain::probe::StoredRecord;
use crate::domain::record::age::millis;
use crate::domain::record::{GivenKey, Record, TimeLeft};
use crate::domain::schema::{Catalog, TtlOf};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::session::Session;
use crate::store::read::lookup::{Lookup, LookupResult};
use crate::store::{ReadLimit, RecordReader};

/// Reads records of keys.
#[derive(Clone)]
pub(super) struct RecordLookup {
    reader: RecordReader,
    catalog: Catalog,
}

/// The lookup on the server that the command line names; `None` if it names no server or no schema.
///
/// # Errors
/// Usage: only one of both is named, or the name of a protected context is not confirmed; else
/// those of a connection.
pub(super) async fn lookup(session: &mut Session, args: &Args) -> Result<Option<RecordLookup>> {
    let has_server = session.settings.asks_for_its_server();
    let has_schema = !args.schemas.schema.is_empty();
    if !has_server && !has_schema {
        return Ok(None);
    }
    if !has_server || !has_schema {
        let why = "the schema of the records and their server have to be named together";
        return Err(CommandError::usage(why)
            .hint("add --schema NAME, or -u URL or -h HOST")
            .into());
    }
    let catalog = session.catalog(&args.schemas)?;
    let reader = session.connect_reader().await?;
    session.learn_protection().await;
    if session.settings.is_protected() {
        let confirm_args = ConfirmArgs { confirm: args.confirm.clone(), ..ConfirmArgs::default() };
        let server = session.settings.target().to_string();
        let question = "probe reads the records of its keys.";
        confirm_args.confirm_by_name(session, question, &server, &Interrupt::listen()?).await?;
    }
    Ok(Some(RecordLookup { reader, catalog }))
}

impl RecordLookup {
    /// Reads the record of a key.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) async fn read(&mut self, key: &str) -> Result<StoredRecord, String> {
        let mut unread = None;
        let mut unrecognised =
            StoredRecord { state: "absent".to_owned(), ..StoredRecord::default() };
        for found in self.find(&[key]).await? {
            unread = unread.or(found.why_unread);
            for record in &found.records {
                if !record.author.is_foreign() {
                    return Ok(stored(record));
                }
                let redis_keys = present_keys(record);
                if !redis_keys.is_empty() {
                    // Nothing else is known of a value that the schema does not describe.
                    unrecognised.schema.clone_from(&record.schema.name);
                    unrecognised.state = "unrecognised".to_owned();
                    unrecognised.redis_keys = redis_keys;
                }
            }
        }
        match unread {
            Some(why) => Err(why.to_string()),
            None => Ok(unrecognised),
        }
    }

    /// Looks up keys, with whole values. A service may store a key with its quotation marks.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub(super) async fn find(&mut self, keys: &[&str]) -> Result<Vec<LookupResult>, String> {
        self.look_up(keys).await.map_err(|error| format!("{error:#}"))
    }

    /// The same, with the error that decides the exit code.
    ///
    /// # Errors
    /// The server could not be asked, or refuses to.
    pub(super) async fn look_up(&mut self, keys: &[&str]) -> Result<Vec<LookupResult>> {
        let lookup = Lookup {
            first_read: ReadLimit::Whole,
            thresholds: Thresholds::default(),
            includes_less_specific_results: false,
            keeps_unrecognised: true,
        };
        let mut given = Vec::with_capacity(keys.len() * 2);
        for key in keys {
            given.push(GivenKey::word(key.as_bytes()));
            given.push(GivenKey::word(format!("\"{key}\"").as_bytes()));
        }
        lookup.find(&mut self.reader, &self.catalog, given).await
    }
}

/// The Redis keys of a record that exist.
pub(super) fn present_keys(record: &Record) -> Vec<Vec<u8>> {
    let present = record.seen.keys.iter().filter(|key| !key.content.is_absent());
    present.map(|key| key.redis_key.clone()).collect()
}

fn stored(record: &Record) -> StoredRecord {
    let time_left = record.time_left();
    let ttl_of = if record.state.is_result() { TtlOf::Result } else { TtlOf::Lock };
    StoredRecord {
        schema: record.schema.name.clone(),
        state: record.state.as_str().to_owned(),
        ttl_ms: time_left.and_then(TimeLeft::millis),
        stated_ttl_ms: record.schema.ttl(ttl_of).map(millis),
        never_expires: time_left == Some(TimeLeft::NoExpiry),
        owner: record.owner().map(|owner| String::from_utf8_lossy(owner).into_owned()),
        status: record.response().and_then(|response| response.status),
        redis_keys: present_keys(record),
    }
}
