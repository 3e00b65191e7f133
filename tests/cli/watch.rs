//! Looking again and again: `-w`, `--until`, `--within`.

use std::io::{BufRead as _, BufReader};

use rustix::process::Signal;

use crate::support::terminal::{ends, on_terminal};
use crate::support::{DONE, PENDING, Running as _, Runs as _, Server, alone, until};

/// A command that looks every 20 ms, started on a server; `act` is done once a line of the first look is there.
#[track_caller]
fn watched(server: &Server, words: &[&str], act: impl FnOnce()) -> (Vec<String>, i32) {
    let mut child = server.command().args(words).start();
    let mut lines = BufReader::new(child.stdout.take().unwrap()).lines().map(Result::unwrap);
    let first = lines.next().unwrap();
    act();
    let all: Vec<_> = [first].into_iter().chain(lines).collect();
    (all, child.ends().code)
}

#[test]
fn inspect_ends_when_what_is_awaited_came_and_when_it_cannot_come_any_more() {
    let wait = ["inspect", "k", "-w", "20ms", "--until", "completed", "-o", "jsonl"];
    let server = Server::holding(&[("idempotency:k", PENDING, 600_000)]);
    let (lines, code) = watched(&server, &wait, || server.set("idempotency:k", DONE, 600_000));
    assert_eq!((lines.len(), code), (2, 0), "{lines:?}");
    server.set("idempotency:k", PENDING, 600_000);
    let (lines, code) = watched(&server, &wait, || server.send::<()>(&[b"DEL", b"idempotency:k"]));
    assert_eq!((lines.len(), code), (2, 1), "{lines:?}");
    assert!(lines[1].contains("absent"), "{lines:?}");
}

/// Rule: a wait has an end.
#[test]
fn what_does_not_come_in_time_is_a_no() {
    let server = Server::holding(&[("idempotency:k", PENDING, 600_000)]);
    let wait = ["--until", "completed", "--within", "50ms"];
    server
        .idemctl(&[&["inspect", "k"], &wait[..]].concat())
        .exits(1)
        .says("did not become completed within 50ms");
    server
        .idemctl(&[&["list"], &wait[..]].concat())
        .exits(1)
        .says("did not become completed within 50ms");
    server.idemctl(&["inspect", "nowhere", "--until", "in-progress", "--within", "50ms"]).exits(1);
    server.idemctl(&["inspect", "k", "--within", "50ms"]).exits(2);
    server.idemctl(&["list", "--until", "completed", "--state", "in-progress"]).exits(2);
    server.idemctl(&["list", "--until", "absent", "--limit", "3"]).exits(2);
}

#[test]
fn several_keys_are_followed_until_all_are_done() {
    let server =
        Server::holding(&[("idempotency:a", DONE, 600_000), ("idempotency:b", PENDING, 600_000)]);
    let words = ["inspect", "a", "b", "-w", "20ms", "--until", "completed", "-o", "jsonl"];
    let (lines, code) = watched(&server, &words, || server.set("idempotency:b", DONE, 600_000));
    assert_eq!((lines.len(), code), (3, 0), "{lines:?}");
}

#[test]
fn a_list_waits_until_no_lock_is_left() {
    let server = Server::holding(&[("idempotency:k", PENDING, 600_000)]);
    let words = ["list", "--state", "in-progress", "-w", "20ms", "--until", "absent", "-o", "name"];
    let (lines, code) = watched(&server, &words, || server.set("idempotency:k", DONE, 600_000));
    assert_eq!((lines[0].as_str(), code), ("go-middleware/\"k\"", 0), "{lines:?}");
}

#[test]
fn what_has_no_end_is_no_json_document_and_no_time_is_none() {
    let server = Server::start();
    for command in ["list", "stats"] {
        server.idemctl(&[command, "--watch", "1s", "-o", "json"]).exits(2).says("use -o jsonl");
        server.idemctl(&[command, "--watch", "often"]).exits(2).says("--watch often");
    }
}

/// Rule: a look takes the place of the one before in one write, and nothing of it is left.
#[test]
fn on_a_terminal_each_look_is_painted_over_the_one_before() {
    let server = Server::holding(&[("idempotency:k", PENDING, 600_000)]);
    for words in
        [&["list", "-w", "20ms"][..], &["stats", "-w", "20ms"], &["inspect", "-w", "20ms", "k"]]
    {
        let mut session = on_terminal(server.command(), words);
        for _ in 0..3 {
            session.exp_string("\x1b[H").unwrap();
            let frame = session.exp_string("\x1b[J").unwrap();
            assert!(
                frame.contains(", every ") && frame.contains("go-middleware"),
                "{words:?}: {frame:?}"
            );
            assert!(
                frame.trim_end_matches("\r\n").split("\r\n").all(|line| line.ends_with("\x1b[K")),
                "{frame:?}"
            );
        }
        session.send_control('c').unwrap();
        let shown = ends(session).exits(0).text();
        assert!(!shown.contains("error: "), "{shown:?}");
        let spinner = ['⠁', '⠋', '⠙', '⠹'];
        assert!(!shown.contains(spinner), "{shown:?}");
    }
}

/// Rule: a watch that scans costs the server a small part of its time, however long a scan takes. A look at keys is cheap, and comes
/// as often as asked.
#[test]
fn a_watch_waits_in_proportion_to_how_long_its_scan_took() {
    let server =
        Server::filled((0..1_000).map(|index| (format!("idempotency:{index}"), PENDING)), 0);
    let scans = |words: &[&str]| {
        server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
        server.idemctl(words);
        server.calls("scan")
    };
    let slow = ["--rate", "2000/s"];
    for command in ["list", "stats"] {
        let once = scans(&[&[command][..], &slow].concat());
        let watch = ["-o", "jsonl", "-w", "10ms"];
        let words = [&[command][..], &watch, &slow].concat();
        server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
        let mut child = server.command();
        child.args(&words).stdout(std::process::Stdio::null());
        let child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
        // Without a pause there would be five scans or more.
        std::thread::sleep(std::time::Duration::from_secs(3));
        child.signal(Signal::INT);
        child.ends();
        assert!(server.calls("scan") <= once, "{command}: {} {once}", server.calls("scan"));
    }
    let shown = alone(&["help", "list"]).exits(0);
    assert!(shown.text().contains("at least ten times as long"), "{}", shown.text());
}

#[test]
fn figures_are_appended_where_nobody_watches() {
    let server = Server::holding(&[("idempotency:k", PENDING, 600_000)]);
    let file = server.folder().join("frames");
    let mut child = server.command();
    child
        .args(["stats", "-w", "20ms", "-o", "jsonl"])
        .stdout(std::fs::File::create(&file).unwrap());
    let child = child.stderr(std::process::Stdio::piped()).spawn().unwrap();
    let count = || std::fs::read_to_string(&file).unwrap().lines().count();
    until("three looks are there", || count() >= 3);
    child.signal(Signal::INT);
    child.ends().exits(0);
}
