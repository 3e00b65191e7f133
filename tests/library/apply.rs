//! Many changes at once: each made only where its record is still as it was seen, and in the backup before.

use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use idemctl::domain::record::RecordName;
use idemctl::domain::record::observation::Observation;
use idemctl::store::backup::{Backup, RecordLabel};
use idemctl::store::{Change, KeyAction, Outcome};

use crate::support::Server;
use crate::support::library::Library;

fn key(index: usize) -> String {
    format!("idem:web-{index}")
}

fn fill(server: &Server, count: usize, value: impl Fn(usize) -> Vec<u8>) {
    server.fill((0..count).map(|index| (key(index), value(index))), 200_000);
}

/// A server with so many values, and a connection of the library's own.
fn filled(count: usize, value: impl Fn(usize) -> Vec<u8>) -> (Server, Library) {
    let server = Server::start();
    fill(&server, count, value);
    let library = Library::on(&server);
    (server, library)
}

fn look(library: &Library, records: Vec<Vec<Vec<u8>>>, least: usize) -> Vec<Observation> {
    let seen = library.wait(library.client().reader().read_for_change(&records, least)).unwrap();
    seen.into_iter().map(Result::unwrap).collect()
}

fn changes(library: &Library, count: usize, head: usize) -> Vec<Change> {
    let records = (0..count).map(|index| vec![key(index).into_bytes()]).collect();
    look(library, records, head).into_iter().map(change).collect()
}

fn change(seen: Observation) -> Change {
    let key = seen.keys[0].redis_key.clone();
    Change::new(
        vec![0],
        seen,
        RecordLabel {
            name: RecordName { db: None, schema: "express".to_owned(), prefix: None, key },
            state: "in-progress",
            roles: Vec::new(),
        },
    )
}

/// Forgets the calls that the looks took: Redis 6.2 tells deadlines by a script.
fn forget_calls(server: &Server) {
    server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
}

fn remove(library: &Library, changes: &[Change], backup: Option<&mut Backup>) -> Vec<Outcome> {
    let (outcomes, ended) =
        library.wait(library.writer().apply(changes, KeyAction::Remove, backup));
    ended.unwrap();
    outcomes
}

/// The Redis keys a backup holds, and those it takes back.
fn held(file: &Path) -> (Vec<Vec<u8>>, Vec<Vec<u8>>) {
    let (mut held, mut void) = (Vec::new(), Vec::new());
    for line in fs::read_to_string(file).unwrap().lines() {
        let line: serde_json::Value = serde_json::from_str(line).unwrap();
        let decode = |text: &serde_json::Value| STANDARD.decode(text.as_str().unwrap()).unwrap();
        void.extend(line["void"].as_array().into_iter().flatten().map(decode));
        held.extend(
            line["keys"]
                .as_array()
                .into_iter()
                .flatten()
                .map(|key| decode(&key["redis_key_base64"])),
        );
    }
    (held, void)
}

fn file(server: &Server) -> PathBuf {
    server.folder().join("backup.jsonl")
}

#[test]
fn removes_many_and_backs_each_up_first() {
    let (server, library) = filled(250, |index| format!("value {index}").into_bytes());
    let changes = changes(&library, 250, 256);
    let mut backup = Backup::create(&file(&server)).unwrap();
    let outcomes = remove(&library, &changes, Some(&mut backup));
    assert_eq!(outcomes, vec![Outcome::Done; 250]);
    assert_eq!(server.size(), 0);
    assert_eq!(backup.close().as_deref(), Some(&*file(&server)));
    let (held, void) = held(&file(&server));
    assert_eq!(held, (0..250).map(|index| key(index).into_bytes()).collect::<Vec<_>>());
    assert!(void.is_empty());
    use std::os::unix::fs::PermissionsExt as _;
    assert_eq!(fs::metadata(file(&server)).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn what_changed_between_look_and_act_stays_and_the_backup_does_not_claim_it() {
    let long = |index: usize| format!("{index:04}").into_bytes().repeat(100);
    let (server, library) = filled(300, long);
    let changes = changes(&library, 300, 64);
    let now = |index: usize, value: &[u8], ttl: u64| server.set(&key(index), value, ttl);
    now(7, b"completed", 200_000);
    now(8, &long(8), 900_000);
    now(9, &[&long(9)[..399], b"!!"].concat(), 100_000);
    server.send::<()>(&[b"PERSIST", key(10).as_bytes()]);
    server.send::<()>(&[b"DEL", key(11).as_bytes()]);
    server.send::<()>(&[b"DEL", key(150).as_bytes()]);
    server.send::<()>(&[b"RPUSH", key(150).as_bytes(), b"x"]);
    let mut backup = Backup::create(&file(&server)).unwrap();
    let outcomes = remove(&library, &changes, Some(&mut backup));
    let expected = (0..300).map(|index| match index {
        7..=10 | 150 => Outcome::ChangedMeanwhile,
        11 => Outcome::Gone,
        _ => Outcome::Done,
    });
    assert_eq!(outcomes, expected.collect::<Vec<_>>());
    assert_eq!(server.size(), 5);
    assert_eq!(backup.changed(), 294);
    let (held, void) = held(&file(&server));
    assert_eq!(held.len(), 300);
    assert_eq!(void, [7, 8, 9, 10, 11, 150].map(|index| key(index).into_bytes()));
}

#[test]
fn a_backup_of_nothing_goes() {
    let (server, library) = filled(3, |_| b"x".to_vec());
    let changes = changes(&library, 3, 64);
    fill(&server, 2, |_| b"y".to_vec());
    server.send::<()>(&[b"DEL", key(2).as_bytes()]);
    let mut backup = Backup::create(&file(&server)).unwrap();
    let outcomes = remove(&library, &changes, Some(&mut backup));
    assert_eq!(outcomes, [Outcome::ChangedMeanwhile, Outcome::ChangedMeanwhile, Outcome::Gone]);
    assert_eq!(backup.close(), None);
    assert!(!file(&server).exists());
}

#[test]
fn gives_many_a_ttl() {
    let (server, library) = filled(150, |_| b"x".to_vec());
    for index in 0..150 {
        server.send::<()>(&[b"PERSIST", key(index).as_bytes()]);
    }
    let changes = changes(&library, 150, 64);
    server.set(&key(3), "x", 500_000);
    let (outcomes, ended) =
        library.wait(library.writer().apply(&changes, KeyAction::Shorten(5_000), None));
    ended.unwrap();
    for (index, outcome) in outcomes.into_iter().enumerate() {
        let left: i64 = server.send(&[b"PTTL", key(index).as_bytes()]);
        assert_eq!(outcome == Outcome::ChangedMeanwhile, index == 3);
        assert!(index == 3 || matches!(outcome, Outcome::Expires(_)), "{outcome:?}");
        assert_eq!(left <= 5_000, index != 3, "{index}: {left}");
    }
}

#[test]
fn records_of_two_keys_count_both_and_go_by_both() {
    let server = Server::start();
    let library = Library::on(&server);
    for index in 0..60 {
        server.set(&format!("lock:{index}"), "1", 90_000);
        server.set(&format!("done:{index}"), "1", 90_000);
    }
    let records = (0..60).map(|index| {
        [format!("lock:{index}"), format!("done:{index}")].map(String::into_bytes).to_vec()
    });
    let changes: Vec<_> = look(&library, records.collect(), 64).into_iter().map(change).collect();
    server.set("done:55", "2", 90_000);
    forget_calls(&server);
    let outcomes = remove(&library, &changes, None);
    assert_eq!(server.calls("eval"), 2);
    let done = outcomes.iter().filter(|outcome| **outcome == Outcome::Done).count();
    assert_eq!((done, outcomes[55]), (59, Outcome::ChangedMeanwhile));
    assert_eq!(server.size(), 61);
}

#[test]
fn a_key_that_is_named_twice_is_changed_once() {
    let (server, library) = filled(2, |_| b"x".to_vec());
    let mut changes = changes(&library, 2, 64);
    changes.push(changes[0].clone());
    let mut backup = Backup::create(&file(&server)).unwrap();
    let outcomes = remove(&library, &changes, Some(&mut backup));
    assert_eq!(outcomes, [Outcome::Done, Outcome::Done, Outcome::Gone]);
    // The second line of the record is taken back, and the first one stays.
    let (held, void) = held(&file(&server));
    assert_eq!((held.len(), void), (3, vec![key(0).into_bytes()]));
}

#[test]
fn large_values_go_in_small_batches() {
    let (server, library) = filled(5, |_| vec![b'x'; 3 << 20]);
    let changes = changes(&library, 5, 64);
    forget_calls(&server);
    assert_eq!(remove(&library, &changes, None), [Outcome::Done; 5]);
    assert_eq!(server.calls("eval"), 5);
}

#[test]
fn an_error_changes_nothing_and_the_backup_goes() {
    let (server, library) = filled(150, |_| b"x".to_vec());
    let changes = changes(&library, 150, 64);
    server.send::<()>(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    let mut backup = Backup::create(&file(&server)).unwrap();
    let applied =
        library.wait(library.writer().apply(&changes, KeyAction::Remove, Some(&mut backup)));
    assert!(applied.1.unwrap_err().to_string().contains("READONLY"));
    assert_eq!(applied.0, []);
    assert_eq!(backup.close(), None);
    assert_eq!(server.size(), 150);
}

/// Rule: a record with parts changes only if each of its Redis keys is as it was seen.
#[test]
fn a_part_that_changed_between_look_and_act_keeps_the_whole_record() {
    let server = Server::start();
    let library = Library::on(&server);
    let part = |index: usize, name: &str| format!("idem:web-{index}:{name}");
    for index in 0..5 {
        server.set(&key(index), "stored", 200_000);
        server.set(&part(index, "code"), "201", 200_000);
        server.set(&part(index, "hash"), "a1b2", 200_000);
    }
    let records = (0..5).map(|index| {
        vec![
            key(index).into_bytes(),
            part(index, "code").into_bytes(),
            part(index, "hash").into_bytes(),
        ]
    });
    let mut changes: Vec<_> =
        look(&library, records.collect(), 256).into_iter().map(change).collect();
    for change in &mut changes {
        change.changed_indexes = vec![0, 1, 2];
        change.backed_up = vec![0, 1, 2];
    }
    server.set(&part(1, "hash"), "c3d4", 200_000);
    server.send::<()>(&[b"PERSIST", part(2, "code").as_bytes()]);
    server.send::<()>(&[b"DEL", part(3, "hash").as_bytes()]);
    server.send::<()>(&[b"DEL", key(4).as_bytes()]);
    let outcomes = remove(&library, &changes, None);
    let expected = [
        Outcome::Done,
        Outcome::ChangedMeanwhile,
        Outcome::ChangedMeanwhile,
        Outcome::ChangedMeanwhile,
        Outcome::ChangedMeanwhile,
    ];
    assert_eq!(outcomes, expected);
    assert_eq!(server.size(), 3 + 3 + 2 + 2);
}
