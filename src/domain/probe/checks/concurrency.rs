//! Requests at the same time.

use super::judging::{
    Executions, NOT_COUNTED, OTHER_PAYLOAD, compare, fail, fail_by_number, inconclusive, pass,
    showing, statuses,
};
use crate::domain::probe::message::{ProbeAnswer, ProbeExchange, ProbeRequest, counted};
use crate::domain::probe::probe_check::{
    Judged, MadeSteps, ProbeAction, ProbeStep, ProbeStepResult, Steps,
};
use crate::domain::probe::task::ProbeTask;

/// How many keys are counted, if each one has a number of its own. Each count asks `--effects`
/// again.
const MAX_COUNTED: usize = 20;

/// Three steps per round: count, send, count.
pub(super) fn rounds(task: &ProbeTask) -> Steps {
    let mut steps = Vec::new();
    for _ in 0..task.rounds {
        let request = task.new_request()?;
        steps.extend(around(&request, vec![request.clone(); task.concurrency]));
    }
    Ok(steps)
}

/// Simultaneous requests, and a count of this request's effects before and after them.
fn around(counted: &ProbeRequest, requests: Vec<ProbeRequest>) -> Vec<ProbeStep> {
    let count = counted.clone().step(ProbeAction::Count);
    vec![count.clone(), ProbeStep { requests, action: ProbeAction::Send }, count]
}

pub(super) fn payloads(task: &ProbeTask) -> Steps {
    let control = task.other_request(&task.new_key(), 1)?;
    let key = task.new_key();
    let first = task.request(&key)?;
    let mut requests = vec![first.clone()];
    // Equal requests could rightly get one result, so a given payload is sent once.
    let others = if task.other_body.is_some() { 1 } else { task.concurrency - 1 };
    for number in 1..=others {
        requests.push(task.other_request(&key, number as u64)?);
    }
    let mut steps = vec![control.step(ProbeAction::Send)];
    steps.extend(around(&first, requests));
    Ok(steps)
}

pub(super) fn keys(task: &ProbeTask) -> Steps {
    let mut requests = Vec::new();
    for _ in 0..task.concurrency {
        requests.push(task.new_request()?);
    }
    let mut steps = around(&requests[0], requests.clone());
    if task.counts_by_key {
        for request in requests.into_iter().take(MAX_COUNTED).skip(1) {
            steps.push(request.step(ProbeAction::Count));
        }
    }
    Ok(steps)
}

/// The worst judgement of all rounds of three steps.
fn each_round(made: &MadeSteps<'_>, judge: fn(&MadeSteps<'_>) -> Judged) -> Judged {
    let mut judgements = Vec::new();
    for (round, results) in made.results.chunks(3).enumerate() {
        let (Ok(mut judged) | Err(mut judged)) = judge(&MadeSteps { results, ..*made });
        if judged.shown.is_empty() {
            judged.shown = two_answers(&results[1].exchanges);
        }
        for (step, _) in &mut judged.shown {
            *step += 3 * round;
        }
        judgements.push(judged);
    }
    match judgements.into_iter().min_by_key(|judged| judged.verdict) {
        Some(worst) => Ok(worst),
        None => inconclusive("no round was made"),
    }
}

pub(super) fn one_effect(made: &MadeSteps<'_>) -> Judged {
    each_round(made, |round| {
        let exchanges = round.exchanges(1);
        let words = words(exchanges);
        round.once(&words)?;
        // A request that was turned away did not take part.
        let answers = exchanges.iter().filter_map(ProbeExchange::answer);
        if answers.filter(|answer| !answer.is_overload()).count() < 2 {
            return inconclusive(format!("the service processed only one request ({words})"));
        }
        check_spread(&round.results[1])?;
        pass(format!("executed once; {words}"))
    })
}

pub(super) fn answers(made: &MadeSteps<'_>) -> Judged {
    each_round(made, |round| {
        let task = round.task;
        let exchanges = round.exchanges(1);
        let words = words(exchanges);
        let successes = successes(exchanges);
        let mut open = Ok(());
        for (place, success) in successes.iter().skip(1) {
            let (first, answer) = successes[0];
            match compare(task, answer, success) {
                Ok(true) => {}
                Ok(false) => {
                    let judged = fail(format!("the successes have different results ({words})"));
                    return showing(judged, &[(1, first), (1, *place)]);
                }
                Err(why) => open = inconclusive(why),
            }
        }
        let wanted = statuses(&task.profile.statuses.conflict);
        check_rejections(exchanges, 1, &wanted, |answer| task.is_conflict(answer))?;
        open?;
        if successes.is_empty() {
            return inconclusive(format!("no request succeeded ({words})"));
        }
        check_spread(&round.results[1])?;
        pass(format!("the successes agree ({words})"))
    })
}

pub(super) fn different_payloads(made: &MadeSteps<'_>) -> Judged {
    let task = made.task;
    let exchanges = made.exchanges(2);
    let words = words(exchanges);
    let shown: Vec<_> = two_answers(exchanges).into_iter().map(|(_, place)| (2, place)).collect();
    showing(made.not_twice(&words), &shown)?;
    let successes = successes(exchanges);
    if successes.len() > 1 {
        let judged = fail(format!("requests with different payloads succeeded ({words})"));
        return showing(judged, &shown);
    }
    // Otherwise a validation error would look like a mismatch.
    made.success(0, OTHER_PAYLOAD)?;
    let named = &task.profile.statuses;
    let wanted = match named.mismatch.is_empty() {
        true => "a 4xx".to_owned(),
        false => statuses(&[&named.conflict[..], &named.mismatch].concat()),
    };
    check_rejections(exchanges, 2, &wanted, |answer| {
        task.is_conflict(answer) || task.is_mismatch(answer)
    })?;
    if successes.is_empty() {
        return inconclusive(format!("no request succeeded ({words})"));
    }
    check_spread(&made.results[2])?;
    pass(format!("one request succeeded ({words})"))
}

pub(super) fn different_keys(made: &MadeSteps<'_>) -> Judged {
    let task = made.task;
    let exchanges = made.exchanges(1);
    let words = words(exchanges);
    for (place, exchange) in exchanges.iter().enumerate() {
        if exchange.answer().is_some_and(ProbeAnswer::is_success) {
            continue;
        }
        // Other rejections, such as 402, can have any cause.
        let mismatch = &task.profile.statuses.mismatch;
        let is_rejected = exchange.answer().is_some_and(|answer| {
            let is_named = task.is_conflict(answer) || mismatch.contains(&answer.status);
            is_named && !answer.is_overload()
        });
        let message = format!("a request with a new key got {} ({words})", exchange.in_words());
        let judged = if is_rejected { fail(message) } else { inconclusive(message) };
        return showing(judged, &[(1, place)]);
    }
    let said = match made.executions() {
        Executions::Unknown(why) => return inconclusive(why),
        Executions::NotCounted => {
            all_differ(task, exchanges, &words)?;
            "with different results".to_owned()
        }
        Executions::Times(_) if task.counts_by_key => {
            let counts = &made.results[2..];
            for count in counts {
                check_one(count, &words)?;
            }
            format!("and each of {} counted executed", counts.len())
        }
        Executions::Times(count) if count != exchanges.len() as u64 => {
            return fail_by_number(format!("all succeeded, but executed {count} times ({words})"));
        }
        Executions::Times(_) => "and each executed".to_owned(),
    };
    check_spread(&made.results[1])?;
    pass(format!("all succeeded, {said} ({words})"))
}

/// Passes if the number of a new key, which was 0 before, is 1.
///
/// # Errors
/// The judgement if it is another one.
fn check_one(count: &ProbeStepResult, words: &str) -> Judged<()> {
    match &count.effects {
        Some(Ok(1)) => Ok(()),
        // Its effect may also appear later.
        Some(Ok(0)) => inconclusive(format!("a request has no effect yet ({words})")),
        Some(Ok(more)) => fail_by_number(format!("a request executed {more} times ({words})")),
        Some(Err(why)) => inconclusive(why.clone()),
        None => inconclusive(NOT_COUNTED),
    }
}

/// Passes if the answers to different keys all differ.
///
/// # Errors
/// The judgement if they do not show that each executed.
fn all_differ(task: &ProbeTask, exchanges: &[ProbeExchange], words: &str) -> Judged<()> {
    let successes = successes(exchanges);
    for (index, (_, answer)) in successes.iter().enumerate() {
        for (_, other) in &successes[index + 1..] {
            if !answer.is_other_result(other) || !task.baseline.tells_results_apart {
                return inconclusive(format!(
                    "all succeeded ({words}), but answers of different keys are equal"
                ));
            }
        }
    }
    Ok(())
}

/// Passes if each answer that is not a success is a rejection that the profile allows. `wanted`
/// names their statuses.
///
/// # Errors
/// The failure if one is not, or else the judgement if one is missing.
fn check_rejections(
    exchanges: &[ProbeExchange],
    step: usize,
    wanted: &str,
    is_allowed: impl Fn(&ProbeAnswer) -> bool,
) -> Judged<()> {
    let words = words(exchanges);
    let mut open = Ok(());
    for (place, exchange) in exchanges.iter().enumerate() {
        let got = exchange.in_words();
        let judged = match exchange.answer() {
            Some(answer) if answer.is_success() || is_allowed(answer) => continue,
            Some(answer) if !answer.is_overload() => {
                return showing(
                    fail(format!("a simultaneous request got {got}, and not {wanted} ({words})")),
                    &[(step, place)],
                );
            }
            _ => inconclusive(format!("a simultaneous request got {got} ({words})")),
        };
        open = showing(judged, &[(step, place)]);
    }
    open
}

/// The successes with their places.
fn successes(exchanges: &[ProbeExchange]) -> Vec<(usize, &ProbeAnswer)> {
    let mut successes = Vec::new();
    for (place, exchange) in exchanges.iter().enumerate() {
        if let Some(answer) = exchange.answer()
            && answer.is_success()
        {
            successes.push((place, answer));
        }
    }
    successes
}

/// Two exchanges that show a round, successes first, as those of the second step.
fn two_answers(exchanges: &[ProbeExchange]) -> Vec<(usize, usize)> {
    let mut places: Vec<_> = (0..exchanges.len()).collect();
    places.sort_by_key(|place| !exchanges[*place].answer().is_some_and(ProbeAnswer::is_success));
    places.into_iter().take(2).map(|place| (1, place)).collect()
}

/// Counts what came back: `1 × 201, 19 × 409`.
fn words(exchanges: &[ProbeExchange]) -> String {
    counted(exchanges.iter().map(ProbeExchange::in_words))
}

/// Passes if all requests were sent before the first answer.
///
/// # Errors
/// The judgement if they were not simultaneous.
fn check_spread(sent: &ProbeStepResult) -> Judged<()> {
    let first_sent = sent.exchanges.iter().filter_map(|exchange| exchange.sent_us).min();
    let first_answer = sent.exchanges.iter().filter_map(|exchange| exchange.answered_us).min();
    let (Some(spread), Some(first_sent), Some(first_answer)) =
        (sent.spread_us, first_sent, first_answer)
    else {
        return Ok(());
    };
    let took = first_answer.saturating_sub(first_sent);
    if spread < took {
        return Ok(());
    }
    inconclusive(format!(
        "the first answer came after {took} µs, before all requests were sent ({spread} µs), so \
         they were not simultaneous"
    ))
}
