//! The records of keys in Redis.

use anyhow::Result;

use super::options::Args;
use crate::domain::diagnosis::Thresholds;
use crate::domain::probe::StoredRecord;
use crate::domain::record::age::millis;
use crate::domain::record::{GivenKey, Record, TimeLeft};
use crate::domain::schema::{Catalog, TtlOf};
use crate::exit::CommandError;
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
    match (has_server, has_schema) {
        (false, false) => return Ok(None),
        (true, true) => {}
        (true, false) => {
            let why = "a server is named, but not the schema of its records";
            return Err(CommandError::usage(why).hint("add --schema NAME").into());
        }
        (false, true) => {
            let why = "--schema is named, but not the server of its records";
            return Err(CommandError::usage(why).hint("add -u URL, or -h HOST").into());
        }
    }
    let catalog = session.catalog(&args.schemas)?;
    let reader = session.connect_reader().await?;
    session.learn_protection().await;
    confirm_context(session, args.confirm.as_deref())?;
    Ok(Some(RecordLookup { reader, catalog }))
}

/// Asks for the name of a protected context.
fn confirm_context(session: &mut Session, given: Option<&str>) -> Result<(), CommandError> {
    if !session.settings.is_protected() {
        return Ok(());
    }
    let name = session.settings.context_name().unwrap_or_default().to_owned();
    let protection = session.settings.protection();
    let refused = || CommandError::usage("not confirmed; nothing was sent");
    match given {
        Some(given) if given == name && !name.is_empty() => return Ok(()),
        Some(_) => return Err(refused().hint(format!("--confirm must be `{name}` here"))),
        None => {}
    }
    if !session.ui.is_interactive() || name.is_empty() {
        return Err(CommandError::usage(format!("{protection}: its name cannot be asked for"))
            .hint(format!("in scripts, add --confirm {name}")));
    }
    let typed = session.ui.ask_for(&format!("{protection}. Type `{name}` to continue"))?;
    if typed.trim() == name { Ok(()) } else { Err(refused()) }
}

impl RecordLookup {
    /// Reads the record of a key.
    ///
    /// # Errors
    /// Why it cannot be read.
    pub(super) async fn read(&mut self, key: &str) -> Result<StoredRecord, String> {
        let all = self.find(&[key]).await?;
        for found in &all {
            for record in &found.records {
                if !record.author.is_foreign() {
                    return Ok(stored(record));
                }
            }
        }
        if let Some(why) = all.iter().find_map(|found| found.why_unread.as_ref()) {
            return Err(why.to_string());
        }
        for found in &all {
            for record in &found.records {
                let redis_keys = present_keys(record);
                if !redis_keys.is_empty() {
                    // Nothing else is known of a value that the schema does not describe.
                    return Ok(StoredRecord {
                        schema: record.schema.name.clone(),
                        state: "unrecognised".to_owned(),
                        redis_keys,
                        ..StoredRecord::default()
                    });
                }
            }
        }
        Ok(StoredRecord { state: "absent".to_owned(), ..StoredRecord::default() })
    }

    /// Looks up keys, with whole values. A service may store a key with its quotation marks.
    ///
    /// # Errors
    /// Why they cannot be read.
    pub(super) async fn find(&mut self, keys: &[&str]) -> Result<Vec<LookupResult>, String> {
        self.look_up(keys).await.map_err(|error| format!("{error:#}"))
    }

    /// Checks that the server answers, with a key that it does not have.
    ///
    /// # Errors
    /// The server could not be asked, or refuses to.
    pub(super) async fn check(&mut self, key: &str) -> Result<()> {
        self.look_up(&[key]).await?;
        Ok(())
    }

    async fn look_up(&mut self, keys: &[&str]) -> Result<Vec<LookupResult>> {
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
    let mut redis_keys = Vec::new();
    for key in &record.seen.keys {
        if !key.content.is_absent() {
            redis_keys.push(key.redis_key.clone());
        }
    }
    redis_keys
}

fn stored(record: &Record) -> StoredRecord {
    let time_left = record.time_left();
    let ttl_ms = match time_left {
        Some(TimeLeft::Millis(left)) => Some(left),
        Some(TimeLeft::NoExpiry) | None => None,
    };
    StoredRecord {
        schema: record.schema.name.clone(),
        state: record.state.as_str().to_owned(),
        ttl_ms,
        stated_ttl_ms: record.schema.ttl(ttl_of(record)).map(millis),
        never_expires: time_left == Some(TimeLeft::NoExpiry),
        owner: record.owner().map(|owner| String::from_utf8_lossy(owner).into_owned()),
        status: record.response().and_then(|response| response.status),
        redis_keys: present_keys(record),
    }
}

/// The TTL that decides how long a record stays in its state.
fn ttl_of(record: &Record) -> TtlOf {
    if record.state.is_result() { TtlOf::Result } else { TtlOf::Lock }
}
