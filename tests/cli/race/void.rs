//! Rounds that prove nothing: a lock ended or vanished within them, or too few begins were seen.

use std::path::Path;
use std::time::Duration;

use serde_json::Value;

use super::verdict::{nothing_is_left, runs};
use crate::support::{Run, Running, Runs, Server, Signal, signal};

/// A race of so many rounds while something befalls the server again and again, until the race is over.
fn race_while(server: &Server, rounds: &str, mut befalls: impl FnMut(&Server, u32)) -> Run {
    server.states(&[("express", "lock_ttl = \"1s\"")]);
    let words =
        ["race", "--schema", "express", "--strategy", "schema", "-o", "json", "--rounds", rounds];
    let mut child =
        server.command().args(words).args(["--concurrency", "8", "--fail-every", "3"]).start();
    while child.try_wait().unwrap().is_none() {
        befalls(server, child.id());
        std::thread::sleep(Duration::from_millis(7));
    }
    child.ends()
}

fn void_rounds(run: &Run) -> u64 {
    runs(run)[0]["void_rounds"].as_u64().unwrap()
}

#[test]
fn keys_that_somebody_removes_make_rounds_void_and_accuse_nobody() {
    let by_pattern =
        "for _, key in ipairs(redis.call('KEYS', 'idem*')) do redis.call('DEL', key) end return 0";
    for removal in [&["FLUSHALL"][..], &["EVAL", by_pattern, "0"]] {
        let server = Server::start();
        let run = race_while(&server, "400", |server, _| {
            let words: Vec<_> = removal.iter().map(|word| word.as_bytes()).collect();
            server.send::<redis::Value>(&words);
        });
        let run = run.exits(0);
        assert!(void_rounds(&run) > 0, "nothing was removed within a round");
        assert_eq!(
            (&runs(&run)[0]["verdict"], &runs(&run)[0]["first_offence"]),
            (&"atomic".into(), &Value::Null)
        );
        nothing_is_left(&server);
    }
}

/// Races while idemctl, or its server, is stopped four times in the middle of a round, each time for longer than a lock
/// lives.
fn race_with_stops(server: &Server, stops_idemctl: bool) -> Run {
    let mut left = 4;
    race_while(server, "300", |server, idemctl| {
        if left > 0 && server.size() > 1 {
            left -= 1;
            let pid = if stops_idemctl { idemctl } else { server.pid() };
            signal(pid, Signal::STOP);
            std::thread::sleep(Duration::from_millis(1_200));
            signal(pid, Signal::CONT);
        }
    })
}

#[test]
fn a_stop_longer_than_the_locks_ttl_makes_its_round_void_and_accuses_nobody() {
    for stops_idemctl in [true, false] {
        let server = Server::start();
        // A stop that falls between two rounds hurts none: on to the next race.
        let met = (0..5).any(|_| {
            let run = race_with_stops(&server, stops_idemctl).exits(0);
            assert_eq!(runs(&run)[0]["verdict"], "atomic", "{}", run.all());
            nothing_is_left(&server);
            void_rounds(&run) > 0
        });
        assert!(met, "no stop was within a round");
    }
}

#[test]
fn a_race_in_which_every_round_was_void_has_no_verdict() {
    let server = Server::start();
    // Somebody removes each key as soon as it is there: nothing can be judged.
    let folder = server.folder().join("schemas");
    copy_of_express(
        &folder,
        "local record = KEYS[1]",
        "local record = KEYS[1]\nredis.call('FLUSHALL')",
    );
    let words = [
        "race",
        "--schema-dir",
        folder.to_str().unwrap(),
        "--schema",
        "own",
        "--strategy",
        "schema",
    ];
    let run = server.idemctl(&[&words[..], &["-o", "json"]].concat()).exits(3);
    assert_eq!(
        (&runs(&run)[0]["verdict"], &runs(&run)[0]["void_rounds"]),
        (&"void".into(), &20.into())
    );
    let text = server.idemctl(&words).exits(3).text();
    assert!(
        text.contains(
            "own, schema: 20 rounds void, because a lock expired or vanished during the round\n"
        ),
        "{text}"
    );
    assert!(text.contains("\nvoid     own") && !text.contains("no violation"), "{text}");
}

/// The schema `own`, which is `express` with something else in the script of its begin.
fn copy_of_express(folder: &Path, from: &str, to: &str) {
    let own = folder.join("own");
    std::fs::create_dir_all(&own).unwrap();
    let express = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/express");
    for entry in std::fs::read_dir(express).unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let text = text.replace("name = \"express\"", "name = \"own\"").replace(from, to);
        std::fs::write(own.join(entry.file_name()), text).unwrap();
    }
}

#[test]
fn a_rare_flaw_that_was_not_seen_is_not_called_atomic() {
    let server = Server::start();
    let folder = server.folder().join("schemas");
    // One begin in ten thousand takes the lock away from whoever has it.
    let leak = "local record = KEYS[1]\nif redis.call('INCR', 'begins') % 10000 == 0 then redis.call('DEL', record) end";
    copy_of_express(&folder, "local record = KEYS[1]", leak);
    let words = [
        "race",
        "--schema-dir",
        folder.to_str().unwrap(),
        "--schema",
        "own",
        "--strategy",
        "schema",
    ];
    let text = server.idemctl(&words).exits(0).text();
    assert!(
        text.contains("\nno violation in 1000  own")
            && text.contains("would not detect a flaw rarer than 1 in 1,000 lock attempts"),
        "{text}"
    );
    assert!(!text.contains("\natomic"), "{text}");
    let many = ["--rounds", "400", "-o", "json"];
    let run = server.idemctl(&[&words[..], &many].concat()).exits(1);
    assert_eq!(
        runs(&run)[0]["verdict"],
        "not-atomic",
        "the flaw is there, and seen in enough begins"
    );
}
