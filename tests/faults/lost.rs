//! A connection that ends at any byte, in either direction: what was done is known or said to be unknown, what is gone
//! is in the backup, and nothing is sent twice.

use std::sync::atomic::Ordering;

use crate::stage::{ADDITIONS, AMENDMENTS, REMOVALS, Stage, contents};
use crate::support::fault::{self, Fault};
use crate::support::proxy;
use crate::support::{Run, Server, at_once};

/// At how many places each command's connection is cut, in each direction.
const CUTS: usize = 8;

/// What may be there afterwards, and how often it was sent.
fn is_accounted_for(stage: &Stage, run: &Run, words: &[&str]) {
    let (was_changed, say) =
        (contents(&stage.server) != *stage.contents(), || format!("{words:?}: {}", run.all()));
    let audited = stage.audited() - 1;
    match run.code {
        // Cut after the last byte that matters, or cleared up by reading back.
        0 => assert!(was_changed && audited == 1, "{was_changed} {audited} {}", say()),
        // One that was done, and the connection is of no use for the rest.
        3 => assert!(was_changed && audited == 1 && run.stderr.contains("hint: "), "{}", say()),
        5 => assert!(!was_changed && audited == 0 && run.stderr.contains("hint: "), "{}", say()),
        7 => assert!(audited == 1 && run.stderr.contains("outcome unknown: "), "{}", say()),
        _ => panic!("{}", say()),
    }
    // Before EVAL_RO came to be, reads were EVALs too. One EVAL finds out whether scripts work.
    if stage.server.calls("eval_ro") > 0 {
        assert!(stage.server.calls("eval") <= 2, "{}", say());
    }
    assert!(stage.server.calls("exec") <= 1, "{}", say());
}

fn cut_everywhere(words: &'static [&'static str]) {
    let stage = Stage::new(&[]);
    let (port, passed) = fault::way(&stage.server, Fault::CutReplies(usize::MAX));
    stage.at(port, words).exits(0);
    for direction in 0..2 {
        let all = passed[direction].load(Ordering::SeqCst);
        at_once(0..2, |part| {
            for cut in (part..CUTS).step_by(2) {
                let stage = Stage::new(&[]);
                let at = all * cut / CUTS + fastrand::usize(..all / CUTS);
                let fault =
                    if direction == 0 { Fault::CutRequests(at) } else { Fault::CutReplies(at) };
                let (port, _) = fault::way(&stage.server, fault);
                let run = stage.at(port, words);
                is_accounted_for(&stage, &run, words);
            }
        });
    }
}

#[test]
fn an_unlock_cut_off_at_any_byte_is_done_or_not_or_unknown_and_says_which() {
    cut_everywhere(REMOVALS[0]);
}

#[test]
fn a_sweep_cut_off_at_any_byte_is_done_or_not_or_unknown_and_says_which() {
    cut_everywhere(REMOVALS[1]);
}

#[test]
fn a_purge_cut_off_at_any_byte_is_done_or_not_or_unknown_and_says_which() {
    cut_everywhere(REMOVALS[2]);
}

#[test]
fn a_restore_cut_off_at_any_byte_is_done_or_not_or_unknown_and_says_which() {
    cut_everywhere(ADDITIONS[0]);
}

#[test]
fn a_step_cut_off_at_any_byte_is_done_or_not_or_unknown_and_says_which() {
    for words in [REMOVALS[3], ADDITIONS[1], ADDITIONS[2]] {
        cut_everywhere(words);
    }
}

#[test]
fn an_amendment_cut_off_at_any_byte_is_done_or_not_or_unknown_and_says_which() {
    AMENDMENTS.iter().for_each(|words| cut_everywhere(words));
}

#[test]
fn a_removal_whose_reply_is_lost_is_read_back_and_what_nobody_knows_is_noted() {
    for (words, done) in
        [(REMOVALS[0], "unlocked"), (REMOVALS[1], "swept"), (REMOVALS[2], "purged")]
    {
        for delivers in [true, false] {
            let stage = Stage::new(&[]);
            let socket = proxy::breaks_at(&stage.server, "UNLINK", delivers);
            let run = stage
                .server
                .through(&socket, &[words, &["-o", "json"]].concat())
                .exits(if delivers { 0 } else { 7 });
            let told = if delivers {
                "Made, as reading back shows, although the reply was lost: 1 "
            } else {
                "the removal of"
            };
            run.says(told);
            assert_eq!(stage.server.get("idempotency:stuck").is_some(), !delivers);
            let audit = stage.server.audited();
            let noted = if delivers { done } else { "outcome-unknown" };
            assert!(
                audit.len() == 2 && audit.iter().any(|line| line["what"] == noted),
                "{audit:?}"
            );
            if words != REMOVALS[0] {
                let report = run.json();
                assert_eq!(
                    (&report["read_back"], &report["unknown"]),
                    (&u8::from(delivers).into(), &u8::from(!delivers).into())
                );
                assert_eq!(report["done"], u8::from(delivers));
            }
        }
    }
}

#[test]
fn a_restore_whose_reply_is_lost_is_read_back_and_what_nobody_knows_is_noted() {
    for (delivers, code, noted) in [(true, 0, "restored"), (false, 7, "outcome-unknown")] {
        let stage = Stage::new(&[]);
        let socket = proxy::breaks_at(&stage.server, "restore_many_if_absent", delivers);
        let run = stage.server.through(&socket, ADDITIONS[0]).exits(code);
        let told = if delivers {
            "Restored 1 of 1 Redis key"
        } else {
            "the return of 1 of 1 records was sent"
        };
        run.says(told);
        assert_eq!(run.stderr.contains("reading back shows"), delivers, "{}", run.all());
        assert_eq!(stage.server.get("idempotency:gone").is_some(), delivers);
        let audit = stage.server.audited();
        assert!(audit.len() == 2 && audit.iter().any(|line| line["what"] == noted), "{audit:?}");
    }
}

/// Rule: after a lost reply the log has a line for each Redis key that the step may have changed.
#[test]
fn a_step_on_two_keys_whose_reply_is_lost_is_noted_for_both() {
    let (lock, result) = ("idem:started:k", "idem:result:k");
    for delivers in [true, false] {
        let server = Server::holding(&[(lock, "worker-1", 600_000)]);
        let socket = proxy::breaks_at(&server, "EXEC", delivers);
        let words = "complete k --schema event-driven --owner worker-1 --status 201 --body x --yes";
        let run = server
            .through(&socket, &words.split(' ').collect::<Vec<_>>())
            .exits(if delivers { 0 } else { 7 });
        let is_there = |redis_key: &str| server.get(redis_key).is_some();
        assert_eq!((is_there(lock), is_there(result)), (!delivers, delivers), "{}", run.all());
        let audit = server.audited();
        let mut noted: Vec<_> =
            audit.iter().filter_map(|line| line["redis_key"].as_str()).collect();
        noted.sort_unstable();
        assert_eq!(noted, [result, lock], "{audit:?}");
    }
}

/// Rule: a step that reading back shows as made is no more on the replicas than its reply would say.
#[test]
fn replicas_are_waited_for_also_after_the_lost_reply_of_a_step() {
    let server = Server::holding(&[("idem:started:k", "worker-1", 600_000)]);
    let socket = proxy::breaks_at(&server, "EXEC", true);
    let words = "complete k --schema event-driven --owner worker-1 --status 201 --body x --yes \
        --wait-replicas 1 --wait-timeout 100ms";
    let words: Vec<_> = words.split_whitespace().collect();
    let run = server.through(&socket, &words).exits(3);
    run.says("reading back shows").says("only 0 of 1 replicas");
    assert!(server.get("idem:result:k").is_some());
}
