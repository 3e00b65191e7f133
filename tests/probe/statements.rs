//! What `probe` says of a check: only what was sent, and only what the answers show.

use std::thread;
use std::time::Duration;

use crate::outside::{FixedService, created, probe};
use crate::stage::{PAYMENT, Stage, verdicts};
use crate::support::probe_service::Variant;
use crate::support::{Home, Server};

/// A service that makes a payment for each request, whatever its key is.
fn payment(number: usize) -> String {
    created(&format!("{{\"id\":\"pay-{number}\"}}"))
}

/// Rule: --request-timeout is the limit that counts. Revert: with 2 s more, the service passes.
#[test]
fn an_answer_after_the_time_limit_is_no_answer() {
    let service = FixedService::answering(|number, _| {
        thread::sleep(Duration::from_millis(1_500));
        payment(number)
    });
    let words = ["-d", PAYMENT, "--request-timeout", "1s", "--only", "concurrent-keys"];
    let run = probe(&[&[service.url.as_str()], &words[..]].concat()).exits(5);
    run.says("no whole answer within 1s; it came after ");
    let hanging = FixedService::answering(|_, _| {
        thread::sleep(Duration::from_secs(60));
        String::new()
    });
    let run = probe(&[&[hanging.url.as_str()], &words[..]].concat()).exits(5);
    run.says("no whole answer within 1s");
}

/// Rule: a value that the schema does not know, and no Redis key at all, are two causes.
#[test]
fn a_lock_that_is_not_found_has_the_cause_that_was_seen() {
    for (stores, says) in [
        (true, "exists, but express does not recognise its value"),
        (false, "no Redis key of this schema existed for this key when idemctl looked"),
    ] {
        let server = Server::start();
        let redis = redis::Client::open(server.url()).unwrap();
        let service = FixedService::answering(move |number, request| {
            let key = request.split("idemctl-probe-").nth(1).unwrap().split('"').next().unwrap();
            if stores {
                let key = format!("idem:idemctl-probe-{key}");
                let mut link = redis.get_connection().unwrap();
                redis::cmd("SET").arg(key).arg("zzz").exec(&mut link).unwrap();
            }
            thread::sleep(Duration::from_millis(400));
            payment(number)
        });
        let words = ["--schema", "express", "-o", "json", "--faults"];
        let only = ["--only", "record-lock,fault-lock-expires"];
        let given = ["probe", &service.url, "-d", PAYMENT];
        let run = server.idemctl(&[&given[..], &words, &only].concat());
        let (_, message) = &verdicts(&run)["record-lock"];
        assert!(message.contains(says), "{message}");
        let (_, fault) = &verdicts(&run)["fault-lock-expires"];
        let unrecognised = "express does not recognise its value";
        let of_fault = if stores { unrecognised } else { "no Redis key of this schema exists" };
        assert!(fault.contains(of_fault), "{fault}");
    }
}

/// Rule: Stripe and Square publish no status for another payload, so each rejection counts.
#[test]
fn a_status_that_no_source_names_does_not_judge() {
    let stage = Stage::new("express", None);
    let only = ["--only", "mismatch-payload,concurrent-payloads"];
    let run = stage.probe(&[&["--profile", "stripe"], &only[..]].concat());
    let found = verdicts(&run);
    assert_eq!(found["mismatch-payload"].0, "pass", "{found:?}");
    let (verdict, message) = &found["concurrent-payloads"];
    assert_eq!(verdict, "reported", "{found:?}");
    assert!(message.starts_with("one request succeeded"), "{message}");
    // A conflict is not this rejection.
    let other = Stage::new("express", Some(Variant::IgnoresPayload));
    let run = other.probe(&[&["--profile", "stripe"], &only[..]].concat()).exits(1);
    assert_eq!(verdicts(&run)["mismatch-payload"].0, "fail", "{}", run.all());
}

#[test]
fn effects_without_a_number_say_what_there_is() {
    let service = FixedService::answering(|number, request| match request.starts_with("GET") {
        true => created("{\"count\":572}"),
        false => payment(number),
    });
    let words = ["-d", PAYMENT, "-o", "json", "--only", "concurrent-one-effect"];
    let effects = ["--effects", &service.url, "--effects-at", "/total"];
    let run = probe(&[&[service.url.as_str()], &words[..], &effects].concat());
    let says = "--effects returned 13 bytes, but no number at /total";
    assert!(run.all().contains(says), "{}", run.all());
}

/// Rule: what was found before the service died is written.
#[test]
fn a_service_that_dies_leaves_what_was_found() {
    let service = FixedService::answering(|number, _| match number {
        0..12 => payment(number),
        _ => String::new(),
    });
    let home = Home::with("");
    let file = home.path().join("junit.xml");
    let junit = file.to_str().unwrap();
    let words = ["probe", &service.url, "-d", PAYMENT, "-o", "json", "--junit", junit];
    let run = home.run(&words).exits(5);
    run.says("the service gave no answer any more, in checks in a row (");
    let found = verdicts(&run);
    assert_eq!(found.len(), 26);
    // The payments of a retry differ here.
    assert_eq!(found["replay-at-once"].0, "pass", "{found:?}");
    let (verdict, message) = &found["key-missing"];
    assert_eq!(verdict, "inconclusive", "{found:?}");
    assert!(message.contains("it was not made, because the service gave no answer"), "{message}");
    assert!(std::fs::read_to_string(&file).unwrap().contains("replay-at-once"));
    let page = home.run(&["probe", &service.url, "-d", PAYMENT]).exits(5);
    assert!(page.text().is_empty(), "the first request gets no answer: {}", page.all());
}
