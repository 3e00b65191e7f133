//! idemctl's globs match what the server's own `MATCH` matches.
//!
//! Left out: ranges that end beyond ASCII, such as `[a-\xff]`. Servers compare bytes as signed on some machines and as
//! unsigned on others.

use std::collections::BTreeSet;

use idemctl::domain::select::glob;
use idemctl::domain::step::reply::StepReply;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};
use redis::Connection;

use crate::support::wire;
use crate::support::{self, Server};

type Texts = BTreeSet<Vec<u8>>;

/// The Redis keys that the server lets through, in one page.
fn scanned(connection: &mut Connection, pattern: &[u8]) -> Texts {
    let words = [b"SCAN", &b"0"[..], b"MATCH", pattern, b"COUNT", b"100000"];
    let StepReply::Array(reply) = wire::ask(connection, &words) else {
        panic!("SCAN answers an array")
    };
    let [StepReply::Text(cursor), StepReply::Array(keys)] = &reply[..] else { panic!("{reply:?}") };
    assert_eq!(cursor, b"0", "one page takes all");
    let text = |key: &StepReply| match key {
        StepReply::Text(text) => text.clone(),
        other => panic!("{other:?}"),
    };
    keys.iter().map(text).collect()
}

fn matched(texts: &Texts, pattern: &[u8]) -> Texts {
    texts.iter().filter(|text| glob::matches(pattern, text)).cloned().collect()
}

fn fill(connection: &mut Connection, texts: &Texts) {
    support::fill(connection, texts.iter().map(|text| (text, "")), 0);
}

/// Every text of one to four of these bytes: each byte with a meaning in a glob, and two without.
fn short_texts() -> Texts {
    let alphabet = b"ab-^]*";
    let mut texts = Texts::new();
    let mut last = vec![Vec::new()];
    for _ in 0..4 {
        last = last
            .iter()
            .flat_map(|text| alphabet.map(|byte| [&text[..], &[byte]].concat()))
            .collect();
        texts.extend(last.iter().cloned());
    }
    texts
}

#[test]
fn any_pattern_of_the_bytes_with_a_meaning() {
    let server = Server::start();
    let mut connection = server.connect();
    let texts = short_texts();
    fill(&mut connection, &texts);
    let pattern = prop::collection::vec(prop::sample::select(&b"ab-^[]*?\\"[..]), 1..9);
    let mut runner =
        TestRunner::new(Config { cases: 500, failure_persistence: None, ..Config::default() });
    runner
        .run(&pattern, |pattern| {
            let server = scanned(&mut server.connect(), &pattern);
            prop_assert_eq!(matched(&texts, &pattern), server, "{}", pattern.escape_ascii());
            Ok(())
        })
        .unwrap();
}

/// Keys as services write them, and a few that are a glob themselves; a space between them.
const KEYS: &str = r#"
    order-1 order-12 orders-1 Order-1 a:b a*b a?b a[b] a\b b 7f8f3f5c-97a9-4d2e - ^ ] [
"#;

/// Globs as people write them, a space between them.
const PATTERNS: &str = r#"
    * order-* order-? order-[0-9] order-[9-0] [Oo]rder* [^O]rder* *-* a\*b a\?b a\[b\] a\\b a?b a*b [a-c] [abc [ [] [^]
    [^ [a- [\]] []] [\ \ a\ ?? ??? caf* caf?? caf? *[0-9a-f]* ** *a*b* [^a-z]* [-] [^-] \^
"#;

#[test]
fn patterns_as_people_write_them_on_keys_as_services_write_them() {
    let server = Server::start();
    let mut connection = server.connect();
    let texts =
        KEYS.split_whitespace().chain(["caf\u{e9}", "two\nlines", "\u{1f600}", " "]).map(Vec::from);
    let texts: Texts = texts.chain([b"\xff\xfe".to_vec(), b"zero\0byte".to_vec()]).collect();
    fill(&mut connection, &texts);
    for pattern in PATTERNS.split_whitespace().chain(["*\n*"]) {
        let server = scanned(&mut connection, pattern.as_bytes());
        assert_eq!(matched(&texts, pattern.as_bytes()), server, "{pattern}");
    }
}

#[test]
fn an_escaped_text_matches_itself_alone_on_the_server_too() {
    let server = Server::start();
    let bytes = prop::collection::btree_set(prop::collection::vec(any::<u8>(), 1..6), 1..40);
    let mut runner =
        TestRunner::new(Config { cases: 30, failure_persistence: None, ..Config::default() });
    runner
        .run(&bytes, |texts| {
            let mut connection = server.connect();
            fill(&mut connection, &texts);
            for text in &texts {
                let found = scanned(&mut connection, &glob::escape(text));
                prop_assert_eq!(found, Texts::from([text.clone()]));
            }
            for text in &texts {
                wire::ask(&mut connection, &[b"DEL", &text[..]]);
            }
            Ok(())
        })
        .unwrap();
}
