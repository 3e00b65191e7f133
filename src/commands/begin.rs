//! `idemctl begin`: the service's own begin step, by hand.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{Output, StepArgs, parse_owner, parse_token};
use crate::change::completion::{NO_HASH, no_fingerprint};
use crate::change::{
    ManualStep, check_creates_lock, described_step, find_record, owner_of_new_lock, show_record,
    time_for,
};
use crate::domain::manual_step;
use crate::domain::record::{Record, Response};
use crate::domain::schema::Meaning;
use crate::domain::step::{StepInputs, StepKind};
use crate::exit::{CommandError, Exit};
use crate::render::change::StepReport;
use crate::render::escape;
use crate::session::Session;

/// Take a key's lock with the service's own step
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
    let step = described_step(&record, StepKind::Begin)?;
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
    let mut manual = ManualStep::new(StepKind::Begin, &record, step, inputs);
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
        return Err(CommandError::usage(message).into());
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
    }
    let stores_hash = report.predicted == Some(Meaning::Acquired)
        && schema.locks_keep_fingerprint()
        && manual_step::may_take_lock(&record, &fingerprint);
    if stores_hash && fingerprint.is_empty() && args.fingerprint.is_none() {
        session.ui.warning(NO_HASH);
    }
    let owner = report.owner.unwrap_or_default();
    manual.run(session, &args.step, |now| manual_step::was_acquired(&record, now, owner)).await
}

fn fingerprint(args: &Args, record: &Record) -> Result<String, CommandError> {
    match &args.fingerprint {
        Some(_) if !record.schema.has_fingerprints() => Err(no_fingerprint(&record.schema.name)),
        Some(given) => Ok(given.clone()),
        // With the stored hash, the request is a retry and not a mismatch.
        None => Ok(record.fingerprint().unwrap_or_default().to_owned()),
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
    if predicted != Meaning::Acquired {
        session.ui.status(&format!("Expected reply: {}.", predicted.as_str()));
        return;
    }
    if !manual_step::may_take_lock(record, fingerprint) {
        session.ui.status(
            "Expected reply: acquired. As the schema describes the step, it takes no lock here, so \
            other requests with this key may execute as well.",
        );
        return;
    }
    let redis_key = escape::text(&record.seen.keys[schema.lock_key_index()].redis_key);
    let owner = match report.owner {
        Some(owner) => format!(" for worker {}", escape::text(owner)),
        None => String::new(),
    };
    session.ui.status(&format!(
        "Expected reply: acquired. The step should take the lock {redis_key}{owner}; requests with \
        this key are then rejected until it ends."
    ));
}
