//! `idemctl release`: the service's own release step, by hand.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{Output, StepArgs, parse_owner};
use crate::change::{
    ManualStep, because_of_owner, described_step, find_record, owner_of_lock, removal_hint,
    show_record, time_for, undescribed,
};
use crate::domain::manual_step::{self, NotExecutable};
use crate::domain::record::{Record, Response};
use crate::domain::schema::Meaning;
use crate::domain::step::{StepInputs, StepKind};
use crate::exit::{CommandError, Exit};
use crate::render::{escape, words};
use crate::session::Session;

/// Release a lock with the service's own step
///
/// Runs the step that the service's worker runs after an operation without effect, under the one
/// schema in --schema. If the schema checks the owner, only the lock's owner may release it. A
/// stored result is never released. If the service has no such step, use force-unlock.
///
/// Exit status 0 if the lock was released, 1 if the service refused or there is no record, 8 if the
/// record changed since it was shown.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Owner of the lock, if the schema checks it [default: asked for on a terminal]
    #[arg(long, value_name = "ID", value_parser = parse_owner)]
    owner: Option<String>,

    #[command(flatten)]
    step: StepArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let record = find_record(session, &args.step).await?;
    let schema = record.schema.clone();
    show_record(session, args.step.output, &record)?;
    manual_step::releasable(&record).map_err(|why| refused(&record, &why))?;
    let step = described_step(&record, StepKind::Release)?;
    let now_ms = time_for(&schema, record.seen.server_ms, schema.sends_time(step))?;
    let owner = owner_of_lock(
        session,
        &record,
        step,
        args.owner.as_deref(),
        args.step.change_args.confirm_args.dry_run,
    )?;
    // A release stores no response, but the request has a place for one.
    let response = Response::default();
    let inputs = StepInputs {
        now_ms,
        fingerprint: record.fingerprint().unwrap_or_default(),
        ..StepInputs::new(&schema, &record.key, &owner, &response)
    };
    let mut manual = ManualStep::new(StepKind::Release, &record, step, inputs);
    manual.report.predicted = Some(manual_step::predict_release(&record, step, &owner));
    if args.step.output == Output::Text {
        explain(session, &manual);
    }
    manual.run(session, &args.step, manual_step::was_released).await
}

fn refused(record: &Record, why: &NotExecutable) -> CommandError {
    let key = escape::key(&record.key);
    let name = &record.schema.name;
    let stop = match why {
        NotExecutable::Absent => {
            return CommandError::new(Exit::No, format!("{key}: there is no lock under {name}"));
        }
        NotExecutable::Released => {
            return CommandError::new(Exit::No, format!("{key}: {why} already; nothing was done"));
        }
        NotExecutable::Undescribed(step) => return undescribed(record, step),
        NotExecutable::WrongType(_) | NotExecutable::NoLock(_) => {
            return CommandError::usage(format!("{key}: {why}"));
        }
        NotExecutable::Completed | NotExecutable::Failed => {
            format!("{key}: {why}; a stored result cannot be released")
        }
        NotExecutable::NoSuchStep | NotExecutable::Unreadable(_) => format!("{key}: {why}"),
    };
    CommandError::usage(stop).hint(removal_hint(record))
}

fn explain(session: &mut Session, manual: &ManualStep<'_>) {
    let ManualStep { report, inputs, .. } = manual;
    let record = report.record;
    let redis_key = escape::text(&record.seen.keys[record.schema.lock_key_index()].redis_key);
    if report.predicted != Some(Meaning::Released) {
        let owner = because_of_owner(record, inputs.owner);
        session.ui.status(&format!("The service will reject the release of {redis_key}{owner}."));
    } else {
        session.ui.status(&format!("This releases the lock {redis_key}."));
        if record.schema.answers_by_record() {
            session.ui.status(words::NEXT_EXECUTES);
        }
        if !record.state.is_result() {
            session.ui.warning(words::RUNS_TWICE);
            session.ui.status(words::late_worker(&record.schema, true));
        }
    }
}
