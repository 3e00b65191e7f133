//! Counts the locks of all keys by their expiries, as `check` does.

use std::time::Duration;

use anyhow::Result;
use tokio::time::{Instant, timeout};

use crate::domain::change::orphan;
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::doctor::{FactResult, LockCount};
use crate::domain::record::FieldSet;
use crate::domain::schema::Catalog;
use crate::domain::schema::catalog::LOCK_BYTES;
use crate::domain::select::contradiction::may_outlast;
use crate::domain::select::{Missing, Selection};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::scan::{Lengths, Scan, ScanEnd, ScanQuery};
use crate::session::Session;
use crate::store::doctor::refused_sample;
use crate::store::{Client, ReadLimit};

/// The longest time of the scan. Keys that it does not reach in this time are unknown.
const MOST_TIME: Duration = Duration::from_secs(10);

/// In this part of the time, values with long TTLs are read. Many are results, and locks without
/// expiry have to be found all the same.
const TIME_FOR_LONG: Duration = Duration::from_secs(5);

/// Counts the locks.
///
/// # Errors
/// Interrupted.
pub(super) async fn count(
    session: &Session,
    client: &Client,
    catalog: &Catalog,
) -> Result<FactResult<LockCount>> {
    let thresholds = Thresholds::default();
    let query = ScanQuery {
        catalog,
        thresholds: thresholds.clone(),
        first_read: ReadLimit::Bytes(LOCK_BYTES),
        needed: FieldSet::default(),
        lengths: Lengths::None,
    };
    let interrupt = Interrupt::listen()?;
    let progress = session.ui.progress("keys scanned");
    let mut scan =
        Scan::start(client.reader(), query, &interrupt, progress).await?.deadlines_first();
    let selection = Selection::default();
    let mut count = LockCount::default();
    let started = Instant::now();
    let reading = async {
        while let Some(page) = scan.next_deadlines().await {
            let mut doubtful = Vec::new();
            for (candidate, expiries) in page {
                count.covered.read += 1;
                let may_be = |code| {
                    let codes = [code];
                    orphan::has_to_be_read(
                        catalog,
                        &selection,
                        &candidate,
                        &expiries,
                        &codes,
                        &thresholds,
                    )
                };
                let is_long =
                    may_be(FindingCode::ExcessTtl) || may_outlast(&candidate.schemas, &expiries);
                if may_be(FindingCode::NoExpiry) || is_long && started.elapsed() < TIME_FOR_LONG {
                    doubtful.push(candidate);
                } else if is_long {
                    count.unread_long += 1;
                }
            }
            if doubtful.is_empty() {
                continue;
            }
            for record in scan.read_records(doubtful, |_| false).await.unwrap_or_default() {
                count.add(&record);
            }
        }
    };
    let is_late = timeout(MOST_TIME, reading).await.is_err();
    let report = scan.finish();
    count.close(report.coverage.unproven.count_without_expiry(Missing::Format));
    let covered = &mut count.covered;
    if is_late {
        covered.leave_out("other keys", format!("not reached in {MOST_TIME:?}"));
    }
    match report.end {
        ScanEnd::Complete => {}
        ScanEnd::Interrupted => return Err(CommandError::interrupted("interrupted").into()),
        ScanEnd::Failed(error) if error.is_permission() => return Ok(Err(refused_sample(&error))),
        ScanEnd::Incomplete(error) | ScanEnd::Failed(error) => {
            covered.leave_out("other keys", error.to_string());
        }
    }
    if let Some(forbidden) = report.forbidden {
        covered.leave_out("other keys", forbidden);
    }
    for name in &catalog.unreadable {
        covered.leave_out(format!("schema {name}"), "unreadable files");
    }
    for schema in catalog.skipped() {
        covered.leave_out(format!("schema {}", schema.name), "no fixed prefix");
    }
    Ok(Ok(count))
}
