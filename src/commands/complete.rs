//! `idemctl complete`: the service's own complete step, executed manually.
//!
//! The path of a completion:
//! 1. `change/one_record.rs` finds and reads the record.
//! 2. `change/completion/owner_and_fingerprint.rs` checks that it can be completed
//!    (`domain/manual_step/`), chooses owner and fingerprint, and builds the `StepInputs`: the
//!    values of the placeholders in the schema's calls. If the step needs a lock that the record
//!    lacks, one is taken in the transaction of the first call. `domain/manual_step/predict.rs`
//!    predicts the reply. If the record is refused, `change/completion/attempt.rs` tries
//!    other options before it names them in a hint.
//! 3. If it is predicted that the response is stored, and the schema describes begin,
//!    `sim/rehearsal.rs` executes the step and the next request on a temporary local Redis, and
//!    `change/completion/rehearsal.rs` prints what that showed.
//! 4. `change/manual_step.rs` asks for confirmation, writes the backup with `change/journal.rs`
//!    (`store/backup/whole_record.rs`), and lets `domain/step/executor.rs` execute the schema's
//!    calls until a reply decides. `domain/step/reply.rs` matches each reply with those of the
//!    schema.
//! 5. `store/change/guarded_step.rs` sends each call between WATCH and EXEC, so that it has no
//!    effect if the record changed. `store/change/identity_commands.rs` reads the record before and
//!    after the call. All this is a `ChangeAttempt` of `store/change/writer.rs`, which detects a
//!    failover after it and waits for replicas. Each call has a connection of its own:
//!    `store/connection/connection.rs` queues the bytes, and `transport.rs` writes them while it
//!    waits for the reply.
//! 6. `manual_step.rs` logs (`journal.rs`) and prints the outcome. The exit code is 0 if the step
//!    succeeded, 1 if it was rejected, and that of the error if one ended it.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{Output, StepArgs, parse_owner, parse_token};
use crate::change::completion::{
    ChosenCompletion, CompleteOptions, NO_HASH, RehearsalOutcome, check_delivery,
};
use crate::change::{
    ManualStep, because_of_owner, described_step, find_record, freeing_hint, show_record,
};
use crate::domain::duration;
use crate::domain::manual_step::{self, BROKEN_JSON, Completion, Overrides, ResponseInput};
use crate::domain::record::{Record, TimeLeft};
use crate::domain::schema::Meaning;
use crate::domain::step::{Answer, StepInputs, StepKind};
use crate::exit::{CommandError, Exit};
use crate::files;
use crate::render::{escape, words};
use crate::session::Session;

/// Store the response of an operation whose worker could not
///
/// Use it if the charge succeeded but its response was not stored. First confirm with the provider
/// that the operation took effect, then pass the response that the client should have received.
/// idemctl stores it on the existing lock with the service's own step and value format. --schema is
/// needed only if several schemas have the key. If the schema checks the owner, the step runs as
/// that owner. Options for parts that the service does not store, such as --status, are refused.
///
/// Exit status 0 if the response was stored, 1 if the service refused or there is no record, 2 if a
/// result is already stored, 8 if the record changed since it was shown.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Owner of the lock, if the schema checks it [default: asked for on a terminal]
    #[arg(long, value_name = "ID", value_parser = parse_owner)]
    owner: Option<String>,

    /// HTTP status of the response
    #[arg(long, value_name = "CODE", value_parser = manual_step::status)]
    status: Option<i64>,

    /// Header of the response; may be repeated
    #[arg(long = "header", value_name = "NAME: VALUE", value_parser = manual_step::header)]
    headers: Vec<(String, String)>,

    /// Body of the response: @FILE, `-` for stdin, or TEXT (@@TEXT if it begins with @)
    #[arg(long, value_name = "@FILE|-|TEXT")]
    body: Option<OsString>,

    /// Store it as a failed operation with this error, if the schema stores errors
    #[arg(long, value_name = "TEXT")]
    error: Option<String>,

    /// Store it even if there is no record because the lock has expired
    #[arg(long)]
    create: bool,

    /// Replace another result, or an unreadable value
    #[arg(long)]
    replace: bool,

    /// Hash of the request's payload, if the schema compares it [default: the hash in the lock]
    #[arg(long, value_name = "TEXT", value_parser = parse_token)]
    fingerprint: Option<String>,

    #[command(flatten)]
    step: StepArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    // What the options alone can refuse is refused before the first connection.
    let given = response_input(session, &args)?;
    let record = find_record(session, &args.step).await?;
    let schema = record.schema.clone();
    let step = described_step(&record, StepKind::Complete)?;
    let response = given.response(&schema).map_err(|misfit| {
        let hint = if misfit.is_never_stored { freeing_hint(&record) } else { misfit.hint };
        CommandError { hint, ..CommandError::usage(misfit.message) }
    })?;
    show_record(session, args.step.output, &record)?;

    let options = CompleteOptions {
        overrides: Overrides { create: args.create, replace: args.replace },
        owner: args.owner.as_deref(),
        fingerprint: args.fingerprint.as_deref(),
        dry_run: args.step.change_args.confirm_args.dry_run,
    };
    let error = args.error.as_deref();
    let chosen = ChosenCompletion::new(session, options, &record, step)?;
    let inputs = chosen.checked_inputs(&record, &response, error)?;
    let step_lock = chosen.missing_lock(&record, &inputs)?;
    let predicted = manual_step::predict_complete(&record, &chosen.owner, step_lock.as_ref());
    let will_store = predicted == Meaning::Stored;
    let mut manual = ManualStep::new(StepKind::Complete, &record, step, inputs);
    manual.report.predicted = Some(predicted);
    manual.needs_step_lock = step_lock.is_some();
    // The schema's prediction is a promise to the operator, so the service's own scripts test it
    // first, on a temporary local Redis.
    let inputs = &manual.inputs;
    let rehearsal = if will_store {
        RehearsalOutcome::of(session, &record, step, inputs, step_lock.as_ref()).await
    } else {
        RehearsalOutcome::NotNeeded
    };
    // The rehearsal saw the service's own TTL; the schema only has its default.
    let predicted_record = manual_step::predicted_record(&record, inputs, rehearsal.time_left());
    if will_store {
        check_delivery(&predicted_record, inputs, &rehearsal)?;
    }
    // Without a content type, the body may be any text, so idemctl only warns.
    if given.looks_like_broken_json() {
        session.ui.warning("the body looks like JSON, but is not valid JSON");
    }
    if args.step.output == Output::Text {
        explain(session, &manual, &chosen, &predicted_record, &rehearsal);
    }

    manual.report.rehearsed_next = rehearsal.next_meaning();
    manual.is_verified = rehearsal.verifies(&predicted_record);
    let read_back = |now: &Record| manual_step::was_stored(&record, now, &manual.inputs);
    manual.run(session, &args.step, read_back).await
}

/// The response that the options give.
fn response_input(session: &mut Session, args: &Args) -> Result<ResponseInput, CommandError> {
    let body = args.body.as_deref().map(read_body).transpose()?;
    // Stdin carried the body, so a question needs the terminal of the process.
    if args.body.as_deref().is_some_and(|body| body == "-") {
        session.ui.stdin_carries_data();
    }
    let given = ResponseInput {
        status: args.status,
        headers: args.headers.clone(),
        body,
        error: args.error.clone(),
    };
    if given.is_broken_json() {
        return Err(CommandError::usage(BROKEN_JSON));
    }
    Ok(given)
}

/// Prints what the step will do: what is stored, for how long, over what, and what a late worker
/// and the next request get.
fn explain(
    session: &mut Session,
    manual: &ManualStep<'_>,
    chosen: &ChosenCompletion,
    predicted_record: &Record,
    rehearsal: &RehearsalOutcome,
) {
    let ManualStep { report, inputs, .. } = manual;
    let record = report.record;
    let schema = &record.schema;
    if report.predicted != Some(Meaning::Stored) {
        let owner = because_of_owner(record, inputs.owner);
        session.ui.status(&format!("The service will reject this result{owner}."));
        return;
    }
    let redis_key = escape::text(&record.seen.keys[schema.result_key_index()].redis_key);
    let lives = match predicted_record.seen.keys[schema.result_key_index()].time_left {
        TimeLeft::NoExpiry => " without expiry".to_owned(),
        TimeLeft::Millis(left) => format!(" for {}", duration::short(left)),
    };
    let what = response_in_words(inputs);
    session
        .ui
        .status(&format!("This stores {what} at {redis_key}{lives}, as {} does.", schema.name));
    match chosen.completion {
        Completion::OfLock => {}
        Completion::Creating => {
            if schema.has_fingerprints() && predicted_record.fingerprint().is_none() {
                session.ui.warning(NO_HASH);
            }
        }
        Completion::Replacing => {
            let dropped = manual_step::dropped_fields(record, inputs);
            let which = match dropped.as_slice() {
                [] => String::new(),
                dropped => {
                    format!(", and drops its {}", escape::text(dropped.join(", ").as_bytes()))
                }
            };
            session.ui.status(&format!("This replaces the current value{which}."));
            warn_of_other_fingerprint(session, record, predicted_record);
        }
    }
    rehearsal.print(session, predicted_record);
    let worker = chosen.original_worker(record);
    let is_lost = manual_step::is_overwritten_later(predicted_record, worker)
        || manual_step::is_removed_by_failure(predicted_record, worker)
        || manual_step::is_overwritten_by_renewal(predicted_record, worker);
    session.ui.status(if is_lost {
        "If the original worker is still running, it may overwrite or remove this response."
    } else {
        "If the original worker is still running, its result will be rejected."
    });
    if predicted_record.next_request.answer == Answer::Replay {
        let took_effect =
            if inputs.error.is_some() { "did not take effect" } else { "took effect" };
        session.ui.status(&format!(
            "Make sure that the operation {took_effect}, because retries no longer execute it."
        ));
    }
}

/// Warns if the result has another fingerprint than the value that it replaces.
fn warn_of_other_fingerprint(session: &mut Session, record: &Record, predicted_record: &Record) {
    let (Some(before), Some(after)) = (record.fingerprint(), predicted_record.fingerprint()) else {
        return;
    };
    if before == after || before.is_empty() {
        return;
    }
    let before = escape::text(before.as_bytes());
    let after = escape::text(after.as_bytes());
    session.ui.warning(&format!(
        "this replaces the fingerprint {before} by {after}, so requests with the payload of \
        {before} no longer get a result"
    ));
}

fn response_in_words(inputs: &StepInputs<'_>) -> String {
    let response = inputs.response;
    let mut parts = Vec::new();
    if let Some(error) = inputs.error {
        parts.push(format!("the error {}", escape::text(error.as_bytes())));
    }
    if let Some(status) = response.status {
        parts.push(format!("status {status}"));
    }
    if !response.headers.is_empty() {
        parts.push(words::counted(response.headers.len() as u64, "header"));
    }
    match response.body.len() {
        0 if parts.is_empty() => parts.push("the completion of the operation".to_owned()),
        0 => {}
        length => parts.push(format!("a body of {}", words::bytes(length as u64))),
    }
    words::list(&parts, "and")
}

/// The longest string that Redis stores by default (`proto-max-bulk-len`).
const LARGEST: u64 = 512 * 1024 * 1024;

/// Reads `@FILE`, `-` (stdin) or the text itself; `@@TEXT` is a text that begins with one `@`.
fn read_body(given: &OsStr) -> Result<Vec<u8>, CommandError> {
    match given.as_bytes() {
        b"-" => files::up_to(std::io::stdin().lock(), LARGEST)
            .map_err(|error| CommandError::usage(format!("--body: cannot read stdin: {error}"))),
        [b'@', text @ ..] if text.starts_with(b"@") => Ok(text.to_vec()),
        [b'@', file @ ..] => {
            let file = Path::new(OsStr::from_bytes(file));
            files::read_or_receive(file, LARGEST).map_err(|error| {
                CommandError::usage(format!("--body: cannot read {}: {error}", file.display()))
                    .hint("to pass a text that begins with @, write @@TEXT")
            })
        }
        text => Ok(text.to_vec()),
    }
}

#[cfg(test)]
mod given_body_tests {
    use super::*;

    #[test]
    fn text_is_itself_and_two_ats_are_one() {
        let text = |given: &str| read_body(OsStr::new(given)).unwrap();
        assert_eq!(text("{}"), b"{}");
        assert_eq!(text(""), b"");
        assert_eq!(text("@@ops"), b"@ops");
        assert_eq!(read_body(OsStr::from_bytes(b"\xff")).unwrap(), b"\xff");
    }

    #[test]
    fn a_file_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("body");
        std::fs::write(&file, b"a\n\xff").unwrap();
        let given = format!("@{}", file.display());
        assert_eq!(read_body(OsStr::new(&given)).unwrap(), b"a\n\xff");
        let missing = read_body(OsStr::new("@/nowhere/body")).unwrap_err();
        assert!(missing.message.contains("/nowhere/body") && missing.hint.is_some());
        assert!(read_body(OsStr::new("@")).is_err());
    }
}
