//! `idemctl inspect --watch`: following a record.

use std::time::Duration;

use anyhow::Result;

use crate::args::Output;
use crate::context::Context;
use crate::domain::duration;
use crate::domain::record::{Expiry, Identity, Record};
use crate::domain::schema::{Catalog, State};
use crate::exit::Exit;
use crate::render::record_json::RecordJson;
use crate::render::style::Palette;
use crate::render::{document, escape, record, words};
use crate::store::Reader;
use crate::store::read::records::{Found, Lookup};

pub(super) struct How {
    pub interval: Duration,
    pub until: Option<State>,
    pub output: Output,
    pub reveal: bool,
}

/// Shows the record, then each of its changes, until the record is in the wanted state or the operator stops.
pub(super) async fn follow(
    context: &mut Context,
    reader: &mut Reader,
    catalog: &Catalog,
    key: Vec<u8>,
    lookup: &Lookup,
    how: How,
) -> Result<Exit> {
    let mut before: Option<Vec<Record>> = None;
    let progress = context.ui.progress("");
    loop {
        let mut found = lookup.find(reader, catalog, vec![key.clone()]).await?;
        let now = match found.pop() {
            // The record may be absent, or not.
            Some(Found { unread: Some(error), records, .. }) if records.is_empty() => return Err(error.into()),
            Some(found) => found.records,
            None => Vec::new(),
        };
        if before.as_ref().is_none_or(|before| differs(before, &now)) {
            progress.suspend(|| show(context, &key, before.is_none(), &now, &how))?;
        }
        progress.set_message(countdown(&now));
        let states: Vec<_> =
            if now.is_empty() { vec![State::Absent] } else { now.iter().map(|record| record.state).collect() };
        if how.until.is_some_and(|until| states.contains(&until)) {
            progress.finish_and_clear();
            return Ok(Exit::Done);
        }
        before = Some(now);
        tokio::time::sleep(how.interval).await;
    }
}

/// True when more changed than the time that is left.
fn differs(before: &[Record], now: &[Record]) -> bool {
    let is_another = |before: &Record, now: &Record| {
        before.schema.name != now.schema.name || Identity::of(&before.seen).differs(&now.seen)
    };
    before.len() != now.len() || before.iter().zip(now).any(|(before, now)| is_another(before, now))
}

fn show(context: &mut Context, key: &[u8], first: bool, now: &[Record], how: &How) -> Result<()> {
    let time = humantime::format_rfc3339_seconds(context.now());
    match how.output {
        Output::Table => {
            let view = context.ui.view();
            let stamp = view.palette.dim(&time.to_string());
            if now.is_empty() {
                let state = view.palette.state(State::Absent);
                context.ui.data(format!("{stamp}  {}  {state}: the next request executes\n", escape::text(key)))?;
            }
            for shown in now {
                if first {
                    context.ui.data(record::page(shown, view, how.reveal))?;
                } else {
                    context.ui.data(format!("{stamp}  {}\n", line(shown, view.palette)))?;
                }
            }
        }
        Output::Json | Output::Jsonl => {
            if now.is_empty() {
                let absent = serde_json::json!({ "key": escape::text(key), "state": State::Absent.as_str() });
                context.ui.data(document::line(&absent))?;
            }
            for shown in now {
                context.ui.data(document::line(&RecordJson::of(shown, how.reveal)))?;
            }
        }
    }
    context.ui.flush()?;
    Ok(())
}

/// A change in one line: state, TTL, owner, and what the next request gets.
fn line(shown: &Record, palette: Palette) -> String {
    let owner = shown.owner().map(|owner| format!(", owner {}", escape::text(owner))).unwrap_or_default();
    let ttl = shown.expiry().map(|expiry| format!(", TTL {}", words::expiry(expiry))).unwrap_or_default();
    let (word, rest) = words::next_request(shown);
    let name = &shown.schema.name;
    format!("{}  {name}{owner}{ttl}; next request: {word}{rest}", palette.state(shown.state))
}

fn countdown(now: &[Record]) -> String {
    let Some(record) = now.first() else { return "absent, looking again".to_owned() };
    match record.expiry() {
        Some(Expiry::In(ms)) => format!("{}, {} left", record.state.as_str(), duration::short(ms)),
        _ => record.state.as_str().to_owned(),
    }
}
