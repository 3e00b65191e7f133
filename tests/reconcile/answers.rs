//! What the program says, and what counts as nothing said.

use std::fs;
use std::time::{Duration, Instant};

use crate::provider::{LOCK, executable, lock, program, pttl, raw_program, words};
use crate::support::{FOREVER, Server, until};

fn one() -> Server {
    Server::holding(&[("idem:k", LOCK, FOREVER)])
}

/// Rule: whatever is not one object with a known outcome is unknown, named, and changes nothing.
#[test]
fn what_is_no_answer_is_unknown_and_says_why() {
    let server = one();
    for (script, says) in [
        ("exit 3", "exit status 3"),
        ("echo '{\"outcome\":\"not-done\"}'; exit 1", "exit status 1"),
        ("kill -9 $$", "exit status 137"),
        ("true", "it printed nothing"),
        ("echo not-done", "did not print one JSON object"),
        ("echo '[]'", "did not print one JSON object"),
        ("echo '{\"outcome\":\"perhaps\"}'", "perhaps"),
        ("echo '{\"outcome\":\"not-done\"}{\"outcome\":\"not-done\"}'", "trailing characters"),
        ("echo '{\"outcome\":\"not-done\"}'; echo done", "trailing characters"),
        ("echo '{\"outcome\":\"not-done\",\"status\":201}'", "only `done` has a response"),
        ("echo '{\"outcome\":\"not-done\",\"outcome\":\"done\"}'", "duplicate field"),
        ("printf 'bad\\033[31m thing\\nmore\\n' >&2; exit 1", "exit status 1: bad\\x1b[31m thing"),
        ("echo '{\"outcome\":\"unknown\",\"reason\":\"a\\u001bb\"}'", "unknown: a\\x1bb"),
        ("head -c 20000000 /dev/zero", "longer than 16 MiB"),
        ("head -c 100000 /dev/zero >&2; exit 1", "exit status 1"),
    ] {
        let ask = program(server.folder(), script);
        let ran = server.idemctl(&words(&ask, &[])).exits(3);
        ran.says("express/k: left: unknown: ").says(says);
        assert!(!ran.stderr.contains('\x1b'), "{}", ran.all());
        assert!(ran.stderr.len() < 4_000, "{}", ran.stderr.len());
        assert_eq!(server.get("idem:k").unwrap(), LOCK.as_bytes(), "{script}");
    }
    let ran = server.idemctl(&words("/nowhere/ask", &[])).exits(3);
    ran.says("exit status 127");
    assert!(server.audited().is_empty());
}

/// Rule: the time limit ends everything that the program started. Revert: if only the shell is killed,
/// the file appears.
#[test]
fn a_program_that_is_too_slow_is_killed_with_all_it_started() {
    let server = one();
    let ask = program(server.folder(), "(sleep 3; touch survived) & sleep 60");
    let begun = Instant::now();
    let ran = server.idemctl(&words(&ask, &["--ask-timeout", "500ms"])).exits(3);
    ran.says("no answer within 500ms");
    assert!(begun.elapsed() < Duration::from_secs(20));
    std::thread::sleep(Duration::from_secs(4));
    assert!(!server.folder().join("survived").exists());
}

/// Rule: a process that leaves the process group cannot be killed, but it does not keep the run alive,
/// whether it holds the output open, or the program as well does not end. Revert: if the pipes are
/// read to their ends, or the process is waited for, the run takes 60 s.
#[test]
fn a_process_that_leaves_the_group_does_not_keep_the_run_alive() {
    for (script, says) in [
        ("setsid ./stays & sleep 60", "no answer within 1s"),
        ("exec setsid --fork ./stays", "keeps its output open"),
        ("exec setsid --wait ./stays", "no answer within 1s"),
        ("trap '' TERM; exec >&- 2>&-; sleep 60", "no answer within 1s"),
        ("setsid sh -c './stays; ./stays' & exit 0", "keeps its output open"),
    ] {
        let server = one();
        // A process that the test cannot end ends with the folder of the test.
        let folder = server.folder().display();
        let stays = format!("cd {folder}\nwhile [ -e \"$PWD\" ]; do sleep 0.1; done");
        executable(&server.folder().join("stays"), &stays);
        let ask = program(server.folder(), script);
        let begun = Instant::now();
        let ran = server.idemctl(&words(&ask, &["--ask-timeout", "1s"])).exits(3);
        ran.says(says);
        assert!(begun.elapsed() < Duration::from_secs(15), "{script}: {:?}", begun.elapsed());
        assert_eq!(server.get("idem:k").unwrap(), LOCK.as_bytes());
    }
}

/// Rule: a process that keeps the output open does not let idemctl wait for the time limit.
#[test]
fn an_output_that_stays_open_is_no_answer() {
    let server = one();
    let ask = program(server.folder(), "sleep 50 & echo '{\"outcome\":\"not-done\"}'");
    let begun = Instant::now();
    let ran = server.idemctl(&words(&ask, &[])).exits(3);
    ran.says("keeps its output open");
    assert!(begun.elapsed() < Duration::from_secs(20));
}

/// Rule: a program need not read the question, however long it is.
#[test]
fn a_program_that_does_not_read_its_stdin_is_no_error() {
    let server = one();
    server.put(&format!("idem:{}", "x".repeat(300_000)), LOCK);
    let ask = raw_program(server.folder(), "exec 0<&-\necho '{\"outcome\":\"not-done\"}'");
    server.idemctl(&words(&ask, &[])).exits(0).says("released 2");
    assert_eq!(server.get("idem:k"), None);
}

/// Rule: a release needs two answers that agree.
#[test]
fn a_second_answer_that_differs_leaves_the_lock() {
    for (second, says) in [
        (r#"{"outcome":"done","status":201,"headers":{},"body":1}"#, "contradictory answers"),
        (r#"{"outcome":"unknown"}"#, "the second answer is unknown"),
        ("garbage", "the second answer is unknown"),
    ] {
        let server = one();
        let ask = program(
            server.folder(),
            &format!(
                "if [ -e first ]; then echo '{second}'; else touch first; echo '{{\"outcome\":\"not-done\"}}'; fi"
            ),
        );
        let ran = server.idemctl(&words(&ask, &[])).exits(3);
        ran.says(says).says("released 0, left 1");
        assert_eq!(server.get("idem:k").unwrap(), LOCK.as_bytes());
        assert!(server.audited().is_empty());
    }
}

/// Rule: the second question comes --confirm-after the confirmation, and the release at once after it.
#[test]
fn the_second_question_waits() {
    let server = one();
    let ask = program(
        server.folder(),
        "date +%s%N >> times\nprintf '%s\\n' \"$question\" >> questions\necho '{\"outcome\":\"not-done\"}'",
    );
    server.idemctl(&words(&ask, &["--confirm-after", "2s"])).exits(0).says("in 2 s");
    let times = fs::read_to_string(server.folder().join("times")).unwrap();
    let times: Vec<u64> = times.lines().map(|line| line.parse().unwrap()).collect();
    assert_eq!(times.len(), 2);
    assert!(times[1] - times[0] >= 2_000_000_000, "{times:?}");
    let questions = fs::read_to_string(server.folder().join("questions")).unwrap();
    assert!(questions.lines().next().unwrap().contains(r#""attempt":1"#), "{questions}");
    assert!(questions.lines().nth(1).unwrap().contains(r#""attempt":2"#), "{questions}");
}

/// Rule: --jobs bounds the programs that run at a time.
#[test]
fn no_more_programs_run_at_a_time_than_jobs() {
    let server = Server::start();
    for index in 0..6 {
        server.put(&format!("idem:k-{index}"), LOCK);
    }
    let ask = program(
        server.folder(),
        "mkdir -p running; touch running/$$; ls running | wc -l >> counts; sleep 0.3; rm running/$$; echo '{\"outcome\":\"unknown\"}'",
    );
    server.idemctl(&words(&ask, &["--jobs", "3"])).exits(3);
    let counts = fs::read_to_string(server.folder().join("counts")).unwrap();
    let most = counts.lines().map(|line| line.trim().parse::<usize>().unwrap()).max();
    assert!((2..=3).contains(&most.unwrap()), "{counts}");
}

/// Rule: a lock whose bytes or deadline changed between scan and question, or between the two
/// questions, has a live worker.
#[test]
fn a_lock_that_changes_while_the_provider_is_asked_is_left_alone() {
    for (change, is_there) in [
        (&["SET", "idem:k", "{\"status\":\"IN_PROGRESS\"}", "PX", "90000"][..], true),
        (&["PEXPIRE", "idem:k", "90000"], true),
        (&["DEL", "idem:k"], false),
    ] {
        for attempt in [1, 2] {
            let server = one();
            let ask = program(
                server.folder(),
                &format!(
                    "case \"$question\" in *'\"attempt\":{attempt}'*) touch asked; while [ ! -e go ] && [ -e \"$PWD\" ]; do sleep 0.05; done;; esac\necho '{{\"outcome\":\"not-done\"}}'"
                ),
            );
            let mut command = server.command();
            command.args(words(&ask, &["-o", "json"]));
            let child = crate::support::Runs::start(&mut command);
            until("it asks", || server.folder().join("asked").exists());
            server.send::<redis::Value>(
                &change.iter().map(|word| word.as_bytes()).collect::<Vec<_>>(),
            );
            fs::write(server.folder().join("go"), "").unwrap();
            let ran = crate::support::Running::ends(child).exits(3);
            let report = ran.json();
            assert_eq!(lock(&report, "k")["outcome"], "changed", "{change:?} {report}");
            assert_eq!(report["changed"], 1);
            assert_eq!(server.get("idem:k").is_some(), is_there, "{change:?}");
            if is_there {
                assert!(pttl(&server, "idem:k") > 60_000);
            }
            assert!(server.audited().is_empty());
        }
    }
}
