//! `idemctl doctor` on servers that belong together: each check of a cluster and of Sentinels fails and passes.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::support::cluster::Cluster;
use crate::support::fault::fake;
use crate::support::sentinel::{SERVICE, Watched};
use crate::support::{FOREVER, Run, Runs as _, idemctl, until};

fn checks(run: &Run) -> Vec<Value> {
    run.json()["checks"].as_array().unwrap().clone()
}

/// The statements of one check.
#[track_caller]
fn of(run: &Run, code: &str) -> Vec<Value> {
    let mut found = checks(run);
    found.retain(|check| check["code"] == code);
    assert!(!found.is_empty(), "no {code}: {}", run.all());
    found
}

#[test]
fn a_cluster_is_judged_node_by_node() {
    let cluster = Cluster::start(3);
    let run = |more: &[&str]| {
        cluster.idemctl(&[&["doctor", "-o", "json", "--schema", "express"], more].concat())
    };
    let sound = run(&[]);
    for code in ["cluster-state", "keys-in-slots"] {
        let found = of(&sound, code);
        assert_eq!(found.len(), 1, "{found:#?}");
        assert_eq!(found[0]["severity"], "ok", "{found:#?}");
    }
    assert_eq!(of(&sound, "cluster-state")[0]["nodes"].as_array().unwrap().len(), 3);
    let apart = cluster.idemctl(&["doctor", "-o", "json", "--schema", "event-driven,express"]);
    let apart = &of(&apart, "keys-in-slots")[0];
    assert_eq!((&apart["severity"], &apart["evidence"]), (&"error".into(), &"configured".into()));
    assert_eq!(apart["schemas"], serde_json::json!(["event-driven"]));
    // Both are errors. The page begins with what an operator can mend.
    cluster.set("idem:stuck", r#"{"status":"IN_PROGRESS"}"#, FOREVER);
    let only = ["--schema", "event-driven,express", "--only", "keys-in-slots,endless-locks"];
    let page = cluster.idemctl(&[&["doctor"], &only[..]].concat()).exits(1).text();
    assert!(page.find("error    endless-locks") < page.find("error    keys-in-slots"), "{page}");
    // One of the nodes has another policy.
    let mut second = cluster.connect(1);
    for (parameter, value) in [("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")] {
        redis::cmd("CONFIG").arg("SET").arg(parameter).arg(value).exec(&mut second).unwrap();
    }
    let differing = run(&["--only", "eviction-policy"]);
    let severities: Vec<_> = checks(&differing)
        .iter()
        .map(|check| (check["severity"].clone(), check["nodes"].as_array().unwrap().len()))
        .collect();
    assert_eq!(severities, [("error".into(), 1), ("ok".into(), 2)]);
    cluster.begin_to_move(0, 0, 1);
    let moving = of(&run(&[]), "cluster-state");
    assert!(moving.iter().any(|check| check["severity"] == "warning"), "{moving:#?}");
}

#[test]
fn a_cluster_without_one_of_its_nodes_is_no_sound_one() {
    let mut cluster = Cluster::start(3);
    // The other key of some of these records is on the node that goes.
    for number in 0..40 {
        cluster.set(&format!("idem:lock:{number}"), "1", 3_600_000);
    }
    cluster.kill(2);
    until("the cluster misses the node", || {
        let info: String =
            redis::cmd("CLUSTER").arg("INFO").query(&mut cluster.connect(0)).unwrap();
        !info.contains("cluster_slots_fail:0")
    });
    let run = cluster.idemctl(&["doctor", "-o", "json", "--schema", "express"]).exits(1);
    let states = of(&run, "cluster-state");
    let severities: Vec<_> =
        states.iter().map(|state| state["severity"].as_str().unwrap()).collect();
    assert_eq!(severities, ["error"], "{states:#?}");
    let evictions = of(&run, "evictions");
    // What is in order on the other nodes does not stand beside it.
    assert_eq!(evictions.len(), 1, "{}", run.all());
    assert_eq!(evictions[0]["severity"], "unknown");
    assert!(evictions[0]["refused"]["rule"].is_null(), "no rule makes a dead node answer");
    for code in ["endless-locks", "observed-ttls"] {
        assert_eq!(of(&run, code)[0]["severity"], "unknown", "{}", run.all());
    }
    cluster.idemctl(&["doctor"]).exits(1);
    // One master more does not answer than a key of one slot shows.
    let test = cluster.idemctl(&["context", "test"]).exits(5);
    test.shows("NO  scan");
    assert!(!test.text().contains("ok  read"), "{}", test.all());
}

#[test]
fn a_replicated_server_can_lose_writes_in_a_failover() {
    let watched = Watched::start(1);
    let home = watched.server(0);
    let run = |words: &[&str]| {
        let url = watched.url();
        let all = [&["-u", &url, "doctor", "-o", "json", "--schema", "express"], words].concat();
        idemctl(home.folder()).args(all).run()
    };
    let found = run(&[]).exits(1);
    let loss = &of(&found, "failover-loss")[0];
    assert_eq!(loss["severity"], "warning", "{loss:#}");
    assert_eq!(loss["counterexamples"][0]["faults"], "1 failover", "{loss:#}");
    // On a busy machine, the replica may be a moment behind.
    let mut replication = of(&found, "replication")[0].clone();
    for _ in 0..20 {
        if replication["severity"] == "ok" {
            break;
        }
        std::thread::sleep(std::time::Duration::from_millis(250));
        replication = of(&run(&["--only", "replication"]), "replication")[0].clone();
    }
    assert_eq!(replication["severity"], "ok", "{replication:#}");
    // One Sentinel is too few for a majority without it.
    assert_eq!(of(&found, "sentinels")[0]["severity"], "warning");
    assert_eq!(of(&found, "sentinel-down-after")[0]["severity"], "ok");
    let mut master = home.connect();
    redis::cmd("CONFIG").arg("SET").arg("min-replicas-to-write").arg(1).exec(&mut master).unwrap();
    assert_eq!(of(&run(&[]), "failover-loss")[0]["severity"], "note");
    // Locks that are shorter than the time until a failover begins.
    let short = run(&["--lock-ttl", "2s", "--only", "sentinel-down-after"]).exits(1);
    let short = &of(&short, "sentinel-down-after")[0];
    assert_eq!(short["severity"], "warning", "{short:#}");
    assert_eq!(short["counterexamples"][0]["faults"], "1 expiry", "{short:#}");
    let mut sentinel = watched.sentinel(0);
    let mut set = redis::cmd("SENTINEL");
    set.arg("SET").arg(SERVICE).arg("quorum").arg(2).exec(&mut sentinel).unwrap();
    assert_eq!(of(&run(&[]), "sentinels")[0]["severity"], "error");
    // The replica itself.
    let port = watched.port(1).to_string();
    let replica = idemctl(home.folder()).args(["-p", &port, "doctor", "-o", "json"]).run();
    assert_eq!(of(&replica, "replication")[0]["severity"], "warning", "{}", replica.all());
}

#[test]
fn three_sentinels_are_enough() {
    let watched = Watched::start(3);
    until("the Sentinels know each other", || {
        (0..3).all(|index| {
            let told: Vec<Vec<String>> = redis::cmd("SENTINEL")
                .arg("SENTINELS")
                .arg(SERVICE)
                .query(&mut watched.sentinel(index))
                .unwrap_or_default();
            told.len() == 2
        })
    });
    let url = watched.url();
    let words = ["-u", &url, "doctor", "-o", "json", "--only", "sentinels"];
    let run = idemctl(watched.server(0).folder()).args(words).run();
    assert_eq!(of(&run, "sentinels")[0]["severity"], "ok", "{}", run.all());
}

/// Rule: each node has ACL rules of its own, and a right that one of them refuses is not there.
#[test]
fn rights_that_one_master_refuses_are_found() {
    let cluster = Cluster::start(3);
    for index in 0..3 {
        let mut add = redis::cmd("ACL");
        add.arg("SETUSER").arg("app").arg("on").arg("nopass").arg("~*").arg("+@all");
        if index == 1 {
            add.arg("-set");
        }
        add.exec(&mut cluster.connect(index)).unwrap();
    }
    let only = ["--only", "service-rights", "--service-user", "app", "--schema", "express"];
    let run = cluster.idemctl(&[&["doctor", "-o", "json"], &only[..]].concat());
    let found = of(&run, "service-rights");
    if found[0]["severity"] == "unknown" {
        // Redis 6.2 has no ACL DRYRUN.
        assert_eq!(found[0]["nodes"].as_array().unwrap().len(), 3, "{found:#?}");
        return;
    }
    let severities: Vec<_> = found
        .iter()
        .map(|check| (check["severity"].clone(), check["nodes"].as_array().unwrap().len()))
        .collect();
    assert_eq!(severities, [("error".into(), 1), ("ok".into(), 2)], "{found:#?}");
    let refusing = found[0]["nodes"][0].as_str().unwrap();
    assert!(refusing.contains(&cluster.port(1).to_string()), "{found:#?}");
}

/// Rule: a Sentinel that does not answer is unknown, is waited for once, and hides nothing.
#[test]
fn a_sentinel_that_does_not_answer_is_unknown() {
    let watched = Watched::start(1);
    let known = watched.sentinel_port(0);
    let connections = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&connections);
    let silent = fake(move |client| {
        count.fetch_add(1, Ordering::SeqCst);
        let mut part = [0; 1024];
        while let Ok(1..) = std::io::Read::read(&mut &*client, &mut part) {}
    });
    let only = ["--only", "sentinels,sentinel-down-after", "--schema", "express"];
    let run = |other: u16| {
        let url = format!("redis-sentinel://127.0.0.1:{known},127.0.0.1:{other}/{SERVICE}");
        let words = [&["-u", &url, "--timeout", "300ms", "doctor", "-o", "json"], &only[..]];
        idemctl(watched.server(0).folder()).args(words.concat()).run().exits(3)
    };
    for other in [silent, 1] {
        let run = run(other);
        for code in ["sentinels", "sentinel-down-after"] {
            let found = &of(&run, code)[0];
            assert_eq!(found["severity"], "unknown", "{found:#}");
            let shown = found.to_string();
            assert!(shown.contains(&format!("127.0.0.1:{other}")), "{found:#}");
        }
    }
    // One connection to ask, and one to see whether the Sentinel only speaks TLS.
    assert_eq!(connections.load(Ordering::SeqCst), 2, "it is asked again after a timeout");
    // What the other Sentinel reports is a finding all the same.
    let mut sentinel = watched.sentinel(0);
    let mut set = redis::cmd("SENTINEL");
    set.arg("SET").arg(SERVICE).arg("quorum").arg(2).exec(&mut sentinel).unwrap();
    let url = format!("redis-sentinel://127.0.0.1:{known},127.0.0.1:1/{SERVICE}");
    let words = ["-u", &url, "doctor", "-o", "json", "--only", "sentinels"];
    let run = idemctl(watched.server(0).folder()).args(words).run().exits(1);
    assert_eq!(of(&run, "sentinels")[0]["severity"], "error", "{}", run.all());
}

/// Rule: each master has its own memory, and one that is full makes no difference to the others.
#[test]
fn memory_is_judged_master_by_master() {
    let cluster = Cluster::start(3);
    let done = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;
    for number in 0..300_u64 {
        cluster.set(&format!("idem:{number}"), done, (number + 1) * 288_000);
    }
    let limit = |index: usize, bytes: &str| {
        let mut set = redis::cmd("CONFIG");
        set.arg("SET").arg("maxmemory").arg(bytes).exec(&mut cluster.connect(index)).unwrap();
    };
    for index in 0..3 {
        limit(index, "200mb");
    }
    let run = || {
        let words = ["doctor", "-o", "json", "--schema", "express", "--only", "capacity"];
        let mut found = Vec::new();
        for check in of(&cluster.idemctl(&words), "capacity") {
            let nodes = check["nodes"].as_array().unwrap().len();
            found.push((check["severity"].as_str().unwrap().to_owned(), nodes));
        }
        found
    };
    assert!(run().iter().all(|(severity, _)| severity == "ok"), "{:?}", run());
    limit(1, "1mb");
    let found = run();
    assert_eq!(found[0], ("warning".to_owned(), 1), "{found:?}");
    assert!(found[1..].iter().all(|(severity, _)| severity == "ok"), "{found:?}");
}
