//! Something comes between a change and what is made of it: what was done is accounted for all the same.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use serde_json::Value;

use crate::stage::{REMOVALS, Stage};
use crate::support::audit;
use crate::support::backup;
use crate::support::cluster::Cluster;
use crate::support::fault::{self, Hook, removes, says};
use crate::support::{FOREVER, PENDING, Server};

const PURGE: [&str; 7] = ["purge", "--state", "in-progress", "--all", "--yes", "--backup", "b"];

fn filled(count: usize) -> Cluster {
    let cluster = Cluster::start(3);
    fill(&cluster, count, 900_000);
    cluster
}

fn fill(cluster: &Cluster, count: usize, ttl_ms: u64) {
    cluster.fill((0..count).map(|number| (key(number), PENDING)), ttl_ms);
}

fn key(number: usize) -> String {
    format!("idempotency:k{number}")
}

/// Answers each command of what was sent with this error.
fn refusal(sent: &[u8], error: &str) -> Hook {
    // Scripts hold stars as well, but no line of theirs ends with CR LF.
    let more = sent.windows(3).filter(|part| part == b"\r\n*").count();
    Hook::Answer(format!("-{error}\r\n").repeat(1 + more).into_bytes())
}

fn noted(server: &Server, what: &str) -> usize {
    let lines =
        server.idemctl(&["log", "--records", "-o", "jsonl", "--limit", "1000"]).json_lines();
    lines.iter().filter(|line| line["what"] == what).count()
}

fn held(server: &Server) -> BTreeSet<Vec<u8>> {
    backup::held(&server.folder().join("b"))
}

#[test]
fn a_node_that_is_busy_when_slots_have_moved_is_still_one_of_a_cluster() {
    let cluster = Arc::new(Cluster::start(3));
    // MIGRATE hands on the time left, and a lock that then expires a millisecond later is another.
    fill(&cluster, 90, FOREVER);
    let slot = cluster.slot(&(0..90).map(key).find(|key| cluster.owner(key) == 1).unwrap());
    let has_moved = Arc::new(AtomicBool::new(false));
    let moved = Arc::clone(&has_moved);
    let home = fault::hooked(cluster.node(0), move |sent| {
        match says(sent, "SLOTS") && moved.load(Ordering::SeqCst) {
            true => Hook::Answer(b"-BUSY Redis is busy running a script.\r\n".to_vec()),
            false => Hook::Pass,
        }
    });
    let there = Arc::downgrade(&cluster);
    let way = fault::hooked(cluster.node(1), move |sent| {
        let Some(there) = there.upgrade() else { return Hook::Cut };
        // The script is made known right before the first change.
        if says(sent, "LOAD") && says(sent, "UNLINK") && !has_moved.load(Ordering::SeqCst) {
            there.move_slot(slot, 1, 2);
            has_moved.store(true, Ordering::SeqCst);
        }
        Hook::Pass
    });
    cluster.announce(1, way);
    let run = cluster.node(0).at(home, &PURGE).exits(0);
    assert_eq!(cluster.size(), 0, "{}", run.all());
    assert_eq!(
        (held(cluster.node(0)).len(), noted(cluster.node(0), "purged")),
        (90, 90),
        "{}",
        run.all()
    );
}

#[test]
fn who_may_not_ask_for_the_slots_is_told_so_and_takes_no_node_for_all() {
    let cluster = filled(30);
    cluster.idemctl(&PURGE).exits(0);
    for node in 0..3 {
        let user = ["ACL", "SETUSER", "ops", "on", ">pw", "~*", "+@all", "-cluster"];
        cluster.node(node).send::<()>(&user.map(str::as_bytes));
    }
    let as_ops = ["--user", "ops", "-a", "pw", "--no-auth-warning"];
    let run = cluster.idemctl(&[&as_ops[..], &["restore", "b", "--yes"]].concat()).exits(4);
    run.says("+cluster|slots");
    assert_eq!(cluster.size(), 0, "{}", run.all());
    fill(&cluster, 30, 900_000);
    let purge = [&PURGE[..5], &["--backup", "c"]].concat();
    for words in [&["list"][..], &["sweep", "--orphaned", "--dry-run"], &purge] {
        cluster.idemctl(&[&as_ops[..], words].concat()).exits(4).says("+cluster|slots");
    }
    cluster.idemctl(&[&as_ops[..], &["inspect", "k1"]].concat()).says("+cluster|slots");
    assert_eq!(cluster.size(), 30);
}

/// Rule: a node where the command has another name is not taken for the whole keyspace.
#[test]
fn a_node_that_does_not_know_the_command_for_the_slots_is_not_taken_for_all() {
    let cluster = filled(30);
    // Where HELLO is not known either, INFO says that it is a node.
    for unknown in [&["SLOTS"][..], &["SLOTS", "HELLO"]] {
        let way = fault::hooked(cluster.node(0), move |sent| {
            match unknown.iter().any(|word| says(sent, word)) {
                true => refusal(
                    sent,
                    "ERR unknown command 'CLUSTER', with args beginning with: 'SLOTS' ",
                ),
                false => Hook::Pass,
            }
        });
        for words in
            [&["list"][..], &["check"], &["purge", "--all", "--schema", "go-middleware", "--yes"]]
        {
            let run = cluster.node(0).at(way, words);
            assert!([3, 4].contains(&run.code), "{words:?}: {}", run.all());
            assert!(run.all().contains("+cluster|slots"), "{words:?}: {}", run.all());
        }
    }
    assert_eq!(cluster.size(), 30);
}

/// Rule: a node that refuses to tell of a record's other Redis key does not say that the record changed.
#[test]
fn a_record_of_which_a_node_refuses_to_tell_is_not_told_as_changed() {
    let cluster = Cluster::start(3);
    let names = |number: usize| (format!("idem:done:m{number}"), format!("idem:lock:m{number}"));
    let mut all = (0..).map(names);
    let (done, lock) =
        all.find(|(done, lock)| (cluster.owner(done), cluster.owner(lock)) == (0, 1)).unwrap();
    let requests = Arc::new(AtomicUsize::new(0));
    let refuses = Arc::new(AtomicUsize::new(0));
    let (counted, first) = (Arc::clone(&requests), Arc::clone(&refuses));
    let way = fault::hooked(cluster.node(1), move |sent| {
        let is_of_lock = says(sent, &lock);
        if !is_of_lock || counted.fetch_add(1, Ordering::SeqCst) < first.load(Ordering::SeqCst) {
            return Hook::Pass;
        }
        refusal(sent, "LOADING Redis is loading the dataset in memory")
    });
    cluster.announce(1, way);
    let mut stayed = 0;
    for nth in 0.. {
        cluster.set(&done, "1", 900_000);
        requests.store(0, Ordering::SeqCst);
        refuses.store(nth, Ordering::SeqCst);
        let run = cluster.idemctl(&[
            "purge",
            "--all",
            "--schema",
            "event-consumer",
            "--yes",
            "--no-backup",
        ]);
        if cluster.get(&done).is_some() {
            stayed += 1;
            assert!(
                run.code != 0 && run.stderr.contains("LOADING"),
                "refused from request {nth} on: {}",
                run.all()
            );
            assert!(
                !run.stderr.contains("changed"),
                "refused from request {nth} on: {}",
                run.all()
            );
        }
        if nth >= requests.load(Ordering::SeqCst) {
            break;
        }
    }
    assert!(stayed > 0);
}

#[test]
fn a_result_that_comes_right_before_its_lock_is_removed_leaves_the_lock_and_no_backup() {
    let done = |number: usize| format!("idem:done:m{number}");
    let lock = |number: usize| format!("idem:lock:m{number}");
    let commands: [&[&str]; 2] = [
        &["force-unlock", "KEY", "--schema", "event-consumer", "--yes", "--backup", "b"],
        &[
            "purge",
            "--schema",
            "event-consumer",
            "--state",
            "in-progress",
            "--yes",
            "--backup",
            "b",
            "-o",
            "json",
        ],
    ];
    for words in commands {
        let cluster = Arc::new(Cluster::start(3));
        let number = (0..)
            .find(|number| (cluster.owner(&lock(*number)), cluster.owner(&done(*number))) == (1, 2))
            .unwrap();
        cluster.set(&lock(number), "1", 60_000);
        let (there, backup) = (Arc::downgrade(&cluster), cluster.node(0).folder().join("b"));
        // Once the lock is in the backup, the last look at its result follows.
        let way = fault::hooked(cluster.node(2), move |_| {
            let Some(there) = there.upgrade() else { return Hook::Cut };
            if std::fs::metadata(&backup).is_ok_and(|backup| backup.len() > 0) {
                there.set(&done(number), "1", 80_000);
            }
            Hook::Pass
        });
        cluster.announce(2, way);
        let name = format!("m{number}");
        let words: Vec<_> =
            words.iter().map(|word| if *word == "KEY" { name.as_str() } else { word }).collect();
        let run = cluster.idemctl(&words);
        if words[0] == "purge" {
            assert_eq!(
                (run.code, &run.json()["changed"], &run.json()["gone"]),
                (0, &1.into(), &0.into()),
                "{}",
                run.all()
            );
        } else {
            assert!(run.code == 8 && run.stderr.contains("the record changed"), "{}", run.all());
        }
        assert!(cluster.get(&lock(number)).is_some());
        assert!(
            !cluster.node(0).folder().join("b").exists(),
            "a backup of what was not removed: {}",
            run.all()
        );
    }
}

#[test]
fn a_refusal_is_told_also_when_another_node_loses_a_reply() {
    let cluster = filled(90);
    let refused = (0..90).map(key).filter(|key| cluster.owner(key) == 1).count();
    redis::cmd("CONFIG")
        .arg("SET")
        .arg("min-replicas-to-write")
        .arg(1)
        .exec(&mut cluster.connect(1))
        .unwrap();
    let once = AtomicBool::new(false);
    let way = fault::hooked(cluster.node(2), move |sent| {
        if removes(sent) && !once.swap(true, Ordering::SeqCst) { Hook::Lose } else { Hook::Pass }
    });
    cluster.announce(2, way);
    let run = cluster.idemctl(&[&PURGE[..], &["-o", "json"]].concat()).exits(3);
    run.says("NOREPLICAS");
    assert_eq!(
        (&run.json()["done"], cluster.size()),
        (&(90 - refused).into(), refused),
        "{}",
        run.all()
    );
    assert!(run.json()["read_back"].as_u64().unwrap() > 0, "{}", run.all());
}

#[test]
fn that_an_outcome_is_unknown_is_told_also_when_another_node_refuses_what_comes_after() {
    let cluster = Arc::new(filled(1_600));
    // Batches go out in the order of the file: the node that refuses comes behind the one whose reply is lost.
    let of = |node: usize| -> Vec<String> {
        (0..1_600).map(key).filter(|key| cluster.owner(key) == node).collect()
    };
    let keys = [&of(1)[..50], &of(0), &of(2)].concat();
    std::fs::write(cluster.node(0).folder().join("keys"), keys.join("\n")).unwrap();
    let cut = |sent: &[u8]| if removes(sent) { Hook::Cut } else { Hook::Pass };
    cluster.announce(1, fault::hooked(cluster.node(1), cut));
    let there = Arc::downgrade(&cluster);
    let refuses = fault::hooked(cluster.node(2), move |sent| {
        if let Some(there) = there.upgrade()
            && removes(sent)
        {
            there.node(2).send::<()>(&[b"CONFIG", b"SET", b"min-replicas-to-write", b"1"]);
        }
        Hook::Pass
    });
    cluster.announce(2, refuses);
    let words =
        ["purge", "--schema", "go-middleware", "--state", "in-progress", "--yes", "--backup", "b"];
    let run = cluster.idemctl(&[&words[..], &["--key-file", "keys", "-o", "json"]].concat());
    run.exits(7).says("outcome unknown").says("NOREPLICAS");
    assert!(noted(cluster.node(0), "outcome-unknown") > 0);
}

/// Rule: a purge keeps its backup of a removed record, also if a master dies before its own records are backed up.
#[test]
fn the_backup_stays_when_a_master_dies_before_its_records_are_backed_up() {
    let cluster = Arc::new(Cluster::start(3));
    let of = |node: usize| {
        let keys = (0..).map(|number| format!("idem:k{number}"));
        keys.filter(|key| cluster.owner(key) == node).take(2).collect::<Vec<_>>()
    };
    let (here, there) = (of(0), of(1));
    let done = |body: usize| {
        let body = "x".repeat(body);
        format!(r#"{{"status":"COMPLETED","statusCode":201,"headers":{{}},"body":"{body}"}}"#)
    };
    cluster.set(&here[0], &done(10), 900_000);
    cluster.set(&there[0], &done(10), 900_000);
    // A long value is dumped for the backup, so that its master is asked once more.
    cluster.set(&there[1], &done(9_000), 900_000);
    let log = cluster.node(0).audit().join("log.jsonl");
    let way = fault::hooked(cluster.node(1), move |_| {
        // The log's first line is written right before the backup.
        match std::fs::metadata(&log).is_ok_and(|log| log.len() > 0) {
            true => Hook::Cut,
            false => Hook::Pass,
        }
    });
    cluster.announce(1, way);
    let run = cluster.idemctl(&["purge", "--schema", "express", "--all", "--yes", "--backup", "b"]);
    assert!([3, 7].contains(&run.code), "{}", run.all());
    assert_eq!(cluster.get(&here[0]), None, "{}", run.all());
    assert_eq!(held(cluster.node(0)), BTreeSet::from([here[0].clone().into_bytes()]));
    let run = cluster.idemctl(&["restore", "b", "--yes"]);
    assert_eq!(cluster.get(&here[0]), Some(done(10)), "{}", run.all());
}

/// Rule: an undo keeps its backup of a record that it reverted, also if another record was deleted before it was backed up.
#[test]
fn the_backup_of_an_undo_stays_when_another_record_is_gone_before_it_is_backed_up() {
    let locks = [("idempotency:a", PENDING, FOREVER), ("idempotency:b", PENDING, FOREVER)];
    let server = Arc::new(Server::holding(&locks));
    let there = Arc::downgrade(&server);
    let is_undone = Arc::new(AtomicBool::new(false));
    let undone = Arc::clone(&is_undone);
    let dumped = AtomicUsize::new(0);
    let way = fault::hooked(&server, move |sent| {
        if undone.load(Ordering::SeqCst) && says(sent, "$4\r\nDUMP\r\n") {
            // The records are backed up one after the other. The second is deleted right before.
            let is_second = dumped.fetch_add(1, Ordering::SeqCst) == 1;
            if let Some(server) = there.upgrade()
                && is_second
            {
                let lock =
                    if says(sent, "idempotency:a") { "idempotency:a" } else { "idempotency:b" };
                server.send::<()>(&[b"DEL", lock.as_bytes()]);
            }
        }
        Hook::Pass
    });
    let sweep = ["sweep", "--orphaned", "--action", "expire", "--grace", "0s", "--yes"];
    let stated = ["--schema", "go-middleware", "--lock-ttl", "5m"];
    server.at(way, &[&sweep[..], &stated].concat()).exits(0);
    is_undone.store(true, Ordering::SeqCst);
    let run = server.at(way, &["undo", "--yes", "-o", "json"]);
    let backups = std::fs::read_dir(server.state("backups")).unwrap();
    let held: Vec<_> = backups.map(|file| backup::held(&file.unwrap().path()).len()).collect();
    assert_eq!(held, [1], "{}", run.all());
    assert_eq!(server.size(), 1);
}

/// Gives each DUMP in a backup the version of a later Redis, as after a failover to an older server.
fn make_later_version(file: &Path) {
    let text = std::fs::read_to_string(file).unwrap();
    let mut lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.retain(|line| line.get("end").is_none());
    for line in &mut lines {
        line.as_object_mut().unwrap().remove("crc64");
        for key in line["keys"].as_array_mut().into_iter().flatten() {
            key["dump_base64"] = backup::of_later_version(&key["dump_base64"]).into();
        }
    }
    backup::write_to(file, &lines);
}

/// Rule: an undo of which only a part was executed is logged, and keeps its backup.
#[test]
fn an_undo_that_fails_in_the_middle_is_logged_and_keeps_its_backup() {
    let server = Server::holding(&[("idem:lock:a", "1", 600_000)]);
    let complete = ["complete", "a", "--schema", "event-consumer", "--yes", "--backup", "b"];
    server.idemctl(&complete).exits(0);
    assert_eq!(server.get("idem:lock:a"), None);
    let done = server.get("idem:done:a").unwrap();
    make_later_version(&server.folder().join("b"));
    let run = server.idemctl(&["undo", "--yes"]);
    assert!(run.code != 0 && run.stderr.contains("DUMP payload version"), "{}", run.all());
    assert_eq!(server.get("idem:done:a"), None, "the other half was executed: {}", run.all());
    assert_eq!(noted(&server, "partial"), 1, "{}", run.all());
    let saved = backup::only(&server);
    let run = server.idemctl(&["restore", saved.to_str().unwrap(), "--yes"]).exits(0);
    assert_eq!(server.get("idem:done:a"), Some(done), "{}", run.all());
}

/// Rule: a value that the server refuses is not reported as restored.
#[test]
fn an_undo_whose_only_command_fails_is_no_undo() {
    let server = Server::holding(&[("idempotency:a", PENDING, 600_000)]);
    let complete = ["complete", "a", "--schema", "go-middleware", "--yes", "--backup", "b"];
    server.idemctl(&[&complete[..], &["--status", "201", "--body", "paid"]].concat()).exits(0);
    let stored = server.get("idempotency:a");
    make_later_version(&server.folder().join("b"));
    let run = server.idemctl(&["undo", "--yes"]);
    assert!(run.code != 0 && run.stderr.contains("DUMP payload version"), "{}", run.all());
    assert_eq!(server.get("idempotency:a"), stored);
    assert_eq!((noted(&server, "restored"), noted(&server, "partial")), (0, 0), "{}", run.all());
}

/// Rule: a log that could not be written for a while has all later changes, and the operation can be undone.
#[test]
fn changes_after_a_failed_write_of_the_log_are_logged() {
    let server = Arc::new(Server::start());
    let done = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":"1"}"#;
    server.fill((0..600).map(|number| (format!("idem:k{number}"), done)), 900_000);
    let (folder, away) = (server.audit(), server.state("away"));
    let calls = AtomicUsize::new(0);
    let way = fault::hooked(&server, move |sent| {
        if says(sent, "$6\r\nUNLINK\r\n") {
            let log = audit::details(&folder).remove(0);
            match calls.fetch_add(1, Ordering::SeqCst) {
                // The first batch has five calls.
                0 => {
                    std::fs::rename(&log, &away).unwrap();
                    std::fs::create_dir(&log).unwrap();
                }
                5 => {
                    std::fs::remove_dir(&log).unwrap();
                    std::fs::rename(&away, &log).unwrap();
                }
                _ => {}
            }
        }
        Hook::Pass
    });
    let purge = ["purge", "--schema", "express", "--all", "--yes", "--backup", "b"];
    server.at(way, &purge).exits(3).says("the audit log does not contain");
    assert_eq!((server.size(), noted(&server, "purged")), (0, 100));
    server.at(way, &["undo", "--yes"]).exits(0);
    assert_eq!(server.size(), 600);
}

/// Rule: a Redis key in another slot whose change may have been made is not logged as left alone.
#[test]
fn an_unknown_change_in_another_slot_is_not_logged_as_left_alone() {
    let cluster = Arc::new(Cluster::start(3));
    let done = |number: usize| format!("idem:done:m{number}");
    let lock = |number: usize| format!("idem:lock:m{number}");
    let number = (0..)
        .find(|number| (cluster.owner(&lock(*number)), cluster.owner(&done(*number))) == (1, 2))
        .unwrap();
    cluster.set(&lock(number), "1", 600_000);
    cluster.set(&done(number), "1", 600_000);
    let is_cut = AtomicBool::new(false);
    let way = fault::hooked(cluster.node(2), move |sent| {
        if removes(sent) {
            is_cut.store(true, Ordering::SeqCst);
            return Hook::Lose;
        }
        if is_cut.load(Ordering::SeqCst) { Hook::Cut } else { Hook::Pass }
    });
    cluster.announce(2, way);
    let purge = ["purge", "--schema", "event-consumer", "--all", "--yes", "--backup", "b"];
    let run = cluster.idemctl(&[&["--timeout", "2s"][..], &purge].concat());
    assert_eq!(cluster.get(&lock(number)), None, "{}", run.all());
    let node = cluster.node(0);
    let noted = |what| noted(node, what);
    assert_eq!(
        (noted("purged"), noted("outcome-unknown"), noted("left-alone")),
        (1, 1, 0),
        "{}",
        run.all()
    );
}

#[test]
fn replicas_are_waited_for_also_after_a_lost_reply() {
    let stage = Stage::new(&[]);
    let way =
        fault::hooked(
            &stage.server,
            |sent| if says(sent, "UNLINK") { Hook::Lose } else { Hook::Pass },
        );
    let wait = ["--wait-replicas", "1", "--wait-timeout", "100ms", "--backup", "b"];
    let run = stage.server.at(way, &[REMOVALS[0], &wait].concat()).exits(3);
    run.says("only 0 of 1 replicas").says("Unlocked stuck; backup: ").says("reading back");
    assert_eq!(stage.server.get("idempotency:stuck"), None);
    assert_eq!(noted(&stage.server, "unlocked"), 2);
}

#[test]
fn what_was_done_and_could_not_be_noted_is_said_beside_whatever_else_went_wrong() {
    let stage = Stage::new(&[]);
    let folder = stage.server.audit();
    let way = fault::hooked(&stage.server, move |sent| {
        if !says(sent, "UNLINK") {
            return Hook::Pass;
        }
        let log = audit::details(&folder).pop().unwrap();
        // The disk is full from here on.
        let _ = std::fs::remove_file(&log);
        let _ = std::os::unix::fs::symlink("/dev/full", &log);
        Hook::Cut
    });
    stage
        .server
        .at(way, &[REMOVALS[0], &["--backup", "b"]].concat())
        .exits(7)
        .says("outcome unknown")
        .says("audit");
}

#[test]
fn a_record_is_shown_and_unlocked_though_other_schemas_keys_would_be_on_a_master_that_is_down() {
    let mut cluster = Cluster::start(3);
    // Its own Redis key is served, another schema's would not be.
    let own = |number: &usize| {
        cluster.owner(&key(*number)) != 1 && cluster.owner(&format!("idem:k{number}")) == 1
    };
    let numbers: Vec<_> = (0..200).filter(own).take(2).collect();
    numbers.iter().for_each(|number| cluster.set(&key(*number), PENDING, 0));
    let gone = (0..200).find(|number| cluster.owner(&key(*number)) == 1).unwrap();
    cluster.kill(1);
    let name = |number: usize| format!("k{number}");
    let silent = format!("127.0.0.1:{}", cluster.port(1));
    let run = cluster.idemctl(&["inspect", &name(numbers[0]), "-o", "json"]).exits(3);
    assert_eq!(run.json()["records"][0]["schema"], "go-middleware", "{}", run.all());
    run.says(&silent);
    let both = [name(numbers[0]), name(gone)];
    let run = cluster
        .idemctl(&["inspect", &both[0], &both[1], "--schema", "go-middleware", "-o", "jsonl"])
        .exits(3);
    assert_eq!(
        run.json_lines().iter().map(|line| line["key"].clone()).collect::<Vec<_>>(),
        [Value::from(name(numbers[0]))]
    );
    // A record of another schema could be on that master: only the whole name is exact.
    cluster.idemctl(&["force-unlock", &name(numbers[1]), "--yes"]).exits(3);
    assert!(cluster.get(&key(numbers[1])).is_some());
    let whole = format!("go-middleware/{}", name(numbers[1]));
    cluster.idemctl(&["force-unlock", &whole, "--yes"]).exits(0);
    assert_eq!(cluster.get(&key(numbers[1])), None);
    // Of one on the master that is down nobody knows whether it is there.
    cluster.idemctl(&["force-unlock", &name(gone), "--yes"]).exits(5);
    cluster.idemctl(&["inspect", &name(gone), "--schema", "go-middleware"]).exits(5);
}
