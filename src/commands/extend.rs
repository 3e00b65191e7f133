//! `idemctl extend`: gives locks more time, while the operator finds out how their operations
//! ended.

use std::time::Duration;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{ChangeArgs, ConfirmArgs, KeysArgs, Output, SchemaArgs, parse_ttl};
use crate::change::named_locks::{self, LockAction, LockDecision, NamedLocks};
use crate::change::write_report;
use crate::domain::change::extension::{self, Needless};
use crate::domain::diagnosis::Thresholds;
use crate::domain::duration;
use crate::domain::record::{Record, age};
use crate::domain::schema::TtlOf;
use crate::domain::step::Answer;
use crate::exit::Exit;
use crate::session::Session;
use crate::session::key_list::KeyList;
use crate::store::read::lookup::Lookup;
use crate::store::{KeyAction, ReadLimit};

/// Why a lock without expiry is not extended.
const NO_EXPIRY: &str = "it never expires, so a TTL would shorten it";

/// Give locks more time, so that no retry executes while you investigate
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
        done: "extended",
        removes: false,
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
    let mut ended = Ok(());
    if args.confirm_args.dry_run {
        session.ui.status("dry run: nothing was changed");
    } else if possible > 0 {
        let them =
            if possible == 1 { "this lock".to_owned() } else { format!("these {possible} locks") };
        // The value of a lock stays, so there is nothing to back up.
        let accounted =
            ChangeArgs { confirm_args: args.confirm_args.clone(), ..ChangeArgs::default() };
        let question = format!("Extend {them} to {time} from now?");
        ended = locks.change(session, &accounted, &question).await;
        locks.print_done(session);
    }
    // Changes are reported even if an error followed. Without a confirmation, nothing was tried.
    if ended.is_ok() || locks.was_tried() {
        write_report(session, args.output, &locks.report())?;
    }
    ended?;
    locks.exit()
}

fn decide(record: &Record, millis: u64) -> LockDecision {
    let key_index = match extension::extendable(record) {
        Ok(key_index) => key_index,
        Err(why) => return LockDecision::Refused(why),
    };
    match extension::is_needless(record, key_index, millis) {
        Some(Needless::ForEver) if record.schema.ttl(TtlOf::Lock).is_none() => {
            LockDecision::Refused("it never expires, and its schema states no lock TTL".to_owned())
        }
        // A longer TTL promises nothing, and no other command finds the lock at fault.
        _ if record.next_request.answer == Answer::Execute => LockDecision::Refused(
            "it stops no request; the next request executes whatever the lock's TTL".to_owned(),
        ),
        Some(Needless::ForEver) => LockDecision::Refused(NO_EXPIRY.to_owned()),
        Some(Needless::Longer(left)) => LockDecision::Needless(format!(
            "unchanged, because it has {} left",
            duration::short(left)
        )),
        None => {
            let left = match record.seen.keys[key_index].time_left.millis() {
                Some(left) => duration::short(left),
                None => String::new(),
            };
            let extended = duration::short(millis);
            LockDecision::Possible(key_index, format!("{left} left, to become {extended}"))
        }
    }
}
