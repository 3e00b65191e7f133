//! `idemctl inspect --watch`: following records.

use anyhow::Result;

use super::Args;
use crate::args::Output;
use crate::context::Context;
use crate::domain::record::{Given, Identity, Record};
use crate::domain::schema::{Catalog, State};
use crate::domain::select::awaited::{Awaited, AwaitedState};
use crate::exit::Exit;
use crate::interrupt::Interrupt;
use crate::render::record_json::RecordJson;
use crate::render::style::Palette;
use crate::render::{document, escape, record, words};
use crate::store::RecordReader;
use crate::store::read::records::{Lookup, LookupResult};
use crate::watch::Watch;

/// A key that is followed.
struct Followed {
    key: Vec<u8>,
    /// The records at the look before; `None` before the first look.
    before: Option<Vec<Record>>,
    waiting: AwaitedState,
}

/// Shows the records, painted anew at each look, or else each of their changes, until the watch is over.
pub(super) async fn follow(
    context: &mut Context,
    reader: &mut RecordReader,
    catalog: &Catalog,
    keys: Vec<Given>,
    lookup: &Lookup,
    (watch, args): (&Watch, &Args),
) -> Result<Exit> {
    let follow = |key: &Given| Followed {
        key: key.text.clone(),
        before: None,
        waiting: AwaitedState::default(),
    };
    let mut followed: Vec<_> = keys.iter().map(follow).collect();
    let look = async |context: &mut Context| {
        let mut all = Awaited::Came;
        let found = lookup.find(reader, catalog, keys.clone()).await?;
        for (followed, found) in followed.iter_mut().zip(found) {
            let mut now = known(found)?;
            context.advise(&mut now);
            if watch.paints() || followed.before.as_ref().is_none_or(|before| differs(before, &now))
            {
                show(context, followed, &now, (watch, args))?;
            }
            let states: Vec<_> = now.iter().map(|record| record.state).collect();
            let awaited = watch
                .until()
                .map_or(Awaited::NotYet, |until| followed.waiting.judge(until, &states));
            all = all.and(awaited);
            followed.before = Some(now);
        }
        context.ui.flush()?;
        Ok(all)
    };
    watch.follow(context, &Interrupt::listen()?, look).await
}

/// The records of a key.
///
/// # Errors
/// The record may be absent, or not.
fn known(found: LookupResult) -> Result<Vec<Record>> {
    match found {
        LookupResult { unread: Some(error), records, .. } if records.is_empty() => {
            Err(error.into())
        }
        LookupResult { records, .. } => Ok(records),
    }
}

/// True when more changed than the time that is left.
fn differs(before: &[Record], now: &[Record]) -> bool {
    let is_another = |before: &Record, now: &Record| {
        before.schema.name != now.schema.name || Identity::of(&before.seen).differs(&now.seen)
    };
    before.len() != now.len() || before.iter().zip(now).any(|(before, now)| is_another(before, now))
}

fn show(
    context: &mut Context,
    followed: &Followed,
    now: &[Record],
    (watch, args): (&Watch, &Args),
) -> Result<()> {
    if args.output != Output::Table {
        return lines_of_json(context, &followed.key, now, args.reveal);
    }
    let view = context.ui.view();
    let stamp = match watch.paints() {
        true => String::new(),
        false => format!(
            "{}  ",
            view.palette.dim(&humantime::format_rfc3339_seconds(context.now()).to_string())
        ),
    };
    if now.is_empty() {
        let (key, state) = (escape::text(&followed.key), view.palette.state(State::Absent));
        context.ui.page(format!("{stamp}{key}  {state}: the next request executes\n"))?;
    }
    for shown in now {
        if watch.paints() || followed.before.is_none() {
            context.ui.page(record::page(shown, view, args.reveal))?;
        } else {
            context.ui.page(format!("{stamp}{}\n", line(shown, view.palette)))?;
        }
    }
    Ok(())
}

fn lines_of_json(context: &mut Context, key: &[u8], now: &[Record], reveal: bool) -> Result<()> {
    if now.is_empty() {
        let absent =
            serde_json::json!({ "key": escape::text(key), "state": State::Absent.as_str() });
        context.ui.data(document::line(&absent))?;
    }
    Ok(now
        .iter()
        .try_for_each(|shown| context.ui.data(document::line(&RecordJson::of(shown, reveal))))?)
}

/// A change in one line: key, state, TTL, owner, and what the next request gets.
fn line(shown: &Record, palette: Palette) -> String {
    let owner =
        shown.owner().map(|owner| format!(", owner {}", escape::text(owner))).unwrap_or_default();
    let ttl =
        shown.expiry().map(|expiry| format!(", TTL {}", words::expiry(expiry))).unwrap_or_default();
    let (word, rest) = words::next_request(shown);
    let (key, name) = (escape::text(&shown.key), &shown.schema.name);
    format!("{key}  {}  {name}{owner}{ttl}; next request: {word}{rest}", palette.state(shown.state))
}
