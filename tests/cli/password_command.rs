//! A password that a command prints, and that changes while idemctl works. The command asks the test, which changes the
//! password on the server before it answers.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::cluster::Cluster;
use crate::support::sentinel::Watched;
use crate::support::{FOREVER, Home, Run, Server, free_port, until};

const DONE: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;

/// Nobody but the test knows a password before the server does.
fn password(run: usize) -> String {
    format!("s3cret-{run}-")
}

/// Does something with a command that prints what `answer` gives for the number of its run. Gives the number of runs as well.
fn answering<R>(
    folder: &Path,
    answer: impl Fn(usize) -> String + Sync,
    work: impl FnOnce(&str) -> R,
) -> (R, usize) {
    let (asked, answered) = (folder.join("asked"), folder.join("answered"));
    assert!(Command::new("mkfifo").args([&asked, &answered]).status().unwrap().success());
    let command = format!("echo run > {}; cat {}", asked.display(), answered.display());
    std::thread::scope(|scope| {
        let answers = scope.spawn(|| {
            let mut runs = 0;
            while fs::read_to_string(&asked).unwrap() == "run\n" {
                runs += 1;
                fs::write(&answered, answer(runs)).unwrap();
            }
            runs
        });
        let done = work(&command);
        fs::write(&asked, "end").unwrap();
        (done, answers.join().unwrap())
    })
}

/// Gives the user `ops` the password of this run in place of all others, and cuts the connections of the former one.
fn rotate(server: &Server, run: usize) {
    set_password(server, run);
    server.send::<i64>(&[b"CLIENT", b"KILL", b"USER", b"ops"]);
}

/// A log-in that has to be given anew before each request.
fn short(run: usize) -> String {
    format!("{{\"username\":\"ops\",\"password\":\"{}\",\"expires_in\":0}}\n", password(run))
}

/// A server with so many results, which only `ops` may read.
fn holding(results: usize) -> Server {
    holding_with(results, &[])
}

fn holding_with(results: usize, config: &[&str]) -> Server {
    let server = Server::start_with(config);
    server.fill((0..results).map(|number| (format!("idem:{number:05}"), DONE)), FOREVER);
    server.send::<()>(&[b"ACL", b"SETUSER", b"default", b"resetkeys"]);
    server
}

/// The binary on this server, with a password from this command.
fn run(server: &Server, command: &str, words: &[&str]) -> Run {
    server.idemctl(&[&["--debug", "--password-command", command], words].concat())
}

#[track_caller]
fn keeps_the_secret(run: &Run) {
    assert!(!run.all().contains("s3cret"), "{}", run.all());
}

/// Rule: each request is made with the newest password, on a connection that was cut with the former one as well.
#[test]
fn a_purge_outlives_the_passwords_with_which_it_began() {
    let server = holding(600);
    let keys: Vec<_> = (0..600).map(|number| format!("express/{number:05}\n")).collect();
    let file = server.folder().join("keys");
    fs::write(&file, keys.concat()).unwrap();
    let change = |run| {
        rotate(&server, run);
        short(run)
    };
    let words = ["purge", "--key-file", file.to_str().unwrap(), "--yes"];
    let (run, runs) = answering(server.folder(), change, |command| run(&server, command, &words));
    let run = run.exits(0);
    run.says("600 of 600 records purged");
    assert_eq!(server.size(), 0);
    assert!(runs > 3, "{runs}");
    keeps_the_secret(&run);
    for file in [server.details(), vec![server.audit().join("log.jsonl")]].concat() {
        assert!(!fs::read_to_string(file).unwrap().contains("s3cret"));
    }
}

/// Rule: a connection that is cut between the look and the change is replaced if its password is no longer valid. If it is,
/// there is another server perhaps, and the change is not made.
#[test]
fn a_connection_that_was_cut_is_replaced_only_for_another_password() {
    for (changes, code) in [(true, 0), (false, 7)] {
        let server = holding(3);
        let file = server.folder().join("password");
        let renew = |run| {
            if changes || run == 0 {
                rotate(&server, run);
                fs::write(&file, password(run)).unwrap();
            } else {
                server.send::<i64>(&[b"CLIENT", b"KILL", b"USER", b"ops"]);
            }
            String::new()
        };
        renew(0);
        let (run, runs) = answering(server.folder(), renew, |command| {
            let says = format!(
                "user = \"ops\"\npassword_command = \"cat {}\"\naudit_command = {command:?}",
                file.display()
            );
            let keys = ["express/00000", "express/00001", "express/00002"];
            server.in_context("here", &says, &[&["purge", "--yes"], &keys[..]].concat())
        });
        keeps_the_secret(&run.exits(code));
        assert_eq!((server.size() == 0, runs), (changes, 2));
    }
}

/// Rule: WAIT counts the changes of its own connection, so that of another one proves nothing.
#[test]
fn replicas_are_not_asked_on_a_connection_that_took_the_place_of_another() {
    let port = free_port();
    let server = holding_with(1, &[&format!("port {port}")]);
    let replica = Server::start_with(&[&format!("replicaof 127.0.0.1 {port}")]);
    until("the replica is in step", || {
        replica.send::<String>(&[b"INFO", b"replication"]).contains("master_link_status:up")
    });
    let change = |run| {
        rotate(&server, run);
        short(run)
    };
    let words = ["purge", "express/00000", "--yes", "--wait-replicas", "1"];
    let (cut, _) = answering(server.folder(), change, |command| run(&server, command, &words));
    keeps_the_secret(cut.exits(3).says("only 0 of 1 replicas confirmed it"));
}

/// Rule: a scan logs in again between its pages. A user is deleted when the one after the next is there, and its connections
/// are cut.
#[test]
fn a_list_outlives_the_users_with_which_it_began() {
    let server = holding(20_000);
    let change = |run: usize| {
        let (user, password) = (format!("ops{run}"), format!(">{}", password(run)));
        let words = ["ACL", "SETUSER", &user, "on", &password, "~*", "&*", "+@all"];
        server.send::<()>(&words.map(str::as_bytes));
        let former = format!("ops{}", run.saturating_sub(2));
        server.send::<i64>(&[b"ACL", b"DELUSER", former.as_bytes()]);
        short(run).replace("\"ops\"", &format!("{user:?}"))
    };
    let (run, runs) = answering(server.folder(), change, |command| {
        run(&server, command, &["list", "--schema", "express", "-o", "name"])
    });
    let run = run.exits(0);
    assert_eq!(run.text().lines().count(), 20_000);
    assert!(runs > 10, "{runs}");
    keeps_the_secret(&run);
}

/// Gives the user `ops` of a server the password of this run in place of all others.
fn set_password(server: &Server, run: usize) {
    let password = format!(">{}", password(run));
    let words = ["ACL", "SETUSER", "ops", "on", "resetpass", &password, "~*", "&*", "+@all"];
    server.send::<()>(&words.map(str::as_bytes));
}

/// Rule: all nodes of a cluster get the newest password, and Sentinels, whose log-in is another one, none.
#[test]
fn every_node_gets_the_newest_password_and_no_sentinel_does() {
    let cluster = Cluster::start(3);
    cluster.fill((0..300).map(|number| (format!("idem:{number}"), DONE)), FOREVER);
    for node in 0..3 {
        cluster.node(node).send::<()>(&[b"ACL", b"SETUSER", b"default", b"resetkeys"]);
    }
    let change = |run| {
        (0..3).for_each(|node| set_password(cluster.node(node), run));
        short(run)
    };
    let port = cluster.port(0).to_string();
    let (run, runs) = answering(cluster.node(0).folder(), change, |command| {
        let words = ["-p", &port, "--password-command", command, "--timeout", "20s"];
        cluster.node(0).unnamed(&[&words[..], &["list", "-o", "name"]].concat())
    });
    assert_eq!(run.exits(0).text().lines().count(), 300);
    assert!(runs > 3, "{runs}");

    let watched = Watched::start(1);
    set_password(watched.server(0), 7);
    let words = ["--user", "ops", "--password-command", "echo s3cret-7-", "list"];
    watched.server(0).unnamed(&[&["-u", &watched.url()], &words[..]].concat()).exits(0);
}

/// Rule: a node that was not asked for want of a password is not taken for a server without a cluster.
#[test]
fn a_command_that_fails_once_never_shows_a_part_as_the_whole() {
    let cluster = Cluster::start(3);
    cluster.fill((0..30).map(|number| (format!("idem:{number}"), DONE)), FOREVER);
    let port = cluster.port(0).to_string();
    for fails_at in 1..8 {
        let folder = tempfile::tempdir().unwrap();
        let change = |run| {
            (0..3).for_each(|node| set_password(cluster.node(node), run));
            if run == fails_at { String::new() } else { short(run) }
        };
        let (run, _) = answering(folder.path(), change, |command| {
            let words = ["-p", &port, "--password-command", command, "--timeout", "20s"];
            cluster.node(0).unnamed(&[&words[..], &["list", "-o", "name"]].concat())
        });
        let is_whole = run.text().lines().count() == 30;
        assert!(
            [3, 4].contains(&run.code) || run.code == 0 && is_whole,
            "{fails_at}: {}",
            run.all()
        );
    }
}

#[test]
fn a_watch_outlives_the_password_with_which_it_began() {
    let server = holding(1);
    let change = |run| {
        rotate(&server, run);
        if run == 5 {
            server.send::<()>(&[b"FLUSHALL"]);
        }
        short(run)
    };
    let words = ["inspect", "00000", "--schema", "express", "-w", "20ms", "--until", "absent"];
    let (run, runs) = answering(server.folder(), change, |command| run(&server, command, &words));
    assert!(runs >= 5, "{runs}");
    keeps_the_secret(&run.exits(0));
}

/// Rule: a password that was replaced before its time is asked for again, once.
#[test]
fn a_refused_password_is_asked_for_once_more() {
    for (valid_from, code) in [(1, 0), (2, 0), (3, 4)] {
        let server = holding(1);
        rotate(&server, valid_from);
        let (run, runs) = answering(
            server.folder(),
            |run| format!("{}\n", password(run)),
            |command| run(&server, command, &["--user", "ops", "list", "-o", "name"]),
        );
        let run = run.exits(code);
        assert_eq!(runs, valid_from.min(2), "{}", run.all());
        if code == 4 {
            run.says("WRONGPASS");
        }
        keeps_the_secret(&run);
    }
}

#[test]
fn a_command_without_a_password_ends_the_run_before_anything_is_sent() {
    let server = holding(1);
    let before: usize = server.calls("auth");
    for (command, why) in [
        ("echo s3cret; echo no ticket >&2; exit 3", "exit status 3: no ticket"),
        ("true", "there is no password in it"),
        ("echo s3cret; echo s3cret", "it has more than one line"),
        ("yes s3cret | head -c 70000", "it printed more than 64 KiB"),
        ("echo '{\"token\":\"s3cret\"}'", "`password`"),
        ("read -r line || exit 7", "exit status 7"),
    ] {
        let run = run(&server, command, &["list"]).exits(4);
        run.says(why).says("nothing was sent");
        keeps_the_secret(&run);
    }
    assert_eq!(server.calls("auth"), before);
}

/// Rule: whoever can write the config file could run a program as the user of idemctl.
#[test]
fn a_context_with_a_command_is_its_owner_s_alone() {
    let server = holding(1);
    rotate(&server, 7);
    let context = format!(
        "[contexts.here]\nurl = \"{}\"\nuser = \"ops\"\npassword_command = \"echo s3cret-7-\"\n",
        server.url()
    );
    let home = Home::with(&context);
    let words = ["--context", "here", "list", "-o", "name"];
    home.run(&words).exits(0).shows("express/");
    for mode in [0o620, 0o602] {
        home.chmod(&home.config(), mode);
        for words in [&words[..], &["config", "show"], &["-u", &server.url(), "list"]] {
            home.run(words).exits(2).says("can be written by others");
        }
        home.run(&["config", "check"]).exits(1).shows("can be written by others");
    }
    home.chmod(&home.config(), 0o644);
    let (value, origin) = home.setting(&[], &["--context", "here"], "password");
    assert_eq!(value.as_deref(), Some("from a command"));
    assert!(origin.ends_with("config.toml:4"), "{origin}");
    keeps_the_secret(&home.run(&["--context", "here", "config", "show"]).exits(0));
    // An option and a variable come before the context, as for `password_file`.
    let nearer = [("REDISCLI_AUTH", "wrong")];
    home.run_with(&nearer, &words).exits(4).says("WRONGPASS");
    let option = [&["--password-command", "echo s3cret-7-"], &words[..]].concat();
    home.run_with(&nearer, &option).exits(0);
    home.run(&[&["--pass-file", "f", "--password-command", "c"], &words[..]].concat()).exits(2);
}

#[test]
fn a_command_is_stored_in_a_context_and_is_not_for_another_server() {
    let server = holding(1);
    rotate(&server, 7);
    let other = Server::start();
    let home = Home::with("");
    let set = ["context", "set", "here", "-u", &server.url(), "--user", "ops"];
    home.run(&[&set[..], &["--password-command", "echo s3cret-7-"]].concat()).exits(0);
    home.run(&["context", "test", "here"])
        .exits(0)
        .shows("ops, or the user that the command prints, with a password");
    home.run(&["--context", "here", "-u", &other.url(), "list"]).exits(0);
    assert_eq!(other.calls("auth"), 0);
}
