//! What the checks say of recorded answers.

use std::cell::Cell;
use std::time::Duration;

use super::body::ProbeBody;
use super::checks::registry::{CHECKS, parse_profile};
use super::message::{ProbeAnswer, ProbeExchange, ProbeOutcome, ServiceTrust};
use super::payload::with_path;
use super::probe_check::{
    CheckedService, ProbeJudgement, ProbeStepResult, ProbeVerdict, StoredRecord, StoredTime,
};
use super::task::{Baseline, ProbeTask};
use super::template::{KeyForm, KeyPlace, RequestTemplate};

const IETF: &str = include_str!("../../../profiles/ietf-07.toml");

fn task() -> ProbeTask {
    ProbeTask {
        template: RequestTemplate {
            method: "POST".to_owned(),
            url: "http://localhost/payments".to_owned(),
            headers: vec![("Content-Type".to_owned(), b"application/json".to_vec())],
            body: br#"{"order":"{{key}}","amount":5}"#.to_vec(),
            place: KeyPlace::Header("Idempotency-Key".to_owned()),
            form: KeyForm::Quoted,
            caller_header: None,
            trust: ServiceTrust::System,
        },
        other_body: None,
        failing_body: None,
        profile: parse_profile(IETF).unwrap(),
        run: "0123456789abcdef".to_owned(),
        has_uuid_keys: false,
        concurrency: 2,
        rounds: 1,
        later: Duration::from_secs(3),
        other_path: Some("/refunds".to_owned()),
        other_caller: Some(("Authorization".to_owned(), b"Bearer two".to_vec())),
        counts_effects: true,
        counts_by_key: false,
        effects_drift: None,
        reads_records: true,
        makes_faults: true,
        baseline: Baseline {
            answer_us: 10_000,
            tells_results_apart: true,
            retries_succeed: true,
            replays_equal: true,
        },
        keys: Cell::new(0),
    }
}

/// An exchange that was sent and answered at these times, in microseconds.
fn exchange(status: u16, id: &str, sent: u64, answered: u64) -> ProbeExchange {
    ProbeExchange {
        request: task().template.with_key("k").unwrap(),
        sent_us: Some(sent),
        answered_us: Some(answered),
        ended_us: Some(answered + 100),
        outcome: ProbeOutcome::Answered(ProbeAnswer {
            status,
            headers: Vec::new(),
            body: ProbeBody::new(format!(r#"{{"id":"{id}"}}"#).as_bytes()),
            is_whole: true,
        }),
    }
}

fn count(count: u64) -> ProbeStepResult {
    ProbeStepResult { effects: Some(Ok(count)), ..ProbeStepResult::default() }
}

fn sent(exchanges: Vec<ProbeExchange>) -> ProbeStepResult {
    ProbeStepResult { exchanges, ..ProbeStepResult::default() }
}

fn together(exchanges: Vec<ProbeExchange>, spread: u64) -> ProbeStepResult {
    ProbeStepResult { spread_us: Some(spread), ..sent(exchanges) }
}

#[track_caller]
fn judge(task: &ProbeTask, id: &str, results: &[ProbeStepResult]) -> ProbeJudgement {
    let check = CHECKS.iter().find(|check| check.id == id).unwrap();
    check.judged(task, results)
}

#[track_caller]
fn assert_verdict(judgement: &ProbeJudgement, verdict: ProbeVerdict, text: &str) {
    assert_eq!(judgement.verdict, verdict, "{}", judgement.message);
    assert!(judgement.message.contains(text), "{}", judgement.message);
}

#[test]
fn simultaneous_requests_that_execute_once_pass() {
    let round = [
        count(4),
        together(vec![exchange(201, "a", 0, 900), exchange(409, "-", 50, 800)], 50),
        count(5),
    ];
    let judged = judge(&task(), "concurrent-one-effect", &round);
    assert_verdict(&judged, ProbeVerdict::Pass, "executed once; 1 × 201, 1 × 409");
}

#[test]
fn a_pass_is_inconclusive_if_the_requests_were_not_simultaneous() {
    let exchanges = vec![exchange(201, "a", 0, 900), exchange(201, "a", 1_000, 1_500)];
    let round = [count(4), together(exchanges, 1_000), count(5)];
    for id in ["concurrent-one-effect", "concurrent-answers"] {
        let judged = judge(&task(), id, &round);
        assert_verdict(&judged, ProbeVerdict::Inconclusive, "not simultaneous");
    }
}

#[test]
fn a_failure_counts_whatever_the_spread() {
    let exchanges = vec![exchange(201, "a", 0, 900), exchange(201, "b", 1_000, 1_500)];
    let round = [count(4), together(exchanges, 1_000), count(6)];
    let judged = judge(&task(), "concurrent-one-effect", &round);
    assert_verdict(&judged, ProbeVerdict::Fail, "executed 2 times");
    let judged = judge(&task(), "concurrent-answers", &round);
    assert_verdict(&judged, ProbeVerdict::Fail, "different results");
}

#[test]
fn one_bad_round_among_good_ones_fails() {
    let good = || together(vec![exchange(201, "a", 0, 900), exchange(409, "-", 9, 800)], 9);
    let rounds =
        [count(1), good(), count(2), count(2), good(), count(4), count(4), good(), count(5)];
    let judged = judge(&task(), "concurrent-one-effect", &rounds);
    assert_verdict(&judged, ProbeVerdict::Fail, "executed 2 times");
    assert_eq!(judged.shown[0].0, 4, "the requests of the second round are shown");
}

#[test]
fn a_number_that_changes_by_itself_shows_nothing() {
    let task = ProbeTask { effects_drift: Some("it changes".to_owned()), ..task() };
    let exchanges = vec![exchange(201, "a", 0, 900), exchange(409, "-", 9, 800)];
    let round = [count(4), together(exchanges, 9), count(9)];
    let judged = judge(&task, "concurrent-one-effect", &round);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "it changes");
}

#[test]
fn a_body_that_changes_with_each_answer_shows_no_execution() {
    let baseline = Baseline { replays_equal: false, ..task().baseline };
    let task = ProbeTask { baseline, ..task() };
    let exchanges = vec![exchange(201, "a", 0, 900), exchange(201, "b", 9, 800)];
    let round = [count(4), together(exchanges, 9), count(5)];
    let judged = judge(&task, "concurrent-answers", &round);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "so do those of a request and its retry");
}

#[test]
fn equal_answers_of_all_keys_show_no_replay() {
    let baseline = Baseline { tells_results_apart: false, ..task().baseline };
    let task = ProbeTask { baseline, ..task() };
    let results = [sent(vec![exchange(201, "a", 0, 9)]), sent(vec![exchange(201, "a", 20, 29)])];
    let judged = judge(&task, "replay-body", &results);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "two different keys");
}

#[test]
fn an_overloaded_service_does_not_fail() {
    for status in [429, 502, 503, 504] {
        let exchanges = vec![exchange(201, "a", 0, 900), exchange(status, "-", 9, 800)];
        let round = [count(4), together(exchanges, 9), count(5)];
        let judged = judge(&task(), "concurrent-answers", &round);
        assert_verdict(&judged, ProbeVerdict::Inconclusive, "a simultaneous request got");
    }
}

#[test]
fn a_request_without_an_answer_is_inconclusive() {
    let mut silent = exchange(201, "a", 9, 9);
    silent.outcome = ProbeOutcome::Unanswered("no answer within 10s".to_owned());
    let round = [count(4), together(vec![exchange(201, "a", 0, 900), silent], 9), count(5)];
    let judged = judge(&task(), "concurrent-answers", &round);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "no answer");
}

#[test]
fn a_rejected_control_is_no_mismatch() {
    let results = [
        sent(vec![exchange(422, "-", 0, 9)]),
        sent(vec![exchange(201, "a", 20, 29)]),
        sent(vec![exchange(422, "-", 40, 49)]),
    ];
    let judged = judge(&task(), "mismatch-payload", &results);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "with a key of its own was answered 422");
}

#[test]
fn a_first_result_for_another_payload_fails_even_without_a_control() {
    let results = [
        sent(vec![exchange(422, "-", 0, 9)]),
        sent(vec![exchange(201, "a", 20, 29)]),
        sent(vec![exchange(201, "a", 40, 49)]),
    ];
    let judged = judge(&task(), "mismatch-payload", &results);
    assert_verdict(&judged, ProbeVerdict::Fail, "was accepted with the same key");
}

#[test]
fn a_used_key_at_another_path_is_rejected() {
    let first = || exchange(201, "a", 0, 9);
    let own = || exchange(201, "own", 20, 29);
    let other = |status, id| exchange(status, id, 40, 49);
    for (control, used, verdict, text) in [
        (own(), other(422, "-"), ProbeVerdict::Pass, "/refunds got 422"),
        (own(), other(201, "a"), ProbeVerdict::Fail, "/refunds was accepted with the same key"),
        (own(), other(201, "b"), ProbeVerdict::Fail, "was accepted with the same key"),
        (own(), other(503, "-"), ProbeVerdict::Inconclusive, "/refunds got 503"),
        // A path that shows the newest payment.
        (first(), other(201, "a"), ProbeVerdict::Inconclusive, "whatever the key"),
        // A path that looks a payment up by what the body says.
        (exchange(404, "-", 20, 29), other(201, "a"), ProbeVerdict::Inconclusive, "got 201"),
        (exchange(404, "-", 20, 29), other(404, "-"), ProbeVerdict::NotApplicable, "got 404"),
    ] {
        let results = [sent(vec![first()]), sent(vec![control]), sent(vec![used])];
        assert_verdict(&judge(&task(), "mismatch-path", &results), verdict, text);
    }
    let baseline = Baseline { retries_succeed: false, ..task().baseline };
    let task = ProbeTask { baseline, ..task() };
    let results = [sent(vec![first()]), sent(vec![own()]), sent(vec![other(422, "-")])];
    let judged = judge(&task, "mismatch-path", &results);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "does not succeed either");
}

#[test]
fn another_path_is_one_of_the_same_host() {
    let at = |url: &str, path| {
        let template = RequestTemplate { url: url.to_owned(), ..task().template };
        with_path(&template.with_key("k1").unwrap(), path).map(|request| request.url)
    };
    assert_eq!(at("http://h:1/a?b=1", "/c/{{key}}").unwrap(), "http://h:1/c/k1?b=1");
    for path in ["//evil/x", "http://evil/x", "\\\\evil", "@evil", "/../x"] {
        assert!(at("http://h:1/a", path).unwrap().starts_with("http://h:1/"), "{path}");
    }
    let only_in_path = RequestTemplate {
        url: "http://h/{{key}}".to_owned(),
        place: KeyPlace::Mark,
        body: Vec::new(),
        ..task().template
    };
    let why = with_path(&only_in_path.with_key("k1").unwrap(), "/c").unwrap_err();
    assert!(why.contains("--other-path has no {{key}}"), "{why}");
}

/// The bounds are those of the reads, whatever lies between them.
#[test]
fn the_time_of_a_stored_result_is_bounded_by_two_reads() {
    let judged = |state: &str, after_us, before_us| {
        let record = StoredRecord { state: state.to_owned(), ..StoredRecord::default() };
        // Sent at 1 ms, answered at 20 ms.
        let answered = exchange(201, "a", 1_000, 19_900);
        let stored = Some(StoredTime { after_us, before_us });
        let result = ProbeStepResult { record: Some(Ok(record)), stored, ..sent(vec![answered]) };
        judge(&task(), "record-stored", &[result])
    };
    for (state, after, before, verdict, text) in [
        (
            "completed",
            Some(7_950),
            Some(9_150),
            ProbeVerdict::Pass,
            "between 10.8 ms and 12.1 ms before",
        ),
        ("completed", None, Some(9_000), ProbeVerdict::Pass, "between 11.0 ms and 19.0 ms before"),
        (
            "completed",
            Some(18_000),
            Some(20_700),
            ProbeVerdict::Pass,
            "at most 2.0 ms before and 0.7 ms after",
        ),
        (
            "in-progress",
            Some(320_000),
            Some(325_050),
            ProbeVerdict::Fail,
            "between 300.0 ms and 305.1 ms after the answer arrived. If the service",
        ),
        ("absent", Some(320_000), Some(325_050), ProbeVerdict::Fail, "a retry can execute again"),
        ("in-progress", Some(320_000), None, ProbeVerdict::Fail, "the record is in-progress"),
        ("absent", Some(320_000), None, ProbeVerdict::Inconclusive, "no Redis key of this schema"),
        ("failed", Some(18_000), Some(20_700), ProbeVerdict::Reported, "the record is failed"),
    ] {
        assert_verdict(&judged(state, after, before), verdict, text);
    }
}

#[test]
fn a_service_that_dies_of_an_unrecognised_value_is_named() {
    let made = ProbeStepResult { fault: Some(Ok(())), ..ProbeStepResult::default() };
    let closed = ProbeOutcome::Unanswered("the service closed the connection".to_owned());
    let retry = ProbeExchange { outcome: closed, ..exchange(500, "-", 20, 29) };
    let kept = ProbeStepResult { was_kept: Some(Ok(true)), ..ProbeStepResult::default() };
    let first = sent(vec![exchange(201, "a", 0, 9)]);
    let results = [count(4), first, made, sent(vec![retry]), kept, count(5)];
    let judged = judge(&task(), "fault-foreign-value", &results);
    let text = "found the unrecognised value got no answer (the service closed the connection)";
    assert_verdict(&judged, ProbeVerdict::Inconclusive, text);
}

#[test]
fn another_caller_must_not_get_the_first_result() {
    let own = || sent(vec![exchange(201, "own", 0, 9)]);
    let first = || sent(vec![exchange(201, "a", 20, 29)]);
    let leaked = [first(), count(1), sent(vec![exchange(201, "a", 40, 49)]), count(1), own()];
    let judged = judge(&task(), "mismatch-caller", &leaked);
    assert_verdict(&judged, ProbeVerdict::Fail, "got the first caller's result");
    let unknown = sent(vec![exchange(401, "-", 0, 9)]);
    let rejected = [first(), count(1), sent(vec![exchange(401, "-", 40, 49)]), count(1), unknown];
    let judged = judge(&task(), "mismatch-caller", &rejected);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "was answered 401");
}

/// A service that rejects every retry, as one does that stores its results without the fingerprint.
#[test]
fn a_rejection_shows_nothing_if_the_same_request_is_rejected_as_well() {
    let baseline = Baseline { retries_succeed: false, replays_equal: false, ..task().baseline };
    let task = ProbeTask { baseline, ..task() };
    let success = |id: &str| sent(vec![exchange(201, id, 0, 9)]);
    let rejected = || sent(vec![exchange(422, "-", 20, 29)]);

    let pair = [success("a"), rejected()];
    let judged = judge(&task, "replay-at-once", &pair);
    assert_verdict(&judged, ProbeVerdict::Fail, "the retry got 422");

    let payload = [success("own"), success("a"), rejected()];
    let judged = judge(&task, "mismatch-payload", &payload);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "does not succeed either");
    let members = [success("a"), success("own"), rejected()];
    let judged = judge(&task, "mismatch-members", &members);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "does not succeed either");
    let caller = [success("a"), count(1), rejected(), count(1), success("own")];
    let judged = judge(&task, "mismatch-caller", &caller);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "does not succeed either");
}

#[test]
fn a_check_without_a_clause_is_only_reported() {
    let check = CHECKS.iter().find(|check| check.id == "record-lock").unwrap();
    let judged = ProbeJudgement::new(ProbeVerdict::Fail, "the lock never expires");
    let checked = CheckedService::new(check, None, judged, Vec::new());
    assert_eq!(checked.judgement.verdict, ProbeVerdict::Reported);
    assert_eq!(checked.holds, Some(false));
    assert!(!checked.is_failed());
}

#[test]
fn the_key_is_written_at_its_place() {
    let written = |place| {
        let template = RequestTemplate { place, ..task().template };
        template.with_key("k1").unwrap()
    };
    let header = written(KeyPlace::Header("Idempotency-Key".to_owned()));
    assert_eq!(header.headers[1], ("Idempotency-Key".to_owned(), b"\"k1\"".to_vec()));
    assert_eq!(header.body, br#"{"order":"k1","amount":5}"#);
    let field = written(KeyPlace::Field("/meta~1key".to_owned()));
    assert_eq!(field.body, br#"{"order":"k1","amount":5,"meta/key":"k1"}"#);
    let parameter = written(KeyPlace::Parameter("idem".to_owned()));
    assert_eq!(parameter.url, "http://localhost/payments?idem=k1");
    assert_eq!(written(KeyPlace::Mark).headers.len(), 1);
}

#[test]
fn a_request_without_the_key_has_none() {
    let missing = task().template.without_key("k1").unwrap();
    assert_eq!(missing.key, None);
    assert_eq!(missing.headers.len(), 1);
    let template = RequestTemplate {
        body: br#"{"key":"x","a":1}"#.to_vec(),
        place: KeyPlace::Field("/key".to_owned()),
        ..task().template
    };
    assert_eq!(template.without_key("k1").unwrap().body, br#"{"a":1}"#);
}

/// A body with an order that idemctl does not change, because it is the key, and two members.
fn members(answers: [(u16, u16); 2]) -> ProbeJudgement {
    let mut task = task();
    task.template.body = br#"{"order":"{{key}}","currency":"EUR","amount":5}"#.to_vec();
    let request = task.template.with_key("k").unwrap();
    let send = |status, id: &str| {
        sent(vec![ProbeExchange { request: request.clone(), ..exchange(status, id, 0, 9) }])
    };
    let mut results = vec![send(201, "a")];
    for (control, other) in answers {
        results.extend([send(control, "own"), send(other, "a")]);
    }
    judge(&task, "mismatch-members", &results)
}

#[test]
fn a_member_that_is_not_compared_is_named() {
    let rejected = (201, 422);
    let judged = members([rejected, rejected]);
    assert_verdict(&judged, ProbeVerdict::Pass, "another value was rejected of /currency, /amount");
    let judged = members([rejected, (201, 201)]);
    assert_verdict(&judged, ProbeVerdict::Fail, "another value was accepted of /amount");
    assert_eq!(judged.shown, [(0, 0), (4, 0)]);
    // Without a control, a success shows it all the same.
    assert_verdict(&members([(400, 201), rejected]), ProbeVerdict::Fail, "of /currency");
    // A currency that does not exist is rejected with any key.
    let judged = members([(422, 422), rejected]);
    assert_verdict(&judged, ProbeVerdict::Pass, "of /amount; no statement about /currency");
    let judged = members([(422, 422), (201, 500)]);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "compares /currency, /amount");
}

#[test]
fn a_later_retry_gets_the_first_result() {
    let later = |task: &ProbeTask, status, id, after| {
        let retry = sent(vec![exchange(status, id, 3_000_000, 3_000_900)]);
        let first = sent(vec![exchange(201, "a", 0, 900)]);
        judge(task, "replay-later", &[count(4), first, sent(Vec::new()), retry, count(after)])
    };
    let distinct = task();
    let judged = later(&distinct, 201, "a", 5);
    assert_verdict(&judged, ProbeVerdict::Pass, "3s after the answer, the retry got 201");
    assert_verdict(&later(&distinct, 201, "b", 6), ProbeVerdict::Fail, "with another result");
    assert_verdict(&later(&distinct, 409, "-", 5), ProbeVerdict::Fail, "the retry got 409");
    assert_verdict(&later(&distinct, 503, "-", 5), ProbeVerdict::Inconclusive, "503");
    // If results cannot be told apart, the number of effects can tell.
    let baseline = Baseline { tells_results_apart: false, ..distinct.baseline.clone() };
    let equal = ProbeTask { baseline, ..distinct };
    assert_verdict(&later(&equal, 201, "a", 5), ProbeVerdict::Pass, "the retry got 201");
    let judged = later(&equal, 201, "a", 6);
    assert_verdict(&judged, ProbeVerdict::Fail, "executed 2 times");
    assert!(judged.is_by_number);
    let uncounted = ProbeTask { counts_effects: false, ..equal };
    let judged = later(&uncounted, 201, "a", 5);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "two different keys");
}

#[test]
fn keys_of_a_run_differ_and_are_recognisable() {
    let task = task();
    assert_eq!(task.new_key(), "idemctl-probe-0123456789abcdef-00001");
    assert_eq!(task.new_key(), "idemctl-probe-0123456789abcdef-00002");
    let uuids = ProbeTask { has_uuid_keys: true, ..task };
    let key = uuids.new_key();
    let parsed = uuid::Uuid::parse_str(&key).unwrap();
    assert_eq!(parsed.get_version_num(), 4);
    assert!(key.starts_with("1de3c710-"));
    assert_ne!(key, uuids.new_key());
}

#[test]
fn every_check_of_a_profile_exists() {
    for profile in ["ietf-07", "stripe", "adyen", "square"] {
        let file = format!("{}/profiles/{profile}.toml", env!("CARGO_MANIFEST_DIR"));
        let parsed = parse_profile(&std::fs::read_to_string(file).unwrap()).unwrap();
        assert_eq!(parsed.name, profile);
    }
    let wrong = IETF.replace("checks.key-missing", "checks.key-misssing");
    assert_eq!(parse_profile(&wrong).unwrap_err(), "there is no check `key-misssing`");
}

#[test]
fn the_document_describes_every_check() {
    let document = include_str!("../../../docs/probe.md");
    let profile = parse_profile(IETF).unwrap();
    for check in CHECKS {
        let clause = profile.checks.get(check.id).map_or("reported", |clause| &clause.clause);
        let (id, group, title) = (check.id, check.group.as_str(), check.title);
        let row = format!("| `{id}` | {group} | {title} | {clause} |");
        assert!(document.contains(&row), "docs/probe.md lacks {row}");
    }
}

#[test]
fn checks_of_executions_need_an_oracle() {
    let task = ProbeTask { counts_effects: false, ..task() };
    for id in ["replay-one-effect", "concurrent-one-effect", "disconnect-retry"] {
        let check = CHECKS.iter().find(|check| check.id == id).unwrap();
        assert_eq!(check.steps(&task).unwrap_err(), "it needs --effects");
    }
}

#[test]
fn the_other_caller_replaces_the_header_of_the_first() {
    let mut task = task();
    task.template.headers.push(("authorization".to_owned(), b"Bearer one".to_vec()));
    let check = CHECKS.iter().find(|check| check.id == "mismatch-caller").unwrap();
    let steps = check.steps(&task).unwrap();
    let request = &steps[2].requests[0];
    let mut callers = Vec::new();
    for (name, value) in &request.headers {
        if name.eq_ignore_ascii_case("authorization") {
            callers.push(value.clone());
        }
    }
    assert_eq!(callers, [b"Bearer two".to_vec()]);
}

#[test]
fn different_keys_must_each_execute() {
    let exchanges = || vec![exchange(201, "a", 0, 900), exchange(201, "b", 9, 800)];
    let round = |after| [count(4), together(exchanges(), 9), count(after)];
    let judged = judge(&task(), "concurrent-keys", &round(6));
    assert_verdict(&judged, ProbeVerdict::Pass, "each executed");
    let judged = judge(&task(), "concurrent-keys", &round(5));
    assert_verdict(&judged, ProbeVerdict::Fail, "executed 1 times");
    let equal = vec![exchange(201, "a", 0, 900), exchange(201, "a", 9, 800)];
    let task = ProbeTask { counts_effects: false, ..task() };
    let judged = judge(&task, "concurrent-keys", &[count(0), together(equal, 9), count(0)]);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "are equal");
}

#[test]
fn requests_that_were_turned_away_did_not_race() {
    for status in [429, 503] {
        let exchanges = vec![exchange(201, "a", 0, 900), exchange(status, "-", 9, 800)];
        let round = [count(4), together(exchanges, 9), count(5)];
        let judged = judge(&task(), "concurrent-one-effect", &round);
        assert_verdict(&judged, ProbeVerdict::Inconclusive, "processed only one request");
    }
    let send = |status| sent(vec![exchange(status, "a", 0, 9)]);
    let retries = [count(4), send(201), send(429), send(429), count(5)];
    let judged = judge(&task(), "replay-one-effect", &retries);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "the retry got 429");
}

/// Rule: with a credential in the request, nothing of an answer is shown, because a service can send
/// the credential back in any form.
#[test]
fn a_request_with_a_credential_is_known_by_any_of_its_places() {
    let plain = exchange(201, "a", 0, 9).request;
    assert!(!plain.has_credentials());
    let mut in_url = plain.clone();
    in_url.url = "http://localhost/?api_key=sesame-3&page=1".to_owned();
    assert!(in_url.has_credentials());
    let mut in_header = plain.clone();
    in_header.headers.push(("X-Api-Key".to_owned(), b"sesame-2".to_vec()));
    assert!(in_header.has_credentials());
    let mut of_caller = plain;
    of_caller.caller_header = Some("X-Tenant".to_owned());
    assert!(of_caller.has_credentials());
}

/// Rule: what is not kept of a long body is still compared.
#[test]
fn bodies_are_compared_to_their_ends() {
    let long = |end: &str| ProbeBody::new(format!("{}{end}", "x".repeat(100_000)).as_bytes());
    assert!(long("a").is_same(&long("a")));
    assert!(!long("a").is_same(&long("b")));
    assert!(long("a").beginning.len() < 20_000);
    let json = |text: &str| ProbeBody::new(text.as_bytes());
    assert!(json(r#"{"a":1,"b":2}"#).is_same(&json(r#"{"b":2, "a":1}"#)));
    assert!(!json(r#"{"a":1}"#).is_same(&json(r#"{"a":1.0}"#)));
}

#[test]
fn a_client_that_was_answered_did_not_disconnect_before() {
    let mut given_up = exchange(0, "-", 0, 9);
    given_up.outcome = ProbeOutcome::Abandoned;
    let retry = || sent(vec![exchange(201, "a", 20, 29)]);
    let results = [count(4), sent(vec![given_up.clone()]), retry(), count(5)];
    let judged = judge(&task(), "disconnect-retry", &results);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "answered before idemctl disconnected");
    given_up.answered_us = None;
    let results = [count(4), sent(vec![given_up.clone()]), retry(), count(5)];
    let judged = judge(&task(), "disconnect-retry", &results);
    assert_verdict(&judged, ProbeVerdict::Pass, "executed once");
    given_up.outcome = ProbeOutcome::Unanswered("no connection".to_owned());
    let results = [count(4), sent(vec![given_up]), retry(), count(5)];
    let judged = judge(&task(), "disconnect-retry", &results);
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "no connection");
}

/// A request whose lock was lost, sent at 0 and answered at 900 µs, and its retry.
fn lost_lock(
    fault: Result<(), String>,
    retry: Option<ProbeExchange>,
    counted: u64,
) -> Vec<ProbeStepResult> {
    let mut exchanges = vec![exchange(201, "a", 0, 900)];
    exchanges.extend(retry);
    let during = ProbeStepResult { fault: Some(fault), ..sent(exchanges) };
    vec![count(4), during, sent(vec![exchange(201, "a", 1_500, 1_600)]), count(counted)]
}

#[test]
fn a_lost_lock_is_judged_only_if_the_retry_came_while_the_handler_ran() {
    let id = "fault-lock-expires";
    let retry = || Some(exchange(201, "b", 300, 1_000));
    let judged = judge(&task(), id, &lost_lock(Ok(()), retry(), 6));
    let said = "executed 2 times; the retry got 201, and the first request 201";
    assert_verdict(&judged, ProbeVerdict::Fail, said);
    let conflict = || Some(exchange(409, "-", 300, 400));
    let judged = judge(&task(), id, &lost_lock(Ok(()), conflict(), 5));
    assert_verdict(&judged, ProbeVerdict::Pass, "executed once; the retry got 409");
    let late = Some(exchange(201, "a", 950, 1_000));
    let judged = judge(&task(), id, &lost_lock(Ok(()), late, 5));
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "answered before the retry was sent");
    let judged = judge(&task(), id, &lost_lock(Err("it changed".to_owned()), None, 5));
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "too quick");
    let overloaded = Some(exchange(503, "-", 300, 400));
    let uncounted = judge(&task(), id, &lost_lock(Ok(()), retry(), 4));
    assert_verdict(&uncounted, ProbeVerdict::Inconclusive, "did not change");
    let judged = judge(&task(), id, &lost_lock(Ok(()), overloaded, 5));
    assert_verdict(&judged, ProbeVerdict::Inconclusive, "the retry got 503");
}

#[test]
fn a_lost_lock_without_effects_passes_only_with_answers_that_show_it() {
    let task = ProbeTask { counts_effects: false, ..task() };
    let id = "fault-lock-expires";
    for (status, result, verdict) in [
        (201, "a", ProbeVerdict::Pass),
        (201, "b", ProbeVerdict::Fail),
        (409, "-", ProbeVerdict::Pass),
        (500, "-", ProbeVerdict::Inconclusive),
    ] {
        let retry = Some(exchange(status, result, 300, 400));
        assert_verdict(&judge(&task, id, &lost_lock(Ok(()), retry, 0)), verdict, "");
    }
}

#[test]
fn a_foreign_value_is_to_be_kept() {
    let found = |was_kept: Result<bool, String>, status: u16, counted: u64| {
        let fault = ProbeStepResult { fault: Some(Ok(())), ..ProbeStepResult::default() };
        let kept = ProbeStepResult { was_kept: Some(was_kept), ..ProbeStepResult::default() };
        let first = sent(vec![exchange(201, "a", 0, 900)]);
        let retry = sent(vec![exchange(status, "-", 1_000, 1_100)]);
        judge(
            &task(),
            "fault-foreign-value",
            &[count(4), first, fault, retry, kept, count(counted)],
        )
    };
    assert_verdict(&found(Ok(true), 500, 5), ProbeVerdict::Pass, "kept the value");
    assert_verdict(&found(Ok(false), 500, 5), ProbeVerdict::Fail, "overwrote or removed");
    assert_verdict(&found(Ok(true), 500, 6), ProbeVerdict::Fail, "executed 2 times");
    assert_verdict(&found(Ok(true), 503, 5), ProbeVerdict::Inconclusive, "503");
    assert_verdict(&found(Ok(true), 500, 4), ProbeVerdict::Inconclusive, "did not change");
    let unread = found(Err("no connection".to_owned()), 500, 5);
    assert_verdict(&unread, ProbeVerdict::Inconclusive, "no connection");
}

#[test]
fn a_result_that_expires_before_the_promised_retention_is_found() {
    let stripe = include_str!("../../../profiles/stripe.toml");
    let day = 86_400_000;
    let judged = |profile: &str, ttl_ms| {
        let task = ProbeTask { profile: parse_profile(profile).unwrap(), ..task() };
        let record = StoredRecord {
            state: "completed".to_owned(),
            ttl_ms: Some(ttl_ms),
            ..StoredRecord::default()
        };
        let result = ProbeStepResult {
            record: Some(Ok(record)),
            ..sent(vec![exchange(201, "a", 0, 1_000)])
        };
        judge(&task, "record-ttl", &[result])
    };
    let short = judged(stripe, 3_600_000);
    assert_eq!(short.verdict, ProbeVerdict::Fail);
    assert_eq!(
        short.message,
        "it expires in 1h; Idempotent requests of the Stripe API v1 promises to keep results for 1d"
    );
    assert_eq!(judged(stripe, day - 9_000).verdict, ProbeVerdict::Pass);
    assert_eq!(judged(IETF, 3_600_000).verdict, ProbeVerdict::Pass);
    let wrong = stripe.replace("24h", "24");
    assert!(parse_profile(&wrong).unwrap_err().contains("`retention`"));
}
