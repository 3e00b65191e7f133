//! `idemctl inspect --watch`: following records.

use anyhow::Result;

use super::Args;
use crate::args::Output;
use crate::domain::record::{GivenKey, Identity, Record};
use crate::domain::schema::{Catalog, State};
use crate::domain::select::awaited::{Awaited, AwaitedState};
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::record::PageOptions;
use crate::render::record_json::RecordJson;
use crate::render::style::Palette;
use crate::render::{document, escape, record, unclaimed_key, words};
use crate::session::Session;
use crate::store::RecordReader;
use crate::store::read::lookup::{Lookup, LookupResult};
use crate::watch::Watch;

/// A key that is followed.
struct Followed {
    key: Vec<u8>,
    /// The records at the read before; `None` before the first read.
    before: Option<Vec<Record>>,
    /// Whether the state that `--until` waits for was reached.
    waiting: AwaitedState,
}

/// Shows the records until the watch ends. On a terminal, each read repaints them. Otherwise each
/// change is printed.
pub(super) async fn follow(
    session: &mut Session,
    reader: &mut RecordReader,
    catalog: &Catalog,
    keys: Vec<GivenKey>,
    lookup: &Lookup,
    (watch, args): (&Watch, &Args),
) -> Result<Exit> {
    let mut followed = Vec::with_capacity(keys.len());
    for key in &keys {
        let key = key.text.clone();
        followed.push(Followed { key, before: None, waiting: AwaitedState::default() });
    }
    let read = async |session: &mut Session| {
        let mut all = Awaited::Came;
        let found = lookup.find(reader, catalog, keys.clone()).await?;
        for (followed, found) in followed.iter_mut().zip(found) {
            let mut now = known(found, catalog)?;
            session.fill_in_advice(&mut now);
            let is_changed = match &followed.before {
                Some(before) => differs(before, &now),
                None => true,
            };
            if watch.paints() || is_changed {
                show(session, followed, &now, (watch, args))?;
            }
            let mut awaited = Awaited::NotYet;
            if let Some(until) = watch.until() {
                let states: Vec<_> = now.iter().map(|record| record.state).collect();
                awaited = followed.waiting.judge(until, &states);
            }
            all = all.and(awaited);
            followed.before = Some(now);
        }
        session.ui.flush()?;
        Ok(all)
    };
    watch.follow(session, &Interrupt::listen()?, read).await
}

/// The records of a key.
///
/// # Errors
/// No record was read, and not all Redis keys: the record may be absent, or not. Usage: another
/// program's value is there.
fn known(found: LookupResult, catalog: &Catalog) -> Result<Vec<Record>> {
    if found.records.is_empty()
        && let Some(unread) = found.uncovered(catalog)
    {
        return Err(CommandError::new(Exit::Partial, format!("unknown: {unread}")).into());
    }
    match found.why_unread {
        Some(error) if found.records.is_empty() => Err(error.into()),
        // A value of another program is neither a record nor a free key.
        None if found.records.is_empty() && !found.unclaimed.is_empty() => {
            let line = unclaimed_key::line(&found.unclaimed[0]);
            Err(CommandError::usage(line).hint(unclaimed_key::HINT).into())
        }
        // Records of other schemas may be missing, but those that were read can be followed.
        _ => Ok(found.records),
    }
}

/// True if more than the remaining time changed, which is different at each read.
fn differs(before: &[Record], now: &[Record]) -> bool {
    if before.len() != now.len() {
        return true;
    }
    for (before, now) in before.iter().zip(now) {
        // The absolute expiry is part of the identity, so a renewal is a change.
        if before.schema.name != now.schema.name || Identity::of(&before.seen).differs(&now.seen) {
            return true;
        }
    }
    false
}

/// Shows the records of a key: painted as pages, or first as pages and then each change in one
/// line.
fn show(
    session: &mut Session,
    followed: &Followed,
    now: &[Record],
    (watch, args): (&Watch, &Args),
) -> Result<()> {
    if args.output != Output::Text {
        return lines_of_json(session, &followed.key, now, args.reveal);
    }
    let view = session.ui.view();
    let stamp = if watch.paints() {
        String::new()
    } else {
        let time = humantime::format_rfc3339_seconds(session.now()).to_string();
        format!("{}  ", view.palette.dim(&time))
    };
    if now.is_empty() {
        let key = escape::text(&followed.key);
        let state = view.palette.state(State::Absent);
        session.ui.page(format!("{stamp}{key}  {state}\n"))?;
    }
    let options = PageOptions { reveal: args.reveal, full: args.full };
    for shown in now {
        if watch.paints() || followed.before.is_none() {
            session.ui.page(record::page(shown, view, options))?;
        } else {
            session.ui.page(format!("{stamp}{}\n", line(shown, view.palette)))?;
        }
    }
    Ok(())
}

/// One line of JSON per record; a line that says absent if there is none.
fn lines_of_json(session: &mut Session, key: &[u8], now: &[Record], reveal: bool) -> Result<()> {
    if now.is_empty() {
        let absent =
            serde_json::json!({ "key": escape::text(key), "state": State::Absent.as_str() });
        session.ui.data(document::line(&absent))?;
    }
    for shown in now {
        session.ui.data(document::line(&RecordJson::of(shown, reveal)))?;
    }
    Ok(())
}

/// A change in one line: key, state, TTL, owner, and what the next request gets.
fn line(shown: &Record, palette: Palette) -> String {
    let key = escape::text(&shown.key);
    let state = palette.state(shown.state);
    let mut line = format!("{key}  {state}  {}", shown.schema.name);
    if let Some(owner) = shown.owner() {
        line += &format!(", owner {}", escape::text(owner));
    }
    if let Some(time_left) = shown.time_left() {
        line += &format!(", TTL {}", words::time_left(time_left));
    }
    let (word, rest) = words::next_request(shown);
    line += &format!("; next request: {word}{rest}");
    line
}
