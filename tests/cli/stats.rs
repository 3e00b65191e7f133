//! `idemctl stats` from the outside.

use std::collections::BTreeSet;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use serde_json::Value;

use crate::support::{DONE, PENDING, Server};

fn seeded() -> Server {
    let server = Server::holding(&[("idempotency:shop:order-1", PENDING, 20_000)]);
    server.send::<()>(&[b"SET", b"idempotency:shop:order-2", br#"{"status":"PENDING"}"#]);
    let result = DONE;
    server.set("idempotency:web:order-3", result, 7_200_000);
    server.set("idempotency:web:order-4", "{garbage", 7_200_000);
    server.set("idem:started:a", "worker-7", 20_000);
    server.set("idem:started:b", "worker-7", 20_000);
    server.set("idem:started:c", "worker-8", 20_000);
    server.set("unrelated", "x", 20_000);
    server
}

fn rows(server: &Server, options: &[&str]) -> Vec<Value> {
    let run = server.idemctl(&[&["stats", "-o", "json"], options].concat()).exits(0).json();
    run["rows"].as_array().unwrap().clone()
}

fn counts(server: &Server, by: &str) -> Vec<(String, Value, u64)> {
    let row = |row: &Value| {
        (
            row["schema"].as_str().unwrap().to_owned(),
            row[by].clone(),
            row["records"].as_u64().unwrap(),
        )
    };
    rows(server, &["--by", by]).iter().map(row).collect()
}

#[test]
fn counts_records_bytes_and_memory_by_schema_and_state() {
    let server = seeded();
    let rows = rows(&server, &[]);
    let named: Vec<_> = rows
        .iter()
        .map(|row| [&row["schema"], &row["state"]].map(|name| name.as_str().unwrap()))
        .collect();
    let go = |state| ["go-middleware", state];
    assert_eq!(
        named,
        [["event-driven", "in-progress"], go("completed"), go("in-progress"), go("unreadable")]
    );
    let locks = &rows[2];
    assert_eq!(
        (&locks["records"], &locks["bytes"], &locks["no_expiry"]),
        (&2.into(), &40.into(), &1.into())
    );
    let told: u64 = ["idempotency:shop:order-1", "idempotency:shop:order-2"]
        .map(|key| server.send::<u64>(&[b"MEMORY", b"USAGE", key.as_bytes()]))
        .iter()
        .sum();
    assert_eq!((&locks["memory_bytes"], &locks["memory_sampled"]), (&told.into(), &false.into()));
    assert_eq!(
        locks["ttl"]
            .as_array()
            .unwrap()
            .iter()
            .map(|range| range["records"].as_u64().unwrap())
            .sum::<u64>(),
        1
    );
    let run = server.idemctl(&["stats", "-o", "json"]).exits(0).json();
    assert_eq!(
        (&run["keys_walked"], &run["complete"], &run["format"]),
        (&7.into(), &true.into(), &1.into())
    );
    assert_eq!(
        run["owners"],
        serde_json::json!([{"owner": "worker-7", "locks": 2}, {"owner": "worker-8", "locks": 1}])
    );
}

#[test]
fn counts_by_what_is_asked_for() {
    let server = seeded();
    let named = |schema: &str, group: Value, count| (schema.to_owned(), group, count);
    let (go, events) = ("go-middleware", "event-driven");
    assert_eq!(
        counts(&server, "owner"),
        [
            named(events, "worker-7".into(), 2),
            named(events, "worker-8".into(), 1),
            named(go, Value::Null, 4)
        ]
    );
    assert_eq!(
        counts(&server, "prefix"),
        [
            named(events, "idem:started:".into(), 3),
            named(go, "idempotency:shop:".into(), 2),
            named(go, "idempotency:web:".into(), 2)
        ]
    );
    assert_eq!(
        counts(&server, "status"),
        [named(events, Value::Null, 3), named(go, "201".into(), 1), named(go, Value::Null, 3)]
    );
    assert!(counts(&server, "finding").contains(&named(go, "no-expiry".into(), 1)));
}

#[test]
fn the_table_has_bars_and_the_owners_with_most_locks() {
    let run = seeded().idemctl(&["stats"]).exits(0);
    for line in [
        "SCHEMA ",
        "\nTime left\n  ≤  1m      ",
        "\n  no expiry  █",
        "\nAge\n",
        "\nOwners with the most locks\n  worker-7  2\n  worker-8  1\n",
    ] {
        run.shows(line);
    }
}

/// The rules of `promtool check metrics`: help and type once before the samples, no sample twice, base units.
#[test]
fn prometheus_reads_the_figures() {
    let server = seeded();
    let text = server.idemctl(&["stats", "--prometheus"]).exits(0).text();
    let mut described = "";
    let mut samples = Vec::new();
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            described = help.split(' ').next().unwrap();
        } else if let Some(kind) = line.strip_prefix("# TYPE ") {
            assert_eq!(kind, format!("{described} gauge"));
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            assert_eq!(sample.split('{').next().unwrap(), described);
            assert!(value.parse::<f64>().is_ok(), "{line}");
            assert!(!samples.contains(&sample.to_owned()), "{line} is there twice");
            samples.push(sample.to_owned());
        }
    }
    let of_run = format!(r#"server="{}/0",context="""#, server.socket().display());
    for sample in [
        r#"idemctl_records{RUN,schema="event-driven",state="in-progress"} 3"#,
        r#"idemctl_findings{RUN,code="overdue"} 0"#,
        "idemctl_up{RUN} 1",
    ] {
        assert!(text.contains(&sample.replace("RUN", &of_run)), "{sample}\n{text}");
    }
    assert!(!text.contains("_total"), "a gauge is no counter");
}

#[test]
fn a_file_of_figures_appears_whole_and_others_may_read_it() {
    let server = seeded();
    let file = server.folder().join("idemctl.prom");
    fs::write(&file, "old").unwrap();
    let path = file.to_str().unwrap();
    let run = server.idemctl(&["stats", "--prometheus", path]).exits(0);
    assert_eq!(run.text(), "");
    assert!(fs::read_to_string(&file).unwrap().starts_with("# HELP "));
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o444, 0o444);
    let left: Vec<_> =
        fs::read_dir(server.folder()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert!(!left.iter().any(|name| name.to_string_lossy().starts_with(".tmp")), "{left:?}");
    let folder = server.folder().to_str().unwrap().to_owned();
    server.idemctl(&["stats", "--prometheus", &folder]).exits(2).says("cannot write the figures");
}

#[test]
fn nothing_there_is_said_with_what_was_walked() {
    let server = Server::start();
    server
        .idemctl(&["stats"])
        .exits(0)
        .says("no such records among 0 keys")
        .says("not read: schema go-chi");
    server.idemctl(&["stats", "--prometheus", "-o", "json"]).exits(2);
}

#[test]
fn figures_are_rows_for_a_spreadsheet() {
    let server = seeded();
    let csv = server.idemctl(&["stats", "-o", "csv"]).exits(0).text();
    let json = server.idemctl(&["stats", "-o", "json"]).exits(0).json();
    let heading = "schema,state,records,bytes,memory_bytes,memory_sampled,oldest_age_ms,oldest_age_evidence,no_expiry,no_age";
    assert_eq!(csv.lines().next().unwrap(), heading);
    let rows = json["rows"].as_array().unwrap();
    assert_eq!(csv.lines().count(), rows.len() + 1, "{csv}");
    for (line, row) in csv.lines().skip(1).zip(rows) {
        let fields: Vec<_> = line.split(',').collect();
        assert_eq!(fields[..2], [row["schema"].as_str().unwrap(), row["state"].as_str().unwrap()]);
        assert_eq!(fields[2..4], [row["records"].to_string(), row["bytes"].to_string()]);
    }
    let tsv = server.idemctl(&["stats", "-o", "tsv", "--by", "owner"]).exits(0).text();
    assert!(tsv.starts_with("schema\towner\trecords\t"), "{tsv}");
}

/// The value of the only sample of a metric.
fn sample(text: &str, name: &str) -> f64 {
    let mut lines = text.lines().filter(|line| line.starts_with(&format!("{name}{{")));
    let line = lines.next().unwrap_or_else(|| panic!("no {name}:\n{text}"));
    line.rsplit_once(' ').unwrap().1.parse().unwrap()
}

/// Rule: figures of a server that cannot be read any more do not stay.
#[test]
fn a_server_that_does_not_answer_is_told_in_the_file_of_figures() {
    let mut server = seeded();
    server.send::<()>(&[b"ACL", b"SETUSER", b"ops", b"on", b">s3cret", b"~*", b"+@all"]);
    let login = "user = \"ops\"\npassword = \"s3cret\"\n";
    server.configure(&format!("[contexts.prod]\nurl = \"{}\"\n{login}", server.url()));
    let file = server.folder().join("idemctl.prom");
    let words = ["--context", "prod", "stats", "--prometheus", file.to_str().unwrap()];
    server.unnamed(&words).exits(0);
    let before = fs::read_to_string(&file).unwrap();
    assert!(before.contains("context=\"prod\"") && !before.contains("s3cret"), "{before}");
    assert!(sample(&before, "idemctl_up") > 0.5 && before.contains("idemctl_records{"), "{before}");
    server.unnamed(&[&words[..], &["--schema", "nosuch"]].concat()).exits(2);
    assert_eq!(fs::read_to_string(&file).unwrap(), before, "a slip says nothing of the server");
    server.kill();
    server.unnamed(&words).exits(5);
    let after = fs::read_to_string(&file).unwrap();
    assert!(sample(&after, "idemctl_up") < 0.5 && !after.contains("idemctl_records"), "{after}");
    let ran = |text: &str| sample(text, "idemctl_last_run_timestamp_seconds");
    assert!(ran(&after) >= ran(&before) && ran(&before) > 1e9, "{before}{after}");
    let labels = |text: &str| {
        text.split_once("idemctl_up{").unwrap().1.split_once('}').unwrap().0.to_owned()
    };
    assert_eq!(labels(&after), labels(&before));
}

/// The names of metrics in a text.
fn metrics(text: &str) -> BTreeSet<String> {
    let is_part = |letter: char| letter.is_ascii_lowercase() || letter == '_';
    let mut names = BTreeSet::new();
    for (at, _) in text.match_indices("idemctl_") {
        names.insert(text[at..].chars().take_while(|letter| is_part(*letter)).collect());
    }
    names
}

/// Rule: alert rules and the dashboard ask for nothing that is never written.
#[test]
fn rules_and_dashboard_name_metrics_that_are_written() {
    let server = seeded();
    let text = server.idemctl(&["stats", "--prometheus"]).exits(0).text();
    let types = text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next());
    let written: BTreeSet<_> = types.map(str::to_owned).collect();
    for file in ["prometheus/idemctl.rules.yml", "grafana/idemctl.json"] {
        let text =
            fs::read_to_string(format!("{}/contrib/{file}", env!("CARGO_MANIFEST_DIR"))).unwrap();
        let named = metrics(&text);
        assert!(
            named.len() >= 4 && named.is_subset(&written),
            "{file}: {:?}",
            named.difference(&written)
        );
        for code in text.match_indices("code=").map(|(at, _)| &text[at..]) {
            let code =
                code.split(['"', '\\']).find(|part| !part.is_empty() && *part != "code=").unwrap();
            assert!(
                idemctl::domain::diagnosis::FindingCode::ALL
                    .iter()
                    .any(|known| known.as_str() == code),
                "{file}: {code}"
            );
        }
    }
    let dashboard =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/grafana/idemctl.json"))
            .unwrap();
    let dashboard: Value = serde_json::from_str(&dashboard).unwrap();
    assert_eq!(dashboard["panels"].as_array().unwrap().len(), 11);
}

/// Rule: a database with keys of no schema is not said to be empty. Revert: without `show_none`.
#[test]
fn keys_of_no_schema_are_counted_where_nothing_was_found() {
    let server = Server::holding(&[("ichido:k0", "x", 80_000), ("ichido:k1", "x", 80_000)]);
    for words in
        [&["list"][..], &["stats"], &["sweep", "--orphaned", "--dry-run"], &["purge", "--dry-run"]]
    {
        let run = server.idemctl(&[words, &["--schema", "express"]].concat());
        run.says("none of the 2 Redis keys of ");
        run.says(" has a name of these schemas");
    }
}
