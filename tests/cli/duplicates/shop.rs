//! A shop with planted duplicates: all of them are found, and nothing else.

use super::{FIRST, found, keys, reference};
use crate::support::Server;
use crate::support::cluster::Cluster;
use crate::support::memory::peak_of;
use crate::support::terminal::{plain, shown_on};

const HOUR: u64 = 3_600_000;

/// Pairs of one order each.
const PAIRS: usize = 40;

fn records() -> Vec<(String, String)> {
    let mut records = Vec::new();
    for number in 0..400_u64 {
        let at = FIRST + number * 1_000;
        let value = reference("w", &format!("f-{number}"), at, &format!("order-{number}"));
        records.push((format!("idemkey:honest-{number:04x}"), value));
    }
    for pair in 0..PAIRS as u64 {
        for attempt in 0..2 {
            let created = FIRST + pair * 7_000 + attempt * 4_000;
            let value = reference("w", &format!("g-{pair}"), created, &format!("twice-{pair}"));
            records.push((format!("idemkey:pair-{pair}-{attempt}"), value));
        }
    }
    records
}

fn is_of_a_pair(keys: &[String]) -> bool {
    keys.len() == 2 && keys.iter().all(|key| key.starts_with("pair-"))
}

#[test]
fn all_planted_pairs_are_found() {
    let server = Server::filled(records(), 20 * HOUR);
    let words = ["--same", "/order/id", "--within", "15m"];
    let document = found(&server, &words).exits(1).json();
    assert_eq!(document["complete"], true);
    assert_eq!(document["records"], 480);
    let groups = keys(&document);
    assert_eq!(groups.len(), PAIRS);
    assert!(groups.iter().all(|keys| is_of_a_pair(keys)), "{groups:?}");
    let second = &document["groups"][0]["records"][1];
    assert_eq!((&second["gap_ms"], &second["at_is"]), (&4_000.into(), &"created".into()));
    assert_eq!(second["at_evidence"], "known");

    let table = server.idemctl(&[&["duplicates"], &words[..]].concat()).exits(1);
    table
        .says("In 40 of 40 groups, two or more operations completed.")
        .shows("/order/id \"twice-7\"  2 completed results\n")
        .shows("  pair-7-1  reference");

    // Two payments of one order that are further apart than --within are no group.
    let near = found(&server, &["--same", "/order/id", "--within", "3s"]).exits(0).json();
    assert_eq!(keys(&near), [] as [Vec<String>; 0]);
}

#[test]
fn a_cluster_is_compared_as_one_keyspace() {
    let cluster = Cluster::start(3);
    cluster.fill(records(), 20 * HOUR);
    let document =
        cluster.idemctl(&["duplicates", "-o", "json", "--same", "/order/id"]).exits(1).json();
    assert_eq!(keys(&document).len(), PAIRS);
    assert_eq!(document["complete"], true);
}

#[test]
fn a_spreadsheet_gets_one_row_per_record_and_no_formula() {
    let server = Server::filled(
        [
            ("idemkey:=1+1", reference("-w", "a", FIRST, "o,\\\"1")),
            ("idemkey:k\u{1b}[31m", reference("w", "b", FIRST + 1_500, "o,\\\"1")),
        ],
        20 * HOUR,
    );
    let run = server.idemctl(&["duplicates", "--same", "/order/id", "-o", "csv"]).exits(1);
    let text = run.text();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(
        lines[0],
        "group,same,values,key,schema,state,outcome,status,owner,at,at_is,at_evidence,gap_ms"
    );
    assert!(lines[1].contains(",'=1+1,reference,completed,completed,201,'-w,"), "{text}");
    assert!(lines[2].ends_with(",created,known,1500") && lines[2].contains("k\\x1b[31m"), "{text}");
    assert_eq!(lines.len(), 3);
    let raw = server.idemctl(&["duplicates", "--same", "/order/id", "-o", "tsv", "--raw-csv"]);
    assert!(raw.exits(1).text().contains("\t=1+1\treference\t"));
    let table = server.idemctl(&["duplicates", "--same", "/order/id"]).exits(1);
    assert!(!table.text().contains('\u{1b}'), "{}", table.all());
}

/// Rule: on a terminal, no line is wider than it.
#[test]
fn lines_fit_a_narrow_terminal() {
    let server = Server::start();
    let order = "o".repeat(300);
    for key in ["6e3ca9a3-5d9d-48c6-b6ed-1a88aa7864f5", "6fffce6a-f265-4a83-96d4-0f7e05a31707"] {
        server.set(&format!("idemkey:{key}"), reference("w", key, FIRST, &order), 20 * HOUR);
    }
    let words = ["duplicates", "--same", "/order/id"];
    let run = shown_on(80, &server.command(), &words).exits(1);
    let text = plain(&run);
    let (table, _) = text.split_once("In 1 of 1 groups").unwrap();
    for line in table.lines() {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
    let csv = server.idemctl(&["duplicates", "--same", "/order/id", "-o", "csv"]).exits(1);
    assert!(csv.text().contains(&order), "{}", csv.all());
}

/// Rule: memory stays near that of the records, also if all of them are one group of the table.
#[test]
fn one_large_group_needs_little_memory() {
    let mut records = Vec::new();
    for number in 0..20_000 {
        records.push((format!("idemkey:k-{number}"), reference("w", "f", FIRST, "same")));
    }
    let server = Server::filled(records, 20 * HOUR);
    for output in ["table", "json", "csv"] {
        let mut command = server.command();
        command.args(["duplicates", "--same", "/order/id", "-o", output]);
        let (run, peak) = peak_of(&mut command);
        assert!(run.exits(1).stdout.len() > 20_000 * 50);
        assert!(peak < 64 << 20, "{output}: {} MiB", peak >> 20);
    }
}
