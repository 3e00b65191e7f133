//! The header of a script of idemctl's own, proven against what idemctl sends.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use idemctl::domain::record::RecordName;
use idemctl::domain::record::observation::Observation;
use idemctl::domain::step::reply::StepReply;
use idemctl::store::backup::{HeldKey, RecordLabel, Saved};
use idemctl::store::{self, Change, KeyResult, Outcome, ReadLimit, Return};

use crate::support::Server;
use crate::support::header::{Position, Script};
use crate::support::library::Library;
use crate::support::wire;

/// What reaches the server while something is done, as the server itself tells it.
struct Monitor(BufReader<UnixStream>);

impl Monitor {
    fn on(server: &Server) -> Self {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut ok = String::new();
        lines.read_line(&mut ok).unwrap();
        assert!(ok.starts_with("+OK"), "{ok}");
        Self(lines)
    }

    /// The words of the next script that is sent.
    fn next_script(&mut self) -> Vec<String> {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the server ended");
            let words = quoted_words(&line);
            if words.first().is_some_and(|word| word.starts_with("EVAL")) {
                return words;
            }
        }
    }
}

/// The words of a line of MONITOR: each in double quotes, with `\n`, `\"` and `\\` for what would end it.
fn quoted_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut open: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (&mut open, character) {
            (None, '"') => open = Some(String::new()),
            (Some(_), '"') => words.extend(open.take()),
            (Some(word), '\\') => word.push(match characters.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            }),
            (Some(word), other) => word.push(other),
            (None, _) => {}
        }
    }
    words
}

/// Something of the library that sends a script of idemctl's own, for one record.
type Caller = fn(&Library, &[Vec<u8>]);

/// The typed functions, and the script each sends.
const CALLERS: &[(&str, Caller)] = &[
    ("admin/read_records", send_read_records),
    ("admin/change_many_if_same", send_removal),
    ("admin/change_many_if_same", send_expiry),
    ("admin/restore_many_if_absent", send_restore_many_if_absent),
];

fn send_read_records(library: &Library, redis_keys: &[Vec<u8>]) {
    let mut reader = library.client().reader();
    let _ = library.wait(reader.read_or_fail(&[redis_keys.to_vec()], ReadLimit::Bytes(7))).unwrap();
}

fn send_removal(library: &Library, redis_keys: &[Vec<u8>]) {
    change(library, redis_keys, store::KeyAction::Remove);
}

fn send_expiry(library: &Library, redis_keys: &[Vec<u8>]) {
    change(library, redis_keys, store::KeyAction::Shorten(5_000));
}

/// A backup holds the Redis keys of a record together.
fn send_restore_many_if_absent(library: &Library, redis_keys: &[Vec<u8>]) {
    let key = |redis_key: &Vec<u8>| HeldKey {
        role: None,
        saved: Saved {
            redis_key: redis_key.clone(),
            dump: b"x".to_vec(),
            ttl_ms: None,
            expires_at_ms: None,
        },
    };
    let keys: Vec<_> = redis_keys.iter().map(key).collect();
    let wanted = Return { keys: keys.iter().collect(), bars: Vec::new() };
    let (became, ended) = library.wait(library.writer().restore(&[wanted]));
    ended.unwrap();
    let is_present = |outcome: &KeyResult| matches!(outcome, Ok(store::RestoreOutcome::Present));
    assert!(became[0].iter().any(is_present), "{became:?}");
}

fn change(library: &Library, redis_keys: &[Vec<u8>], action: store::KeyAction) {
    let seen: Observation = library.observe(&[redis_keys.to_vec()]).remove(0);
    let label = RecordLabel {
        name: RecordName { db: None, schema: "any".to_owned(), prefix: None, key: b"any".to_vec() },
        state: "in-progress",
        roles: Vec::new(),
    };
    let (outcomes, ended) =
        library.wait(library.writer().apply(&[Change::new(vec![0], seen, label)], action, None));
    ended.unwrap();
    assert!(matches!(outcomes[..], [Outcome::Done | Outcome::Expires(_)]), "{outcomes:?}");
}

#[test]
fn idemctl_sends_the_keys_and_arguments_of_the_header() {
    let server = Server::start();
    let library = Library::on(&server);
    for (path, send) in CALLERS {
        let script = Script::read(path);
        for redis_keys in [vec![b"a".to_vec()], vec![b"a".to_vec(), b"b".to_vec()]] {
            server.set("a", "value", 60_000);
            let mut monitor = Monitor::on(&server);
            send(&library, &redis_keys);
            let words = std::iter::from_fn(|| Some(monitor.next_script()))
                .find(|w| w[1] == wire::script(path))
                .unwrap();
            let keys: usize = words[2].parse().unwrap();
            let expected =
                if script.takes_many_keys() { redis_keys.len() } else { script.count("KEYS") };
            assert_eq!(keys, expected, "{path}: KEYS");
            let is_list =
                |position: &&Position| position.list == "ARGV" && position.index.contains("..");
            let lists = script.positions.iter().filter(is_list).count();
            let args = script.count("ARGV") + lists * (keys - 1);
            assert_eq!(words.len() - 3 - keys, args, "{path}: ARGV");
        }
    }
}

#[test]
fn every_own_script_that_is_sent_is_among_the_callers() {
    let source = std::fs::read_to_string(wire::lua().join("../src/store/scripts.rs")).unwrap();
    let included = source.split("lua/admin/").skip(1).filter_map(|rest| rest.split_once(".lua\")"));
    let sent: BTreeSet<_> = included
        .filter(|(name, _)| !name.contains('/'))
        .map(|(name, _)| format!("admin/{name}"))
        .collect();
    assert_eq!(sent, CALLERS.iter().map(|(path, _)| (*path).to_owned()).collect());
}

#[test]
fn the_script_that_reads_runs_where_writing_is_refused() {
    let server = Server::start();
    let mut connection = server.connect();
    // Redis 6.2 has no EVAL_RO: there the server itself says so.
    if wire::ask(&mut connection, &["COMMAND", "INFO", "EVAL_RO"])
        == StepReply::Array(vec![StepReply::Nil])
    {
        return;
    }
    server.set("a", "value", 60_000);
    let read_records = wire::script("admin/read_records");
    let seen = wire::ask(&mut connection, &["EVAL_RO", &read_records, "2", "a", "b", "-1", "1"]);
    assert!(matches!(&seen, StepReply::Array(items) if items.len() == 3), "{seen:?}");
    wire::ask(&mut connection, &["PERSIST", "a"]);
    let change = wire::script("admin/change_many_if_same");
    let refused =
        wire::ask(&mut connection, &["EVAL_RO", &change, "1", "a", "value", "-1", "UNLINK"]);
    assert!(
        matches!(&refused, StepReply::Error { message, .. } if message.contains("read-only")),
        "{refused:?}"
    );
}
