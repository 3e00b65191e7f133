//! `idemctl extend`: gives locks more time, while the operator finds out how their operations
//! ended.

use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{ChangeArgs, ConfirmArgs, KeysArgs, Output, SchemaArgs, parse_ttl};
use crate::change::named_locks::{self, LockAction, LockDecision, NamedLocks};
use crate::domain::change::extension;
use crate::domain::diagnosis::Thresholds;
use crate::domain::duration;
use crate::domain::history::EXTENDED;
use crate::domain::record::{Record, TimeLeft, age};
use crate::domain::schema::TtlOf;
use crate::domain::step::Answer;
use crate::exit::Exit;
use crate::render::words;
use crate::session::Session;
use crate::session::key_list::KeyList;
use crate::store::read::lookup::Lookup;
use crate::store::{KeyAction, ReadLimit};

/// Why a lock without expiry is not extended.
const NO_EXPIRY: &str = "it never expires, so a TTL would shorten it";

/// Give locks more time, so that no retry executes meanwhile
///
/// Each lock expires --for this long from now. A lock that has as much time left, or no expiry,
/// stays as it is. Changes only the expiry, and only if the lock has not changed since it was
/// shown. A worker that is still running can complete the lock, or renew it, which gives it the
/// service's TTL again.
///
/// Exit status 1 if there is no record, 3 if some of several keys could not be extended, 8 if the
/// lock changed since it was shown.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    keys: KeysArgs,

    /// Time until the locks expire, from now
    #[arg(long = "for", value_name = "DURATION", value_parser = parse_ttl)]
    time: Duration,

    /// Output format
    ///
    /// `json` and `jsonl` both print one object, `jsonl` on one line.
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    confirm_args: ConfirmArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let mut keys = KeyList::of_few(&args.keys, session)?;
    let catalog = session.catalog_to_change(&args.schemas, &mut keys)?;
    let keys = keys.all(named_locks::MOST)?;
    let lookup = Lookup {
        first_read: ReadLimit::Whole,
        thresholds: Thresholds::default(),
        includes_less_specific_results: false,
        keeps_unrecognised: false,
    };
    let millis = age::millis(args.time);
    let action = LockAction {
        command: "extend",
        action: KeyAction::Prolong(millis),
        possible: "extendable",
        done: EXTENDED,
    };
    let mut locks =
        NamedLocks::find(session, &catalog, &lookup, keys, action, |record| decide(record, millis))
            .await?;
    // JSON is written once, after the change, because it reports the outcomes.
    if args.output == Output::Text {
        locks.show(session)?;
    }
    if locks.refused().any(|why| why == NO_EXPIRY) {
        // `sweep` leaves schemas without a prefix out, and refuses if no other is chosen.
        let can_sweep = catalog.chosen().iter().any(|schema| schema.has_fixed_prefix());
        session.ui.hint(if can_sweep {
            "`idemctl sweep --orphaned` removes locks that never expire, and `idemctl \
            force-unlock SCHEMA/KEY` removes one lock"
        } else {
            "`idemctl force-unlock SCHEMA/KEY` removes one lock"
        });
    }
    let possible = locks.possible();
    let time = duration::short(millis);
    if possible > 0 && locks.describe_begin() {
        let renewal = if locks.are_renewed() {
            ", or renews its lock and so gives it the service's TTL again"
        } else {
            ""
        };
        session.ui.status(&format!(
            "Retries with these keys are rejected for {time} from now, unless a worker finishes \
            earlier{renewal}."
        ));
    }
    // The value of a lock stays, so there is nothing to back up.
    let accounted = ChangeArgs { confirm_args: args.confirm_args, ..ChangeArgs::default() };
    let question =
        format!("Extend {} to {time} from now?", words::counted(possible as u64, "lock"));
    locks.change_and_report(session, args.output, &accounted, &question).await
}

fn decide(record: &Record, millis: u64) -> LockDecision {
    let key_index = extension::extendable(record).map_err(|why| (Exit::Usage, why))?;
    let why = match record.seen.keys[key_index].time_left {
        TimeLeft::NoExpiry if record.schema.ttl(TtlOf::Lock).is_none() => {
            "it never expires, and its schema states no lock TTL"
        }
        // A longer TTL promises nothing, and no other command finds the lock at fault.
        _ if record.next_request.answer == Answer::Execute => {
            "it stops no request; the next request executes whatever the lock's TTL"
        }
        TimeLeft::NoExpiry => NO_EXPIRY,
        TimeLeft::Millis(left) => {
            let (now, extended) = (duration::short(left), duration::short(millis));
            // An extension must never take time from a lock.
            if left >= millis {
                return Err((Exit::Done, format!("unchanged, because it has {now} left")));
            }
            return Ok((key_index, format!("{now} left, to become {extended}")));
        }
    };
    Err((Exit::Usage, why.to_owned()))
}
