//! `inspect --find`: a record by a part of its key.

use crate::support::{PENDING, Server};

#[test]
fn one_record_is_shown_and_several_are_listed() {
    let server = Server::start();
    for key in ["invoice-2026-1", "invoice-2026-2", "order-7"] {
        server.set(&format!("idempotency:{key}"), PENDING, 60_000);
    }
    server
        .idemctl(&["inspect", "--find", "der-"])
        .exits(0)
        .shows("Next request  conflict")
        .shows("order-7");
    let run = server.idemctl(&["inspect", "--find", "2026"]).exits(0);
    run.shows("invoice-2026-1")
        .shows("invoice-2026-2")
        .says("2 records; `idemctl -s ")
        .says(" inspect KEY` shows one");
    assert!(!run.text().contains("Next request"), "{}", run.all());
    let json = server.idemctl(&["inspect", "--find", "2026", "-o", "json"]).exits(0).json();
    assert_eq!(json["records"].as_array().unwrap().len(), 2, "{json}");
    server
        .idemctl(&["inspect", "--find", "nowhere"])
        .exits(1)
        .says("no idempotency key among 3")
        .says("contains nowhere");
    server.idemctl(&["inspect", "--find", "a", "order-7"]).exits(2);
}

/// Rule: the walk ends once more is found than anybody reads.
#[test]
fn a_text_that_is_everywhere_ends_the_walk() {
    let server = Server::filled(
        (0..30_000).map(|number| (format!("idempotency:k-{number}"), PENDING)),
        600_000,
    );
    let run = server.idemctl(&["inspect", "--find", "k-", "-o", "json"]).exits(0);
    run.says("only the first 20 records are shown; use a longer text to find fewer");
    assert_eq!(run.json()["records"].as_array().unwrap().len(), 20);
    let scans = server.calls("scan");
    assert!((1..10).contains(&scans), "{scans}");
}

/// Rule: the schemas that a search left out are named, also if it found a record. Revert: without `explain_left_out`
/// the operator believes that no other record contains the text.
#[test]
fn a_search_that_found_a_record_names_the_schemas_that_it_left_out() {
    let server = Server::holding(&[("idem:pay-4242", r#"{"status":"IN_PROGRESS"}"#, 30_000)]);
    let run = server.idemctl(&["inspect", "--find", "4242"]).exits(0);
    run.shows("pay-4242").says("not read: schema go-chi");
}
