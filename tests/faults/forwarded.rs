//! Something in between forwards a change, and then answers with an error of its own, or with what no Redis answers: only an
//! error after which Redis promises that nothing was changed counts as "not done".

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::stage::{ADDITIONS, AMENDMENTS, REMOVALS, Stage, contents};
use crate::support::fault::{self, Hook, says};
use crate::support::{LOCK, Run, Server, at_once};

/// Answers in place of the one that the server gave.
const ANSWERS: [&str; 8] = [
    "-upstream failure\r\n",
    "-ERR Connection timed out\r\n",
    "-ERR upstream: unknown command\r\n",
    ":17\r\n",
    "+OK\r\n",
    "*0\r\n",
    "$-1\r\n",
    "$3\r\nDDD\r\n",
];

/// Errors after which Redis promises that nothing was changed.
const REFUSALS: [&str; 4] = [
    "-READONLY You can't write against a read only replica.\r\n",
    "-OOM command not allowed when used memory > 'maxmemory'.\r\n",
    "-LOADING Redis is loading the dataset in memory\r\n",
    "-ERR unknown command 'EVAL', with args beginning with: \r\n",
];

/// True for the request that changes something.
fn changes(sent: &[u8], words: &[&str]) -> bool {
    match words[0] {
        "restore" | "undo" => says(sent, "restore_many_if_absent"),
        "extend" => says(sent, "PEXPIREAT"),
        "release" | "begin" | "complete" => says(sent, "EXEC"),
        _ => says(sent, "UNLINK"),
    }
}

/// Rule: after any other error, a lost or an odd reply the state is read back; the backup stays unless nothing was done.
#[test]
fn a_change_that_was_forwarded_is_done_or_unknown_whatever_is_answered() {
    at_once(REMOVALS.iter().chain(ADDITIONS).chain(AMENDMENTS), |words| {
        // To EXEC nil is Redis's own word for nothing done.
        let is_step = changes(b"EXEC", words);
        for answer in ANSWERS.into_iter().filter(|answer| !is_step || *answer != "$-1\r\n") {
            let stage = Stage::new(&[]);
            let port = fault::hooked(&stage.server, move |sent| match changes(sent, words) {
                true => Hook::Replace(answer.as_bytes().to_vec()),
                false => Hook::Pass,
            });
            let run = stage.at(port, words);
            let say = || format!("{words:?} {answer:?}: {}", run.all());
            assert!(contents(&stage.server) != *stage.contents(), "{}", say());
            assert!([0, 3, 7].contains(&run.code), "{}", say());
            assert_eq!(stage.audited(), 2, "{}", say());
            // Of what is gone or overwritten the backup stays.
            if REMOVALS.contains(words) {
                let backups = stage.server.state("backups");
                assert_eq!(std::fs::read_dir(backups).unwrap().count(), 1, "{}", say());
            }
        }
    });
}

/// What a command does where its change gets this answer, and nobody hears of the change.
fn answered(words: &'static [&'static str], answer: &'static str) -> (Stage, Run) {
    let stage = Stage::new(&[]);
    let port = fault::hooked(&stage.server, move |sent| match changes(sent, words) {
        true => Hook::Answer(answer.as_bytes().to_vec()),
        false => Hook::Pass,
    });
    let run = stage.at(port, words);
    (stage, run)
}

#[test]
fn what_was_never_forwarded_is_not_told_as_done() {
    at_once(REMOVALS.iter().chain(ADDITIONS).chain(AMENDMENTS), |words| {
        for answer in [ANSWERS[0], ANSWERS[3]] {
            let (stage, run) = answered(words, answer);
            assert_eq!(run.code, 7, "{words:?}: {}", run.all());
            run.says("outcome unknown");
            assert_eq!(contents(&stage.server), *stage.contents(), "{}", run.all());
        }
    });
}

#[test]
fn what_redis_refuses_is_not_done_and_leaves_no_backup() {
    for words in &REMOVALS[..3] {
        for answer in REFUSALS {
            let (stage, run) = answered(words, answer);
            assert_eq!(run.code, 6, "{words:?} {answer:?}: {}", run.all());
            stage.is_untouched();
        }
    }
}

/// Rule: a reply that comes twice is never taken for the reply to the next request.
#[test]
fn a_reply_that_comes_twice_is_not_that_of_the_next_request() {
    at_once(REMOVALS.iter().chain(ADDITIONS).chain(AMENDMENTS), |words| {
        for twice in 0.. {
            let stage = Stage::new(&[]);
            let requests = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&requests);
            let port = fault::hooked(&stage.server, move |_| {
                match counted.fetch_add(1, Ordering::SeqCst) == twice {
                    true => Hook::Twice,
                    false => Hook::Pass,
                }
            });
            let run = stage.at(port, words);
            let say = || format!("{words:?}, reply {twice} twice: {}", run.all());
            let was_changed = contents(&stage.server) != *stage.contents();
            match run.code {
                0 | 3 => assert!(was_changed, "{}", say()),
                // A walk reads one reply behind the other: the one that comes twice is of the wrong kind, or an error
                // (6; before Redis 7 the try of PEXPIRETIME is one).
                5 | 6 => assert!(!was_changed && stage.audited() == 1, "{}", say()),
                7 => assert!(run.stderr.contains("outcome unknown: "), "{}", say()),
                _ => panic!("{}", say()),
            }
            if twice >= requests.load(Ordering::SeqCst) {
                break;
            }
        }
    });
}

/// Puts the first number of a reply, the moment at which a Redis key expires, there twice.
fn first_number_twice(reply: &mut Vec<u8>) {
    let Some(start) = reply.iter().position(|byte| *byte == b':') else { return };
    let Some(length) = reply[start..].iter().position(|byte| *byte == b'\n') else { return };
    let number = reply[start..=start + length].to_vec();
    reply.splice(start..start, number);
}

/// Rule: one of many replies that comes twice does not give each Redis key the moment of the one before.
#[test]
fn a_moment_that_comes_twice_hides_no_stuck_lock() {
    let server = Server::holding(&[("idem:a", LOCK, 900_000), ("idem:b", LOCK, 900_000)]);
    let (_, names): (String, Vec<String>) = server.send(&[b"SCAN", b"0"]);
    server.send::<()>(&[b"PERSIST", names.last().unwrap().as_bytes()]);
    server.idemctl(&["check", "--schema", "express"]).exits(2);
    for twice in 0.. {
        let requests = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&requests);
        let port = fault::hooked(&server, move |_| {
            match counted.fetch_add(1, Ordering::SeqCst) == twice {
                true => Hook::Edit(first_number_twice),
                false => Hook::Pass,
            }
        });
        for words in
            [&["check", "--schema", "express"][..], &["list", "--schema", "express", "-o", "json"]]
        {
            requests.store(0, Ordering::SeqCst);
            let run = server.at(port, words);
            let is_seen = run.code == 2 && words[0] == "check"
                || run.code == 0 && run.text().contains("no-expiry");
            assert!(
                is_seen || ![0, 1, 2].contains(&run.code),
                "{words:?}, reply {twice}: {}",
                run.all()
            );
        }
        if twice >= requests.load(Ordering::SeqCst) {
            break;
        }
    }
}

/// Puts the last reply of what came, the time, there twice.
fn time_twice(reply: &mut Vec<u8>) {
    if let Some(start) = reply.windows(4).rposition(|part| part == b"*2\r\n") {
        reply.extend_from_within(start..);
    }
}

/// Rule: a scan that got more replies than it asked for is not complete, whatever the last of them says.
#[test]
fn a_last_reply_that_comes_twice_is_noticed() {
    let server = Server::holding(&[("idem:a", LOCK, 900_000)]);
    let way = fault::hooked(&server, |sent| match says(sent, "idem:a") && says(sent, "TIME") {
        true => Hook::Edit(time_twice),
        false => Hook::Pass,
    });
    for words in [&["check", "--schema", "express"][..], &["list", "--schema", "express"]] {
        let run = server.at(way, words);
        assert!([3, 5].contains(&run.code), "{words:?}: {}", run.all());
        assert!(
            run.all().contains("more replies than it was asked for"),
            "{words:?}: {}",
            run.all()
        );
    }
}
