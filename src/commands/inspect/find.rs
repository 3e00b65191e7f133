//! `idemctl inspect --find`: the records whose idempotency keys hold a text.

use std::collections::BTreeSet;

use anyhow::Result;

use super::Args;
use crate::args::Output;
use crate::change::{say_coverage, say_elsewhere};
use crate::context::Context;
use crate::domain::record::Record;
use crate::domain::schema::Catalog;
use crate::domain::select::Coverage;
use crate::exit::{Exit, Stop};
use crate::render::{coverage, escape, listing::Listing};
use crate::store::read::records;
use crate::store::{ReadLimit, Reader, Walk};

/// Records after which the walk ends: more than that nobody reads, and a longer text finds fewer.
const MOST: usize = 20;

/// The keys to show whole: the only one that was found, or for programs all. Several are listed for people, and `None` given.
pub(super) async fn keys(
    context: &mut Context,
    (args, text): (&Args, &[u8]),
    catalog: &Catalog,
    reader: &Reader,
) -> Result<Option<Vec<Vec<u8>>>> {
    if text.is_empty() {
        return Err(Stop::usage("--find: the text is empty").into());
    }
    let mut coverage = Coverage::default();
    let mut walk = Walk::start(reader.clone(), catalog, ReadLimit::Bytes(0)).await?;
    let thresholds = args.thresholds.thresholds();
    let progress = context.ui.progress("keys looked at");
    let holds = |key: &[u8]| memchr::memmem::find(key, text).is_some();
    let mut found: Vec<Record> = Vec::new();
    while found.len() <= MOST
        && let Some(page) = records::next_page(&mut walk, catalog, &thresholds, &mut coverage, holds).await?
    {
        found.extend(page);
        progress.set_position(walk.looked_at());
    }
    progress.finish_and_clear();
    let (is_cut, looked_at) = (found.len() > MOST, walk.looked_at());
    found.truncate(MOST);
    say_coverage(context, &coverage, catalog);
    walk.forbidden().iter().for_each(|forbidden| context.ui.warning(forbidden));
    let keys: BTreeSet<_> = found.iter().map(|record| record.key.clone()).collect();
    if keys.is_empty() {
        coverage::left_out(catalog).iter().for_each(|line| context.ui.status(line));
        say_elsewhere(context, reader).await;
        let message = format!("no key among {looked_at} of {} holds {}", reader.name(), escape::text(text));
        return Err(Stop::new(Exit::No, message).into());
    }
    if keys.len() == 1 || args.output != Output::Table {
        if is_cut {
            context.ui.warning(&format!("these are the first {MOST}; a longer text finds fewer"));
        }
        return Ok(Some(keys.into_iter().collect()));
    }
    let mut listing = Listing::new(context.ui.view(), &[]);
    listing.fit(&found);
    context.ui.page(listing.heading() + &listing.rows(&found))?;
    context.ui.flush()?;
    let first = if is_cut { "the first " } else { "" };
    context.ui.status(&format!("{first}{} records; `idemctl inspect KEY` shows one", found.len()));
    Ok(None)
}
