//! idemctl on a cluster.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::cluster::Cluster;
use crate::support::fault::{self, Hook};
use crate::support::{PENDING, Server, until};

const DONE: &str = r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#;
const RESULT: &str = r#"{"statusCode":200,"body":""}"#;

/// A cluster with so many results.
fn filled(count: usize) -> Cluster {
    let cluster = Cluster::start(3);
    cluster.fill((0..count).map(|number| (format!("idempotency:k{number}"), DONE)), 80_000_000);
    cluster
}

#[test]
fn a_key_is_found_on_whichever_node_it_is() {
    let cluster = filled(12);
    for number in 0..12 {
        for node in 0..3 {
            let run = cluster
                .idemctl_at(node, &["inspect", &format!("k{number}"), "-o", "json"])
                .exits(0);
            assert_eq!(run.json()["records"][0]["state"], "completed", "{}", run.all());
            assert!(
                run.json()["records"][0]["idle_seconds"].is_null(),
                "a cluster is not asked for NO-TOUCH"
            );
        }
    }
    // Many keys in one call, from all nodes, in the order they were asked for.
    let run = cluster.idemctl(&["inspect", "k0", "k1", "k2", "k3", "k4", "nowhere", "-o", "jsonl"]);
    let keys: Vec<_> =
        run.json_lines().iter().filter_map(|line| Some(line["key"].as_str()?.to_owned())).collect();
    assert_eq!(keys, ["k0", "k1", "k2", "k3", "k4"], "{}", run.all());
}

/// Rule: a cluster is one by whichever of its nodes, replicas included.
#[test]
fn what_a_context_keeps_is_kept_at_each_node() {
    let cluster = Cluster::start_with_replicas(3);
    cluster.set("idempotency:stuck", PENDING, 600_000);
    let config = cluster.node(0).folder().join("prod.toml");
    let unlock = |node: usize, more: &[&str]| {
        let port = cluster.port(node).to_string();
        let named = ["--config", config.to_str().unwrap(), "-p", &port, "--timeout", "20s"];
        cluster.node(0).unnamed(&[&named[..], &["force-unlock", "stuck"], more].concat())
    };
    // A node lists a replica once that has data.
    for node in 0..3 {
        until("each node lists each replica", || {
            let slots =
                format!("{:?}", cluster.node(node).send::<redis::Value>(&[b"CLUSTER", b"SLOTS"]));
            (0..6).all(|other| slots.contains(&cluster.port(other).to_string()))
        });
    }
    for of_context in [0, 1, 4] {
        for (kept, says) in
            [("protected", "--yes is not enough"), ("read_only", "it allows no changes")]
        {
            let url = format!("redis://localhost:{}", cluster.port(of_context));
            std::fs::write(&config, format!("[contexts.prod]\nurl = \"{url}\"\n{kept} = true\n"))
                .unwrap();
            for node in [0, 1, 2, 3, 5] {
                unlock(node, &["--yes"]).exits(2).says("context `prod` is").says(says);
            }
        }
    }
    assert!(cluster.get("idempotency:stuck").is_some());
    std::fs::write(
        &config,
        format!(
            "[contexts.prod]\nurl = \"redis://127.0.0.1:{}\"\nprotected = true\n",
            cluster.port(1)
        ),
    )
    .unwrap();
    unlock(2, &["--confirm", "prod"]).exits(0);
    assert!(cluster.get("idempotency:stuck").is_none());
}

/// `CLUSTER SLOTS` leaves out replicas that are down, and those that have no data yet. A context that names such a node still
/// protects its cluster.
#[test]
fn a_context_protects_its_cluster_while_the_node_that_it_names_is_down() {
    let mut cluster = Cluster::start_with_replicas(3);
    cluster.set("idempotency:stuck", PENDING, 600_000);
    let down = cluster.port(4).to_string();
    cluster.kill(4);
    until("no slot is said to be at the node that is down", || {
        let slots = cluster.node(0).send::<redis::Value>(&[b"CLUSTER", b"SLOTS"]);
        !format!("{slots:?}").contains(&down)
    });
    let config = cluster.node(0).folder().join("prod.toml");
    let context =
        format!("[contexts.prod]\nurl = \"redis://localhost:{down}\"\nprotected = true\n");
    std::fs::write(&config, context).unwrap();
    let port = cluster.port(0).to_string();
    let words = [
        "--config",
        config.to_str().unwrap(),
        "-p",
        &port,
        "--timeout",
        "20s",
        "force-unlock",
        "stuck",
        "--yes",
    ];
    cluster.node(0).unnamed(&words).exits(2).says("context `prod` is").says("--yes is not enough");
    assert!(cluster.get("idempotency:stuck").is_some());
}

/// Rule: a cluster is known by its nodes, whatever the address. Revert: if `is_same_server` compares run ids alone, the lock goes.
#[test]
fn a_context_that_names_the_socket_of_a_node_protects_the_cluster() {
    let cluster = Cluster::start(3);
    let alone = Server::start();
    let config = cluster.node(0).folder().join("prod.toml");
    let port = cluster.port(0).to_string();
    let config_text = config.to_str().unwrap();
    let unlock = |of_context: &Server| {
        cluster.set("idempotency:stuck", PENDING, 600_000);
        let url = of_context.url();
        std::fs::write(&config, format!("[contexts.prod]\nurl = \"{url}\"\nprotected = true\n"))
            .unwrap();
        let named = ["--config", config_text, "-p", &port, "--timeout", "20s"];
        alone.unnamed(&[&named[..], &["force-unlock", "stuck", "--yes"]].concat())
    };
    unlock(cluster.node(1)).exits(2).says("context `prod` is protected");
    assert!(cluster.get("idempotency:stuck").is_some());
    unlock(&alone).exits(0);
}

#[test]
fn a_record_of_two_keys_in_two_slots_is_read_in_two_steps_and_says_so() {
    let cluster = Cluster::start(3);
    cluster.set("idem:started:a", "worker-7", 20_000);
    cluster.set("idem:result:b", RESULT, 60_000);
    let run = cluster.idemctl(&["inspect", "a", "--schema", "event-driven", "-o", "json"]).exits(0);
    let record = &run.json()["records"][0];
    assert_eq!(
        (&record["state"], &record["owner"]),
        (&"in-progress".into(), &"worker-7".into()),
        "{}",
        run.all()
    );
    assert_eq!(record["atomic"], false, "{}", run.all());
    let text = cluster.idemctl(&["inspect", "a", "--schema", "event-driven"]).exits(0).text();
    assert!(text.contains("one Redis key after another"), "{text}");
}

#[test]
fn a_list_holds_the_records_of_all_nodes() {
    let cluster = Cluster::start(3);
    let value = |number| if number % 3 == 0 { PENDING } else { DONE };
    cluster.fill((0..60).map(|number| (format!("idempotency:k{number}"), value(number))), 60_000);
    cluster.fill((0..60).map(|number| (format!("idem:started:m{number}"), "w")), 20_000);
    cluster.fill((0..20).map(|number| (format!("idem:result:m{number}"), RESULT)), 60_000);
    let run = cluster.idemctl(&["list", "-o", "jsonl"]).exits(0);
    let mut keys: Vec<_> =
        run.json_lines().iter().map(|line| line["key"].as_str().unwrap().to_owned()).collect();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), run.json_lines().len()), (120, 120));
    let leftover = cluster.idemctl(&["list", "--finding", "leftover-lock", "-o", "jsonl"]).exits(0);
    assert_eq!(leftover.json_lines().len(), 20);
}

#[test]
fn a_lock_is_removed_wherever_it_is_and_comes_back_from_the_backup() {
    let cluster = Cluster::start(3);
    for number in 0..4 {
        let (key, redis_key) = (format!("k{number}"), format!("idempotency:k{number}"));
        cluster.set(&redis_key, PENDING, 0);
        let backup = format!("backup-{number}");
        cluster.idemctl(&["force-unlock", &key, "--yes", "--backup", &backup]).exits(0);
        assert_eq!(cluster.get(&redis_key), None);
        cluster.idemctl(&["restore", &backup, "--yes"]).exits(0);
        assert_eq!(cluster.get(&redis_key).as_deref(), Some(PENDING));
    }
}

#[test]
fn a_purge_removes_from_all_nodes_what_it_chose() {
    let cluster = Cluster::start(3);
    let value = |number| if number % 10 == 0 { PENDING } else { DONE };
    cluster.fill((0..300).map(|number| (format!("idempotency:k{number}"), value(number))), 60_000);
    let run = cluster.idemctl(&[
        "purge",
        "--schema",
        "go-middleware",
        "--state",
        "completed",
        "--yes",
        "--backup",
        "b",
    ]);
    run.exits(0).says("270 of 270 records purged");
    assert_eq!(cluster.size(), 30);
    let back = cluster.idemctl_at(2, &["restore", "b", "--yes", "-o", "jsonl"]).exits(0);
    assert_eq!((back.json_lines().len(), cluster.size()), (270, 300));
}

/// Rule: a plan of a cluster is applied through any of its nodes, also to records in several slots.
#[test]
fn a_plan_is_applied_on_all_nodes() {
    let cluster = Cluster::start(3);
    cluster.fill((0..300).map(|number| (format!("idempotency:k{number}"), DONE)), 60_000);
    cluster.fill((0..50).map(|number| (format!("idem:result:m{number}"), RESULT)), 60_000);
    let plan = ["purge", "--all", "--schema", "go-middleware,event-driven", "--plan", "plan"];
    cluster.idemctl(&plan).exits(0).says("Planned 350 of 350 records");
    cluster.set("idempotency:k7", PENDING, 60_000);
    assert_eq!(cluster.size(), 350);
    let run = cluster.idemctl_at(2, &["apply", "plan", "--yes"]).exits(3);
    run.says("349 of 349 records purged").says("unchanged: go-middleware/k7");
    assert_eq!(cluster.get("idempotency:k7").as_deref(), Some(PENDING));
    cluster.idemctl(&["undo", "--yes"]).exits(0);
    assert_eq!(cluster.size(), 350);
}

/// Rule: a record that plain commands read is looked at again before it is changed, not taken for changed.
#[test]
fn a_purge_removes_results_whose_locks_would_be_on_other_nodes() {
    let cluster = Cluster::start(3);
    cluster.fill((0..50).map(|number| (format!("idem:result:m{number}"), RESULT)), 60_000);
    for words in [&["--yes", "--max", "20"][..], &["--yes", "--rate", "1000/s"]] {
        let run =
            cluster.idemctl(&[&["purge", "--all", "--schema", "event-driven"], words].concat());
        assert!(
            run.code == 2 || run.stderr.contains("50 of 50 records purged"),
            "{words:?}: {}",
            run.all()
        );
        assert_eq!(cluster.size(), if run.code == 2 { 50 } else { 0 });
    }
    cluster.set("idem:result:m", RESULT, 60_000);
    cluster.idemctl(&["purge", "--all", "--schema", "event-driven", "--yes"]).exits(0);
    assert_eq!(cluster.size(), 0);
}

#[test]
fn a_leftover_lock_goes_alone_and_only_while_its_result_is_there() {
    let cluster = Cluster::start(3);
    cluster.fill((0..10).map(|number| (format!("idem:started:m{number}"), "worker")), 20_000);
    cluster.fill((0..10).map(|number| (format!("idem:result:m{number}"), RESULT)), 60_000);
    let run = cluster
        .idemctl(&[
            "sweep",
            "--include",
            "leftover-lock",
            "--grace",
            "100ms",
            "--yes",
            "--no-backup",
        ])
        .exits(0);
    run.says("10");
    let (locks, results) = (0..10).fold((0, 0), |(locks, results), number| {
        let there =
            |name: &str| usize::from(cluster.get(&format!("idem:{name}:m{number}")).is_some());
        (locks + there("started"), results + there("result"))
    });
    assert_eq!((locks, results), (0, 10));
}

#[test]
fn a_service_s_own_step_is_made_on_the_node_of_the_key_and_refused_on_two() {
    let cluster = Cluster::start(3);
    for number in 0..4 {
        let key = format!("pay{number}");
        cluster.idemctl(&["begin", &key, "--schema", "go-chi", "--yes"]).exits(0);
        let complete =
            ["complete", &key, "--schema", "go-chi", "--status", "201", "--body", "{}", "--yes"];
        cluster.idemctl(&complete).exits(0);
        assert!(cluster.get(&key).unwrap().contains("201"));
    }
    let run = cluster.idemctl(&["begin", "m1", "--schema", "event-consumer", "--yes"]);
    assert_ne!(run.code, 0);
    run.says("is in slot");
}

#[test]
fn races_are_run_on_one_master_by_the_schemas_that_can() {
    let cluster = Cluster::start(3);
    let run = cluster.idemctl(&[
        "race",
        "--rounds",
        "4",
        "--concurrency",
        "8",
        "--strategy",
        "schema",
        "-o",
        "jsonl",
    ]);
    let run = run.exits(0);
    let raced: Vec<_> =
        run.json_lines().iter().map(|line| line["schema"].as_str().unwrap().to_owned()).collect();
    assert_eq!(raced, ["express", "go-chi", "go-middleware", "reference"], "{}", run.all());
    run.says("skipped schema event-driven").says("in slot");
    cluster
        .idemctl(&["race", "--schema", "event-consumer", "--rounds", "1"])
        .exits(2)
        .says("in slot");
    assert_eq!(cluster.size(), 0);
}

#[test]
fn a_node_that_is_down_makes_a_list_partial_and_is_named() {
    let mut cluster = filled(30);
    let on_second =
        (0..30).filter(|number| cluster.owner(&format!("idempotency:k{number}")) == 1).count();
    cluster.kill(1);
    let run = cluster.idemctl(&["list", "-o", "jsonl"]).exits(3);
    assert_eq!(run.json_lines().len(), 30 - on_second, "{}", run.all());
    run.says(format!("127.0.0.1:{}", cluster.port(1)));
}

/// Moves slots of the first node to the second, one after the other, until told to stop; gives how many.
fn reshard(cluster: &Cluster, stop: &AtomicBool) -> u16 {
    let mut moved = 0;
    for slot in 0..5_400 {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        cluster.move_slot(slot, 0, 1);
        moved += 1;
    }
    moved
}

/// Does something while slots are being moved; gives what it gave, and how many were.
fn while_slots_move<T>(cluster: &Cluster, work: impl FnOnce() -> T) -> (T, u16) {
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let moving = scope.spawn(|| reshard(cluster, &stop));
        let done = work();
        stop.store(true, Ordering::Relaxed);
        (done, moving.join().unwrap())
    })
}

#[test]
fn a_list_misses_nothing_while_slots_are_moved() {
    let cluster = filled(20_000);
    let (run, moved) =
        while_slots_move(&cluster, || cluster.idemctl(&["list", "-o", "jsonl"]).exits(0));
    let keys: BTreeSet<_> =
        run.json_lines().iter().map(|line| line["key"].as_str().unwrap().to_owned()).collect();
    assert!(moved > 0, "no slot was moved meanwhile");
    assert_eq!(keys.len(), 20_000, "{moved} slots were moved; {}", run.stderr);
}

/// The idempotency keys of a slow list. After the first hundred, a slot is moved or opened for moving, and after 800 once more.
fn listed_while(cluster: &Cluster, moves: &mut [&mut dyn FnMut()]) -> Vec<String> {
    let mut command = cluster.command();
    command.args(["list", "-o", "jsonl", "--rate", "1000/s", "--scan-count", "50"]);
    let mut list = command.stdout(Stdio::piped()).spawn().unwrap();
    let lines = BufReader::new(list.stdout.take().unwrap()).lines();
    let mut keys = Vec::new();
    let mut moves = moves.iter_mut();
    let mut next_at = 100;
    for line in lines {
        let record: serde_json::Value = serde_json::from_str(&line.unwrap()).unwrap();
        keys.push(record["key"].as_str().unwrap().to_owned());
        if keys.len() == next_at
            && let Some(moves) = moves.next()
        {
            moves();
            next_at += 700;
        }
    }
    assert!(list.wait().unwrap().success());
    assert!(moves.next().is_none(), "the list was over before the slot moved");
    keys
}

/// Rule: a slot that moves while a walk goes on is read wholly, and each of its records once.
#[test]
fn each_record_of_a_slot_that_moves_is_listed_once() {
    let slot_of = |cluster: &Cluster| cluster.slot("idempotency:{t}0");
    let tagged: Vec<String> = (0..300).map(|number| format!("idempotency:{{t}}{number}")).collect();
    for (is_finished, others_beside) in [(true, true), (true, false), (false, true), (false, false)]
    {
        let cluster = Cluster::start(3);
        let from = cluster.owner(&tagged[0]);
        let to = (from + 1) % 3;
        // The node that is read the longest is the one that loses the slot, or the one that gets it.
        let slow = if others_beside { from } else { to };
        let others = (0..)
            .map(|number| format!("idempotency:k{number}"))
            .filter(|key| cluster.owner(key) == slow);
        cluster.fill(others.take(1_200).map(|key| (key, DONE)), 80_000_000);
        cluster.fill(tagged.iter().map(|key| (key, DONE)), 80_000_000);
        let mut moves = || {
            if is_finished {
                cluster.move_slot(slot_of(&cluster), from, to);
            } else {
                cluster.begin_to_move(slot_of(&cluster), from, to);
                let names: Vec<&str> = tagged.iter().map(String::as_str).collect();
                cluster.migrate(&names[..200], from, to);
            }
        };
        let mut keys = listed_while(&cluster, &mut [&mut moves]);
        let listed = keys.len();
        keys.sort();
        keys.dedup();
        let say =
            format!("finished {is_finished}, others at the loser {others_beside}: {listed} lines");
        assert_eq!((keys.len(), listed), (1_500, 1_500), "{say}");
    }
}

/// Rule: a slot that leaves its node while a scan goes on and comes back is read wholly. Revert: without the comparison of
/// configuration epochs, records that were elsewhere while their node was read are missing.
#[test]
fn each_record_of_a_slot_that_leaves_and_comes_back_is_listed_once() {
    let cluster = Cluster::start(3);
    let tagged: Vec<String> = (0..300).map(|number| format!("idempotency:{{t}}{number}")).collect();
    let from = cluster.owner(&tagged[0]);
    let to = (from + 1) % 3;
    let slot = cluster.slot(&tagged[0]);
    let others = (0..)
        .map(|number| format!("idempotency:k{number}"))
        .filter(|key| cluster.owner(key) == from);
    cluster.fill(others.take(1_200).map(|key| (key, DONE)), 80_000_000);
    cluster.fill(tagged.iter().map(|key| (key, DONE)), 80_000_000);
    let mut leave = || cluster.move_slot(slot, from, to);
    let mut come_back = || cluster.move_slot(slot, to, from);
    let mut keys = listed_while(&cluster, &mut [&mut leave, &mut come_back]);
    let listed = keys.len();
    keys.sort();
    keys.dedup();
    assert_eq!((keys.len(), listed), (1_500, 1_500));
}

#[test]
fn who_may_not_ask_which_slots_are_being_moved_is_told_so() {
    let cluster = filled(12);
    for node in 0..3 {
        let rules = ["on", "nopass", "~*", "+@all", "-cluster|nodes"];
        let mut command = redis::cmd("ACL");
        command.arg("SETUSER").arg("default").arg(&rules[..]);
        if command.exec(&mut cluster.connect(node)).is_err() {
            return; // Redis 6.2 knows no subcommands there.
        }
    }
    let list = cluster.idemctl(&["list", "-o", "json"]).exits(3);
    list.says("+cluster|nodes");
    assert_eq!(
        (list.json()["records"].as_array().unwrap().len(), &list.json()["complete"]),
        (12, &false.into())
    );
    cluster.idemctl(&["check"]).exits(3).shows("UNKNOWN").shows("+cluster/nodes");
}

#[test]
fn a_purge_leaves_nothing_behind_while_slots_are_moved_and_its_backup_has_all() {
    let cluster = filled(20_000);
    let purge = ["purge", "--schema", "go-middleware", "--all", "--yes", "--backup", "b"];
    let (run, moved) = while_slots_move(&cluster, || cluster.idemctl(&purge));
    assert!(moved > 0, "no slot was moved meanwhile");
    let run = run.exits(0);
    // A record that was moved between its look and its change expires at another moment, and stays.
    let left = cluster.size();
    let said = format!("Left unchanged: {left} record");
    assert!(
        left == 0 || run.stderr.contains(&said),
        "{moved} slots were moved; {} left; {}",
        left,
        run.all()
    );
    assert!(left < 100, "{left}; {}", run.all());
    cluster.idemctl(&["restore", "b", "--yes", "-o", "jsonl"]).exits(0);
    assert_eq!(cluster.size(), 20_000);
}

#[test]
fn a_simulation_is_played_on_one_master_by_the_schemas_that_can() {
    let cluster = Cluster::start(3);
    let words = [
        "simulate",
        "first-then-retry",
        "payload-mismatch",
        "--schema",
        "reference,event-consumer",
        "-o",
        "jsonl",
    ];
    let run = cluster.idemctl(&words).exits(0);
    let cells: Vec<_> = run
        .json_lines()
        .iter()
        .map(|cell| format!("{} {}", cell["schema"], cell["verdict"]))
        .collect();
    assert_eq!(
        cells,
        [
            r#""reference" "safe""#,
            r#""reference" "safe""#,
            r#""event-consumer" "n/a""#,
            r#""event-consumer" "n/a""#
        ]
    );
    run.shows("is in slot");
    assert_eq!(cluster.size(), 0);
}

#[test]
fn a_step_that_cannot_be_guarded_there_is_a_usage_error_and_a_database_is_a_hint() {
    let cluster = Cluster::start(3);
    cluster.set("idem:lock:m1", "1", 60_000);
    let number = (0..).find(|number| {
        let name = |kind: &str| format!("idem:{kind}:n{number}");
        cluster.owner(&name("lock")) != cluster.owner(&name("done"))
    });
    let key = format!("n{}", number.unwrap());
    let run = cluster.idemctl(&["begin", &key, "--schema", "event-consumer", "--yes"]).exits(2);
    run.says("slot ").says("hint: use force-unlock");
    let run = cluster.idemctl(&["-n", "1", "list"]);
    // Since Valkey 9 a cluster may have more, which is for the server to say.
    let hints = [
        "hint: a cluster has only database 0; omit -n",
        "hint: the server has no such database; check -n",
    ];
    assert!(run.code != 0 && hints.iter().any(|hint| run.stderr.contains(hint)), "{}", run.all());
}

/// Rule: deadlines come from every node, also those of a record whose Redis keys are on two of them.
#[test]
fn a_check_finds_a_stuck_lock_whose_result_would_be_on_another_node() {
    let cluster = filled(12);
    cluster.idemctl(&["check"]).exits(0).shows("records=12 foreign=0");
    let lock = (0..).find(|number| {
        let owner = |part: &str| cluster.owner(&format!("idem:{part}:k{number}"));
        owner("started") != owner("result")
    });
    let key = format!("k{}", lock.unwrap());
    cluster.set(&format!("idem:started:{key}"), "worker-7", 0);
    cluster
        .idemctl(&["check"])
        .exits(2)
        .shows("1 stuck lock (event-driven 1)")
        .shows(format!("e.g. {key} "));
    let stated = ["--schema", "event-driven", "--lock-ttl", "30s"];
    cluster.set(&format!("idem:started:{key}"), "worker-7", 600_000);
    cluster.idemctl(&[&["check"], &stated[..]].concat()).exits(1).shows("excess_ttl=1;0;");
}

/// Redis 8.0 to 8.2 crash when a client that asked for CLIENT NO-TOUCH names a key of a slot on its way to another node.
#[test]
fn a_cluster_survives_every_command_on_a_slot_that_is_being_moved() {
    let cluster = Cluster::start(3);
    cluster.set("idempotency:k1", DONE, 80_000_000);
    let (from, slot) = (cluster.owner("idempotency:k1"), cluster.slot("idempotency:k1"));
    cluster.begin_to_move(slot, from, (from + 1) % 3);
    for words in [&["inspect", "k1"][..], &["list"], &["purge", "--match", "k*", "--dry-run"]] {
        cluster.idemctl_at(from, words).exits(0);
        cluster.idemctl_at((from + 2) % 3, words).exits(0);
    }
    cluster.idemctl(&["purge", "--match", "k*", "--yes"]).exits(0);
    assert_eq!(cluster.size(), 0);
}

/// Rule: what is sampled comes from every master, and what each group is told is told of all.
#[test]
fn an_unknown_cluster_is_named_from_all_of_its_masters() {
    let cluster = filled(90);
    cluster.fill((0..90).map(|number| (format!("session:{number}"), "x")), 60_000);
    let told = cluster.idemctl(&["detect", "-o", "json"]).exits(0).json();
    assert_eq!((&told["sampled"], &told["keys"]), (&180.into(), &180.into()), "{told}");
    let groups = told["groups"].as_array().unwrap();
    let group = |pattern: &str| {
        groups.iter().find(|group| group["pattern"].as_str().unwrap().starts_with(pattern)).unwrap()
    };
    let records = group("idempotency:");
    assert_eq!(
        (&records["schema"], &records["keys"]),
        (&"go-middleware".into(), &90.into()),
        "{told}"
    );
    assert_eq!(records["states"]["completed"], 90, "{told}");
    assert!(group("session:")["schema"].is_null(), "{told}");
}

/// Rule: `context test` asks the master of the key, and says that it is a cluster.
#[test]
fn a_context_is_tested_on_a_cluster() {
    let cluster = Cluster::start(3);
    for node in 0..3 {
        let run = cluster.idemctl_at(node, &["context", "test"]).exits(0);
        run.shows("ok  role     master of a cluster with 3 masters")
            .shows("ok  remove")
            .shows("ok  step");
    }
    assert_eq!(cluster.size(), 0, "nothing is written");
}

/// Rule: a slot that moves between WATCH and EXEC is followed, as with scripts.
#[test]
fn a_change_without_scripts_follows_a_slot_that_moves_in_between() {
    let cluster = Arc::new(Cluster::start(3));
    for node in 0..3 {
        cluster.node(node).add_user("op", "~* +@all -@scripting");
    }
    let number =
        (0..).find(|number| cluster.owner(&format!("idempotency:k{number}")) == 1).unwrap();
    let (key, name) = (format!("idempotency:k{number}"), format!("go-middleware/k{number}"));
    cluster.set(&key, PENDING, 0);
    let slot = cluster.slot(&key);
    let unlock = ["--user", "op", "-a", "pw", "force-unlock", &name, "--yes", "--backup", "b"];
    let restore = ["--user", "op", "-a", "pw", "restore", "b", "--yes"];

    // To another node, while the transaction is open. The proxy outlives the test: it must not own the servers.
    let (moves, has_moved) = (Arc::downgrade(&cluster), AtomicBool::new(false));
    let way = fault::hooked(cluster.node(1), move |sent| {
        if fault::says(sent, "EXEC") && !has_moved.swap(true, Ordering::SeqCst) {
            moves.upgrade().unwrap().move_slot(slot, 1, 2);
        }
        Hook::Pass
    });
    cluster.announce(1, way);
    cluster.idemctl(&unlock).exits(0);
    assert_eq!(cluster.size(), 0);
    assert!(cluster.node(2).calls("exec") > 0);

    // While it is being moved, the new node has what comes.
    cluster.begin_to_move(slot, 2, 0);
    cluster.idemctl(&restore).exits(0);
    assert!(cluster.node(0).calls("asking") > 0);
    assert_eq!(cluster.node(0).size(), 1);
}
