//! What a service compares of the payload, if it is not the payload itself.

use crate::support::Server;

/// Rule: a service that compares something else than the payload, such as the path, tells no
/// payloads apart. Revert: without `payload` in the schema.
#[test]
fn a_fingerprint_of_the_path_tells_no_payloads_apart() {
    let server = Server::start();
    let schema = ["--schema", "laravel-square1"];
    let run = server.idemctl(&[&["simulate", "payload-mismatch"], &schema[..]].concat());
    run.shows("wrong-answer");
    let run = server.idemctl(&[&["explore", "--sandbox"], &schema[..]].concat());
    run.shows("not checked (not compared): payloads-apart");
    server.idemctl(&["schema", "show", "laravel-square1"]).shows("not compared");
}

/// Rule: if the Redis key is a hash that includes the payload, another payload has another record,
/// and no client gets a wrong answer.
#[test]
fn a_payload_in_the_key_has_a_record_of_its_own() {
    let server = Server::start();
    let words = ["simulate", "payload-mismatch", "--schema", "idempo"];
    let run = server.idemctl(&words);
    run.shows("a request with another payload has another Redis key");
    assert!(!run.all().contains("wrong-answer  payload-mismatch"), "{}", run.all());
    // The client's key alone does not find the record.
    server.idemctl(&["inspect", "client-key", "--schema", "idempo"]).exits(1);
}

/// Rule: a service may store several ranges of statuses.
#[test]
fn statuses_between_two_ranges_are_never_stored() {
    let server = Server::holding(&[("idempo:lock:k", "o", 60_000)]);
    let complete = |status: &str| {
        let words = ["complete", "k", "--schema", "idempo", "--owner", "o", "--body", "x"];
        server.idemctl(&[&words[..], &["--status", status, "--dry-run"]].concat())
    };
    complete("429").exits(2).says("stores only the statuses 200 to 424, 426 to 428, 430 to 499");
    complete("428").exits(0);
}

/// Rule: a history of a library's schema can be replayed, although its schema is read only if it is
/// named. Revert: without the names in `every`.
#[test]
fn a_token_names_the_schema_of_a_library() {
    let server = Server::start();
    let words = ["explore", "--sandbox", "--schema", "node-idempotency", "-o", "json"];
    let explored = server.idemctl(&words).text();
    let at = explored.find("1:node-idempotency").expect("a token");
    let token: String = explored[at..].chars().take_while(|letter| *letter != '"').collect();
    let run = server.idemctl(&["explore", "--sandbox", "--replay", &token]);
    assert!(!run.stderr.contains("there is no schema"), "{}", run.all());
    assert!(!run.text().is_empty(), "{}", run.all());
}
