//! Requests at the same time.

use super::judging::{Executions, Results, compare, executions, success_of, times};
use crate::domain::probe::message::{ProbeAnswer, ProbeExchange, ProbeOutcome, counted};
use crate::domain::probe::probe_check::{
    Judged, ProbeCheck, ProbeGroup, ProbeJudgement, ProbeStep, ProbeStepResult, ProbeVerdict,
};
use crate::domain::probe::task::ProbeTask;

pub(in crate::domain::probe) const ONE_EFFECT: ProbeCheck = ProbeCheck {
    id: "concurrent-one-effect",
    group: ProbeGroup::Concurrency,
    title: "simultaneous requests with one key execute once",
    steps: counted_rounds,
    judge: judge_one_effect,
};

pub(in crate::domain::probe) const ANSWERS: ProbeCheck = ProbeCheck {
    id: "concurrent-answers",
    group: ProbeGroup::Concurrency,
    title: "simultaneous requests with one key get one result, or are rejected as in progress",
    steps: rounds,
    judge: judge_answers,
};

pub(in crate::domain::probe) const PAYLOADS: ProbeCheck = ProbeCheck {
    id: "concurrent-payloads",
    group: ProbeGroup::Concurrency,
    title: "of simultaneous requests with one key and different payloads, one succeeds, and the \
            others are rejected with a status of the profile",
    steps: payloads,
    judge: judge_payloads,
};

pub(in crate::domain::probe) const KEYS: ProbeCheck = ProbeCheck {
    id: "concurrent-keys",
    group: ProbeGroup::Concurrency,
    title: "simultaneous requests with different keys are all accepted",
    steps: keys,
    judge: judge_keys,
};

fn counted_rounds(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    if !task.counts_effects {
        return Err("it needs --effects".to_owned());
    }
    rounds(task)
}

/// Three steps per round: count, send, count.
fn rounds(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let mut steps = Vec::new();
    for _ in 0..task.rounds {
        let request = task.request(&task.new_key())?;
        steps.push(ProbeStep::CountEffects(request.clone()));
        steps.push(ProbeStep::Together(vec![request.clone(); task.concurrency]));
        steps.push(ProbeStep::CountEffects(request));
    }
    Ok(steps)
}

fn payloads(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let control = task.other_request(&task.new_key(), 1)?;
    let key = task.new_key();
    let mut requests = vec![task.request(&key)?];
    // Equal requests could rightly get one result, so a given payload is sent once.
    let others = if task.other_body.is_some() { 1 } else { task.concurrency - 1 };
    for number in 1..=others {
        requests.push(task.other_request(&key, number as u64)?);
    }
    let first = requests[0].clone();
    Ok(vec![
        ProbeStep::Send(control),
        ProbeStep::CountEffects(first.clone()),
        ProbeStep::Together(requests),
        ProbeStep::CountEffects(first),
    ])
}

fn keys(task: &ProbeTask) -> Result<Vec<ProbeStep>, String> {
    let mut requests = Vec::new();
    for _ in 0..task.concurrency {
        requests.push(task.request(&task.new_key())?);
    }
    let first = requests[0].clone();
    let counted = match task.counts_by_key {
        true => requests[..requests.len().min(MAX_COUNTED)].to_vec(),
        false => vec![first.clone()],
    };
    let mut steps = vec![ProbeStep::CountEffects(first), ProbeStep::Together(requests)];
    steps.extend(counted.into_iter().map(ProbeStep::CountEffects));
    Ok(steps)
}

/// How many keys are counted, if each one has a number of its own. Each count asks `--effects`
/// again.
const MAX_COUNTED: usize = 20;

/// The worst judgement of several: what failed counts, then what is open.
fn worst(judgements: Vec<ProbeJudgement>) -> ProbeJudgement {
    let rank = |judgement: &ProbeJudgement| match judgement.verdict {
        ProbeVerdict::Fail => 0,
        ProbeVerdict::Inconclusive => 1,
        ProbeVerdict::NotApplicable => 2,
        ProbeVerdict::Reported => 3,
        ProbeVerdict::Pass => 4,
    };
    judgements
        .into_iter()
        .min_by_key(rank)
        .unwrap_or_else(|| ProbeJudgement::inconclusive("no round was made"))
}

/// Judges each round of three steps, with the number of its first step.
fn each_round(
    results: &[ProbeStepResult],
    judge: impl Fn(usize, &[ProbeStepResult]) -> ProbeJudgement,
) -> ProbeJudgement {
    let mut judgements = Vec::new();
    for (round, results) in results.chunks(3).enumerate() {
        if results.len() == 3 {
            judgements.push(judge(round * 3, results));
        }
    }
    worst(judgements)
}

fn judge_one_effect(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    Ok(each_round(results, |at, round| {
        let sent = &round[1];
        let shown = two_answers(&sent.exchanges, at + 1);
        let words = statuses(&sent.exchanges);
        let judged = match executions(task, &round[0], &round[2]) {
            // A request that was turned away did not take part.
            Executions::Times(1) if processed(&sent.exchanges) < 2 => ProbeJudgement::inconclusive(
                format!("executed once, but the service processed only one request ({words})"),
            ),
            Executions::Times(1) => ProbeJudgement::pass(format!("executed once ({words})")),
            Executions::Times(0) => {
                ProbeJudgement::inconclusive(format!("no request executed ({words})"))
            }
            Executions::Times(count) => {
                ProbeJudgement::fail(format!("{} ({words})", times(count))).by_number()
            }
            Executions::NotCounted => ProbeJudgement::not_applicable("it needs --effects"),
            Executions::Unknown(why) => ProbeJudgement::inconclusive(why),
        };
        unless_spread(sent, judged.showing(&shown))
    }))
}

fn judge_answers(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    Ok(each_round(results, |at, round| {
        let sent = &round[1];
        unless_spread(sent, answers_of_one_key(task, at + 1, &sent.exchanges))
    }))
}

fn answers_of_one_key(
    task: &ProbeTask,
    step: usize,
    exchanges: &[ProbeExchange],
) -> ProbeJudgement {
    let words = statuses(exchanges);
    let successes = successes(exchanges);
    let mut open = None;
    if let Some((first, answer)) = successes.first() {
        for (other, success) in &successes[1..] {
            let shown = [(step, *first), (step, *other)];
            match compare(task, answer, success) {
                Results::Same => {}
                Results::Different => {
                    let results = different_results(&successes);
                    let answers = successes.len();
                    return ProbeJudgement::fail(format!(
                        "{results} different results in {answers} answers ({words})"
                    ))
                    .showing(&shown);
                }
                Results::Unknown(why) => {
                    open = Some(ProbeJudgement::inconclusive(why).showing(&shown));
                }
            }
        }
    }
    for (place, exchange) in exchanges.iter().enumerate() {
        let Some(answer) = exchange.answer() else {
            open = Some(unanswered(exchange, &words).showing(&[(step, place)]));
            continue;
        };
        if answer.is_success() || task.is_conflict(answer) {
            continue;
        }
        if answer.is_overload() {
            open = Some(
                ProbeJudgement::inconclusive(format!("the service was overloaded ({words})"))
                    .showing(&[(step, place)]),
            );
            continue;
        }
        let mut shown = vec![(step, place)];
        shown.extend(successes.first().map(|(first, _)| (step, *first)));
        let wanted = super::judging::statuses(&task.profile.statuses.conflict);
        return ProbeJudgement::fail(format!(
            "a simultaneous request got {}, and not {wanted} ({words})",
            answer.status
        ))
        .showing(&shown);
    }
    if let Some(open) = open {
        return open;
    }
    if successes.is_empty() {
        return ProbeJudgement::inconclusive(format!("no request succeeded ({words})"));
    }
    let message = match successes.len() {
        1 => format!("one request succeeded ({words})"),
        _ => format!("the answers agree ({words})"),
    };
    ProbeJudgement::pass(message).showing(&two_answers(exchanges, step))
}

/// How many different results these answers have.
fn different_results(successes: &[(usize, &ProbeAnswer)]) -> usize {
    let mut different: Vec<&ProbeAnswer> = Vec::new();
    for (_, answer) in successes {
        if different.iter().all(|known| known.is_other_result(answer)) {
            different.push(answer);
        }
    }
    different.len()
}

fn judge_payloads(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let exchanges = &results[2].exchanges;
    let words = statuses(exchanges);
    let successes = successes(exchanges);
    let shown = two_answers(exchanges, 2);
    if let Executions::Times(count @ 2..) = executions(task, &results[1], &results[3]) {
        let judged = ProbeJudgement::fail(format!("{} ({words})", times(count))).by_number();
        return Ok(judged.showing(&shown));
    }
    if successes.len() > 1 {
        return Ok(ProbeJudgement::fail(format!(
            "{} requests with different payloads succeeded ({words})",
            successes.len()
        ))
        .showing(&shown));
    }
    // Otherwise a validation error would look like a mismatch.
    success_of(results[0].exchanges.first(), "the other payload with a key of its own")?;
    for (place, exchange) in exchanges.iter().enumerate() {
        let Some(answer) = exchange.answer() else {
            return Ok(unanswered(exchange, &words).showing(&[(2, place)]));
        };
        if answer.is_success() || task.is_conflict(answer) || task.is_mismatch(answer) {
            continue;
        }
        let judged = match answer.is_overload() {
            true => ProbeJudgement::inconclusive(format!("the service was overloaded ({words})")),
            false => ProbeJudgement::fail(format!(
                "a simultaneous request got {}, and not {} ({words})",
                answer.status,
                rejections(task)
            )),
        };
        return Ok(judged.showing(&[(2, place)]));
    }
    if successes.is_empty() {
        return Ok(ProbeJudgement::inconclusive(format!("no request succeeded ({words})")));
    }
    let pass = ProbeJudgement::pass(format!("one request succeeded ({words})")).showing(&shown);
    Ok(unless_spread(&results[2], pass))
}

/// The statuses with which the profile rejects a request with a used key.
fn rejections(task: &ProbeTask) -> String {
    let named = &task.profile.statuses;
    if named.mismatch.is_empty() {
        return "a 4xx".to_owned();
    }
    let mut all = named.conflict.clone();
    all.extend(named.mismatch.iter().filter(|status| !named.conflict.contains(status)));
    super::judging::statuses(&all)
}

/// Judges the numbers of several new keys, each of which was 0 before.
fn each_key_counted(counts: &[ProbeStepResult], sent: usize, words: &str) -> ProbeJudgement {
    for count in counts {
        match &count.effects {
            Some(Ok(1)) => {}
            // Its effect may also appear later.
            Some(Ok(0)) => {
                return ProbeJudgement::inconclusive(format!(
                    "all succeeded, but a request has no effect yet ({words})"
                ));
            }
            Some(Ok(more)) => {
                return ProbeJudgement::fail(format!("a request {} ({words})", times(*more)))
                    .by_number();
            }
            Some(Err(why)) => return ProbeJudgement::inconclusive(why.clone()),
            None => return ProbeJudgement::inconclusive("the effects were not counted"),
        }
    }
    let message = match counts.len() == sent {
        true => format!("all succeeded, and each executed ({words})"),
        false => format!("all succeeded, and each of {} counted executed ({words})", counts.len()),
    };
    ProbeJudgement::pass(message)
}

fn judge_keys(task: &ProbeTask, results: &[ProbeStepResult]) -> Judged {
    let exchanges = &results[1].exchanges;
    let words = statuses(exchanges);
    for (place, exchange) in exchanges.iter().enumerate() {
        let Some(answer) = exchange.answer() else {
            return Ok(unanswered(exchange, &words).showing(&[(1, place)]));
        };
        if answer.is_success() {
            continue;
        }
        // Other rejections, such as 402, can have any cause.
        let is_rejected =
            task.is_conflict(answer) || task.profile.statuses.mismatch.contains(&answer.status);
        let judged = match is_rejected && !answer.is_overload() {
            true => ProbeJudgement::fail(format!("a new key was rejected ({words})")),
            false => ProbeJudgement::inconclusive(format!(
                "a request with a new key got {} ({words})",
                answer.status
            )),
        };
        return Ok(judged.showing(&[(1, place)]));
    }
    let shown = two_answers(exchanges, 1);
    let wanted = exchanges.len() as u64;
    let judged = match executions(task, &results[0], &results[2]) {
        Executions::Unknown(why) => ProbeJudgement::inconclusive(why),
        _ if task.counts_by_key && task.counts_effects => {
            each_key_counted(&results[2..], exchanges.len(), &words)
        }
        Executions::NotCounted => all_accepted(task, exchanges, &words),
        Executions::Times(count) if count == wanted => {
            ProbeJudgement::pass(format!("all succeeded, and each executed ({words})"))
        }
        Executions::Times(count) => {
            ProbeJudgement::fail(format!("all succeeded, but {} ({words})", times(count)))
                .by_number()
        }
    };
    Ok(unless_spread(&results[1], judged.showing(&shown)))
}

/// Judges successes of different keys by their answers alone.
fn all_accepted(task: &ProbeTask, exchanges: &[ProbeExchange], words: &str) -> ProbeJudgement {
    let successes = successes(exchanges);
    for (index, (_, answer)) in successes.iter().enumerate() {
        for (_, other) in &successes[index + 1..] {
            if !answer.is_other_result(other) || !task.baseline.tells_results_apart {
                return ProbeJudgement::inconclusive(format!(
                    "all succeeded ({words}), but answers of different keys are equal, so they do \
                     not show that each executed"
                ));
            }
        }
    }
    ProbeJudgement::pass(format!("all succeeded, with different results ({words})"))
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

/// How many requests the service processed, and did not refuse because it was overloaded.
fn processed(exchanges: &[ProbeExchange]) -> usize {
    let answers = exchanges.iter().filter_map(ProbeExchange::answer);
    answers.filter(|answer| !answer.is_overload()).count()
}

/// Two exchanges that show a round: the first two successes, or else the first of each status.
fn two_answers(exchanges: &[ProbeExchange], step: usize) -> Vec<(usize, usize)> {
    let mut shown = Vec::new();
    for (place, _) in successes(exchanges).into_iter().take(2) {
        shown.push((step, place));
    }
    for (place, exchange) in exchanges.iter().enumerate() {
        let is_other = exchange.answer().is_none_or(|answer| !answer.is_success());
        if shown.len() < 2 && is_other {
            shown.push((step, place));
        }
    }
    shown
}

fn statuses(exchanges: &[ProbeExchange]) -> String {
    counted(exchanges.iter().map(|exchange| match &exchange.outcome {
        ProbeOutcome::Answered(answer) => answer.status.to_string(),
        ProbeOutcome::Unanswered(_) => "no answer".to_owned(),
        ProbeOutcome::Abandoned => "given up".to_owned(),
    }))
}

fn unanswered(exchange: &ProbeExchange, words: &str) -> ProbeJudgement {
    let why = exchange.in_words();
    ProbeJudgement::inconclusive(format!("a request got {why} ({words})"))
}

/// A pass is inconclusive if the first answer came before the last request was sent.
fn unless_spread(sent: &ProbeStepResult, judged: ProbeJudgement) -> ProbeJudgement {
    let Some(spread) = sent.spread_us else { return judged };
    if judged.verdict != ProbeVerdict::Pass {
        return judged;
    }
    let first_sent = sent.exchanges.iter().filter_map(|exchange| exchange.sent_us).min();
    let first_answer = sent.exchanges.iter().filter_map(|exchange| exchange.answered_us).min();
    let (Some(first_sent), Some(first_answer)) = (first_sent, first_answer) else { return judged };
    let took = first_answer.saturating_sub(first_sent);
    if spread < took {
        return judged;
    }
    let shown = judged.shown.clone();
    ProbeJudgement::inconclusive(format!(
        "the first answer came after {took} µs, before all requests were sent ({spread} µs), so \
         they were not simultaneous"
    ))
    .showing(&shown)
}
