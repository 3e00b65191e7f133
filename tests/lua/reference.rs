//! What the tests of the four reference scripts share: records as they stand in Redis, and strings that are none.

use idemctl::domain::step::reply::StepReply;

use crate::bench::Bench;
use crate::support::wire::STRAY;

pub const KEY: &str = "idemkey:order-1";
pub const OWNER: &str = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";
pub const OTHER: &str = "7f8f3f5c-97a9-4d2e-8a37-2b8b7a0c4c22";
pub const PRINT: &str = "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08";

/// Text that is no number of seconds above 0, or is more than a record may live; a space between them.
const BAD_TTLS: &str = r#"
    0 -1 -0.5 -0 1e-400 nan -nan inf -inf ten 30s 1,5 1000000001 99999999999999999999
"#;

/// A number of seconds, and the milliseconds it stands for.
pub const TTLS: &[(&str, i64)] = &[
    ("30", 30_000),
    ("1.5", 1_500),
    ("0.0001", 1),
    ("30.0", 30_000),
    ("1e3", 1_000_000),
    (" 30", 30_000),
    ("1000000000", 1_000_000_000_000),
];

/// A lock as `begin` writes it.
pub fn lock(owner: &str) -> String {
    format!(
        r#"{{"state":"in-progress","owner":"{owner}","fingerprint":"{PRINT}","created_at":1735689600123}}"#
    )
}

/// A result as `complete` writes it.
pub fn result(state: &str, owner: &str, response: &str) -> String {
    let begun = format!(r#""owner":"{owner}","fingerprint":"{PRINT}","created_at":1735689600123"#);
    format!(r#"{{"state":"{state}",{begun},"completed_at":1735689600456,"response":{response}}}"#)
}

/// The results there can be of one owner.
pub fn results(owner: &str) -> [String; 2] {
    ["completed", "failed"].map(|state| result(state, owner, r#"{"status":201}"#))
}

/// Strings that are no record: anything, records that are cut off, followed by something, or almost right.
fn no_records() -> Vec<Vec<u8>> {
    let mut texts: Vec<Vec<u8>> = STRAY.iter().map(|text| text.to_vec()).collect();
    let lock = lock(OWNER);
    for record in [lock.clone(), result("completed", OWNER, "1")] {
        texts.extend((1..record.len()).map(|end| record.as_bytes()[..end].to_vec()));
        texts.push(format!(" {record}").into_bytes());
        texts.push(record.replace("\"state\":", "\"state\": ").into_bytes());
        texts.push(record.replace(OWNER, "").into_bytes());
        texts.push(
            record.replace("\"created_at\":1735689600123", "\"created_at\":\"now\"").into_bytes(),
        );
    }
    texts.extend([" ", "\n", "\0", "}", "x"].map(|more| format!("{lock}{more}").into_bytes()));
    let states = ["weird", "in-progress", "Completed", "", "completed\0"];
    texts.extend(states.map(|state| result(state, OWNER, "1").into_bytes()));
    texts.push(lock.replace("in-progress", "completed").into_bytes());
    texts.push(result("completed", OWNER, "").into_bytes());
    texts
}

/// Asserts that a script leaves alone what is no record, and says so.
#[track_caller]
pub fn leaves_what_is_no_record(bench: &mut Bench, args: &[&str]) {
    for text in no_records() {
        bench.put_expiring(KEY, &text);
        bench.assert_leaves(&[KEY], args, "error UNREADABLE");
    }
    bench.each_type(KEY, |bench| bench.assert_leaves(&[KEY], args, "error WRONGTYPE"));
}

/// Asserts that a script refuses malformed TTLs and changes nothing, whatever stands there.
#[track_caller]
pub fn refuses_bad_ttls(bench: &mut Bench, args_with: impl Fn(&str) -> Vec<String>) {
    for held in [None, Some(lock(OWNER)), Some(result("completed", OWNER, "1"))] {
        bench.ask(&["DEL", KEY]);
        if let Some(held) = held {
            bench.put_expiring(KEY, held);
        }
        for ttl in BAD_TTLS.split_whitespace().chain(["", " ", "1 5"]) {
            bench.assert_leaves(&[KEY], &args_with(ttl), "error INVALID");
        }
    }
}

/// Asserts that the Redis key has just been given this many milliseconds.
#[track_caller]
pub fn assert_ms(bench: &mut Bench, wanted: i64) {
    let left = bench.pttl(KEY);
    // One millisecond may be over already.
    let gone = wanted == 1 && left == -2;
    assert!(gone || (left <= wanted && left > wanted - 2_000), "{left} ms left of {wanted}");
}

/// The server's clock in milliseconds.
pub fn server_ms(bench: &mut Bench) -> u64 {
    let StepReply::Array(parts) = bench.ask(&["TIME"]) else { panic!("TIME answers an array") };
    let part = |part: &StepReply| match part {
        StepReply::Text(text) => String::from_utf8_lossy(text).parse::<u64>().unwrap(),
        other => panic!("{other:?}"),
    };
    part(&parts[0]) * 1_000 + part(&parts[1]) / 1_000
}

/// The time that stands behind this name in the record.
pub fn time_in(record: &str, name: &str) -> u64 {
    let (_, rest) = record.split_once(&format!("\"{name}\":")).unwrap();
    rest.split([',', '}']).next().unwrap().parse().unwrap()
}

/// The record that stands there, as text.
pub fn record(bench: &mut Bench) -> String {
    String::from_utf8(bench.get(KEY).unwrap()).unwrap()
}
