//! The schemas of published libraries against the libraries themselves: the state of every record that a library wrote, and what
//! the next request gets, beside what the library answered when somebody asked the library.

use std::fmt::Write as _;

use serde_json::Value;

use super::recorded::{self, Recorded, Sample};
use crate::support::{Run, Runs, Server, alone, idemctl};

/// The words of the command line that say whose records are meant.
fn words(sample: &Sample) -> Vec<String> {
    let prefix = sample.prefix.iter().flat_map(|prefix| ["--prefix".to_owned(), prefix.clone()]);
    ["--schema".to_owned(), sample.schema.clone()].into_iter().chain(prefix).collect()
}

fn run(server: &Server, command: &[&str], sample: &Sample) -> Run {
    let words = words(sample);
    server.idemctl(
        &command.iter().copied().chain(words.iter().map(String::as_str)).collect::<Vec<_>>(),
    )
}

/// The record among these that a sample is; `None` where there is nothing.
fn record_of<'a>(records: &'a [Value], sample: &Sample) -> Option<&'a Value> {
    let keys = sample.redis_keys();
    let is_of = |record: &&Value| {
        let of_record = record["redis_keys"].as_array().unwrap();
        of_record.iter().any(|key| keys.iter().any(|known| key == known.as_str()))
    };
    records.iter().find(is_of)
}

/// What idemctl makes of a lot of samples: for each its record, and whether a list names the record.
fn looked_at(server: &Server, lot: &[&Sample]) -> Vec<(Option<Value>, bool)> {
    server.send::<()>(&[b"FLUSHALL"]);
    for sample in lot {
        sample.load(server);
    }
    let keys: Vec<_> = lot.iter().flat_map(|sample| sample.redis_keys()).collect();
    let inspect: Vec<_> =
        ["inspect", "-o", "json"].into_iter().chain(keys.iter().map(String::as_str)).collect();
    let inspected =
        if keys.is_empty() { Vec::new() } else { records(&run(server, &inspect, lot[0])) };
    let listed = records(&run(server, &["list", "-o", "json"], lot[0]));
    let of = |sample: &&Sample| {
        (record_of(&inspected, sample).cloned(), record_of(&listed, sample).is_some())
    };
    lot.iter().map(of).collect()
}

fn records(run: &Run) -> Vec<Value> {
    run.json()["records"].as_array().unwrap_or_else(|| panic!("{}", run.all())).clone()
}

/// A row for each sample: what idemctl says of the state and of the next request, the library's own answers, the findings.
fn rows(server: &Server, library: &Recorded) -> Vec<[String; 5]> {
    let mut rows = Vec::new();
    for lot in library.lots() {
        for (sample, (record, is_listed)) in lot.iter().zip(looked_at(server, &lot)) {
            rows.push(row(sample, record.as_ref(), is_listed));
        }
    }
    let place = |row: &[String; 5]| library.samples.iter().position(|sample| sample.name == row[0]);
    rows.sort_by_key(place);
    rows
}

fn row(sample: &Sample, record: Option<&Value>, is_listed: bool) -> [String; 5] {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let Some(record) = record else {
        return [
            sample.name.clone(),
            "nothing".into(),
            "execute".into(),
            sample.answers(),
            String::new(),
        ];
    };
    let state =
        if is_listed { text(&record["state"]) } else { format!("({})", text(&record["state"])) };
    let codes = record["findings"].as_array().unwrap().iter().map(|finding| text(&finding["code"]));
    let next = text(&record["next_request"]["answer"]);
    [sample.name.clone(), state, next, sample.answers(), codes.collect::<Vec<_>>().join(" ")]
}

fn table(rows: &[[String; 5]]) -> String {
    let head = ["sample", "state", "next", "the library", "findings"].map(str::to_owned);
    let lines: Vec<_> = std::iter::once(&head).chain(rows).collect();
    let width =
        |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
    let widths: Vec<_> = (0..5).map(width).collect();
    let mut table = String::new();
    for line in lines {
        let cells = line.iter().zip(&widths).map(|(cell, width)| format!("{cell:width$}"));
        let _ = writeln!(table, "{}", cells.collect::<Vec<_>>().join("  ").trim_end());
    }
    table
}

/// What idemctl calls an answer of the library to the same request.
fn predicted(answer: &str) -> &str {
    match answer {
        "executed" => "execute",
        "error" => "fail",
        same => same,
    }
}

/// Schemas that describe no begin step: of the next request idemctl says that nobody knows.
const OBSERVED: &[&str] = &["bullmq-deduplication", "bullmq-job", "sidekiq-unique-jobs"];

/// Where the library answers otherwise than the schema foretells, and why no schema can know: folder, sample, reason.
const DIFFERS: &[(&str, &str, &str)] = &[
    (
        "gofiber",
        "completed-v2.49",
        "from 2.50 on, the library fails on the headers that 2.49 stored, so the release decides",
    ),
    (
        "powertools-python",
        "orphan-being-reclaimed",
        "the lock of a takeover is in another slot of a cluster, so that idemctl does not read it",
    ),
    (
        "powertools-typescript",
        "orphan-being-reclaimed",
        "the lock of a takeover is in another slot of a cluster, so that idemctl does not read it",
    ),
    (
        "powertools-python",
        "completed-validation",
        "a deployment that compares payloads refuses every replay: the library drops the hash",
    ),
    (
        "powertools-typescript",
        "completed-validation",
        "a deployment that compares payloads refuses every replay: the library drops the hash",
    ),
    ("idempotency-kit", "in-progress-run", "`in_flight = \"run\"` is a setting of the deployment"),
    (
        "hono-idempotency",
        "not-json",
        "another program's text, which the library takes for nothing until SET NX finds the key",
    ),
    ("idempotent-api", "no-data", "another program's hash, which the library takes for nothing"),
    ("idempotent-api", "damaged", "the schema cannot tell it from another program's hash"),
    (
        "node-idempotency",
        "unknown-status",
        "another program's JSON, which the library takes for a result of another payload",
    ),
];

/// The samples whose next request the schema foretells otherwise than the library answered.
fn wrong(library: &Recorded, rows: &[[String; 5]]) -> Vec<String> {
    let answer = |sample: &Sample| {
        sample.answer("same").or_else(|| sample.answer("other-job")).map(str::to_owned)
    };
    let is_known = |sample: &str| {
        DIFFERS.iter().any(|(folder, name, _)| *folder == library.folder && *name == sample)
    };
    let is_wrong = |sample: &Sample, row: &[String; 5]| {
        let told = answer(sample).unwrap();
        let is_unknown = row[2] == "unknown";
        let is_observed =
            OBSERVED.contains(&sample.schema.as_str()) && !sample.redis_keys().is_empty();
        // Nothing is said of a value that lacks a field of its format, also if this library
        // replays it.
        let is_incomplete = row[1].starts_with('(');
        if is_unknown {
            !is_observed && !is_incomplete && !is_known(&sample.name)
        } else {
            (predicted(&told) != row[2]) != is_known(&sample.name)
        }
    };
    let judged = library.samples.iter().zip(rows).filter(|(sample, row)| is_wrong(sample, row));
    judged.map(|(sample, row)| format!("{}/{}: {row:?}", library.folder, sample.name)).collect()
}

#[test]
fn every_state_that_a_library_writes_is_read_as_the_library_reads_it() {
    let server = Server::start();
    let (mut shown, mut differing) = (String::new(), Vec::new());
    for library in recorded::libraries() {
        let rows = rows(&server, &library);
        let _ = writeln!(shown, "{} ({})\n{}", library.folder, library.schema(), table(&rows));
        differing.extend(wrong(&library, &rows));
    }
    insta::assert_snapshot!(shown);
    let differing = differing.join("\n");
    assert!(
        differing.is_empty(),
        "the next request gets something else than the library says, or than DIFFERS says:\n{differing}"
    );
}

#[test]
fn a_library_is_tried_where_somebody_names_it_and_nowhere_else() {
    let server = Server::holding(&[(
        "node-idempotency:POST:/payments:pay-1",
        r#"{"status":"IN_PROGRESS"}"#,
        60_000,
    )]);
    let found = |words: &[&str]| records(&server.idemctl(&[words, &["-o", "json"]].concat())).len();
    assert_eq!(found(&["list"]), 0, "no run reads a library unasked");
    assert_eq!(found(&["list", "--schema", "node-idempotency"]), 1);
    assert_eq!(found(&["inspect", "POST:/payments:pay-1", "--schema", "node-idempotency"]), 1);
    let stop = server.idemctl(&["list", "--schema", "node-idempotent"]).exits(2);
    stop.says("there is no schema `node-idempotent`").says("node-idempotency");

    let config =
        format!("[contexts.shop]\nurl = \"{}\"\nschema = [\"node-idempotency\"]\n", server.url());
    let file = server.folder().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let words = ["list", "--config", file.to_str().unwrap(), "--context", "shop", "-o", "json"];
    let adopted = idemctl(server.folder()).args(words).run();
    assert_eq!(records(&adopted).len(), 1, "{}", adopted.all());
}

#[test]
fn libraries_are_listed_where_somebody_asks_for_them() {
    let names = |words: &[&str]| {
        let document = alone(&[&["schema", "list", "-o", "json"], words].concat()).exits(0).json();
        let schemas = document["schemas"].as_array().unwrap().clone();
        schemas.iter().map(|schema| schema["name"].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    let recorded = recorded::libraries();
    let schemas: Vec<_> =
        recorded.iter().flat_map(|library| &library.samples).map(|sample| &sample.schema).collect();
    let (without, with) = (names(&[]), names(&["--libraries"]));
    for schema in schemas {
        assert!(
            !without.contains(schema) && with.contains(schema),
            "{schema}: {without:?} {with:?}"
        );
    }
    let unproven: Vec<_> = with.iter().filter(|name| !without.contains(name)).collect();
    let of_samples = |name: &&&String| {
        recorded.iter().flat_map(|library| &library.samples).any(|sample| sample.schema == ***name)
    };
    assert_eq!(
        unproven.iter().filter(of_samples).count(),
        unproven.len(),
        "each library has samples: {unproven:?}"
    );
}
