//! `idemctl begin`: the service's own begin step, by hand.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{Output, StepArgs, parse_owner, parse_token};
use crate::change::{
    ManualStep, check_creates_lock, check_ttls, described_step, find_record, owner_of_new_lock,
    show_record, time_for,
};
use crate::domain::record::{Record, Response, age};
use crate::domain::schema::{Meaning, ReplyPattern, State, Step, TtlOf};
use crate::domain::step::StepInputs;
use crate::domain::{duration, manual_step};
use crate::exit::{CommandError, Exit};
use crate::render::change::StepReport;
use crate::render::escape;
use crate::session::Session;

/// Take a key's lock with the service's own step, or show what a request gets
///
/// Runs the step that the service's worker runs, under the one schema in --schema. If the key is
/// free, you hold the lock until its TTL ends, and requests with the key are rejected with 409.
/// `complete` or `release` ends it.
///
/// Exit status 0 only if you took a lock, 1 if not (conflict, replay, mismatch, fail, an unknown
/// reply, or a service that executes without a lock), 2 if it is unknown what the service makes of
/// the stored value and the step may overwrite it, 8 if the record changed since it was shown.
/// A dry run ends with 0, whatever reply is expected.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Owner of the lock, if the schema stores it [default: a new UUID, which is shown]
    #[arg(long, value_name = "ID", value_parser = parse_owner)]
    owner: Option<String>,

    /// Hash of the request's payload, if the schema compares it [default: the stored hash, or none]
    #[arg(long, value_name = "TEXT", value_parser = parse_token)]
    fingerprint: Option<String>,

    #[command(flatten)]
    step: StepArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let record = find_record(session, &args.step).await?;
    let schema = record.schema.clone();
    let step = described_step(&record, "begin", schema.begin.as_ref())?;
    check_ttls(&schema, step)?;
    // A service without owners is refused below, in other words.
    if args.owner.is_some() && schema.names_owner() && !schema.begin_sends_owner() {
        let name = &schema.name;
        let message = format!("--owner: the begin step of {name} sends no owner");
        return Err(CommandError::usage(message).hint("omit --owner").into());
    }
    let owner = owner_of_new_lock(&record, args.owner.as_deref(), false)?;
    let fingerprint = fingerprint(&args, &record)?;
    // A request that begins has no response yet.
    let response = Response::default();
    let inputs = StepInputs {
        fingerprint: &fingerprint,
        now_ms: time_for(&schema, record.seen.server_ms, schema.sends_time(step))?,
        ..StepInputs::new(&schema, &record.key, &owner, &response)
    };
    let mut manual = ManualStep::new("begin", &record, step, inputs);
    manual.report.predicted = manual_step::predict_begin(&record, &fingerprint);
    let report = &manual.report;
    if report.predicted.is_none()
        && let Some(why) = manual_step::why_overwrites(&record, &fingerprint)
    {
        let (key, name) = (escape::key(&record.key), &schema.name);
        let message = format!(
            "{key}: it is unknown what {name} makes of the stored value ({why}), and its begin \
            step may overwrite it; nothing was done"
        );
        return Err(CommandError::usage(message)
            .hint("find out which program wrote the value, and remove it before you begin")
            .into());
    }
    // Without a prediction, the step may take the lock.
    if report.predicted.is_none_or(|means| means == Meaning::Acquired) {
        check_creates_lock(&schema)?;
        manual_step::check_begun_lock(&manual.inputs).map_err(|why| {
            CommandError::usage(format!("{}: {why}; nothing was done", schema.name))
        })?;
    }
    show_record(session, args.step.output, &record)?;
    if args.step.output == Output::Text {
        explain(session, report, &fingerprint);
        let names_argument = args.owner.is_some() || args.fingerprint.is_some();
        if names_argument && report.predicted == Some(Meaning::Acquired) {
            explain_refusal(session, step);
        }
    }
    let stores_hash = report.predicted == Some(Meaning::Acquired)
        && schema.locks_keep_fingerprint()
        && manual_step::may_take_lock(&record, &fingerprint, false);
    if stores_hash && fingerprint.is_empty() && args.fingerprint.is_none() {
        session.ui.warning(
            "without --fingerprint, the lock has no hash of a payload, so requests with this key \
            may be rejected as having another payload",
        );
    }
    let owner = report.owner.unwrap_or_default();
    manual.run(session, &args.step, |now| manual_step::was_acquired(&record, now, owner)).await
}

fn fingerprint(args: &Args, record: &Record) -> Result<String, CommandError> {
    match &args.fingerprint {
        Some(_) if !record.schema.has_fingerprints() => Err(CommandError::usage(format!(
            "--fingerprint: {} does not compare payloads",
            record.schema.name
        ))
        .hint("omit --fingerprint")),
        Some(given) => Ok(given.clone()),
        // With the stored hash, the request is a retry and not a mismatch.
        None => Ok(record.fingerprint().unwrap_or_default().to_owned()),
    }
}

/// Says which errors the step may reply whatever the record is, such as that an argument is
/// malformed: the schema lists them without a condition.
fn explain_refusal(session: &mut Session, step: &Step) {
    let mut errors = Vec::new();
    for reply in step.calls.iter().flat_map(|call| &call.replies) {
        if let ReplyPattern::Error(code) = &reply.pattern
            && code != "*"
            && reply.when.is_empty()
        {
            errors.push(code.as_str());
        }
    }
    if !errors.is_empty() {
        session.ui.status(&format!(
            "If the step refuses --owner or --fingerprint, it replies {} instead.",
            errors.join(" or ")
        ));
    }
}

fn explain(session: &mut Session, report: &StepReport<'_>, fingerprint: &str) {
    let record = report.record;
    let schema = &record.schema;
    let Some(predicted) = report.predicted else {
        let because = match manual_step::why_unpredicted(record, fingerprint) {
            Some(why) => format!(" ({why})"),
            None => String::new(),
        };
        session.ui.status(&format!(
            "The schema does not say what the service replies in this state{because}."
        ));
        return;
    };
    if predicted == Meaning::Acquired && !manual_step::may_take_lock(record, fingerprint, false) {
        let begin = schema.begin.as_ref();
        let others = begin.map(|step| schema.keys_beside_record(&step.calls, &record.key));
        let others: Vec<String> =
            others.unwrap_or_default().iter().map(|key| escape::text(key)).collect();
        session.ui.status(&if others.is_empty() {
            "Expected reply: acquired. As the schema describes the step, it takes no lock here, so \
            other requests with this key may execute as well."
                .to_owned()
        } else {
            // The step may hold its lock there, as a member of a set.
            format!(
                "Expected reply: acquired. The step takes no lock in this record, but it may take \
                one in {}, which idemctl does not read or undo. If it takes none, other requests \
                with this key may execute as well.",
                others.join(", ")
            )
        });
        return;
    }
    if predicted != Meaning::Acquired {
        // A service may take its lock before it looks for a result.
        let may_take_lock = manual_step::may_take_lock(record, fingerprint, true);
        let effect = if may_take_lock && predicted != Meaning::Conflict {
            "The step sends several calls, and an earlier one may take a lock."
        } else {
            "This does not acquire a lock."
        };
        session.ui.status(&format!("Expected reply: {}. {effect}", predicted.as_str()));
        return;
    }
    let redis_key = escape::text(&report.record.seen.keys[schema.lock_key_index()].redis_key);
    let owner = match report.owner {
        Some(owner) => format!(" for worker {}", escape::text(owner)),
        None => String::new(),
    };
    // A script may compute an expiry in the value, which is earlier than that of the Redis key.
    let has_contained_expiry = schema
        .values
        .iter()
        .any(|format| format.state == State::InProgress && format.expires_at.is_some());
    let ended = match (&schema.complete, &schema.release) {
        (Some(_), Some(_)) => "completed or released",
        (Some(_), None) => "completed",
        (None, Some(_)) => "released",
        (None, None) => "removed",
    };
    let until = match schema.ttl(TtlOf::Lock) {
        _ if has_contained_expiry => {
            format!("until the time in the lock has passed, or it is {ended}")
        }
        // A literal in a command, or nothing, decides instead of the TTL of the options.
        Some(_) if !schema.sends_lock_ttl() && !schema.begins_with_a_script() => {
            format!("until the lock expires, if it does, or is {ended}")
        }
        Some(ttl) => {
            let lives = duration::short(age::millis(ttl));
            format!("for {lives}, or until the lock is {ended}")
        }
        None => format!("until the lock is {ended}"),
    };
    // Only a script knows whether it writes over a value, which is checked afterwards.
    let is_free = record.seen.keys[schema.lock_key_index()].content.is_absent();
    let may = if is_free || !schema.begins_with_a_script() { "should" } else { "may" };
    session.ui.status(&format!(
        "Expected reply: acquired. The step {may} take the lock {redis_key}{owner}; requests with \
        this key are then rejected {until}."
    ));
}
