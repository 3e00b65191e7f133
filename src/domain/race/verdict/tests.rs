use std::collections::HashMap;

use proptest::prelude::*;

use super::*;

const TTLS: Ttls = Ttls { lock: Duration::from_secs(300), result: Duration::from_secs(86_400) };

fn event(worker: usize, act: RaceAct, answer: RaceAnswer, start: u64, end: u64) -> RaceEvent {
    RaceEvent { worker, act, answer, start, end }
}

fn stored(worker: usize, start: u64, end: u64) -> RaceEvent {
    event(worker, RaceAct::Complete(b"r".to_vec()), RaceAnswer::Stored, start, end)
}

fn replay(worker: usize, bytes: &[u8], start: u64, end: u64) -> RaceEvent {
    event(worker, RaceAct::Retry, RaceAnswer::Replay(Some(bytes.to_vec())), start, end)
}

fn rules(events: &[RaceEvent]) -> Vec<RaceRule> {
    judge(events, TTLS, false).offences.into_iter().map(|offence| offence.rule).collect()
}

#[test]
fn one_winner_a_conflict_and_a_replay_are_atomic() {
    let events = [
        event(1, RaceAct::Begin, RaceAnswer::Acquired, 0, 10),
        event(2, RaceAct::Begin, RaceAnswer::Conflict, 0, 5),
        stored(1, 20, 30),
        replay(2, b"r", 15, 21),
    ];
    assert_eq!(judge(&events, TTLS, false), Ruling { winners: 1, offences: Vec::new() });
}

#[test]
fn two_winners_are_reported_as_a_pair() {
    let events = [
        event(7, RaceAct::Begin, RaceAnswer::Acquired, 0, 10),
        event(3, RaceAct::Begin, RaceAnswer::Acquired, 2, 8),
        event(5, RaceAct::Begin, RaceAnswer::Conflict, 2, 8),
    ];
    let ruling = judge(&events, TTLS, false);
    assert_eq!(ruling.winners, 2);
    assert_eq!(
        ruling.offences,
        [Offence { rule: RaceRule::ManyWinners, event: 0, against: Some(1) }]
    );
}

#[test]
fn a_release_or_an_expiry_opens_an_epoch_and_a_completion_does_not() {
    let first = event(1, RaceAct::Begin, RaceAnswer::Acquired, 0, 10);
    let second = event(2, RaceAct::Retry, RaceAnswer::Acquired, 40, 50);
    let release = event(1, RaceAct::Release, RaceAnswer::Released, 20, 30);
    assert_eq!(rules(&[first.clone(), release, second.clone()]), []);
    assert_eq!(rules(&[first.clone(), stored(1, 20, 30), second.clone()]), [RaceRule::ManyWinners]);
    let late = event(2, RaceAct::Retry, RaceAnswer::Acquired, 40, 300_000_000_010);
    assert_eq!(rules(&[first.clone(), late]), []);
    let early = event(2, RaceAct::Begin, RaceAnswer::Acquired, 0, 15);
    assert_eq!(
        rules(&[first, event(1, RaceAct::Release, RaceAnswer::Released, 20, 30), early]),
        [RaceRule::ManyWinners]
    );
}

#[test]
fn a_conflict_needs_a_holder() {
    let conflict = event(2, RaceAct::Retry, RaceAnswer::Conflict, 31, 40);
    let acquired = event(1, RaceAct::Begin, RaceAnswer::Acquired, 0, 10);
    assert_eq!(
        rules(&[acquired.clone(), stored(1, 20, 30), conflict.clone()]),
        [RaceRule::BaselessConflict]
    );
    assert_eq!(rules(&[acquired, stored(1, 20, 31), conflict.clone()]), []);
    assert_eq!(rules(&[conflict]), [RaceRule::BaselessConflict]);
}

/// Rule: where begin takes the lock before it looks for the result, a request with a replay holds
/// the lock as well.
#[test]
fn a_replay_may_hold_the_lock_of_a_service_that_locks_first() {
    let acquired = event(1, RaceAct::Begin, RaceAnswer::Acquired, 0, 10);
    let replay = replay(2, b"r", 40, 60);
    let conflict = |start, end| event(3, RaceAct::Retry, RaceAnswer::Conflict, start, end);
    let rules = |conflict: RaceEvent, locks_first: bool| {
        let events = [acquired.clone(), stored(1, 20, 30), replay.clone(), conflict];
        judge(&events, TTLS, locks_first).offences
    };
    assert_eq!(rules(conflict(45, 55), true), []);
    assert_eq!(rules(conflict(45, 55), false)[0].rule, RaceRule::BaselessConflict);
    // Before the replay began, nothing held the lock.
    assert_eq!(rules(conflict(31, 39), true)[0].rule, RaceRule::BaselessConflict);
}

#[test]
fn a_replay_follows_a_completion_and_carries_what_it_stored() {
    let acquired = event(1, RaceAct::Begin, RaceAnswer::Acquired, 0, 10);
    assert_eq!(
        rules(&[acquired.clone(), stored(1, 20, 30), replay(2, b"r", 5, 19)]),
        [RaceRule::EarlyReplay]
    );
    assert_eq!(
        rules(&[acquired.clone(), stored(1, 20, 30), replay(2, b"x", 5, 25)]),
        [RaceRule::ForeignReplay]
    );
    let silent = event(2, RaceAct::Retry, RaceAnswer::Replay(None), 5, 25);
    assert_eq!(rules(&[acquired, stored(1, 20, 30), silent]), []);
}

#[test]
fn a_failed_request_is_wrong_and_points_to_an_earlier_event() {
    let events = [
        event(1, RaceAct::Begin, RaceAnswer::Acquired, 0, 10),
        event(1, RaceAct::Release, RaceAnswer::Released, 20, 30),
        event(2, RaceAct::Begin, RaceAnswer::Wrong("nothing there".to_owned()), 5, 40),
    ];
    let offences = judge(&events, TTLS, false).offences;
    assert_eq!(offences, [Offence { rule: RaceRule::WrongReply, event: 2, against: Some(1) }]);
}

#[test]
fn a_lost_begin_excuses_a_conflict_and_is_not_an_offence() {
    let lost = event(1, RaceAct::Begin, RaceAnswer::Lost(String::new()), 0, 10);
    let conflict = event(2, RaceAct::Begin, RaceAnswer::Conflict, 20, 30);
    let acquired = event(3, RaceAct::Begin, RaceAnswer::Acquired, 20, 30);
    assert_eq!(rules(&[lost.clone(), conflict]), []);
    assert_eq!(rules(&[lost, acquired]), []);
}

/// A history of an atomic service. One worker's step takes effect at each point in time. Its
/// interval extends from before that point to after it, but never into another step of the same
/// worker.
fn history(turns: &[(usize, bool)], slack: &[(u64, u64)]) -> Vec<RaceEvent> {
    let mut next = HashMap::new();
    let following: Vec<u64> = (0..turns.len())
        .rev()
        .map(|index| next.insert(turns[index].0, point(index)).unwrap_or(u64::MAX))
        .collect();
    let mut state = (None, None);
    let mut ends: HashMap<usize, u64> = HashMap::new();
    let mut events = Vec::new();
    for (index, (worker, releases)) in turns.iter().enumerate() {
        let (act, answer) = turn(&mut state, *worker, *releases, ends.contains_key(worker));
        let (before, after) = slack[index % slack.len()];
        let start =
            (point(index).saturating_sub(before)).max(ends.get(worker).map_or(0, |end| end + 1));
        let end = (point(index) + after).min(following[turns.len() - 1 - index] - 1);
        ends.insert(*worker, end);
        events.push(event(*worker, act, answer, start, end));
    }
    events
}

fn point(index: usize) -> u64 {
    100 * (index as u64 + 1)
}

/// One step of an atomic service, whose state is the holder of the lock and the result.
fn turn(
    state: &mut (Option<usize>, Option<Vec<u8>>),
    worker: usize,
    releases: bool,
    again: bool,
) -> (RaceAct, RaceAnswer) {
    let ask = if again { RaceAct::Retry } else { RaceAct::Begin };
    match state {
        (_, Some(result)) => (ask, RaceAnswer::Replay(Some(result.clone()))),
        (Some(holder), _) if *holder == worker && releases => {
            state.0 = None;
            (RaceAct::Release, RaceAnswer::Released)
        }
        (Some(holder), _) if *holder == worker => {
            let bytes = worker.to_string().into_bytes();
            *state = (None, Some(bytes.clone()));
            (RaceAct::Complete(bytes), RaceAnswer::Stored)
        }
        (Some(_), _) => (ask, RaceAnswer::Conflict),
        (None, None) => {
            state.0 = Some(worker);
            (ask, RaceAnswer::Acquired)
        }
    }
}

fn turns() -> impl Strategy<Value = Vec<(usize, bool)>> {
    prop::collection::vec((1..8_usize, any::<bool>()), 1..60)
}

fn slack() -> impl Strategy<Value = Vec<(u64, u64)>> {
    prop::collection::vec((0..900_u64, 0..900_u64), 1..60)
}

proptest! {
    #[test]
    fn a_history_of_an_atomic_service_is_atomic(turns in turns(), slack in slack()) {
        let ruling = judge(&history(&turns, &slack), TTLS, false);
        prop_assert_eq!(ruling, Ruling { winners: 1, offences: Vec::new() });
    }

    #[test]
    fn lost_replies_are_not_offences(turns in turns(), slack in slack(), lost in prop::collection::vec(any::<bool>(), 60)) {
        let mut events = history(&turns, &slack);
        for (event, lost) in events.iter_mut().zip(lost) {
            if lost {
                event.answer = RaceAnswer::Lost(String::new());
            }
        }
        prop_assert_eq!(judge(&events, TTLS, false).offences, Vec::new());
    }

    #[test]
    fn a_second_winner_is_found(turns in turns(), which in any::<prop::sample::Index>()) {
        let mut events = history(&turns, &[(0, 0)]);
        let conflicts: Vec<_> = (0..events.len()).filter(|index| events[*index].answer == RaceAnswer::Conflict).collect();
        prop_assume!(!conflicts.is_empty());
        events[conflicts[which.index(conflicts.len())]].answer = RaceAnswer::Acquired;
        let ruling = judge(&events, TTLS, false);
        prop_assert!(ruling.winners > 1);
        prop_assert_eq!(ruling.offences[0].rule, RaceRule::ManyWinners);
    }

    #[test]
    fn a_changed_replay_is_found(turns in turns(), which in any::<prop::sample::Index>(), conflict in any::<bool>()) {
        let mut events = history(&turns, &[(0, 0)]);
        let replays: Vec<_> =
            (0..events.len()).filter(|index| matches!(events[*index].answer, RaceAnswer::Replay(_))).collect();
        prop_assume!(!replays.is_empty());
        let changed = replays[which.index(replays.len())];
        events[changed].answer = if conflict { RaceAnswer::Conflict } else { RaceAnswer::Replay(Some(b"x".to_vec())) };
        let rule = if conflict { RaceRule::BaselessConflict } else { RaceRule::ForeignReplay };
        let offences = judge(&events, TTLS, false).offences;
        prop_assert_eq!(offences.len(), 1);
        prop_assert_eq!((offences[0].rule, offences[0].event), (rule, changed));
    }
}
