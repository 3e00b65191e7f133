//! What idemctl does when a part of a cluster cannot be read: the part is named, and the rest is read and changed.

use crate::support::cluster::Cluster;
use crate::support::{LOCK, until};

const DONE: &str = r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#;
const RESULT: &str = r#"{"statusCode":200,"body":"x"}"#;
const UNSERVED: &str = "no node serves slots 5461-10921, so their records were not read";

/// Rule: the nodes that answer are never taken for the whole keyspace.
#[test]
fn slots_that_no_node_serves_are_named_by_every_scan() {
    let mut cluster = Cluster::start(3);
    cluster.fill((0..30).map(|number| (format!("idempotency:k{number}"), DONE)), 80_000_000);
    let lost =
        (0..30).filter(|number| cluster.owner(&format!("idempotency:k{number}")) == 1).count();
    cluster.idemctl(&["check"]).exits(0);
    cluster.idemctl(&["list", "-o", "jsonl"]).exits(0);
    cluster.lose(1);

    cluster.idemctl(&["check"]).exits(3).shows("UNKNOWN").shows(UNSERVED);
    let list = cluster.idemctl(&["list", "-o", "json"]).exits(3);
    list.says(UNSERVED);
    assert_eq!(list.json()["complete"], false, "{}", list.all());
    assert_eq!(list.json()["records"].as_array().unwrap().len(), 30 - lost, "{}", list.all());
    let limited = cluster.idemctl(&["list", "--limit", "1", "-o", "json"]).exits(3);
    assert_eq!(limited.says(UNSERVED).json()["complete"], false, "{}", limited.all());
    let stats = cluster.idemctl(&["stats", "-o", "json"]).exits(3);
    assert_eq!(stats.says(UNSERVED).json()["complete"], false, "{}", stats.all());
    let detect = cluster.idemctl(&["detect"]).exits(3);
    assert!(!detect.says(UNSERVED).stderr.contains("All "), "{}", detect.all());
    cluster.idemctl(&["sweep", "--orphaned", "--dry-run"]).exits(3).says(UNSERVED);
    let purge = ["purge", "--all", "--schema", "go-middleware", "--yes", "--no-backup"];
    cluster.idemctl(&purge).exits(3).says(UNSERVED).says(format!("{} records purged", 30 - lost));
}

#[test]
fn a_node_that_has_not_joined_is_no_empty_keyspace() {
    let cluster = Cluster::not_joined();
    let unserved = "no node serves slots 0-16383";
    cluster.idemctl(&["check"]).exits(3).shows("UNKNOWN").shows(unserved);
    for words in [&["list"][..], &["stats"], &["detect"], &["sweep", "--orphaned", "--dry-run"]] {
        let run = cluster.idemctl(words).exits(3);
        assert!(!run.says(unserved).stderr.contains("no Redis keys"), "{}", run.all());
    }
}

/// A cluster with `idem:started:{m}1` moved to the node that imports its slot, and its result left behind.
fn half_moved() -> (Cluster, usize, usize) {
    let cluster = Cluster::start(3);
    cluster.fill((0..40).map(|number| (format!("idem:n{number}"), LOCK)), 0);
    cluster.set("idem:started:{m}1", "9cdf8104-2072-4119-abbc-c7ddc8386930", 80_000_000);
    cluster.set("idem:result:{m}1", RESULT, 80_000_000);
    cluster.set("idem:{m}2", LOCK, 0);
    let from = cluster.owner("idem:{m}2");
    let to = (from + 1) % 3;
    cluster.begin_to_move(cluster.slot("idem:{m}2"), from, to);
    cluster.migrate(&["idem:started:{m}1", "idem:{m}2"], from, to);
    (cluster, from, to)
}

/// Rule: a failure belongs to the record in which it happened. A record whose keys are on two nodes is read key by key, and
/// cannot be changed until its slot has moved.
#[test]
fn a_record_that_is_half_moved_is_read_and_left_alone_and_the_others_are_changed() {
    let (cluster, from, to) = half_moved();
    let list = cluster.idemctl(&["list", "-o", "json"]).exits(0);
    let records = list.json()["records"].as_array().unwrap().clone();
    assert_eq!((records.len(), &list.json()["complete"]), (42, &true.into()), "{}", list.all());
    let inspected = cluster.idemctl(&["inspect", "event-driven/{m}1", "-o", "json"]).exits(0);
    let record = &inspected.json()["records"][0];
    assert_eq!(
        (&record["state"], &record["atomic"]),
        (&"completed".into(), &false.into()),
        "{}",
        inspected.all()
    );

    let moving = format!("TRYAGAIN slot {} is being moved", cluster.slot("idem:{m}2"));
    let purge = cluster.idemctl(&["purge", "event-driven/{m}1", "--yes", "--no-backup"]).exits(6);
    purge.says(&moving).says("`redis-cli --cluster fix`");
    let purge = ["purge", "--all", "--schema", "event-driven", "--yes", "--no-backup"];
    cluster.idemctl(&purge).exits(6).says(&moving);
    let begin = ["begin", "{m}9", "--schema", "event-driven", "--yes"];
    cluster.idemctl(&begin).exits(6).says(&moving);
    let sweep = ["sweep", "--orphaned", "--grace", "0s", "--yes", "--no-backup"];
    cluster.idemctl(&sweep).exits(0).says("41 ");
    assert_eq!(cluster.size(), 2, "the record that is half moved stays as it is");

    // Once the move ends the record is changed as any other.
    cluster.migrate(&["idem:result:{m}1"], from, to);
    cluster.idemctl(&["purge", "event-driven/{m}1", "--yes", "--no-backup"]).exits(0);
    assert_eq!(cluster.size(), 0);
}

/// Rule: a service's own step goes where the record is, also in the middle of a move.
#[test]
fn a_step_follows_ask_for_keys_that_have_moved_and_for_absent_ones() {
    let (cluster, from, to) = half_moved();
    cluster.idemctl_at(from, &["release", "{m}2", "--schema", "express", "--yes"]).exits(0);
    let get = |key: &str| -> Option<String> {
        let mut connection = cluster.connect(to);
        redis::cmd("ASKING").exec(&mut connection).unwrap();
        redis::cmd("GET").arg(key).query(&mut connection).unwrap()
    };
    assert_eq!(get("idem:{m}2"), None);
    cluster.idemctl(&["begin", "{m}3", "--schema", "express", "--yes"]).exits(0);
    assert!(get("idem:{m}3").is_some());
    let complete =
        ["complete", "{m}3", "--schema", "express", "--status", "201", "--body", "ok", "--yes"];
    cluster.idemctl_at(to, &complete).exits(0);
    assert!(get("idem:{m}3").unwrap().contains("201"));
}

/// Rule: no read of one record is taken for another record, and the records that could not be read are named.
#[test]
fn a_record_whose_lock_is_on_a_dead_node_gives_nothing_to_the_other_schemas() {
    let mut cluster = Cluster::start(3);
    let templates = ["idem:", "idem:result:", "idem:lock:", "idem:done:", "idempotency:"];
    let key = (0..)
        .map(|number| format!("k{number}"))
        .find(|key| {
            let is_dead = |template: &str| cluster.owner(&format!("{template}{key}")) == 1;
            is_dead("idem:started:") && !templates.iter().any(|template| is_dead(template))
        })
        .unwrap();
    cluster.set(&format!("idem:result:{key}"), RESULT, 80_000_000);
    cluster.set(&format!("idem:{key}"), LOCK, 80_000_000);
    cluster.set(&format!("idempotency:{key}"), DONE, 80_000_000);
    cluster.kill(1);

    let run = cluster.idemctl(&["inspect", &key, "-o", "json"]).exits(3);
    let json = run.json();
    let shown: Vec<_> = json["records"].as_array().unwrap().iter().collect();
    let of: Vec<_> = shown.iter().map(|record| record["schema"].as_str().unwrap()).collect();
    assert_eq!(
        (of.as_slice(), &json["complete"]),
        (&["express", "go-middleware"][..], &false.into())
    );
    for record in shown {
        let prefix = if record["schema"] == "express" { "idem:" } else { "idempotency:" };
        assert_eq!(record["redis_keys"][0], format!("{prefix}{key}"), "{record:#}");
    }
    run.says("could not read the keys of event-driven").says("cannot reach Redis");
}

/// Rule: a Redis key of another schema or prefix whose node does not answer is unknown, not absent.
#[test]
fn a_redis_key_on_a_dead_node_is_unknown_whatever_schema_is_chosen() {
    let mut cluster = Cluster::start(3);
    let on_dead = |template: &str, key: &str| cluster.owner(&format!("{template}{key}")) == 1;
    let mut keys = (0..).map(|number| format!("idem:k{number}"));
    let key = keys.find(|key| on_dead("", key) && !on_dead("old:idem:", key)).unwrap();
    cluster.set(&key, LOCK, 80_000_000);
    cluster.kill(1);
    for more in [&["--schema", "celery-once"][..], &["--schema", "express", "--prefix", "old:"]] {
        let run = cluster.idemctl(&[&["inspect", &key], more].concat());
        assert!(matches!(run.code, 3 | 5), "{}", run.stderr);
        run.says("cannot reach Redis");
        assert!(!run.stderr.contains("not an existing"), "{}", run.stderr);
        let until = [&["inspect", &key, "--until", "absent", "--within", "1s"], more].concat();
        let run = cluster.idemctl(&until);
        assert!(matches!(run.code, 3 | 5), "{}", run.stderr);
    }
}

/// Rule: what one node refuses is no matter of the others.
#[test]
fn a_busy_node_keeps_nobody_from_the_others() {
    let cluster = Cluster::start(3);
    cluster.fill((0..60).map(|number| (format!("idempotency:k{number}"), DONE)), 80_000_000);
    let on_second =
        (0..60).filter(|number| cluster.owner(&format!("idempotency:k{number}")) == 1).count();
    let mut control = cluster.connect(1);
    redis::cmd("CONFIG").arg("SET").arg("lua-time-limit").arg(50).exec(&mut control).unwrap();
    std::thread::scope(|scope| {
        let mut busy = cluster.connect(1);
        // It ends by itself if the test fails before SCRIPT KILL.
        let script = "for i = 1, 3000000000 do end";
        scope.spawn(move || redis::cmd("EVAL").arg(script).arg(0).exec(&mut busy).unwrap_err());
        until("the node is busy", || {
            let size = redis::cmd("DBSIZE").query::<u64>(&mut control);
            size.is_err_and(|error| error.code() == Some("BUSY"))
        });
        let list = cluster.idemctl(&["list", "-o", "json"]);
        let alone = cluster.idemctl_at(1, &["list", "-o", "json"]);
        let purge = ["purge", "--all", "--schema", "go-middleware", "--yes", "--no-backup"];
        let purge = cluster.idemctl(&purge);
        redis::cmd("SCRIPT").arg("KILL").exec(&mut control).unwrap();
        assert_eq!(list.exits(3).json()["records"].as_array().unwrap().len(), 60 - on_second);
        // A busy node does not say that it is one of a cluster.
        alone.exits(6).says("BUSY");
        purge.exits(3).says(format!("{} records purged", 60 - on_second)).says("BUSY");
    });
    assert_eq!(cluster.size(), on_second);
}

/// Rule: a failure belongs to the record in which it happened: a record of which the cluster is moving the slot keeps no other
/// one from coming back, and the next undo goes on with it.
#[test]
fn a_record_in_a_moving_slot_does_not_keep_the_others_from_coming_back() {
    let cluster = Cluster::start(3);
    for index in 0..5 {
        cluster.set(
            &format!("idem:started:{{t{index}}}"),
            "9cdf8104-2072-4119-abbc-c7ddc8386930",
            0,
        );
        cluster.set(&format!("idem:result:{{t{index}}}"), RESULT, 80_000_000);
    }
    cluster.idemctl(&["purge", "--all", "--schema", "event-driven", "--yes"]).exits(0);
    assert_eq!(cluster.size(), 0);
    let from = cluster.owner("idem:started:{t3}");
    let to = (from + 1) % 3;
    cluster.begin_to_move(cluster.slot("idem:started:{t3}"), from, to);
    let run = cluster.idemctl(&["undo", "--yes", "-o", "json"]).exits(3);
    run.says("idem:started:{t3}: ")
        .says("TRYAGAIN")
        .says("Reverted 8 of 10 Redis keys; 2 not restored");
    assert_eq!(
        (&run.json()["restored"], &run.json()["moving"]),
        (&8.into(), &2.into()),
        "{}",
        run.all()
    );
    assert_eq!(cluster.size(), 8);
    let backups = cluster.idemctl(&["backup", "list", "-o", "json"]).exits(0).json();
    let file = backups["backups"][0]["file"].as_str().unwrap().to_owned();
    let again = cluster.idemctl(&["restore", &file, "--yes"]).exits(3);
    again.says("Restored 0 of 10 Redis keys; 8 already present, left unchanged; 2 not restored");
    cluster.idemctl(&["undo", "--yes"]).exits(3).says("8 already present");
}
