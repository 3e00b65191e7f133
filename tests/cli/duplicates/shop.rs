//! A shop with planted duplicates: all of them are found, and nothing else is strong.

use super::{FIRST, found, keys, reference};
use crate::support::Server;
use crate::support::cluster::Cluster;
use crate::support::terminal::{plain, shown_on};

const HOUR: u64 = 3_600_000;

/// Pairs of one order each. A third has new keys, a third keys with a timestamp at the end, and a
/// third different fingerprints as well.
const PAIRS: usize = 40;

fn records() -> Vec<(String, String)> {
    let mut records = Vec::new();
    for number in 0..400_u64 {
        let at = FIRST + number * 1_000;
        let value = reference("w", &format!("f-{number}"), at, &format!("order-{number}"));
        records.push((format!("idemkey:honest-{number:04}x"), value));
    }
    for pair in 0..PAIRS as u64 {
        let (at, order) = (FIRST + pair * 7_000, format!("twice-{pair}"));
        for attempt in 0..2 {
            let mut fingerprint = format!("g-{pair}");
            let key = match pair % 3 {
                0 => format!("idemkey:{:08x}-{attempt}a", pair * 7_919),
                1 => format!("idemkey:checkout-{pair}x-{}", 1_795_000_000 + attempt),
                _ => {
                    fingerprint = format!("g-{pair}-{attempt}");
                    format!("idemkey:cart{pair}:{attempt}b")
                }
            };
            let created = at + attempt * 4_000;
            records.push((key, reference("w", &fingerprint, created, &order)));
        }
    }
    // Two honest orders with equal payloads, by different workers.
    records.push(("idemkey:friend-a".to_owned(), reference("w-1", "same", FIRST, "o-a")));
    records.push(("idemkey:friend-b".to_owned(), reference("w-2", "same", FIRST + 5_000, "o-b")));
    records
}

fn is_of_a_pair(keys: &[String]) -> bool {
    let is_planted = |key: &String| !key.starts_with("honest") && !key.starts_with("friend");
    keys.len() == 2 && keys.iter().all(is_planted)
}

#[test]
fn all_planted_pairs_are_found_and_the_false_friend_is_weak() {
    let server = Server::filled(records(), 20 * HOUR);
    let words = ["--same", "/order/id", "--within", "15m"];
    let run = found(&server, &words).exits(1);
    let document = run.json();
    assert_eq!(document["strong_groups"], PAIRS);
    assert_eq!(document["weak_groups"], 1);
    assert_eq!(document["complete"], true);
    assert_eq!(document["records"], 482);
    assert_eq!(document["repeated_results"], serde_json::json!([{"completed": 2, "groups": 40}]));
    let groups = keys(&document);
    assert_eq!(groups.iter().filter(|keys| is_of_a_pair(keys)).count(), PAIRS);
    let groups = document["groups"].as_array().unwrap();
    let weak = &groups[PAIRS];
    assert_eq!((&weak["evidence"], &weak["values_differ"]), (&"weak".into(), &true.into()));
    assert_eq!(
        (&weak["records"][0]["key"], &weak["records"][1]["gap_ms"]),
        (&"friend-a".into(), &5_000.into())
    );
    let strong = &groups[0];
    assert_eq!(strong["longest_gap_ms"], 4_000);
    assert_eq!(
        (&strong["time_evidence"], &strong["records"][0]["at_is"]),
        (&"known".into(), &"created".into())
    );

    let table = server.idemctl(&[&["duplicates"], &words[..]].concat()).exits(1);
    table
        .says("40 groups (strong evidence): 40 have 2 completed results.")
        .says("1 group (weak evidence, because honest requests may have equal payloads)")
        .says("Time between two records of a group of strong evidence: 4s.")
        .says("Probable cause in 13 groups: the client makes a new key for each attempt")
        .shows("fingerprint same: weak evidence, 2 keys, 2 completed; /order/id differs");

    // Two payments of one order that are further apart than --within are no group.
    let near = found(&server, &["--same", "/order/id", "--within", "3s"]).exits(0).json();
    assert_eq!(keys(&near), [] as [Vec<String>; 0]);

    // Without --same, an equal fingerprint is weak, unless the operator says that owners matter.
    let by_fingerprint = found(&server, &[]).exits(1).json();
    let counts = ["strong_groups", "weak_groups"].map(|name| by_fingerprint[name].as_u64());
    assert_eq!(counts, [Some(0), Some(28)]);
    let with_owner = found(&server, &["--also", "owner"]).exits(1).json();
    assert_eq!((&with_owner["strong_groups"], &with_owner["weak_groups"]), (&27.into(), &0.into()));
    let with_stem = found(&server, &["--same", "/order/id", "--also", "stem"]).exits(1).json();
    assert_eq!(with_stem["strong_groups"], 13);
    assert_eq!(with_stem["groups"][0]["values"][1]["name"], "key stem");
}

#[test]
fn a_cluster_is_compared_as_one_keyspace() {
    let cluster = Cluster::start(3);
    cluster.fill(records(), 20 * HOUR);
    let document =
        cluster.idemctl(&["duplicates", "-o", "json", "--same", "/order/id"]).exits(1).json();
    assert_eq!((&document["strong_groups"], &document["weak_groups"]), (&PAIRS.into(), &1.into()));
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
        "group,evidence,basis,same,values,also,key,schema,state,outcome,status,owner,at,at_is,at_evidence,gap_ms"
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
    let words = ["duplicates", "--no-pager", "--same", "/order/id"];
    let run = shown_on(80, &server.command(), &words).exits(1);
    let text = plain(&run);
    let (table, _) = text.split_once("1 group").unwrap();
    let (heading, rows) = table.split_once('\n').unwrap();
    assert!(heading.ends_with(": 2 keys, 2 completed") && !heading.contains(&order), "{text}");
    for line in rows.lines() {
        assert!(line.chars().count() <= 80, "{line}\n{text}");
    }
    server
        .idemctl(&words)
        .exits(1)
        .says("Probable cause in 1 group")
        .says("because each key is a UUID of its own.")
        .shows(&order);
}
