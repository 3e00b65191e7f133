//! What the services leave in Redis, as idemctl shows it.

use idemctl::domain::diagnosis::Thresholds;
use idemctl::domain::record::Record;
use idemctl::domain::record::locate;
use idemctl::domain::schema::State;
use idemctl::domain::schema::catalog::Catalog;
use idemctl::domain::step::next_request::Answer;
use idemctl::schemas::{self, Deployment};

use crate::support::Server;
use crate::support::library::Library;
use crate::support::wire;

const WORKER: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";

/// The records of an idempotency key, or of a Redis key, as `inspect` finds them.
fn records(server: &Server, text: &str, named: &[&str], prefix: Option<&str>) -> Vec<Record> {
    let deployment =
        |_: &str| Deployment { shared_prefix: prefix.map(str::to_owned), ..Deployment::default() };
    let names: Vec<_> = named.iter().map(|name| (*name).to_owned()).collect();
    let catalog = Catalog::new(schemas::load(None, deployment).unwrap().schemas, &names).unwrap();
    let library = Library::on(server);
    let places = locate::for_key(&catalog, text.as_bytes());
    let keys: Vec<_> = places.iter().map(|place| place.redis_keys.clone()).collect();
    let seen = library.observe(&keys);
    let records = |(place, seen)| locate::records(&catalog, place, seen, &Thresholds::default());
    places.iter().zip(seen).flat_map(records).collect()
}

/// What a service wrote, and what idemctl must say of it.
struct Row {
    schema: &'static str,
    /// The commands the service sent.
    sent: &'static [&'static str],
    state: State,
    owner: Option<&'static str>,
    /// Seconds left of what decides.
    left: u64,
    /// Status, headers and body of the stored response.
    response: Option<(Option<i64>, &'static str, &'static str)>,
    next: Answer,
    client: Option<&'static str>,
    findings: &'static [&'static str],
}

const ROW: Row = Row {
    schema: "",
    sent: &[],
    state: State::InProgress,
    owner: None,
    left: 0,
    response: None,
    next: Answer::Conflict,
    client: Some("409 Conflict"),
    findings: &[],
};

const DONE: Row =
    Row { state: State::Completed, left: 86_400, next: Answer::Replay, client: None, ..ROW };

const ROWS: &[Row] = &[
    Row {
        schema: "go-middleware",
        sent: &[r#"SET idempotency:k {"status":"PENDING"} NX EX 300"#],
        left: 300,
        ..ROW
    },
    Row {
        schema: "go-middleware",
        sent: &[
            r#"SET idempotency:k {"status":"PENDING"} NX EX 300"#,
            r#"SET idempotency:k {"status":"COMPLETED","code":201,"headers":{"Content-Type":["application/json"],"Link":["\u003c/a\u003e","\u003c/b\u003e"]},"body":"eyJpZCI6N30="} EX 86400"#,
        ],
        response: Some((
            Some(201),
            "Content-Type: application/json|Link: </a>|Link: </b>",
            r#"{"id":7}"#,
        )),
        ..DONE
    },
    Row {
        schema: "go-middleware-v1",
        sent: &["SET idempotency:k in-progress NX EX 300"],
        left: 300,
        findings: &["foreign-schema"],
        ..ROW
    },
    Row {
        schema: "go-middleware-v1",
        sent: &["SET idempotency:k in-progress NX EX 300", "SET idempotency:k completed EX 86400"],
        findings: &["foreign-schema"],
        ..DONE
    },
    Row { schema: "go-chi", sent: &[r#"SET k {"status":0} NX EX 60"#], left: 60, ..ROW },
    Row {
        schema: "go-chi",
        sent: &[
            r#"SET k {"status":0} NX EX 60"#,
            r#"SET k {"status":1,"response":{"StatusCode":404,"Header":{"Content-Type":["text/plain"]},"Body":"bm8="}} EX 86400"#,
        ],
        response: Some((Some(404), "Content-Type: text/plain", "no")),
        ..DONE
    },
    Row {
        schema: "event-driven",
        sent: &["SET idem:started:k 0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11 NX EX 30"],
        owner: Some(WORKER),
        left: 30,
        ..ROW
    },
    Row {
        schema: "event-driven",
        sent: &[
            "SET idem:started:k 0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11 NX EX 30",
            r#"SET idem:result:k {"statusCode":200,"body":"paid"} EX 86400"#,
            "DEL idem:started:k",
        ],
        response: Some((Some(200), "", "paid")),
        ..DONE
    },
    Row {
        schema: "event-driven",
        sent: &[r#"SET idem:result:k {"statusCode":500,"body":"","error":"declined"} EX 86400"#],
        response: Some((Some(500), "", "")),
        ..DONE
    },
    Row {
        schema: "event-driven",
        sent: &[r#"SET idem:result:k {"storage":"s3","bucket":"results","key":"2024/k"} EX 86400"#],
        ..DONE
    },
    Row {
        schema: "event-driven",
        sent: &[
            "SET idem:started:k w NX EX 30",
            r#"SET idem:result:k {"statusCode":200,"body":""} EX 86400"#,
        ],
        owner: Some("w"),
        response: Some((Some(200), "", "")),
        findings: &["leftover-lock"],
        ..DONE
    },
    Row {
        schema: "express",
        sent: &[r#"SET idem:k {"status":"IN_PROGRESS"} NX EX 30"#],
        left: 30,
        ..ROW
    },
    Row {
        schema: "express",
        sent: &[
            r#"SET idem:k {"status":"COMPLETED","statusCode":201,"headers":{"content-type":"application/json;charset=utf-8"},"body":{"id":12345678901234567890,"list":[]}} EX 86400"#,
        ],
        response: Some((
            Some(201),
            "content-type: application/json;charset=utf-8",
            r#"{"id":12345678901234567890,"list":[]}"#,
        )),
        ..DONE
    },
    Row {
        schema: "express",
        sent: &[
            r#"SET idem:k {"status":"COMPLETED","statusCode":204,"headers":{},"body":"plain"} EX 86400"#,
        ],
        response: Some((Some(204), "", "plain")),
        ..DONE
    },
    Row {
        schema: "event-consumer",
        sent: &["SET idem:lock:k 1 NX EX 60"],
        left: 60,
        client: Some("negative acknowledgement, redelivered"),
        ..ROW
    },
    Row {
        schema: "event-consumer",
        sent: &["SET idem:lock:k 1 NX EX 60", "SET idem:done:k 1 EX 86400", "DEL idem:lock:k"],
        client: Some("acknowledged"),
        ..DONE
    },
    Row {
        schema: "event-consumer",
        sent: &["SET idem:done:k {\"id\":7} EX 86400"],
        response: Some((None, "", "{\"id\":7}")),
        client: Some("acknowledged"),
        ..DONE
    },
    Row {
        schema: "event-consumer",
        sent: &["SET idem:lock:k 1 NX EX 60", "SET idem:done:k 1 EX 86400"],
        client: Some("acknowledged"),
        findings: &["leftover-lock"],
        ..DONE
    },
];

fn headers(record: &Record) -> String {
    let headers = record.response().map(|response| response.headers).unwrap_or_default();
    headers.iter().map(|(name, value)| format!("{name}: {value}")).collect::<Vec<_>>().join("|")
}

#[track_caller]
fn assert_shown(record: &Record, row: &Row) {
    let what = format!("{}: {:?}", row.schema, row.sent);
    assert_eq!((record.schema.name.as_str(), record.state), (row.schema, row.state), "{what}");
    assert_eq!(record.owner(), row.owner.map(str::as_bytes), "{what}");
    let left = record.time_left().and_then(|expiry| expiry.millis()).unwrap();
    assert_eq!(left.div_ceil(1_000), row.left, "{what}");
    let age = record.age.expect("it was written a moment ago");
    assert!(age.millis < 2_000, "{what}: {age:?}");
    let body =
        record.response().map(|response| String::from_utf8_lossy(&response.body).into_owned());
    let status = record.response().and_then(|response| response.status);
    let shown = body.map(|body| (status, headers(record), body));
    let wanted =
        row.response.map(|(status, headers, body)| (status, headers.to_owned(), body.to_owned()));
    assert_eq!(shown, wanted, "{what}");
    assert_eq!(
        (record.next_request.answer, record.next_request.client.as_deref()),
        (row.next, row.client),
        "{what}"
    );
    let until = record.next_request.until.and_then(|until| until.millis()).unwrap();
    assert_eq!(until, left, "{what}: the answer holds as long as what decides it");
    let findings: Vec<_> = record.findings.iter().map(|finding| finding.code.as_str()).collect();
    assert_eq!(findings, row.findings, "{what}");
}

#[test]
fn each_record_of_each_service_is_shown_as_what_it_is() {
    for row in ROWS {
        let server = Server::start();
        let mut connection = server.connect();
        for command in row.sent {
            let words: Vec<_> = command.split(' ').collect();
            assert!(
                !wire::line(&wire::ask(&mut connection, &words)).starts_with("error"),
                "{command}"
            );
        }
        let shown = records(&server, "k", &[], None);
        assert_eq!(shown.len(), 1, "{}: {:?}", row.schema, row.sent);
        assert_shown(&shown[0], row);
        // By its Redis key too.
        let redis_key = row.sent[0].split(' ').nth(1).unwrap();
        let shown = records(&server, redis_key, &[], None);
        assert_eq!(shown.len(), 1, "{redis_key}");
        assert_shown(&shown[0], row);
    }
}

#[test]
fn an_error_and_a_pointer_to_a_blob_are_shown() {
    let server = Server::start();
    server.set("idem:result:failed", r#"{"statusCode":500,"body":"","error":"declined"}"#, 60_000);
    server.set(
        "idem:result:large",
        r#"{"storage":"s3","bucket":"results","key":"2024/k"}"#,
        60_000,
    );
    assert_eq!(records(&server, "failed", &[], None)[0].error(), Some("declined"));
    assert_eq!(records(&server, "large", &[], None)[0].blob().unwrap()["bucket"], "results");
}

#[test]
fn a_deployments_prefix_leads_to_its_records() {
    let server = Server::holding(&[("pay:k", r#"{"status":0}"#, 60_000)]);
    assert_eq!(records(&server, "k", &[], None).len(), 0, "without the prefix it is another key");
    let shown = records(&server, "k", &[], Some("pay:"));
    assert_eq!(
        shown.iter().map(|record| record.schema.name.as_str()).collect::<Vec<_>>(),
        ["go-chi"]
    );
}

#[test]
fn an_idempotency_key_that_looks_like_another_services_redis_key_is_that_services() {
    // `idem:lock:k` fits express as the idempotency key `lock:k`, but the consumer's template is
    // the more specific.
    let server = Server::holding(&[("idem:lock:k", "1", 60_000)]);
    for text in ["k", "idem:lock:k", "lock:k"] {
        let names: Vec<_> = records(&server, text, &[], None)
            .iter()
            .map(|record| record.schema.name.clone())
            .collect();
        let wanted: &[&str] = if text == "lock:k" { &[] } else { &["event-consumer"] };
        assert_eq!(names, wanted, "{text}");
    }
}

#[test]
fn a_value_that_a_schema_without_prefix_could_read_stays_its_owners() {
    let server = Server::holding(&[("idem:done:k", r#"{"status":1}"#, 60_000)]);
    for text in ["k", "idem:done:k"] {
        let names: Vec<_> = records(&server, text, &[], None)
            .iter()
            .map(|record| record.schema.name.clone())
            .collect();
        assert_eq!(names, ["event-consumer"], "{text}");
    }
    assert_eq!(
        records(&server, "idem:done:k", &["go-chi"], None).len(),
        1,
        "unless the operator says so"
    );
}
