//! Servers that are not there, are not Redis, refuse, or die; pipes that close; operators who interrupt. Each with its
//! exit code and a message that helps.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::{self, LOCK, Running, Runs, Server, Signal, alone, idemctl};

#[test]
fn no_server_is_exit_5_with_a_hint() {
    let port = support::free_port().to_string();
    for command in [&["inspect", "k"][..], &["list"], &["force-unlock", "k", "--yes"]] {
        let run = alone(&[command, &["-p", &port]].concat()).exits(5);
        run.says(format!("cannot reach Redis at 127.0.0.1:{port}/0: connection refused"))
            .says("hint: ");
    }
    alone(&["-s", "/nowhere/socket", "inspect", "k"]).exits(5);
}

#[test]
fn an_http_server_is_told_from_redis() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let server = std::thread::spawn(move || {
        for stream in listener.incoming().take(2) {
            let mut stream = stream.unwrap();
            let _ = stream.read(&mut [0; 1024]);
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        }
    });
    let run = alone(&["-p", &port, "inspect", "k"]).exits(5);
    server.join().unwrap();
    run.says("not a Redis server: it says \"HTTP/1.1 400 Bad Request\"");
}

#[test]
fn a_silent_server_times_out() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    alone(&["-p", &port, "--timeout", "200ms", "inspect", "k"])
        .exits(5)
        .says("did not answer within 0.2s");
}

#[test]
fn passwords_are_checked_and_never_shown() {
    let server = Server::start_with(&["requirepass s3cret-right"]);
    let run = |words: &[&str]| server.idemctl(&[words, &["inspect", "k"]].concat());
    run(&[]).exits(4).says("REDISCLI_AUTH");
    let wrong = run(&["-a", "s3cret-wrong"]).exits(4);
    assert!(
        wrong.stderr.contains("WRONGPASS") && !wrong.stderr.contains("s3cret"),
        "{}",
        wrong.all()
    );
    run(&["-a", "s3cret-right"]).exits(1);
    run(&["--user", "nobody"]).exits(2);
    server.command().env("REDISCLI_AUTH", "s3cret-right").args(["inspect", "k"]).run().exits(1);
    let url = idemctl(server.folder())
        .env("REDIS_URL", "redis://:s3cret-wrong@127.0.0.1:1/x")
        .args(["inspect", "k"])
        .run()
        .exits(2);
    assert!(url.stderr.contains("REDIS_URL") && !url.stderr.contains("s3cret"), "{}", url.all());
}

#[test]
fn rights_that_are_missing_are_named_or_done_without() {
    let server = Server::start();
    // Redis 6.2 does not know EVAL_RO.
    let eval_ro = ["COMMAND", "INFO", "EVAL_RO"].map(str::as_bytes);
    let knows_eval_ro = server.send::<Vec<redis::Value>>(&eval_ro) != [redis::Value::Nil];
    let eval = if knows_eval_ro { "+eval_ro" } else { "+eval" };
    server.add_user("reader", &format!("~idem:* +@read +@connection {eval} -@dangerous"));
    server.add_user("plain", "~idem* +@read +@connection -@scripting -@dangerous");
    server.add_user("nothing", "~other:* +@connection");
    server.set("idem:web-1", LOCK, 20_000);
    let as_user = |user: &str, words: &[&str]| {
        server.idemctl(&[&["--user", user, "-a", "pw"], words].concat())
    };
    let reader = as_user("reader", &["inspect", "web-1", "-o", "json"]).exits(0);
    assert_eq!(reader.json()["records"][0]["state"], "in-progress");
    assert_eq!(as_user("reader", &["list", "-o", "jsonl"]).exits(0).json_lines().len(), 1);
    let plain = as_user("plain", &["inspect", "web-1", "--schema", "express"]).exits(0);
    plain.shows("in-progress");
    as_user("nothing", &["inspect", "web-1"]).exits(4);
    as_user("nothing", &["list"]).exits(4);
    as_user("plain", &["force-unlock", "web-1", "--yes", "--schema", "express"])
        .exits(4)
        .says("denied permission");
    assert!(server.get("idem:web-1").is_some());
}

#[test]
fn a_replica_refuses_to_be_changed() {
    let server = Server::holding(&[("idem:web-1", LOCK, 20_000)]);
    server.send::<()>(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    server.idemctl(&["force-unlock", "web-1", "--yes"]).exits(6).says("READONLY").says("replica");
}

#[test]
fn wrong_words_are_usage_errors() {
    for words in [
        &["inspect"][..],
        &["frobnicate"],
        &["list", "--state", "stuck"],
        &["list", "--older-than", "5 parsecs"],
        &["list", "--limit", "0"],
        &["list", "--finding", "no-such"],
        &["inspect", "k", "--schema", "nope"],
        &["-u", "http://host", "list"],
        &["-p", "99999", "list"],
        &["--config", "/nowhere.toml", "list"],
        &["inspect", "", "k"],
        &["force-unlock"],
        &["inspect", "k", "--watch", "1s", "-o", "json"],
    ] {
        let run = alone(words);
        assert_eq!(run.code, 2, "{words:?}: {}", run.all());
        assert!(
            run.stdout.is_empty() && run.stderr.contains("error: "),
            "{words:?}: {}",
            run.all()
        );
    }
    let unknown = alone(&["inspect", "k", "--schema", "nope"]);
    unknown.says("go-middleware");
}

fn many(server: &Server, count: usize) {
    server.fill((0..count).map(|index| (format!("idem:web-{index}"), LOCK)), 2_000_000);
}

#[test]
fn a_closed_pipe_ends_quietly() {
    let server = Server::start();
    many(&server, 20_000);
    let mut child = server.command().args(["list"]).start();
    let mut line = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
    assert!(line.starts_with("KEY"));
    assert_eq!(child.ends().exits(0).stderr, "");
}

/// Starts `list`, waits for its first row, and hands it over while it cannot go on for its full stdout.
fn list_in_the_middle(server: &Server) -> std::process::Child {
    let mut child = server.command().args(["list", "-o", "json", "--timeout", "2s"]).start();
    let mut first = [0; 64];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    child
}

#[test]
fn ctrl_c_says_how_far_it_got() {
    let server = Server::start();
    many(&server, 60_000);
    let child = list_in_the_middle(&server);
    child.signal(Signal::INT);
    let run = child.ends().exits(130);
    run.says("interrupted after ").says("records among");
    let text = run.text();
    assert!(
        text.ends_with("],\"complete\":false}\n"),
        "{}",
        &text[text.len().saturating_sub(80)..]
    );
}

#[test]
fn a_server_that_dies_in_the_middle_leaves_a_partial_list_that_says_so() {
    let mut server = Server::start();
    many(&server, 60_000);
    let child = list_in_the_middle(&server);
    server.kill();
    let run = child.ends();
    run.says("the list is not complete");
    assert!(run.exits(3).text().ends_with("],\"complete\":false}\n"));
}

#[test]
fn ctrl_c_ends_a_watch_at_once() {
    let server = Server::holding(&[("idem:web-1", LOCK, 200_000)]);
    let mut child = server.command().args(["inspect", "web-1", "--watch", "50ms"]).start();
    child.stdout.as_mut().unwrap().read_exact(&mut [0; 16]).unwrap();
    let began = Instant::now();
    child.signal(Signal::INT);
    child.ends().exits(0);
    assert!(began.elapsed() < Duration::from_secs(60));
}
