//! What idemctl could not compare: it is counted and named, and there is never "no duplicates".

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use super::{FIRST, found, reference, result, with_body};
use crate::support::memory::peak_of;
use crate::support::proxy::{Hook, hooked_socket, says};
use crate::support::{Running, Runs, Server, Signal, idemctl, signal, until};

const HOUR: u64 = 3_600_000;
const BY_ORDER: [&str; 2] = ["--same", "/order/id"];

#[test]
fn a_response_that_cannot_be_read_is_unknown_and_named() {
    for (redis_key, value, why) in [
        ("idem:result:html", result("<html>"), "not_json"),
        ("idem:result:cut", result(r#"{"order":"#), "not_json"),
        ("idempotency:bad", "{garbage".to_owned(), "unreadable"),
        (
            "idem:result:blob",
            r#"{"storage":"s3","bucket":"b","key":"k"}"#.to_owned(),
            "not_decoded",
        ),
    ] {
        let server = Server::holding(&[(redis_key, value, 20 * HOUR)]);
        let run = found(&server, &BY_ORDER).exits(3);
        let document = run.json();
        assert_eq!(document["unknown"][why]["records"], 1, "{redis_key}: {}", run.all());
        assert_eq!(document["complete"], false);
        let key = redis_key.rsplit(':').next().unwrap();
        assert_eq!(document["unknown"][why]["examples"][0]["key"], key);
        run.says(format!("/{key})"));
    }
}

/// Rule: long values are read on, up to 16 MiB. What is longer is unknown.
#[test]
fn a_value_is_read_to_its_end_or_unknown() {
    let server = Server::start();
    let far = |filler: usize| {
        let filler = "x".repeat(filler);
        with_body(
            "w",
            &filler.len().to_string(),
            FIRST,
            201,
            &format!(r#"{{"filler":"{filler}","order":{{"id":1}}}}"#),
        )
    };
    for filler in [10, 20 << 10, 100 << 10, 2 << 20] {
        server.set(&format!("idemkey:k-{filler}x"), far(filler), 20 * HOUR);
    }
    let document = found(&server, &BY_ORDER).exits(1).json();
    assert_eq!(document["groups"][0]["keys"], 4);
    server.set(
        "idem:result:huge",
        format!(r#"{{"statusCode":201,"body":"{}"}}"#, "x".repeat(17 << 20)),
        20 * HOUR,
    );
    let run = found(&server, &BY_ORDER).exits(3);
    let document = run.json();
    assert_eq!(document["groups"][0]["keys"], 4);
    assert_eq!(document["unknown"]["too_large"]["examples"][0]["key"], "huge");
}

#[test]
fn a_pointer_that_no_response_has_is_not_an_answer() {
    let server = Server::holding(&[("idem:result:a", result(r#"{"order":{"id":1}}"#), 20 * HOUR)]);
    let run = found(&server, &["--same", "/ordr/id"]).exits(3);
    assert_eq!(run.json()["complete"], false);
}

/// Rule: exit status 0 needs records that were compared.
#[test]
fn records_without_responses_are_not_compared_and_that_is_no_answer() {
    let server = Server::holding(&[("idem:done:a", "1", HOUR), ("idem:done:b", "1", HOUR)]);
    let run = found(&server, &BY_ORDER).exits(3);
    assert_eq!(run.json()["complete"], false);
    run.says("Not compared, because they have no response: 2 records.");
}

/// Rule: where nothing was read, there is never "no duplicates".
#[test]
fn an_empty_server_and_schemas_that_were_not_read_are_no_answer() {
    let unread = Server::start();
    for key in ["a", "b"] {
        let value = r#"{"status":"COMPLETE","fingerPrint":"same","response":{"statusCode":200,"body":{"order":{"id":1}},"additional":{"headers":{}}}}"#;
        unread.set(&format!("node-idempotency:POST:/pay:{key}"), value, 20 * HOUR);
    }
    let empty = Server::start();
    for server in [&empty, &unread] {
        let document = found(server, &BY_ORDER).exits(3).json();
        assert_eq!((&document["complete"], &document["compared"]), (&false.into(), &0.into()));
        let run = server.idemctl(&[&["duplicates"], &BY_ORDER[..]].concat()).exits(3);
        run.shows("Nothing was compared: 0 records with values at /order/id.");
        assert!(!run.all().contains("No groups"), "{}", run.all());
    }
    empty.idemctl(&["duplicates"]).exits(3).says("no such records");
}

/// Rule: after Ctrl-C nothing is grouped, even if records agree already.
#[test]
fn ctrl_c_shows_no_groups() {
    let server = Server::start();
    let long = "x".repeat(20 << 10);
    for key in ["a", "b", "c", "d"] {
        let body = format!(r#"{{"filler":"{long}","order":{{"id":1}}}}"#);
        server.set(&format!("idemkey:{key}"), with_body("w", key, FIRST, 201, &body), 20 * HOUR);
    }
    let (pid, reads) = (Arc::new(AtomicU32::new(0)), AtomicUsize::new(0));
    let of_child = Arc::clone(&pid);
    let socket = hooked_socket(&server, move |sent| {
        // The longer reads, one record at a time. Two records were read before the third one.
        if says(sent, "16777216") && reads.fetch_add(1, Ordering::SeqCst) == 2 {
            until("the process is known", || of_child.load(Ordering::SeqCst) > 0);
            signal(of_child.load(Ordering::SeqCst), Signal::INT);
            std::thread::sleep(Duration::from_millis(200));
        }
        Hook::Pass
    });
    let child = idemctl(server.folder())
        .args(["-s", socket.to_str().unwrap(), "duplicates", "-o", "json"])
        .args(BY_ORDER)
        .start();
    pid.store(child.id(), Ordering::SeqCst);
    let run = child.ends().exits(130);
    assert_eq!(run.json()["groups"], serde_json::json!([]), "{}", run.all());
    assert_eq!(run.json()["complete"], false);
    run.says("Interrupted, so nothing was grouped.");
}

/// Rule: memory does not grow with the sizes of values.
#[test]
fn long_values_are_not_kept() {
    let server = Server::start();
    let filler = "x".repeat(1 << 20);
    for number in 0..60 {
        let body = format!(r#"{{"filler":"{filler}","order":{{"id":{number}}}}}"#);
        server.set(&format!("idem:result:k{number}x"), result(&body), 20 * HOUR);
    }
    let mut command = server.command();
    let (run, peak) = peak_of(command.args(["duplicates", "-o", "json"]).args(BY_ORDER));
    assert_eq!(run.exits(0).json()["compared"], 60);
    assert!(peak < 60 << 20, "{} MiB", peak >> 20);
}

#[test]
fn without_anything_to_compare_the_pointers_are_listed() {
    let server = Server::start();
    for number in 0..30 {
        let order = number / 2;
        let body = format!(
            r#"{{"order":{{"id":"secret-{order}"}},"currency":"EUR","at":"{number}","paid":true}}"#
        );
        server.set(&format!("idem:result:k-{number}"), result(&body), 20 * HOUR);
    }
    let run = server.idemctl(&["duplicates"]).exits(3);
    let lines: Vec<_> = run.text().lines().map(str::to_owned).collect();
    assert_eq!(
        lines,
        [
            "/order/id: 15 values, 15 with several keys",
            "/currency: 1 value, 1 with several keys",
            "/at: 30 values, 0 with several keys"
        ]
    );
    assert!(!run.all().contains("secret"), "{}", run.all());
    run.says("Nothing was grouped; --same groups by one of these.");
    let document = found(&server, &[]).exits(3).json();
    assert_eq!(document["candidates"][0]["repeated"], 15);
}

#[test]
fn records_that_the_user_may_not_read_make_the_result_incomplete() {
    let server = Server::holding(&[
        ("idemkey:a", reference("w", "x", FIRST, "o-1"), 20 * HOUR),
        ("idem:result:b", result(r#"{"order":{"id":1}}"#), 20 * HOUR),
    ]);
    server.send::<()>(&[b"ACL", b"SETUSER", b"part", b"on", b">pw", b"+@all", b"~idemkey:*"]);
    let words = ["--user", "part", "--pass", "pw"];
    let run = found(&server, &[&BY_ORDER[..], &words].concat()).exits(3);
    assert_eq!(run.json()["complete"], false);
    run.says("skipped");
}

#[test]
fn a_filter_whose_evidence_is_missing_makes_the_result_unknown() {
    let server = Server::holding(&[("idem:result:a", result(r#"{"order":{"id":1}}"#), HOUR)]);
    let run = found(&server, &[&BY_ORDER[..], &["--older-than", "1h"]].concat()).exits(3);
    assert_eq!(run.json()["unproven"]["result_ttl"], 1);
}
