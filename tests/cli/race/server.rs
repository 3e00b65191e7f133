//! The server that is raced: which one, what it refuses, and what is left there.

use std::time::Duration;

use super::verdict::{nothing_is_left, race, runs};
use crate::support::{Run, Running, Runs, Server, Signal, alone, idemctl, program, until};

#[test]
fn scripts_that_the_server_forgot_are_loaded_again() {
    let server = Server::start();
    let child = server
        .command()
        .args([
            "race",
            "--schema",
            "express",
            "--strategy",
            "schema",
            "--rounds",
            "300",
            "-o",
            "json",
        ])
        .start();
    for _ in 0..20 {
        server.send::<()>(&[b"SCRIPT", b"FLUSH"]);
        std::thread::sleep(Duration::from_millis(5));
    }
    let run = child.ends().exits(0);
    assert_eq!(runs(&run)[0]["verdict"], "atomic");
    nothing_is_left(&server);
}

fn until_it_begins(server: &Server) {
    until("the race begins", || server.size() > 0);
}

#[test]
fn an_interrupted_race_says_how_far_it_got_and_leaves_nothing() {
    let server = Server::start();
    let child = server
        .command()
        .args(["race", "--schema", "go-chi", "--strategy", "schema", "--rounds", "1000000"])
        .start();
    until_it_begins(&server);
    child.signal(Signal::INT);
    let run = child.ends().exits(130);
    run.says("of 1000000 rounds of go-chi, schema");
    assert_eq!(run.text(), "");
    nothing_is_left(&server);
}

#[test]
fn a_server_that_goes_away_ends_the_race() {
    let mut server = Server::start();
    let child = server
        .command()
        .args(["race", "--schema", "express", "--strategy", "schema", "--rounds", "1000000"])
        .start();
    until_it_begins(&server);
    server.kill();
    child.ends().exits(5).says("racing express, schema, round").says("may remain");
}

#[test]
fn a_server_that_refuses_is_no_lost_race() {
    let server = Server::start_with(&["maxmemory 1", "maxmemory-policy noeviction"]);
    for schema in ["go-middleware", "event-consumer"] {
        race(&server, &["--schema", schema, "--rounds", "2"]).exits(6).says("OOM");
    }
}

#[test]
fn too_many_workers_for_the_server_is_said_clearly() {
    let server = Server::start_with(&["maxclients 20"]);
    let run = race(&server, &["--rounds", "2"]);
    assert!([5, 6].contains(&run.code), "{}", run.all());
    run.says("cannot open 50 connections").says("lower --concurrency");
}

#[test]
fn a_password_and_a_database_are_heeded_by_every_worker() {
    let server = Server::start_with(&["requirepass s3cret"]);
    race(&server, &["--rounds", "2"]).exits(4);
    race(&server, &["--rounds", "2", "-a", "wrong"]).exits(4);
    race(&server, &["--rounds", "2", "-a", "s3cret", "-n", "3"]).exits(0);
}

#[test]
fn a_context_that_is_kept_from_changes_is_not_raced() {
    let server = Server::start();
    for kept in ["read_only", "protected"] {
        let says =
            if kept == "protected" { "does not put load on it" } else { "it allows no changes" };
        server
            .in_context("prod", &format!("{kept} = true"), &["race"])
            .exits(2)
            .says(says)
            .says("--sandbox");
    }
}

#[test]
fn an_unreachable_server_is_exit_status_5() {
    alone(&["-s", "/nowhere/s", "race"]).exits(5);
}

#[test]
fn keys_of_a_killed_race_live_minutes() {
    let server = Server::start();
    let mut seen = 0;
    for round in 0..12 {
        let mut child = server
            .command()
            .args(["race", "--schema", "all", "--overlap", "--rounds", "1000"])
            .start();
        while server.size() < 2 {
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
    server.configure(config);
    let mut command = idemctl(server.folder());
    command.env("PATH", program().parent().unwrap()).env("TMPDIR", server.folder());
    command.envs(variables.iter().copied()).args(words).run()
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
    let url = server.url();
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
            let says = format!(
                "{who} names {}/0, but this command puts load on its server",
                server.socket().display()
            );
            run.says(&says).says("-u, -h, -p, -s");
            assert_eq!(connections(&server), 0, "{who}");
        }
        unasked(&server, &[], "", words)
            .exits(0)
            .says("No server is given. Using a temporary local Redis");
    }
    nothing_is_left(&server);
}

#[test]
fn the_server_is_named_before_the_load_starts() {
    let server = Server::start();
    let url = server.url();
    let config = format!("[contexts.staging]\nurl = \"{url}\"\n");
    let socket = server.socket().display().to_string();
    let race = [
        "race",
        "--rounds",
        "1",
        "--concurrency",
        "2",
        "--schema",
        "express",
        "--strategy",
        "schema",
    ];
    let simulate = ["simulate", "first-then-retry", "--schema", "reference"];
    for (words, doing) in [(&race[..], "Racing"), (&simulate, "Simulating")] {
        for (named, config, place) in [
            (["-u", &url[..]], "", "at "),
            (["-s", &socket], "", "at "),
            (["--context", "staging"], &config[..], "on staging at "),
        ] {
            connections(&server);
            let run = unasked(&server, &[], config, &[&named, words].concat()).exits(0);
            assert!(
                run.stderr.starts_with(&format!("{doing} {place}{socket}/0 ...\n")),
                "{}",
                run.all()
            );
            assert!(connections(&server) > 0, "{named:?}");
        }
    }
    // Nobody is reached: nothing is under load, and the server is in the error.
    let run = unasked(&server, &[], "", &[&["-s", "/nowhere/s"], &race[..]].concat()).exits(5);
    assert!(!run.stderr.contains("Racing at"), "{}", run.all());
}
