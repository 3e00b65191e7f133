//! `idemctl diff` from the outside.

use std::fs;
use std::process::Command;

use serde_json::Value;

use crate::support::{DONE, PENDING, Run, Runs, Server, idemctl};

/// Writes what is there now into a file of the server's folder.
fn moment(server: &Server, name: &str) -> String {
    let file = server.folder().join(name);
    fs::write(&file, server.idemctl(&["list", "-o", "jsonl"]).exits(0).stdout).unwrap();
    file.display().to_string()
}

/// Two moments between which everything happened that can.
fn two_moments(server: &Server) -> [String; 2] {
    for key in ["same", "gone", "done", "anew", "longer"] {
        server.set(&format!("idempotency:{key}"), PENDING, 50_000_000);
    }
    server.put("idempotency:stuck", PENDING);
    server.set("idem:started:owned", "worker-1", 50_000_000);
    let before = moment(server, "before");
    server.send::<()>(&[b"DEL", b"idempotency:gone"]);
    server.send::<()>(&[b"SET", b"idempotency:done", DONE.as_bytes(), b"KEEPTTL"]);
    server.send::<()>(&[b"SET", b"idempotency:anew", br#"{"status": "PENDING"}"#, b"KEEPTTL"]);
    server.send::<()>(&[b"PEXPIRE", b"idempotency:longer", b"60000000"]);
    server.send::<()>(&[b"SET", b"idem:started:owned", b"worker-2", b"KEEPTTL"]);
    server.set("idempotency:new", DONE, 50_000_000);
    [before, moment(server, "after")]
}

/// What happened to each key, in the order of the keys.
fn happened(run: &Run) -> Vec<[String; 2]> {
    let text = |line: &Value, name: &str| line[name].as_str().unwrap().to_owned();
    let mut found: Vec<_> = run.json_lines().iter().map(|line| [text(line, "key"), text(line, "what")]).collect();
    found.sort();
    found
}

const HAPPENED: [[&str; 2]; 6] = [
    ["anew", "retaken"],
    ["done", "state"],
    ["gone", "went"],
    ["longer", "renewed"],
    ["new", "came"],
    ["owned", "retaken"],
];

#[test]
fn two_moments_tell_what_came_went_changed_and_was_taken_anew() {
    let server = Server::start();
    let [before, after] = two_moments(&server);
    // Without a server.
    let run = idemctl(server.folder()).args(["diff", &before, &after, "-o", "jsonl"]).run().exits(1);
    assert_eq!(happened(&run), HAPPENED);
    run.says("1 came, 1 went, 1 changed their state, 2 retaken, 1 renewed; 2 as they were.");
    let now = server.idemctl(&["diff", &before, "-o", "jsonl"]).exits(1);
    assert_eq!(happened(&now), HAPPENED);
    let json = idemctl(server.folder()).args(["diff", &before, &after, "-o", "json"]).run().exits(1).json();
    assert_eq!((&json["same"], &json["retaken"], &json["format"]), (&2.into(), &2.into(), &1.into()));
    let table = idemctl(server.folder()).args(["diff", &before, &after]).run().exits(1);
    table.shows("WHAT     STATE ").shows("state    in-progress → completed   go-middleware     done\n");
    // The other way round.
    let back = idemctl(server.folder()).args(["diff", &after, &before, "-o", "jsonl"]).run().exits(1);
    assert!(happened(&back).contains(&["new".to_owned(), "went".to_owned()]));
}

#[test]
fn nothing_that_differs_is_exit_status_0() {
    let server = Server::start();
    two_moments(&server);
    let now = moment(&server, "now");
    server.idemctl(&["diff", &now]).exits(0).says("0 came, 0 went");
    server.idemctl(&["diff", &now, &now]).exits(0).says("7 as they were");
    let text = fs::read(&now).unwrap();
    // A key that a list shows twice is one record.
    let twice = [&text[..], &text].concat();
    let run = server.idemctl_fed(&["diff", &now, "-", "-o", "json"], &twice).exits(0);
    assert_eq!(run.json()["same"], 7);
}

#[test]
fn what_was_read_whole_is_compared_with_what_was_read_in_part() {
    let long = format!(r#"{{"status":"COMPLETED","code":201,"headers":{{}},"body":"{}"}}"#, "QUJD".repeat(2_000));
    let server = Server::holding(&[("idempotency:long", long, 50_000_000)]);
    let part = moment(&server, "part");
    let whole = server.idemctl(&["list", "--full", "-o", "jsonl"]).exits(0).stdout;
    server.idemctl_fed(&["diff", &part, "-"], &whole).exits(0);
}

/// Rule: a list that is not whole is no moment: what is missing would count as gone.
#[test]
fn what_is_no_whole_list_is_refused() {
    let server = Server::start();
    let [before, after] = two_moments(&server);
    let bad = server.folder().join("bad");
    let text = fs::read_to_string(&after).unwrap();
    let old = text.replace("\"identity\"", "\"other\"");
    for (content, says) in [
        (&text[..text.len() - 20], "the list is not whole"),
        ("{\"format\":1,\"records\":[\n", "is no"),
        ("hello\n", "this is no line of a list"),
        (&old, "an older idemctl wrote the list"),
    ] {
        fs::write(&bad, content).unwrap();
        let bad = bad.to_str().unwrap();
        for files in [[bad, &before], [&before, bad]] {
            server.idemctl(&["diff", files[0], files[1]]).exits(2).says("bad:").says(says);
        }
    }
    server.idemctl(&["diff", "/nowhere", &before]).exits(2).says("cannot read the moment /nowhere");
    assert!(Command::new("mkfifo").arg(server.folder().join("pipe")).status().unwrap().success());
    let pipe = server.folder().join("pipe").display().to_string();
    // A pipe that nobody writes to would be waited for: the writer opens it, and ends.
    let writer = std::thread::spawn({
        let pipe = pipe.clone();
        move || fs::write(pipe, "")
    });
    server.idemctl(&["diff", &pipe, &before]).exits(2).says("is no regular file");
    writer.join().unwrap().unwrap();
}
