//! `idemctl probe`: sends a service the requests that idempotency has to withstand, and judges the
//! answers.

mod effects;
mod options;
mod record_changes;
mod records;
mod request;
mod step_runner;

use std::cell::Cell;
use std::time::Duration;

use anyhow::Result;
use serde_json::json;
use tokio::time::{Instant, sleep};

pub use self::options::Args;
use self::record_changes::{RecordChanges, Removal};
use self::records::RecordLookup;
use self::step_runner::{MadeCheck, StepRunner};
use crate::args::accepted;
use crate::change::in_backup;
use crate::domain::covered::Covered;
use crate::domain::probe::{
    AcceptedChecks, Baseline, CHECKS, CheckedService, KeyForm, KeyPlace, ProbeCheck,
    ProbeJudgement, ProbeStep, ProbeStepResult, ProbeTask, ProbeVerdict, Steps,
};
use crate::exit::{self, CommandError, Exit};
use crate::http::HttpClient;
use crate::interrupt::Interrupt;
use crate::render::words::counted;
use crate::render::{escape, probe as render};
use crate::session::Session;
use crate::store::{Tls, TlsOptions};

/// The most requests before the first check.
const FIRST_REQUESTS: usize = 6;

/// The most time for which the number of effects is observed at the end. Without this limit, a run
/// with a failure would take twice as long.
const MAX_IDLE: Duration = Duration::from_secs(15);

/// How long nothing is sent before a check is made again, so that late effects of earlier requests
/// appear before it.
const CALM: Duration = Duration::from_millis(1_500);

/// How often a check is made again at most. A race does not show in every try.
const MAX_CONFIRMATIONS: usize = 3;

/// After this many checks in a row without any answer, the service is taken to be gone. Each
/// further check would wait for its timeout.
const MAX_SILENT: usize = 3;

/// How often a fault is tried at most. The handler may be quicker than the change of its record.
const MAX_FAULTS: usize = 3;

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    if args.list {
        let text = render::list(session.ui.view());
        session.ui.page(text)?;
        return Ok(Exit::Done);
    }
    if session.settings.wants_sandbox() {
        return Err(CommandError::usage("--sandbox starts a Redis that your service does not use")
            .hint("name the service's own Redis, or leave --sandbox out")
            .into());
    }
    let accepted = accepted(args.expect.as_deref())?;
    let mut task = task(session, &args)?;
    let planned = plan(&task, &args);
    // The first requests show what the service does at all.
    let steps = planned.iter().filter_map(|(_, steps)| steps.as_ref().ok());
    let wanted = steps.map(|steps| requests_of(steps)).sum::<usize>() + FIRST_REQUESTS;
    if wanted > args.max_requests {
        let message = format!(
            "these checks send {wanted} requests, and --max-requests allows {}",
            args.max_requests
        );
        let hint = "lower --concurrency or --rounds, choose checks with --only, or raise the limit";
        return Err(CommandError::usage(message).hint(hint).into());
    }
    if args.dry_run {
        let first = step_runner::first_steps(&task)?;
        let requests = requests_of(&first) + wanted - FIRST_REQUESTS;
        let mut steps = vec![("first requests", Ok(first))];
        steps.extend(planned.into_iter().map(|(check, steps)| (check.id, steps)));
        let text = render::dry_run(&steps, requests, args.max_requests, session.ui.view());
        session.ui.page(text)?;
        return Ok(Exit::Done);
    }
    // Each request may be a payment, so the options are tried before the first one.
    args.junit.check()?;
    options::confirm_host(session, &task.template.url, &args.yes).await?;
    if let Some(url) = args.effects.as_deref().filter(|given| effects::is_url(given)) {
        request::check_url(url, "--effects")?;
        options::confirm_host(session, url, &args.yes).await?;
    }
    let mut records = records::lookup(session, &args).await?;
    if args.faults && records.is_none() {
        return Err(CommandError::usage("--faults changes records, but no server is named")
            .hint("add --schema NAME, and -u URL or -h HOST")
            .into());
    }
    if let Some(records) = &mut records {
        records.look_up(&[&task.new_key()]).await?;
    }
    task.reads_records = records.is_some();
    let changes = match &records {
        Some(records) => changes(session, &args, records.clone()).await?,
        None => None,
    };
    let keeps_records = records.is_some() && changes.is_none();
    if let Some(note) = &task.profile.note {
        session.ui.note(&escape::text(note.as_bytes()));
    }
    let client = client(session, &args);
    let oracle = effects::oracle(&args, client.clone());
    let interrupt = Interrupt::listen()?;
    if changes.is_some() {
        // A signal must not end the run before its records are removed.
        interrupt.handle_terminate()?;
    }
    let repeats = args.max_requests - wanted;
    let mut runner = StepRunner::new(client, oracle, records, changes, repeats);
    let ended = interrupt.unless_raised(probe(session, &args, &mut task, &mut runner)).await;
    let removal = runner.remove_records().await;
    if runner.sent() == 0 {
        // There is nothing to remove.
    } else if let Some(removal) = &removal {
        print_removal(session, removal);
    } else if keeps_records {
        session.ui.status("The records of this probe are kept in Redis until their TTL ends.");
    }
    let Some(checked) = ended else {
        // idemctl does not wait for a handler that still runs.
        let hint = "a request that the service still executes can store its record later";
        return Err(CommandError::interrupted("interrupted").hint(hint).into());
    };
    let (checked, gone) = checked?;
    let exit = show(session, &args, &task, &runner, &checked, accepted.as_ref(), removal.as_ref())?;
    match gone {
        Some(gone) => Err(gone.into()),
        None => Ok(exit),
    }
}

/// The checks of a run, and the error if the service was gone before its end.
type ProbeEnd = (Vec<CheckedService>, Option<CommandError>);

/// The changes of the records, unless the context permits none.
///
/// # Errors
/// The context permits none, and `--faults` needs them; else those of a connection or of a file.
async fn changes(
    session: &mut Session,
    args: &Args,
    records: RecordLookup,
) -> Result<Option<RecordChanges>> {
    match RecordChanges::open(session, records).await {
        Ok(changes) => Ok(Some(changes)),
        Err(error) if args.faults => Err(error),
        // A probe that only reads needs no permission to change.
        Err(error) => {
            let why = escape::text(format!("{error:#}").as_bytes());
            session.ui.warning(&format!("the records of this probe cannot be removed: {why}"));
            Ok(None)
        }
    }
}

fn print_removal(session: &mut Session, removal: &Removal) {
    let backup = escape::text(in_backup(removal.backup.as_deref()).as_bytes());
    let records = counted(removal.removed as u64, "record");
    session.ui.status(&format!("{records} of this probe removed from Redis{backup}"));
    for (key, why) in &removal.kept {
        let why = escape::text(why.as_bytes());
        session.ui.warning(&format!("the record of {key} may still be in Redis: {why}"));
    }
    if let Some(first) = removal.not_found.first() {
        let keys = counted(removal.not_found.len() as u64, "key");
        let first = escape::text(first.as_bytes());
        session.ui.warning(&format!(
            "no record in Redis under this schema for {keys} that the service accepted, such as \
             {first}. If it stores them under other Redis keys, they stay until their TTL ends."
        ));
    }
    if let Some(problem) = &removal.problem {
        session.ui.warning(&escape::text(problem.as_bytes()));
    }
}

/// How many requests these steps send.
fn requests_of(steps: &[ProbeStep]) -> usize {
    steps.iter().map(ProbeStep::sends).sum()
}

/// The chosen checks, each with its steps.
fn plan(task: &ProbeTask, args: &Args) -> Vec<(&'static ProbeCheck, Steps)> {
    let chosen = CHECKS.iter().filter(|check| args.is_chosen(check));
    chosen.map(|check| (check, check.steps(task))).collect()
}

fn task(session: &Session, args: &Args) -> Result<ProbeTask, CommandError> {
    let profile = options::load_profile(&args.profile)?;
    let mut template = request::template(args, &profile)?;
    let data = |option, data: &Option<String>| {
        data.as_deref().map(|data| request::data(option, data)).transpose()
    };
    let other_body = data("--other-data", &args.other_data)?;
    let failing_body = data("--failing-data", &args.failing_data)?;
    let other_caller = match &args.other_caller {
        Some(line) => Some(request::other_caller(line, &template)?),
        None => None,
    };
    template.caller_header = other_caller.as_ref().map(|(name, _)| name.clone());
    let task = ProbeTask {
        template,
        other_body,
        failing_body,
        profile,
        run: session.new_operation(),
        has_uuid_keys: args.uuid_keys,
        concurrency: usize::from(args.concurrency),
        rounds: usize::from(args.rounds),
        later: args.later,
        other_path: args.other_path.clone(),
        other_caller,
        counts_effects: args.effects.is_some(),
        counts_by_key: effects::is_of_key(args.effects.as_deref().unwrap_or_default()),
        effects_drift: None,
        reads_records: false,
        makes_faults: args.faults,
        baseline: Baseline::default(),
        keys: Cell::new(0),
    };
    // A key without a place is an error of the command line, not of one check.
    let request = task.template.with_key("key").map_err(|why| {
        CommandError::usage(why)
            .hint("--key-header, --key-field and --key-parameter say where the key belongs")
    })?;
    request::check(&request)?;
    if let Some(path) = &task.other_path {
        request::check_path(path, &request)?;
    }
    Ok(task)
}

fn client(session: &Session, args: &Args) -> HttpClient {
    let tls = TlsOptions {
        cacert: args.http_cacert.clone(),
        insecure: args.http_insecure,
        ..TlsOptions::default()
    };
    let connect_timeout = session.settings.target().connect_timeout;
    HttpClient::new(Tls::new(tls), connect_timeout, args.request_timeout)
}

async fn probe(
    session: &mut Session,
    args: &Args,
    task: &mut ProbeTask,
    runner: &mut StepRunner,
) -> Result<ProbeEnd> {
    begin(session, task, runner).await?;
    let planned = plan(task, args);
    let began = Instant::now();
    let progress = session.ui.progress_of("checks made", Some(planned.len() as u64));
    let mut made = Vec::with_capacity(planned.len());
    let mut silent = Vec::new();
    for (check, steps) in planned {
        let steps = match steps {
            Ok(steps) if silent.len() < MAX_SILENT => steps,
            Ok(_) => {
                let why = "it was not made, because the service gave no answer any more";
                made.push((check, Err(ProbeJudgement::new(ProbeVerdict::Inconclusive, why))));
                continue;
            }
            Err(why) => {
                made.push((check, Err(ProbeJudgement::new(ProbeVerdict::NotApplicable, why))));
                continue;
            }
        };
        let mut results = run_steps(task, runner, &steps).await;
        for _ in 1..MAX_FAULTS {
            // The handler may have been quicker than the change of its record.
            let is_missed = results.iter().any(|result| matches!(result.fault, Some(Err(_))));
            let Ok(again) = check.steps(task) else { break };
            if !is_missed || !runner.may_repeat(requests_of(&again)) {
                break;
            }
            results = run_steps(task, runner, &again).await;
        }
        let mut exchanges = results.iter().flat_map(|result| &result.exchanges);
        if exchanges.any(|exchange| exchange.answer().is_some()) {
            silent.clear();
        } else {
            silent.push(check.id);
        }
        made.push((check, Ok(results)));
        progress.inc(1);
    }
    let is_gone = silent.len() >= MAX_SILENT;
    let gone = is_gone.then(|| {
        let ids = silent.join(", ");
        let message = format!("the service gave no answer any more, in checks in a row ({ids})");
        CommandError::new(Exit::Unreachable, message)
    });
    runner.count_again(&mut made).await;
    let doubtful = confirm_numbers(task, runner, &mut made, is_gone).await;
    let mut checked = judged(task, &made);
    if task.counts_effects && task.effects_drift.is_none() {
        // Other traffic must not look like a second execution, so it is looked for as long as the
        // checks ran.
        let is_any_failed = checked.iter().any(CheckedService::is_failed);
        let idle = if is_any_failed { began.elapsed().min(MAX_IDLE) } else { Duration::ZERO };
        task.effects_drift = runner.drift_at_end(idle).await;
        checked = judged(task, &made);
    }
    for checked in &mut checked {
        if doubtful.contains(&checked.check.id) && checked.is_shown_by_number() {
            checked.take_back();
        }
    }
    progress.finish_and_clear();
    Ok((checked, gone))
}

async fn run_steps(
    task: &ProbeTask,
    runner: &mut StepRunner,
    steps: &[ProbeStep],
) -> Vec<ProbeStepResult> {
    let mut results = Vec::with_capacity(steps.len());
    for step in steps {
        results.push(runner.run(task, step).await);
    }
    results
}

/// Makes checks again that only a number of effects fails, after a time in which late effects can
/// appear, unless the service is gone. Returns the checks of which nothing was seen again.
async fn confirm_numbers(
    task: &ProbeTask,
    runner: &mut StepRunner,
    made: &mut [MadeCheck],
    is_gone: bool,
) -> Vec<&'static str> {
    let mut doubtful = Vec::new();
    // Effects of one key are those of one check.
    if task.counts_by_key || task.effects_drift.is_some() {
        return doubtful;
    }
    for (checked, (check, results)) in judged(task, made).iter().zip(made) {
        if !checked.is_shown_by_number() {
            continue;
        }
        doubtful.push(check.id);
        for _ in 0..MAX_CONFIRMATIONS {
            let Ok(steps) = check.steps(task) else { break };
            if is_gone || !runner.may_repeat(requests_of(&steps)) {
                break;
            }
            sleep(CALM).await;
            let again = run_steps(task, runner, &steps).await;
            if check.judged(task, &again).verdict == ProbeVerdict::Fail {
                *results = Ok(again);
                doubtful.pop();
                break;
            }
        }
    }
    doubtful
}

/// Judges all checks at the end, because the number of effects may drift during the run.
fn judged(task: &ProbeTask, made: &[MadeCheck]) -> Vec<CheckedService> {
    let mut checked = Vec::with_capacity(made.len());
    for (check, results) in made {
        let clause = task.profile.checks.get(check.id).cloned();
        let (judgement, results) = match results {
            Ok(results) => (check.judged(task, results), results.clone()),
            Err(judgement) => (judgement.clone(), Vec::new()),
        };
        checked.push(CheckedService::new(check, clause, judgement, results));
    }
    checked
}

/// Sends the first requests: whether the service accepts one at all, and what answers can show.
///
/// # Errors
/// The service does not answer, or rejects the request.
async fn begin(
    session: &mut Session,
    task: &mut ProbeTask,
    runner: &mut StepRunner,
) -> Result<(), CommandError> {
    task.effects_drift = runner.drift_at_start(task).await?;
    let mut first = runner.first(task).await?;
    let is_rejected = first.answer().is_some_and(|answer| matches!(answer.status, 400 | 422));
    if is_rejected && matches!(task.template.place, KeyPlace::Header(_)) {
        // Many services take the key as it is, and accept only some characters.
        let (other, words) = match task.template.form {
            KeyForm::Quoted => (KeyForm::Bare, "without quotation marks"),
            KeyForm::Bare => (KeyForm::Quoted, "in quotation marks"),
        };
        let given = std::mem::replace(&mut task.template.form, other);
        let second = runner.first(task).await?;
        if second.answer().is_some_and(|answer| answer.is_success()) {
            session.ui.note(&format!(
                "the service rejected a key as the profile writes it, so all others are {words}"
            ));
            first = second;
        } else {
            task.template.form = given;
        }
    }
    let Some(answer) = first.answer() else {
        let url = escape::text(render::url(&first.request).as_bytes());
        let message = format!("{url} gave {}", first.in_words());
        return Err(CommandError::new(Exit::Unreachable, message));
    };
    if !answer.is_success() {
        let message = format!(
            "the service answered the first request with {}, so nothing can be probed: {}",
            answer.status,
            render::shown_body(&first)
        );
        let hint = "--dry-run prints the request: check its URL, -X and its credentials (-H @FILE). \
                    --uuid-keys makes keys that are UUIDs";
        return Err(CommandError::new(Exit::Partial, message).hint(hint));
    }
    let answer = answer.clone();
    task.baseline = runner.baseline(task, &first, &answer).await?;
    Ok(())
}

fn show(
    session: &mut Session,
    args: &Args,
    task: &ProbeTask,
    runner: &StepRunner,
    checked: &[CheckedService],
    accepted: Option<&AcceptedChecks>,
    removal: Option<&Removal>,
) -> Result<Exit> {
    let differences = accepted.map(|accepted| accepted.differences(checked));
    let run = render::ProbeRun {
        task,
        sent: runner.sent(),
        effects: runner.effects_made(task, checked),
        removes_records: removal.is_some(),
        differences: differences.as_deref(),
    };
    let mut of_all = json!({
        "profile": task.profile.name,
        "source": task.profile.source,
        "url": render::masked_url(&task.template.url),
        "requests": runner.sent(),
        "counts_effects": task.counts_effects,
        "effects_drift": task.effects_drift,
        "effects_made": run.effects.map(|made| made.count),
        "effects_complete": run.effects.map(|made| made.is_complete),
        "key_prefix": task.key_prefix(),
    });
    if let Some(removal) = removal {
        of_all["records"] = removal.json();
    }
    if let Some(differences) = &differences {
        of_all["differences"] = differences.iter().map(render::difference).collect();
    }
    let mut values = Vec::with_capacity(checked.len());
    for checked in checked {
        values.push(render::check_json(task, checked));
    }
    let of_all = of_all.as_object().cloned().unwrap_or_default();
    session.show_with(args.output, "checks", &values, &of_all, |view| {
        render::page(&run, checked, view)
    })?;
    session.ui.status(&render::summary(checked, runner.sent()));
    args.junit.write("probe", &render::suites(task, checked, differences.as_deref()))?;
    let is_bad = match &differences {
        Some(differences) => !differences.is_empty(),
        None => checked.iter().any(|checked| checked.judgement.verdict == ProbeVerdict::Fail),
    };
    let mut covered = Covered::default();
    for checked in checked {
        // Who names a check wants its answer, also if the profile only reports it.
        let is_inconclusive = checked.judgement.verdict == ProbeVerdict::Inconclusive;
        if checked.is_open() || (is_inconclusive && args.is_named(checked.check)) {
            covered.leave_out(checked.check.id, &checked.judgement.message);
        }
    }
    Ok(exit::judged(is_bad, &covered))
}
