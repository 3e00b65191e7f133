//! `idemctl race`, against a real server.

use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::{self, Run, Server, until};
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

const SCHEMAS: [&str; 7] =
    ["event-consumer", "event-driven", "express", "go-chi", "go-middleware", "go-middleware-v1", "reference"];

fn race(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[&["race", "-o", "json"], words].concat())
}

fn runs(run: &Run) -> Vec<Value> {
    let json = run.json();
    assert_eq!(json["format"], 1);
    json["runs"].as_array().cloned().unwrap_or_default()
}

fn nothing_is_left(server: &Server) {
    assert_eq!(server.send::<i64>(&[b"DBSIZE"]), 0);
}

#[test]
fn every_schema_lets_exactly_one_through() {
    let server = Server::start();
    let run = race(&server, &["--schema", "all", "--strategy", "schema", "--rounds", "40"]).exits(0);
    let runs = runs(&run);
    assert_eq!(runs.iter().map(|run| run["schema"].as_str().unwrap()).collect::<Vec<_>>(), SCHEMAS);
    for run in runs {
        assert_eq!(run["verdict"], "atomic", "{run}");
        assert_eq!((&run["winners_min"], &run["winners_max"]), (&1.into(), &1.into()), "{run}");
        assert_eq!(run["rounds_with_many_winners"], 0);
        assert_eq!((&run["conflicts"], &run["replays"]), (&(40 * 49).into(), &(40 * 49).into()), "{run}");
        assert_eq!(run["wrong_replies"], 0);
        assert_eq!(run["operations"], 40 * (50 + 1 + 49));
        assert_eq!(run["first_offence"], Value::Null);
    }
    nothing_is_left(&server);
}

#[test]
fn the_json_has_every_field_of_the_contract() {
    let server = Server::start();
    let run = race(&server, &["--schema", "express", "--strategy", "schema", "--rounds", "3", "--concurrency", "8"]);
    let run = &runs(&run.exits(0))[0];
    assert_eq!((&run["schema"], &run["strategy"]), (&"express".into(), &"schema".into()));
    assert_eq!((&run["concurrency"], &run["rounds"]), (&8.into(), &3.into()));
    assert!(run["ops_per_second"].as_f64().unwrap() > 0.0);
    let latency = ["p50", "p95", "p99", "max"].map(|name| run["latency_us"][name].as_u64().unwrap());
    assert!(latency.is_sorted() && latency[3] > 0, "{latency:?}");
    let lines = server.idemctl(&["race", "-o", "jsonl", "--rounds", "2", "--concurrency", "4"]).exits(0).json_lines();
    assert!(lines.iter().all(|line| line["rounds"] == 2));
}

#[test]
fn by_default_scripts_are_raced_beside_check_then_act() {
    let server = Server::start();
    let run = race(&server, &["--rounds", "3"]).exits(0);
    let played: Vec<_> = runs(&run)
        .iter()
        .map(|run| format!("{} {} {}", run["schema"], run["strategy"], run["verdict"]).replace('"', ""))
        .collect();
    assert_eq!(
        played,
        [
            "event-driven schema atomic",
            "event-driven check-then-act not-atomic",
            "express schema atomic",
            "express check-then-act not-atomic",
            "go-chi schema atomic",
            "go-chi check-then-act not-atomic",
            "go-middleware schema atomic",
            "go-middleware check-then-act not-atomic",
            "reference schema atomic",
            "reference check-then-act not-atomic",
        ]
    );
    nothing_is_left(&server);
}

#[test]
fn check_then_act_lets_many_through_and_names_the_pair() {
    let server = Server::start();
    let words = ["--schema", "go-middleware", "--strategy", "check-then-act", "--think-time", "20ms", "--rounds", "4"];
    let run = &runs(&race(&server, &words).exits(0))[0];
    assert_eq!(run["verdict"], "not-atomic");
    assert_eq!(run["rounds_with_many_winners"], 4);
    assert!(run["winners_min"].as_u64().unwrap() > 1, "{run}");
    let offence = &run["first_offence"];
    assert_eq!((&offence["round"], &offence["rule"]), (&1.into(), &"many-winners".into()));
    let pair = offence["pair"].as_array().unwrap();
    assert_eq!(pair.len(), 2);
    assert!(pair.iter().all(|event| event["reply"] == "acquired"));
    assert_ne!(pair[0]["worker"], pair[1]["worker"]);
    nothing_is_left(&server);
}

#[test]
fn set_nx_gives_wrong_replies_when_the_lock_goes_before_the_get() {
    let server = Server::start();
    for schema in SCHEMAS {
        let words = ["--schema", schema, "--strategy", "set-nx", "--think-time", "10ms", "--rounds", "4"];
        let run = &runs(&race(&server, &words).exits(0))[0];
        assert_eq!(run["verdict"], "not-atomic", "{run}");
        let offences = run["wrong_replies"].as_u64().unwrap() + run["rounds_with_many_winners"].as_u64().unwrap();
        assert!(offences > 0, "{run}");
    }
    let words = ["--schema", "express", "--strategy", "set-nx", "--think-time", "10ms", "--rounds", "4"];
    let run = &runs(&race(&server, &words).exits(0))[0];
    assert!(run["wrong_replies"].as_u64().unwrap() > 0, "{run}");
    nothing_is_left(&server);
}

#[test]
fn a_schema_that_loses_is_exit_status_1() {
    let server = Server::start();
    let words = ["--schema", "event-consumer", "--strategy", "schema", "--overlap", "--think-time", "20ms"];
    let run = race(&server, &words).exits(1);
    let run = &runs(&run)[0];
    assert_eq!(run["verdict"], "not-atomic");
    assert!(run["winners_max"].as_u64().unwrap() > 1, "{run}");
    nothing_is_left(&server);
}

#[test]
fn a_failed_handler_hands_the_lock_to_exactly_one_other() {
    let server = Server::start();
    for schema in SCHEMAS {
        let words = ["--schema", schema, "--strategy", "schema", "--fail-every", "2", "--rounds", "6"];
        let run = &runs(&race(&server, &words).exits(0))[0];
        assert_eq!((&run["verdict"], &run["winners_max"]), (&"atomic".into(), &1.into()), "{run}");
    }
    nothing_is_left(&server);
}

#[test]
fn scripts_that_the_server_forgot_are_loaded_again() {
    let server = Server::start();
    let mut command = server.command();
    command.args(["race", "--schema", "express", "--strategy", "schema", "--rounds", "300", "-o", "json"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    for _ in 0..20 {
        server.send::<()>(&[b"SCRIPT", b"FLUSH"]);
        std::thread::sleep(Duration::from_millis(5));
    }
    let run = Run::from(child.wait_with_output().unwrap()).exits(0);
    assert_eq!(runs(&run)[0]["verdict"], "atomic");
    nothing_is_left(&server);
}

fn until_it_begins(server: &Server) {
    until("the race begins", || server.send::<i64>(&[b"DBSIZE"]) > 0);
}

#[test]
fn an_interrupted_race_says_how_far_it_got_and_leaves_nothing() {
    let server = Server::start();
    let mut command = server.command();
    command.args(["race", "--schema", "go-chi", "--strategy", "schema", "--rounds", "1000000"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_begins(&server);
    assert!(Command::new("kill").args(["-INT", &child.id().to_string()]).status().unwrap().success());
    let run = Run::from(child.wait_with_output().unwrap()).exits(130);
    assert!(run.stderr.contains("of 1000000 rounds of go-chi, schema; every key is removed"), "{}", run.stderr);
    assert_eq!(run.text(), "");
    nothing_is_left(&server);
}

#[test]
fn a_server_that_goes_away_ends_the_race() {
    let mut server = Server::start();
    let mut command = server.command();
    command.args(["race", "--schema", "express", "--strategy", "schema", "--rounds", "1000000"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until_it_begins(&server);
    server.kill();
    let run = Run::from(child.wait_with_output().unwrap()).exits(5);
    assert!(run.stderr.contains("racing express, schema, round"), "{}", run.stderr);
    assert!(run.stderr.contains("may be left behind"), "{}", run.stderr);
}

#[test]
fn a_server_that_refuses_is_no_lost_race() {
    let server = Server::start_with(&["maxmemory 1", "maxmemory-policy noeviction"]);
    for schema in ["go-middleware", "event-consumer"] {
        let run = race(&server, &["--schema", schema, "--rounds", "2"]).exits(6);
        assert!(run.stderr.contains("OOM"), "{}", run.stderr);
    }
}

#[test]
fn too_many_workers_for_the_server_is_said_clearly() {
    let server = Server::start_with(&["maxclients 20"]);
    let run = race(&server, &["--rounds", "2"]);
    assert!([5, 6].contains(&run.code), "{}", run.all());
    assert!(run.stderr.contains("cannot open 50 connections"), "{}", run.stderr);
    assert!(run.stderr.contains("lower --concurrency"), "{}", run.stderr);
}

#[test]
fn a_password_and_a_database_are_heeded_by_every_worker() {
    let server = Server::start_with(&["requirepass s3cret"]);
    race(&server, &["--rounds", "2"]).exits(4);
    race(&server, &["--rounds", "2", "-a", "wrong"]).exits(4);
    race(&server, &["--rounds", "2", "-a", "s3cret", "-n", "3"]).exits(0);
}

#[test]
fn bad_input_is_a_usage_error() {
    let server = Server::start();
    for words in [
        &["--concurrency", "1001"][..],
        &["--concurrency", "0"],
        &["--rounds", "0"],
        &["--strategy", "hope"],
        &["--schema", "nope"],
        &["--think-time", "soon"],
        &["--think-time", "30s", "--schema", "express"],
    ] {
        race(&server, words).exits(2);
    }
}

#[test]
fn a_context_that_is_kept_from_changes_is_not_raced() {
    let server = Server::start();
    for kept in ["read_only", "protected"] {
        let config = server.folder().join("config.toml");
        std::fs::write(&config, format!("[context.prod]\n{kept} = true\n")).unwrap();
        let run = race(&server, &["--config", config.to_str().unwrap(), "--context", "prod"]).exits(2);
        let says = if kept == "protected" { "not put under load" } else { "nothing may be changed through it" };
        assert!(run.stderr.contains(says) && run.stderr.contains("--sandbox"), "{}", run.stderr);
    }
}

#[test]
fn an_unreachable_server_is_exit_status_5() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = support::idemctl(folder.path());
    command.args(["-s", "/nowhere/s", "race"]);
    Run::of(command, &[]).exits(5);
}

#[test]
fn the_report_fits_a_narrow_terminal_and_shows_the_pair() {
    let server = Server::start();
    let words = ["race", "--schema", "go-middleware", "--strategy", "schema,check-then-act", "--rounds", "3"];
    let run = server.idemctl(&words).exits(0);
    let text = run.text();
    assert!(text.starts_with("50 workers, 3 rounds, each on one fresh key\n"), "{text}");
    assert!(text.contains("\nnone in 150 begins  go-middleware"), "{text}");
    assert!(text.contains("\nnot-atomic            check-then-act"), "{text}");
    assert!(text.contains("Latency of go-middleware, schema\n"), "{text}");
    assert!(text.contains("Round 1 of go-middleware, check-then-act cannot have been atomic:"), "{text}");
    assert_eq!(text.matches('▶').count(), 2, "{text}");
}

/// A race of so many rounds while something befalls the server again and again, until the race is over.
fn race_while(server: &Server, rounds: &str, mut befalls: impl FnMut(&Server, u32)) -> Run {
    let mut command = server.command();
    let words = ["race", "--schema", "express", "--strategy", "schema", "-o", "json", "--rounds", rounds];
    command.args(words).args(["--concurrency", "8", "--fail-every", "3"]);
    let config = server.folder().join("config.toml");
    let brief = "default_context = \"brief\"\n[contexts.brief.deployment.express]\nlock_ttl = \"1s\"\n";
    std::fs::write(&config, brief).unwrap();
    command.arg("--config").arg(config);
    let mut child = command.stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    while child.try_wait().unwrap().is_none() {
        befalls(server, child.id());
        std::thread::sleep(Duration::from_millis(7));
    }
    Run::from(child.wait_with_output().unwrap())
}

fn void_rounds(run: &Run) -> u64 {
    runs(run)[0]["void_rounds"].as_u64().unwrap()
}

#[test]
fn keys_that_somebody_removes_make_rounds_void_and_accuse_nobody() {
    let by_pattern = "for _, key in ipairs(redis.call('KEYS', 'idem*')) do redis.call('DEL', key) end return 0";
    for removal in [&["FLUSHALL"][..], &["EVAL", by_pattern, "0"]] {
        let server = Server::start();
        let run = race_while(&server, "400", |server, _| {
            let words: Vec<_> = removal.iter().map(|word| word.as_bytes()).collect();
            server.send::<redis::Value>(&words);
        });
        let run = run.exits(0);
        assert!(void_rounds(&run) > 0, "nothing was removed within a round");
        assert_eq!((&runs(&run)[0]["verdict"], &runs(&run)[0]["first_offence"]), (&"atomic".into(), &Value::Null));
        nothing_is_left(&server);
    }
}

/// Races while idemctl, or its server, is stopped four times in the middle of a round, each time for longer than a lock
/// lives.
fn race_with_stops(server: &Server, stops_idemctl: bool) -> Run {
    let mut left = 4;
    race_while(server, "300", |server, idemctl| {
        if left > 0 && server.send::<i64>(&[b"DBSIZE"]) > 1 {
            left -= 1;
            let pid =
                Pid::from_raw(i32::try_from(if stops_idemctl { idemctl } else { server.pid() }).unwrap()).unwrap();
            kill_process(pid, Signal::STOP).unwrap();
            std::thread::sleep(Duration::from_millis(1_200));
            kill_process(pid, Signal::CONT).unwrap();
        }
    })
}

#[test]
fn a_stop_longer_than_the_locks_ttl_makes_its_round_void_and_accuses_nobody() {
    for stops_idemctl in [true, false] {
        let server = Server::start();
        // A stop that falls between two rounds hurts none: on to the next race.
        let met = (0..5).any(|_| {
            let run = race_with_stops(&server, stops_idemctl).exits(0);
            assert_eq!(runs(&run)[0]["verdict"], "atomic", "{}", run.all());
            nothing_is_left(&server);
            void_rounds(&run) > 0
        });
        assert!(met, "no stop was within a round");
    }
}

#[test]
fn a_race_in_which_every_round_was_void_has_no_verdict() {
    let server = Server::start();
    // Somebody removes each key as soon as it is there: nothing can be judged.
    let folder = server.folder().join("schemas");
    copy_of_express(&folder, "local record = KEYS[1]", "local record = KEYS[1]\nredis.call('FLUSHALL')");
    let words = ["race", "--schema-dir", folder.to_str().unwrap(), "--schema", "own", "--strategy", "schema"];
    let run = server.idemctl(&[&words[..], &["-o", "json"]].concat()).exits(3);
    assert_eq!((&runs(&run)[0]["verdict"], &runs(&run)[0]["void_rounds"]), (&"void".into(), &20.into()));
    let text = server.idemctl(&words).exits(3).text();
    assert!(text.contains("own, schema: 20 rounds void: a lock ended or vanished within the round\n"), "{text}");
    assert!(text.contains("\nvoid     own") && !text.contains("none in"), "{text}");
}

/// The schema `own`, which is `express` with something else in the script of its begin.
fn copy_of_express(folder: &std::path::Path, from: &str, to: &str) {
    let own = folder.join("own");
    std::fs::create_dir_all(&own).unwrap();
    let express = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("lua/express");
    for entry in std::fs::read_dir(express).unwrap() {
        let entry = entry.unwrap();
        let text = std::fs::read_to_string(entry.path()).unwrap();
        let text = text.replace("name = \"express\"", "name = \"own\"").replace(from, to);
        std::fs::write(own.join(entry.file_name()), text).unwrap();
    }
}

#[test]
fn a_rare_flaw_that_was_not_seen_is_not_called_atomic() {
    let server = Server::start();
    let folder = server.folder().join("schemas");
    // One begin in ten thousand takes the lock away from whoever has it.
    let leak =
        "local record = KEYS[1]\nif redis.call('INCR', 'begins') % 10000 == 0 then redis.call('DEL', record) end";
    copy_of_express(&folder, "local record = KEYS[1]", leak);
    let words = ["race", "--schema-dir", folder.to_str().unwrap(), "--schema", "own", "--strategy", "schema"];
    let text = server.idemctl(&words).exits(0).text();
    assert!(text.contains("\nnone in 1000 begins  own") && text.contains("rarer flaws stay unseen"), "{text}");
    assert!(!text.contains("\natomic"), "{text}");
    let many = ["--rounds", "400", "-o", "json"];
    let run = server.idemctl(&[&words[..], &many].concat()).exits(1);
    assert_eq!(runs(&run)[0]["verdict"], "not-atomic", "the flaw is there, and seen in enough begins");
}

#[test]
fn keys_of_a_killed_race_live_minutes() {
    let server = Server::start();
    let mut seen = 0;
    for round in 0..12 {
        let mut command = server.command();
        command.args(["race", "--schema", "all", "--overlap", "--rounds", "1000"]);
        let mut child = command.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        while server.send::<i64>(&[b"DBSIZE"]) < 2 {
            assert!(child.try_wait().unwrap().is_none(), "the race is over");
        }
        std::thread::sleep(Duration::from_millis(round * 17));
        child.kill().unwrap();
        child.wait().unwrap();
        seen += server.keys_live_at_most(Duration::from_secs(360));
        server.send::<()>(&[b"FLUSHALL"]);
    }
    assert!(seen > 12, "the killed races left {seen} keys");
}

/// The command line on a machine with a server program, with these variables and this config file.
fn unasked(server: &Server, variables: &[(&str, &str)], config: &str, words: &[&str]) -> Run {
    let file = server.folder().join("config.toml");
    std::fs::write(&file, config).unwrap();
    let mut command = support::idemctl(server.folder());
    let path = support::program().parent().unwrap().display().to_string();
    command.env("PATH", path).env("IDEMCTL_CONFIG", file).env("TMPDIR", server.folder());
    command.envs(variables.iter().copied()).args(words);
    Run::of(command, &[])
}

/// How many connections the server has had since the last look, this look not counted.
fn connections(server: &Server) -> u64 {
    let info: String = server.send(&[b"INFO", b"stats"]);
    let line = info.lines().find_map(|line| line.strip_prefix("total_connections_received:"));
    let count = line.unwrap().parse::<u64>().unwrap();
    server.send::<()>(&[b"CONFIG", b"RESETSTAT"]);
    count - 1
}

#[test]
fn load_goes_to_a_throw_away_server_unless_the_command_line_names_one() {
    let server = Server::start();
    let url = format!("unix://{}", server.socket().display());
    let chosen = format!("[contexts.staging]\nurl = \"{url}\"\n");
    let by_default = format!("default_context = \"staging\"\n{chosen}");
    let race = ["race", "--rounds", "1", "--concurrency", "2", "--schema", "express"];
    let simulate = ["simulate", "store-down", "--schema", "reference"];
    for words in [&race[..], &simulate] {
        connections(&server);
        for (variables, config, who) in [
            (&[("REDIS_URL", &url[..])][..], "", "REDIS_URL"),
            (&[("IDEMCTL_URL", &url)], "", "IDEMCTL_URL"),
            (&[("IDEMCTL_CONTEXT", "staging")], &chosen[..], "IDEMCTL_CONTEXT"),
            (&[], &by_default, "default_context"),
        ] {
            let run = unasked(&server, variables, config, words).exits(0);
            let says = format!("{who} names {}/0, which is not put under load", server.socket().display());
            run.says(&says).says("-u, -h, -p, -s");
            assert_eq!(connections(&server), 0, "{who}");
        }
        unasked(&server, &[], "", words).exits(0).says("No server is named: using a private throw-away server");
    }
    nothing_is_left(&server);
}

#[test]
fn the_server_is_named_before_the_load_starts() {
    let server = Server::start();
    let url = format!("unix://{}", server.socket().display());
    let config = format!("[contexts.staging]\nurl = \"{url}\"\n");
    let socket = server.socket().display().to_string();
    let race = ["race", "--rounds", "1", "--concurrency", "2", "--schema", "express", "--strategy", "schema"];
    let simulate = ["simulate", "first-then-retry", "--schema", "reference"];
    for (words, doing) in [(&race[..], "Racing"), (&simulate, "Simulating")] {
        for (named, config, place) in [
            (["-u", &url[..]], "", "at "),
            (["-s", &socket], "", "at "),
            (["--context", "staging"], &config[..], "on staging at "),
        ] {
            connections(&server);
            let run = unasked(&server, &[], config, &[&named, words].concat()).exits(0);
            assert!(run.stderr.starts_with(&format!("{doing} {place}{socket}/0 ...\n")), "{}", run.all());
            assert!(connections(&server) > 0, "{named:?}");
        }
    }
    // Nobody is reached: nothing is under load, and the server is in the error.
    let run = unasked(&server, &[], "", &[&["-s", "/nowhere/s"], &race[..]].concat()).exits(5);
    assert!(!run.stderr.contains("Racing at"), "{}", run.all());
}
