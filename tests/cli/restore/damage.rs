//! Backups that are not as they were written.

use std::fs;
use std::path::{Path, PathBuf};

use idemctl::store::backup::{BackupReader, Held};
use serde_json::{Value, json};

use super::command::restore;
use crate::support::backup;
use crate::support::{Run, Server};

/// How many Redis keys [`purged`] backs up.
const KEYS: usize = 3;

/// A real backup of some results, one of them changed in between and taken back: where they come from, the Redis keys, and
/// what is void.
fn purged(server: &Server) -> PathBuf {
    server.fill(
        (0..KEYS)
            .map(|index| (format!("idem:result:k{index}"), r#"{"statusCode":200,"body":"x"}"#)),
        600_000,
    );
    server.idemctl(&["purge", "--all", "--schema", "event-driven", "--yes"]).exits(0);
    assert_eq!(server.size(), 0);
    let file = backup::only(server);
    assert_eq!(fs::read_to_string(&file).unwrap().lines().count(), KEYS + 2);
    file
}

/// What can be read of a backup, where it can be read at all, and whether its damage was noticed.
fn read(file: &Path) -> (Vec<Held>, bool) {
    let mut held = Vec::new();
    match BackupReader::open(file, |one| held.push(one.clone())) {
        Ok(reader) => (held, !reader.damage().is_none()),
        Err(_) => (Vec::new(), true),
    }
}

/// The rule: what comes back is what was written. A flipped bit is found wherever it is, in the key, the expiry, the
/// schema, the state, the place, or what is taken back.
#[test]
fn no_flipped_bit_brings_back_anything_else_or_goes_unnoticed() {
    let server = Server::start();
    let file = purged(&server);
    let text = fs::read_to_string(&file).unwrap();
    let lines: Vec<_> = text.lines().collect();
    // The place, a Redis key, and one that is taken back: a line of each kind.
    let third: Value = serde_json::from_str(lines[2]).unwrap();
    let void =
        backup::sealed(&json!({ "format": 2, "void": [third["keys"][0]["redis_key_base64"]] }));
    let whole = format!("{}\n{}\n{}\n{void}\n", lines[0], lines[1], lines[2]).into_bytes();
    let copy = server.folder().join("flipped");
    fs::write(&copy, &whole).unwrap();
    let (written, is_damaged) = read(&copy);
    assert!(
        written.len() == 1
            && !is_damaged
            && written[0].from.is_some()
            && !written[0].beside.is_empty(),
        "{written:?}"
    );
    let mut in_both = written.clone();
    in_both.push(line_held(&server, &[lines[0], lines[2]]));
    for bit in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[bit / 8] ^= 1 << (bit % 8);
        fs::write(&copy, &flipped).unwrap();
        let (held, is_noticed) = read(&copy);
        assert!(is_noticed, "nobody notices bit {bit}: {}", String::from_utf8_lossy(&flipped));
        for one in held {
            let is_written =
                in_both.iter().any(|other| Held { from: one.from.clone(), ..other.clone() } == one);
            assert!(
                is_written
                    && one.from.as_ref().is_none_or(|from| Some(from) == written[0].from.as_ref()),
                "{bit}: {one:?}"
            );
        }
    }
}

/// What is held behind the line that names the place.
fn line_held(server: &Server, lines: &[&str]) -> Held {
    let file = server.folder().join("one");
    fs::write(&file, lines.join("\n")).unwrap();
    read(&file).0.remove(0)
}

/// The rule: a damaged tail costs the tail alone. What a crash leaves never held a change; what else is there may have.
#[test]
fn whatever_is_at_the_end_costs_what_is_there_alone() {
    let whole = |server: &Server| fs::read(purged(server)).unwrap();
    let garbage = [&b"\x7fELF\x00\x01"[..], b"\xff\n\n"].concat();
    let long = vec![0; 3 << 20];
    for (tail, says, code) in [
        (&b"\n"[..], "line 6 ", 0),
        (b"\n\n \n", "lines 6 to 8 ", 0),
        (&[0; 4096], "line 6 ", 0),
        (&long, "line 6 ", 0),
        (b"{\"form", "line 6 ", 0),
        (b"{\"format\":1,\"redis_key_base64\":\"aWRl\0\0\0", "line 6 ", 0),
        (b"hello", "line 6 ", 3),
        (b"hello\nhello\n", "lines 6 to 7 ", 3),
        (&garbage, "lines 6 to 7 ", 3),
        (b"{\"format\":1,\"redis_key_base64\":\"aWRl\n", "line 6 ", 3),
    ] {
        let server = Server::start();
        let file = server.folder().join("damaged");
        fs::write(&file, [&whole(&server), tail].concat()).unwrap();
        let run = restore(&server, &file, &["-o", "json"]).exits(code);
        let tail = String::from_utf8_lossy(&tail[..tail.len().min(40)]);
        assert!(
            run.stderr.contains(says) && run.stderr.contains("skipped"),
            "{tail}: {}",
            run.all()
        );
        assert_eq!(
            (&run.json()["restored"], run.json()["lines_left_out"] != 0),
            (&KEYS.into(), code != 0),
            "{tail}"
        );
        assert_eq!(server.size(), KEYS);
    }
}

#[test]
fn a_flipped_bit_in_the_last_line_costs_that_line() {
    let server = Server::start();
    let file = purged(&server);
    let mut bytes = fs::read(&file).unwrap();
    let at = bytes.len() - 250;
    bytes[at] ^= 4;
    fs::write(&file, bytes).unwrap();
    let run = restore(&server, &file, &["-o", "json"]).exits(3);
    run.says("skipped line 4 of ").says(": the line is damaged");
    assert_eq!(run.json()["restored"], KEYS - 1);
}

/// The rule: nothing is guessed. With whole lines behind the damage it is refused, and the way on is named.
#[test]
fn damage_in_the_middle_is_refused_before_anything_is_restored_and_skipped_on_request() {
    let server = Server::start();
    let file = purged(&server);
    let text = fs::read_to_string(&file).unwrap();
    let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
    lines[1] = lines[1].replace("event-driven", "event-drivem");
    fs::write(&file, lines.join("\n")).unwrap();
    let run = restore(&server, &file, &[]).exits(2);
    run.says(":2: the line is damaged: its checksum is wrong");
    run.says("nothing was restored; --skip-damaged");
    assert_eq!(server.size(), 0);
    let run = restore(&server, &file, &["--skip-damaged", "-o", "json"]).exits(3);
    run.says("line 2 of ").says("skipped");
    // The damaged line may have been one that names another place.
    run.says("the origin of 2 of 2 Redis keys is unknown");
    assert_eq!(
        (&run.json()["restored"], &run.json()["lines_left_out"]),
        (&(KEYS - 1).into(), &1.into())
    );
}

/// The rule: a backup that no released version wrote is refused as a whole, and stays.
#[test]
fn a_backup_of_an_unknown_format_is_refused_and_stays() {
    let server = Server::holding(&[("idem:a", "value a", 60_000)]);
    let mut line = backup::line(&server, "idem:a");
    server.send::<()>(&[b"DEL", b"idem:a"]);
    let folder = server.state("backups");
    fs::create_dir_all(&folder).unwrap();
    let file = folder.join("odd.jsonl");
    for format in [3, 4] {
        line["format"] = format.into();
        let text = backup::sealed(&line) + "\n";
        fs::write(&file, &text).unwrap();
        let says = format!("reads backups of format 2, and a newer one wrote format {format}");
        for more in [&[][..], &["--dry-run"], &["--skip-damaged"], &["--only", "a"]] {
            let run = restore(&server, &file, more).exits(2);
            run.says("odd.jsonl:1: ").says(&says).says("nothing was restored");
        }
        server.idemctl(&["backup", "list"]).exits(0).says("odd.jsonl is not counted: ").says(&says);
        server.idemctl(&["backup", "prune", "--older-than", "0s", "--yes"]).exits(0);
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
    }
    assert_eq!(server.size(), 0);
}

/// The rule: a line that lost its checksum is damaged, and does not pass for a line of another version.
#[test]
fn a_line_that_lost_its_checksum_is_damaged() {
    let server = Server::start();
    // A record with one Redis key: its line has no field that an older one has not, but for the checksum.
    for index in 0..KEYS {
        server.set(
            &format!("idempotency:k{index}"),
            r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#,
            600_000,
        );
    }
    server.idemctl(&["purge", "--all", "--schema", "go-middleware", "--yes"]).exits(0);
    let file = backup::only(&server);
    let text = fs::read_to_string(&file).unwrap();
    let without = |line: &str| format!("{}}}", line.rsplit_once(",\"crc64\"").unwrap().0);
    let refuse = |lines: &[String]| -> Run {
        fs::write(&file, lines.join("\n")).unwrap();
        restore(&server, &file, &[]).exits(2)
    };
    let lines: Vec<_> = text.lines().map(str::to_owned).collect();
    assert_eq!(lines.len(), KEYS + 2);
    for index in 0..lines.len() - 2 {
        let mut lines = lines.clone();
        lines[index] = without(&lines[index]);
        let run = refuse(&lines);
        run.says(format!(":{}: the line is damaged: its checksum", index + 1));
    }
    let mut newer = lines.clone();
    newer[1] = newer[1].replace("\"crc64\"", "\"sum\"").replace("{\"format\":2", "{\"format\":3");
    assert!(refuse(&newer).stderr.contains("a newer one wrote format 3"));
    assert_eq!(server.size(), 0);
}

/// Rule: a backup ends with its closing line. Lines of another file behind it are damage, and are left out.
#[test]
fn lines_behind_the_closing_line_do_not_belong_to_the_backup() {
    let server = Server::start();
    let file = purged(&server);
    let whole = fs::read_to_string(&file).unwrap();
    let of_another = whole.lines().nth(1).unwrap().to_owned();
    fs::write(&file, format!("{whole}{of_another}\n")).unwrap();
    server.idemctl(&["backup", "list"]).exits(0).shows("damaged").says("follows the closing line");
    let run = server.idemctl(&["restore", &file.display().to_string(), "--yes"]).exits(3);
    run.says(": the line follows the closing line").says("Restored 3 of 3 Redis keys.");
}
