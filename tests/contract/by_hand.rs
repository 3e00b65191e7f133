//! `idemctl complete` on a service's own lock: the service finds its own bytes, and replays them.

use crate::services::{Begun, SERVICES};
use crate::support::Server;

const THEIRS: &str = "7f8f3f5c-97a9-4d2e-8a37-2b8b7a0c4c22";

/// The options that say what the service's own response is, as its contract keeps it.
fn response(schema: &str) -> &'static [&'static str] {
    match schema {
        "go-middleware-v1" => &[],
        "event-consumer" => &["--body", r#"{"id":7}"#],
        "event-driven" => &["--status", "201", "--body", r#"{"id":7}"#, "--owner", THEIRS],
        _ => &[
            "--status",
            "201",
            "--header",
            "content-type: application/json",
            "--body",
            r#"{"id":7}"#,
        ],
    }
}

#[test]
fn the_service_replays_what_an_operator_stored_for_it() {
    for service in &SERVICES {
        let server = Server::start();
        let mut redis = server.connect();
        assert_eq!((service.begin)(&mut redis, "order-1", THEIRS), Begun::Took);
        let words = ["complete", "order-1", "--schema", service.schema, "--yes"];
        server.idemctl(&[&words, response(service.schema)].concat()).exits(0);
        let begun = (service.begin)(&mut redis, "order-1", THEIRS);
        assert_eq!(begun, Begun::Stored(service.result.into()), "{}", service.schema);
    }
}

#[test]
fn the_service_turns_away_and_then_takes_what_an_operator_began_and_released() {
    for service in &SERVICES {
        let server = Server::start();
        let mut redis = server.connect();
        let owner: &[&str] =
            if service.schema == "event-driven" { &["--owner", THEIRS] } else { &[] };
        let step = |name| {
            server
                .idemctl(&[&[name, "order-1", "--schema", service.schema, "--yes"], owner].concat())
        };
        step("begin").exits(0);
        assert_eq!(
            (service.begin)(&mut redis, "order-1", THEIRS),
            Begun::Held,
            "{}",
            service.schema
        );
        let refused = if service.release.is_some() { 0 } else { 2 };
        step("release").exits(refused);
        let again = (service.begin)(&mut redis, "order-1", THEIRS);
        assert_eq!(
            again,
            if refused == 0 { Begun::Took } else { Begun::Held },
            "{}",
            service.schema
        );
    }
}
