//! Records that are members of a set or sorted set, or fields of one hash.

use crate::support::Server;
use crate::support::cluster::Cluster;

/// Keys of running requests in a sorted set. The score is the time in seconds at which the request
/// counts as over, as a library for ASGI keeps them.
const ZSET: &str = r#"format = 2
name = "running"
keys = { record = "http-idempotency-keys", members = "zset" }
ttl = { lock = "none" }

[[value]]
name = "held"
opaque = true
state = "in-progress"
expires_at = { field = "", unit = "s" }
"#;

/// One hash with a JSON document for each job.
const HASH: &str = r#"format = 2
name = "jobs"
keys = { record = "{prefix}jobs", members = "hash" }
ttl = { lock = "none", result = "none" }

[[value]]
name = "busy"
where = { "/state" = "busy" }
required = ["/by", "/at"]
state = "in-progress"
fields = { owner = "/by", created_at = "/at" }
timestamp = "s"

[[value]]
name = "done"
where = { "/state" = "done" }
required = ["/code", "/out"]
state = "completed"
fields = { status = "/code", body = "/out" }
"#;

const SET: &str = r#"format = 2
name = "seen"
keys = { record = "seen-messages", members = "set" }
ttl = { result = "none" }

[[value]]
name = "seen"
equals = ""
state = "completed"
"#;

fn server() -> Server {
    let server = Server::start();
    for (name, toml) in [("running", ZSET), ("jobs", HASH), ("seen", SET)] {
        server.describe(name, &[("schema.toml", toml)]);
    }
    let far = b"4102444800";
    server.send::<i64>(&[b"ZADD", b"http-idempotency-keys", far, b"r-1", b"1.5", b"r-2"]);
    let busy = br#"{"state":"busy","by":"w-1","at":1700000000}"#;
    let done = br#"{"state":"done","code":201,"out":"ok"}"#;
    let other = br#"{"state":"odd"}"#;
    server.send::<i64>(&[b"HSET", b"jobs", b"j-1", busy, b"j-2", done, b"j-3", other]);
    server.send::<i64>(&[b"SADD", b"seen-messages", b"m-1", b"m-2", b"m-3"]);
    server
}

/// The keys of a schema's records with their states.
fn listed(server: &Server, schema: &str, more: &[&str]) -> Vec<String> {
    let list = [&["list", "--schema", schema, "-o", "jsonl"][..], more].concat();
    let mut listed = Vec::new();
    let run = server.idemctl(&list);
    assert_eq!(run.code, if run.stderr.contains("Skipped ") { 3 } else { 0 }, "{}", run.all());
    for line in run.json_lines() {
        listed.push(format!(
            "{} {}",
            line["key"].as_str().unwrap(),
            line["state"].as_str().unwrap()
        ));
    }
    listed.sort();
    listed
}

/// Rule: each member is a record of its own, in lists, counts and pages.
#[test]
fn each_member_is_a_record() {
    let server = server();
    for name in ["running", "jobs", "seen"] {
        server.idemctl(&["schema", "check", name]).exits(0);
    }
    assert_eq!(listed(&server, "running", &[]), ["r-1 in-progress", "r-2 absent"]);
    assert_eq!(listed(&server, "jobs", &[]), ["j-1 in-progress", "j-2 completed"]);
    assert_eq!(listed(&server, "seen", &[]), ["m-1 completed", "m-2 completed", "m-3 completed"]);
    assert_eq!(listed(&server, "jobs", &["--status", "2xx"]), ["j-2 completed"]);
    assert_eq!(listed(&server, "jobs", &["--match", "j-1"]), ["j-1 in-progress"]);
    assert_eq!(listed(&server, "jobs", &["--older-than", "1d"]), ["j-1 in-progress"]);
    let page = server.idemctl(&["inspect", "j-1", "--schema", "jobs"]).exits(0);
    page.shows("in-progress").shows("w-1").shows("jobs (a field of this hash)");
    let page = server.idemctl(&["inspect", "r-1"]).exits(0);
    page.shows("in-progress").shows("http-idempotency-keys (a member of this sorted set)");
    server.idemctl(&["inspect", "m-2", "-o", "json"]).exits(0);
    server.idemctl(&["inspect", "jobs/j-2"]).exits(0).shows("completed").shows("201");
    server.idemctl(&["inspect", "j-9", "--schema", "jobs"]).exits(1);
    server.idemctl(&["stats", "--schema", "jobs"]).exits(0).shows("completed");
    let check = server.idemctl(&["check", "--schema", "jobs"]).exits(3);
    check.shows("UNKNOWN").shows("are members of a Redis key: not checked");
    server.set("idem:a", "IN_PROGRESS", 60_000);
    // A schema that the option names is asked about; among all schemas, a note says so.
    let check = server.idemctl(&["check", "--schema", "jobs,express"]).exits(3);
    check.shows("the records of jobs are members of a Redis key");
    let check = server.idemctl(&["check"]);
    check.says("are members of a Redis key and were not checked");
    // Neither the key as a whole nor what another schema thinks of it is a record.
    server.idemctl(&["inspect", "jobs", "--schema", "jobs"]).exits(1);
}

/// Rule: a member has no TTL of its own, so idemctl changes none, in bulk or one by one.
#[test]
fn no_member_is_changed() {
    let server = server();
    for schema in ["running", "jobs", "seen"] {
        let run = server.idemctl(&["purge", "--schema", schema, "--yes"]);
        run.exits(2).says("are members of a Redis key");
        let locks = ["--state", "in-progress,completed", "--yes"];
        server.idemctl(&[&["purge", "--schema", schema][..], &locks[..]].concat());
        let run = server.idemctl(&["sweep", "--orphaned", "--schema", schema, "--yes"]);
        run.exits(2).says("`list` and `inspect` show them");
        server.idemctl(&["sweep", "--older-than", "1m", "--schema", schema, "--yes"]);
    }
    server.idemctl(&["purge", "j-2", "--schema", "jobs", "--yes"]);
    for command in ["force-unlock", "complete", "release", "begin"] {
        let run = server.idemctl(&[command, "j-1", "--schema", "jobs", "--yes"]);
        assert_ne!(run.code, 0, "{command}");
    }
    let unlock = server.idemctl(&["force-unlock", "j-1", "--schema", "jobs", "--yes"]);
    unlock.says("it is a field of a hash with other records");
    let extend = ["extend", "j-1", "--schema", "jobs", "--for", "1m", "--yes"];
    server.idemctl(&extend).says("a field of a hash");
    let both = ["purge", "--schema", "jobs,express", "--yes"];
    server.idemctl(&both).exits(0).says("the records of jobs are members of a Redis key");
    assert_eq!(server.send::<i64>(&[b"HLEN", b"jobs"]), 3);
    assert_eq!(server.send::<i64>(&[b"SCARD", b"seen-messages"]), 3);
    assert_eq!(server.send::<i64>(&[b"ZCARD", b"http-idempotency-keys"]), 2);
}

/// Rule: a long hash is read in pages, each field once, and a diff compares two lists of it.
#[test]
fn a_long_hash_is_read_in_pages() {
    let server = server();
    let mut words = vec![b"HSET".to_vec(), b"jobs".to_vec()];
    for index in 0..3_000 {
        words.push(format!("k-{index}").into_bytes());
        words.push(br#"{"state":"done","code":200,"out":"ok"}"#.to_vec());
    }
    let words: Vec<&[u8]> = words.iter().map(Vec::as_slice).collect();
    server.send::<i64>(&words);
    assert_eq!(listed(&server, "jobs", &[]).len(), 3_002);
    let list = server.idemctl(&["list", "--schema", "jobs", "-o", "json"]).exits(0).stdout;
    let file = server.folder().join("before.json");
    std::fs::write(&file, list).unwrap();
    let diff = ["diff", file.to_str().unwrap(), "--schema", "jobs"];
    server.idemctl(&diff).exits(0);
    let busy = br#"{"state":"busy","by":"w-2","at":1700000000}"#;
    server.send::<i64>(&[b"HSET", b"jobs", b"k-7", busy]);
    server.send::<i64>(&[b"HDEL", b"jobs", b"k-8"]);
    server.idemctl(&diff).exits(1).shows("k-7").shows("k-8");
}

/// Rule: a Redis key of another type has no members, and is named as what it is.
#[test]
fn a_key_of_another_type_has_no_members() {
    let server = server();
    server.send::<i64>(&[b"DEL", b"jobs"]);
    server.put("jobs", "text");
    assert!(listed(&server, "jobs", &[]).is_empty());
    server.idemctl(&["inspect", "j-1", "--schema", "jobs"]).exits(1);
}

/// Rule: a user who may not read the Redis key is told so.
#[test]
fn a_key_that_may_not_be_read_is_named() {
    let server = server();
    server.add_user("partly", "~other:* +@all");
    let login = ["--user", "partly", "-a", "pw", "--no-auth-warning"];
    let run = server.idemctl(&[&["list", "--schema", "jobs"][..], &login].concat());
    assert_ne!(run.code, 0);
    run.says("permission");
    let run = server.idemctl(&[&["inspect", "j-1", "--schema", "jobs"][..], &login].concat());
    assert_ne!(run.code, 0);
    run.says("permission");
}

#[test]
fn members_are_read_on_the_node_of_their_key() {
    let cluster = Cluster::start(3);
    cluster.node(0).describe("jobs", &[("schema.toml", HASH)]);
    let owner = cluster.owner("jobs");
    let done = r#"{"state":"done","code":201,"out":"ok"}"#;
    redis::cmd("HSET")
        .arg(&["jobs", "j-2", done])
        .query::<i64>(&mut cluster.connect(owner))
        .unwrap();
    let list = ["list", "--schema", "jobs", "-o", "jsonl"];
    assert_eq!(cluster.idemctl(&list).exits(0).json_lines().len(), 1);
    cluster.idemctl(&["inspect", "j-2", "--schema", "jobs"]).exits(0).shows("201");
}

/// Rule: what a file says wrongly about members is named with its line.
#[test]
fn a_wrong_schema_of_members_is_named() {
    let server = Server::start();
    for (from, to, message) in [
        ("{prefix}jobs", "{prefix}jobs:{key}", "one Redis key for all records"),
        ("\"hash\" }", "\"list\" }", "unknown variant"),
        ("result = \"none\"", "result = \"1h\"", "no TTL of its own"),
        ("state = \"completed\"", "state = \"completed\"\nttl = \"1h\"", "without a TTL"),
        ("state = \"completed\"", "state = \"completed\"\ntype = \"hash\"", "without a TTL"),
        (
            "[[value]]\nname = \"busy\"",
            "[write]\nlock_value = \"1\"\n[[value]]\nname = \"busy\"",
            "does not change",
        ),
    ] {
        let wrong = HASH.replacen(from, to, 1);
        assert_ne!(wrong, HASH, "{from}");
        server.describe("jobs", &[("schema.toml", &wrong)]);
        server.idemctl(&["schema", "check", "jobs"]).exits(1).shows(message);
    }
}
