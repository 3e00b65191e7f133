//! `idemctl inspect --find`: the records whose idempotency keys contain a text.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::Result;

use super::Args;
use crate::args::Output;
use crate::domain::record::{FieldSet, GivenKey, Record, RecordName};
use crate::domain::schema::Catalog;
use crate::domain::select::{Selection, glob};
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::listing::Listing;
use crate::render::{columns, escape, words};
use crate::scan::{self, Lengths, Scan, ScanEnd, ScanQuery, ScanReport};
use crate::session::Session;
use crate::store::{ReadLimit, RecordReader};

/// The scan ends after this many records, because a person does not read more, and a longer text
/// finds fewer.
const MOST: usize = 20;

/// What a scan found.
pub(super) struct FoundKeys {
    /// The names of the records to show whole: the only one that was found, or for programs all.
    /// `None` if several are listed. A name leads to the record that the scan found, whichever
    /// other schemas have records of this key.
    pub(super) names: Option<Vec<GivenKey>>,
    report: ScanReport,
}

impl FoundKeys {
    /// True if the scan read everything that it had to.
    pub(super) fn are_complete(&self) -> bool {
        matches!(self.report.end, ScanEnd::Complete)
    }

    /// Passes if the scan is complete: there may be more records where it did not read.
    ///
    /// # Errors
    /// Interrupted, or partial.
    pub(super) fn require_complete(self, reader: &RecordReader) -> Result<()> {
        let so_far = format!("{} of {}", words::counted(self.report.keys, "key"), reader.name());
        self.report.require_complete("the search is", &so_far)
    }
}

/// Scans for the keys that contain a text, and lists them for people if there are several.
///
/// # Errors
/// No key contains the text; nothing was found, and the scan is not complete.
pub(super) async fn find(
    session: &mut Session,
    args: &Args,
    text: &[u8],
    catalog: &Catalog,
    reader: &RecordReader,
) -> Result<FoundKeys> {
    if text.is_empty() {
        return Err(CommandError::usage("--find: the text is empty").into());
    }
    let interrupt = Interrupt::listen()?;
    let thresholds = args.thresholds.thresholds();
    let query = ScanQuery {
        catalog,
        thresholds,
        first_read: ReadLimit::Bytes(0),
        needed: FieldSet::ALL,
        lengths: Lengths::Selected,
    };
    let reader = reader.clone().scanning(args.scan.scan_options());
    let mut scan =
        Scan::start(reader.clone(), query, &interrupt, session.ui.progress("keys scanned")).await?;
    // The search is for a key, so it also finds values that no schema recognises.
    scan = scan.with_unrecognised();
    let key_glob = Some([&b"*"[..], &glob::escape(text), b"*"].concat());
    let selection = Selection { key_glob, ..Selection::default() };
    let mut found: Vec<Record> = Vec::new();
    while found.len() <= MOST
        && let Some(page) = scan.next_page(&selection).await
    {
        found.extend(page.into_records());
    }
    let report = scan.finish();
    report.show_coverage(session, catalog);
    let is_cut = found.len() > MOST;
    found.truncate(MOST);
    let names: BTreeSet<RecordName> = found.iter().map(RecordName::of).collect();
    if names.is_empty() {
        return Err(nothing_found(session, args, text, catalog, &reader, report).await);
    }
    scan::explain_left_out(session, catalog);
    // After a lost connection, the records cannot be read again.
    let can_read = !matches!(report.end, ScanEnd::Failed(_));
    if args.output != Output::Text && !can_read {
        return Ok(FoundKeys { names: None, report });
    }
    // Without a server that answers, people still see what the scan read of the records.
    if args.output != Output::Text || (names.len() == 1 && can_read) {
        if is_cut {
            session.ui.warning(&format!(
                "only the first {MOST} records are shown; use a longer text to find fewer"
            ));
        }
        let mut keys = Vec::with_capacity(names.len());
        for name in &names {
            keys.push(GivenKey::name(name));
        }
        return Ok(FoundKeys { names: Some(keys), report });
    }
    let columns = columns::of_table(false, false, false);
    let mut listing = Listing::new(session.ui.view(), columns, false);
    listing.fit(&found, false);
    session.ui.page(listing.heading() + &listing.rows(&found))?;
    session.ui.flush()?;
    let first = if is_cut { "the first " } else { "" };
    session.ui.status(&format!("{first}{} records; `idemctl inspect KEY` shows one", found.len()));
    Ok(FoundKeys { names: None, report })
}

/// The error for a scan that found no key with the text, which says what was searched.
async fn nothing_found(
    session: &mut Session,
    args: &Args,
    text: &[u8],
    catalog: &Catalog,
    reader: &RecordReader,
    report: ScanReport,
) -> anyhow::Error {
    let of = match args.schemas.schema.as_slice() {
        [] => String::new(),
        names => format!(" of {}", words::list(names, "and")),
    };
    let unread: Vec<_> = report.keys_of_other_schemas.keys().cloned().collect();
    let keys = report.keys;
    let server = reader.name();
    let so_far = format!(
        "no idempotency key{of} among {keys} Redis keys of {server} contains {}",
        escape::text(text)
    );
    if matches!(report.end, ScanEnd::Complete) {
        // The hint of the error names the other schemas.
        scan::explain_nothing(session, catalog, reader, &BTreeMap::new()).await;
    }
    if let Err(error) = report.require_complete("the search is", &so_far) {
        return error;
    }
    if let Some(what) = catalog.covered().unread() {
        return CommandError::new(Exit::Partial, format!("unknown: {what}")).into();
    }
    let error = CommandError::new(Exit::No, so_far);
    if unread.is_empty() {
        return error.into();
    }
    let unread = words::list(&unread, "and");
    error
        .hint(format!("the keys of {unread} were not searched; to search them, omit --schema"))
        .into()
}
