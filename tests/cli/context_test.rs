//! `idemctl context test`: what a server is, what its user may do, and that nothing is changed to find out.

use crate::support::{Home, Server};

/// The checks of a document, as `NAME` or `NAME!` for one that failed and `NAME?` for one that was not made.
fn checks(document: &serde_json::Value) -> Vec<String> {
    let mark = |check: &serde_json::Value| match check["ok"].as_bool() {
        Some(true) => "",
        Some(false) => "!",
        None => "?",
    };
    let checks = document["checks"].as_array().unwrap().iter();
    checks.map(|check| format!("{}{}", check["check"].as_str().unwrap(), mark(check))).collect()
}

#[test]
fn a_server_says_what_it_is_and_all_rights_are_there() {
    let server = Server::start();
    let home = Home::with("");
    home.run(&["context", "set", "prod", "-u", &server.url()]).exits(0);
    let run = home.run(&["context", "test", "prod"]).exits(0);
    run.shows("ok  server   prod at ")
        .shows("ok  role     master (standalone)")
        .shows("default, without a password");
    let document = home.run(&["context", "test", "prod", "-o", "json"]).exits(0).json();
    assert_eq!(
        checks(&document),
        ["server", "role", "user", "scan", "read", "remove", "restore", "step"]
    );
    assert_eq!(server.send::<u64>(&[b"DBSIZE"]), 0, "nothing is written");
    // Without a name: the server that a command would use.
    assert_eq!(
        checks(&home.run(&["-u", &server.url(), "context", "test", "-o", "json"]).exits(0).json())
            .len(),
        8
    );
    home.run(&["context", "set", "prod", "--read-only"]).exits(0);
    let document = home.run(&["context", "test", "prod", "-o", "json"]).exits(0).json();
    assert_eq!(checks(&document), ["server", "role", "user", "scan", "read", "change?"]);
}

#[test]
fn what_does_not_work_has_its_line_and_its_exit_status() {
    let server = Server::start();
    let acl =
        |words: &str| server.send::<()>(&words.split(' ').map(str::as_bytes).collect::<Vec<_>>());
    acl("ACL SETUSER reader on >pw ~idem* +@read +@connection +eval");
    acl(
        "ACL SETUSER half on >pw ~idem* +@read +@connection +@transaction +eval +unlink +pexpireat",
    );
    acl("ACL SETUSER blind on >pw ~other* +@connection +@read +eval -scan");
    acl("ACL SETUSER narrow on >pw ~idem:* +@all");
    acl("ACL SETUSER dim on >pw ~* +@all -getrange");
    let test = |user: &str, more: &[&str]| {
        let url = server.url();
        let words =
            [&["-u", &url, "--user", user], more, &["context", "test", "-o", "json"]].concat();
        Home::with("").run_with(&[("REDISCLI_AUTH", "pw")], &words)
    };
    let reader = test("reader", &[]).exits(4);
    assert_eq!(
        checks(&reader.json()),
        ["server", "role", "user", "scan", "read", "read?", "change!"]
    );
    reader.shows("the user needs +multi");
    let half = test("half", &[]).exits(4);
    assert_eq!(checks(&half.json())[6..], ["remove", "restore!", "step!"], "{}", half.all());
    half.shows("the user needs +restore").shows("the user needs +set");
    assert_eq!(checks(&test("blind", &[]).exits(4).json())[3..], ["scan!", "read!"]);
    let dim = test("dim", &[]).exits(4);
    assert_eq!(checks(&dim.json())[4], "read!", "{}", dim.all());
    // Nobody asked for the schemas without a prefix.
    let narrow = test("narrow", &[]).exits(0);
    assert_eq!(
        checks(&narrow.json())[4..],
        ["read", "read?", "remove", "restore", "step"],
        "{}",
        narrow.all()
    );
    assert_eq!(test("nobody", &[]).exits(4).stdout, b"");
    let home = Home::with("[contexts.gone]\nurl = \"redis://127.0.0.1:1\"\n");
    home.run(&["context", "test", "gone"]).exits(5).says("cannot reach Redis at 127.0.0.1:1/0");
    home.run(&["context", "test", "prod"]).exits(2).says("there is no context `prod`");
}

#[test]
fn a_replica_takes_no_changes() {
    let replica = Server::start_with(&["replicaof 127.0.0.1 1"]);
    let run = Home::with("").run(&["-u", &replica.url(), "context", "test"]).exits(6);
    run.shows("NO  change").shows("replica");
}

/// Rule: a server without memory queues no UNLINK, but executes it in a script. Revert: without
/// `is_out_of_memory`, "remove" fails.
#[test]
fn a_server_without_memory_still_removes() {
    let server = Server::start_with(&["maxmemory-policy noeviction"]);
    server.put("idem:stuck", crate::support::LOCK);
    server.send::<()>(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);
    let run = Home::with("").run(&["-u", &server.url(), "context", "test", "-o", "json"]).exits(6);
    assert_eq!(checks(&run.json())[5..], ["remove", "restore!", "step!"], "{}", run.all());
    server.idemctl(&["force-unlock", "stuck", "--schema", "express", "--yes"]).exits(0);
}
