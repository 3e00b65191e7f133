//! A walk over many hashes: small ones come by plain commands, the others by a script, and both tell the same.

use serde_json::{Value, json};

use super::described::describe;
use super::hashes::PLAIN;
use crate::support::Server;

const RECORDS: usize = 1_500;

/// A hash of each kind in turn: with a TTL, without one, large, with fields that all expire or do but for one, of another
/// program, and no hash at all.
fn fill(server: &Server) {
    let mut commands = redis::pipe();
    for number in 0..RECORDS {
        let key = format!("h:{number}");
        let lock = ["status", "LOCKED", "owner", "w-1"];
        match number % 7 {
            0 => {
                _ = commands.cmd("HSET").arg(&key).arg(&lock).cmd("PEXPIRE").arg(&key).arg(600_000)
            }
            2 => {
                _ = commands.cmd("HSET").arg(&key).arg(&[
                    "status",
                    "DONE",
                    "code",
                    "201",
                    "body",
                    &"x".repeat(5_000),
                ])
            }
            5 => _ = commands.cmd("HSET").arg(&key).arg(&["status", "ELSE", "other", "1"]),
            6 => _ = commands.cmd("SET").arg(&key).arg("a string"),
            _ => _ = commands.cmd("HSET").arg(&key).arg(&lock),
        }
    }
    let mut connection = server.connect();
    commands.exec(&mut connection).unwrap();
    let expires = |key: usize, fields: &[&str], connection: &mut redis::Connection| {
        let mut command = redis::cmd("HPEXPIRE");
        command.arg(format!("h:{key}")).arg(600_000).arg("FIELDS").arg(fields.len()).arg(fields);
        command.query::<Vec<i64>>(connection).is_ok()
    };
    for number in (0..RECORDS).filter(|number| matches!(number % 7, 3 | 4)) {
        let fields = if number % 7 == 3 { &["status", "owner"][..] } else { &["status"] };
        if !expires(number, fields, &mut connection) {
            return;
        }
    }
}

/// What a list says of each record, without the times, which go on while two lists are made.
fn rows(server: &Server, user: &[&str]) -> Vec<Value> {
    let words = [user, &["list", "--schema", "plain", "-o", "jsonl"]].concat();
    let of = |row: Value| {
        let codes: Vec<_> = row["findings"]
            .as_array()
            .unwrap()
            .iter()
            .map(|finding| finding["code"].clone())
            .collect();
        let same =
            ["key", "state", "foreign_because", "owner", "no_expiry", "size_bytes", "response"]
                .map(|name| row[name].clone());
        json!([same, row["identity"][0]["crc64"], row["next_request"]["answer"], codes])
    };
    let mut rows: Vec<_> =
        server.idemctl(&words).exits(0).json_lines().into_iter().map(of).collect();
    rows.sort_by_key(|row| row[0][0].to_string());
    rows
}

#[test]
fn small_hashes_tell_the_same_by_plain_commands_as_by_a_script() {
    let server = Server::start();
    describe(&server, "plain", "record = \"h:{key}\"", PLAIN);
    fill(&server);
    server.add_user("scripted", "~* +@all -memory -hgetall");
    redis::cmd("CONFIG").arg("RESETSTAT").exec(&mut server.connect()).unwrap();
    let plain = rows(&server, &[]);
    let (weighed, read) = (server.calls("memory|usage"), server.calls("hgetall"));
    let scripted = rows(&server, &["--user", "scripted", "--pass", "pw"]);
    assert_eq!(plain.len(), scripted.len());
    for (plain, scripted) in plain.iter().zip(&scripted) {
        assert_eq!(plain, scripted);
    }
    // Before Redis 7 a script reads all of them.
    let tells_exactly =
        redis::cmd("PEXPIRETIME").arg("gone").query::<i64>(&mut server.connect()).is_ok();
    assert!(
        !tells_exactly || (weighed >= RECORDS && read > RECORDS / 3),
        "{weighed} weighed, {read} read"
    );
}
