//! Servers that are there and do not serve: exit code 6, with their word and what it means.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::net::UnixStream;
use std::thread;
use std::time::Duration;

use crate::stage::{ADDITIONS, AMENDMENTS, PLAYS, READS, REMOVALS, Stage, contents, each};
use crate::support::fault::{self, Fault};
use crate::support::{self, PENDING, Runs, Server, until};

const ALL: &[&[&[&str]]] = &[READS, REMOVALS, ADDITIONS, AMENDMENTS, PLAYS];
const CHANGES: &[&[&[&str]]] = &[REMOVALS, ADDITIONS, AMENDMENTS, PLAYS];

fn set(stage: &Stage, name: &str, value: &str) {
    stage.server.send::<()>(&[b"CONFIG", b"SET", name.as_bytes(), value.as_bytes()]);
}

#[test]
fn a_server_that_still_loads_is_exit_6_for_every_command() {
    let stage = Stage::new(&[]);
    // How many bytes a server loads before it looks at its clients: Redis 6.2 has it built in.
    let looks_up = "loading-process-events-interval-bytes";
    let told: Vec<String> = stage.server.send(&[b"CONFIG", b"GET", looks_up.as_bytes()]);
    let (count, size, delay) =
        if told.is_empty() { (110, 2_200_000, 100_000) } else { (400, 3_000, 40_000) };
    for index in 0..count {
        stage.server.set(&format!("padding:{index}"), vec![b'x'; size], 900_000);
    }
    set(&stage, "rdbcompression", "no");
    stage.server.send::<()>(&[b"SAVE"]);
    let dir = format!("dir {}", stage.server.folder().display());
    let (delay, looks_up) = (format!("key-load-delay {delay}"), format!("{looks_up} 1024"));
    let slow = if told.is_empty() { vec![&*delay, &dir] } else { vec![&*delay, &dir, &looks_up] };
    let loading = Server::start_with(&slow);
    // What there is to take back stands in the log of the stage alone.
    for words in ALL.iter().flat_map(|group| *group).filter(|words| words[0] != "undo") {
        // The backup is the stage's own.
        let run = loading
            .command()
            .args(*words)
            .current_dir(stage.server.folder())
            .args((words[0] == "restore").then_some("--elsewhere"))
            .run();
        each(&[run], 6, &["LOADING", "try again shortly", loading.socket().to_str().unwrap()]);
    }
    let info = |section: &[u8]| loading.send::<String>(&[b"INFO", section]);
    assert!(info(b"persistence").contains("loading:1"), "every command came while it was loading");
    // Some servers take no such command while they load.
    let _ =
        redis::cmd("CONFIG").arg("SET").arg("key-load-delay").arg(0).exec(&mut loading.connect());
    until("the server is up", || !info(b"persistence").contains("loading:1"));
    assert_eq!(loading.size(), count + 2);
}

#[test]
fn a_server_that_is_busy_with_a_script_is_exit_6_for_every_command_and_its_script_goes_on() {
    let stage = Stage::new(&["lua-time-limit 20"]);
    let mut other = UnixStream::connect(stage.server.socket()).unwrap();
    other.write_all(b"EVAL \"while true do end\" 0\r\n").unwrap();
    thread::sleep(Duration::from_millis(200));
    let runs = stage.all(ALL, &[]);
    stage.server.send::<()>(&[b"SCRIPT", b"KILL"]);
    each(&runs, 6, &["BUSY", "try again shortly"]);
    let mut said = [0; 256];
    let count = other.read(&mut said).unwrap();
    assert!(
        String::from_utf8_lossy(&said[..count]).contains("SCRIPT KILL"),
        "nobody killed it but the test"
    );
    stage.is_untouched();
}

#[test]
fn a_server_without_a_password_that_takes_nobody_from_elsewhere_is_exit_6() {
    let port = support::free_port();
    let stage = Stage::new(&[&format!("port {port}"), "bind 0.0.0.0", "protected-mode yes"]);
    let elsewhere = fault::from_another_host(port);
    let mut said = String::new();
    let mut probe = TcpStream::connect(("127.0.0.1", elsewhere)).unwrap();
    probe.write_all(b"QUIT\r\n").unwrap();
    probe.read_to_string(&mut said).unwrap();
    if !said.contains("DENIED") {
        eprintln!("skipped: to this engine all of 127.0.0.0/8 is the same host");
        return;
    }
    let runs = stage.all_at(elsewhere, ALL, &[]);
    each(
        &runs,
        6,
        &["DENIED", "hint: the server accepts clients from other hosts only with a password"],
    );
    assert!(runs.iter().all(|run| run.stderr.len() < 600), "{}", runs[0].all());
    stage.is_untouched();
}

#[test]
fn a_replica_is_read_and_refuses_every_change() {
    let port = support::free_port().to_string();
    let mut master = Server::start_with(&[
        &format!("port {port}"),
        "bind 127.0.0.1",
        "repl-diskless-sync-delay 0",
    ]);
    let stage = Stage::new(&[]);
    for redis_key in stage.server.send::<Vec<Vec<u8>>>(&[b"KEYS", b"*"]) {
        let value: Vec<u8> = stage.server.send(&[b"DUMP", &redis_key]);
        let left: i64 = stage.server.send(&[b"PTTL", &redis_key]);
        master.send::<()>(&[b"RESTORE", &redis_key, left.max(0).to_string().as_bytes(), &value]);
    }
    stage.server.send::<()>(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]);
    let info = || stage.server.send::<String>(&[b"INFO", b"replication"]);
    until("the replica is in step", || info().contains("master_link_status:up"));
    each(&stage.all(&[READS], &[]), 0, &[]);

    // Cut off from its master it may not know what happened since.
    master.kill();
    until("the replica is cut off", || info().contains("master_link_status:down"));
    let cut_off = "is a replica whose data may be old, cut off from its master";
    let behind = format!("{cut_off} (127.0.0.1:{port})");
    stage.server.idemctl(&["inspect", "stuck"]).exits(0).says(&behind);
    let list = stage.server.idemctl(&["list", "-o", "json"]).exits(3);
    assert_eq!(list.says(&behind).json()["complete"], false, "{}", list.all());
    stage.server.idemctl(&["check"]).exits(2).shows("CRITICAL").shows(&behind);
    stage
        .server
        .idemctl(&["check", "--schema", "event-driven"])
        .exits(3)
        .shows("UNKNOWN")
        .shows(&behind);
    // A user who may not ask whether it is cut off gets UNKNOWN, and not OK.
    let rights = "~* +@read +@connection +eval +time -@dangerous";
    for (user, more, told) in [
        ("role", " +role", behind.as_str()),
        ("info", " +info", cut_off),
        ("hello", "", "is a replica, and whether it is cut off from its master is unknown"),
    ] {
        stage.server.add_user(user, &format!("{rights}{more}"));
        let as_user = ["--user", user, "-a", "pw", "--schema", "event-driven"];
        let check = stage.server.idemctl(&[&["check"][..], &as_user].concat()).exits(3);
        check.shows("UNKNOWN").shows(told);
        let list = stage.server.idemctl(&[&["list"][..], &as_user].concat()).exits(3);
        list.says(told);
    }
    let before = contents(&stage.server);
    each(&stage.all(CHANGES, &[]), 6, &["READONLY", "connect to its master"]);
    assert_eq!(contents(&stage.server), before);
}

#[test]
fn a_server_out_of_memory_lets_records_go_and_takes_none() {
    let stage = Stage::new(&["maxmemory-policy noeviction"]);
    set(&stage, "maxmemory", "1");
    each(&stage.all(&[READS], &[]), 0, &[]);
    each(&stage.all(&[ADDITIONS, PLAYS], &[]), 6, &["OOM", "free some, or raise maxmemory"]);
    stage.is_untouched();
    // A service's own step is guarded by MULTI, in which a full Redis takes no command.
    let release = stage.server.idemctl(REMOVALS[3]);
    if release.code != 0 {
        each(&[release], 6, &["OOM"]);
        stage.is_untouched();
    }
    each(&stage.all(&[&REMOVALS[..1]], &[]), 0, &[]);
    assert_eq!(stage.server.get("idempotency:stuck"), None);
    for words in &REMOVALS[1..3] {
        set(&stage, "maxmemory", "0");
        stage.server.set("idempotency:again", PENDING, 90_000);
        stage.server.send::<()>(&[b"PERSIST", b"idempotency:again"]);
        set(&stage, "maxmemory", "1");
        stage.server.idemctl(words).exits(0);
        assert_eq!(stage.server.get("idempotency:again"), None);
    }
}

#[test]
fn a_server_that_cannot_save_refuses_every_change() {
    let stage = Stage::new(&["save 900 1", "dbfilename blocked.rdb"]);
    // A folder where the file should be makes saving fail, for the superuser too.
    std::fs::create_dir(stage.server.folder().join("blocked.rdb")).unwrap();
    std::fs::write(stage.server.folder().join("blocked.rdb/x"), "").unwrap();
    stage.server.send::<()>(&[b"BGSAVE"]);
    let info = || stage.server.send::<String>(&[b"INFO", b"persistence"]);
    until("saving fails", || info().contains("rdb_last_bgsave_status:err"));
    each(&stage.all(&[READS], &[]), 0, &[]);
    each(&stage.all(CHANGES, &[]), 6, &["MISCONF", "check its log"]);
    stage.is_untouched();
}

#[test]
fn a_master_without_enough_replicas_refuses_every_change() {
    let stage = Stage::new(&[]);
    set(&stage, "min-replicas-to-write", "1");
    each(&stage.all(&[READS], &[]), 0, &[]);
    each(&stage.all(CHANGES, &[]), 6, &["NOREPLICAS", "hint: "]);
    stage.is_untouched();
}

#[test]
fn a_server_with_no_room_for_another_client_is_exit_6_for_every_command() {
    let stage = Stage::new(&[]);
    set(&stage, "maxclients", "4");
    let (port, _) = fault::way(&stage.server, Fault::Delay(Duration::ZERO));
    let held: Vec<_> = (0..4).map(|_| stage.server.connect()).collect();
    let mut runs = stage.all(ALL, &[]);
    runs.extend(stage.all(ALL, &["-a", "pw"]));
    runs.extend(stage.all_at(port, ALL, &[]));
    drop(held);
    each(&runs, 6, &["max number of clients", "hint: "]);
    thread::sleep(Duration::from_millis(50));
    stage.is_untouched();
}

#[test]
fn a_log_in_that_is_missing_wrong_or_not_enough_is_exit_4_for_every_command() {
    let stage = Stage::new(&[]);
    stage.server.send::<()>(&[b"ACL", b"SETUSER", b"nobody", b"on", b">pw", b"+@connection"]);
    each(&stage.all(ALL, &["--user", "nobody", "-a", "pw"]), 4, &["denied permission", "hint: "]);
    set(&stage, "requirepass", "s3cret");
    let (missing, wrong) = (stage.all(ALL, &[]), stage.all(ALL, &["-a", "wr0ng"]));
    set_logged_in(&stage);
    each(&missing, 4, &["NOAUTH", "REDISCLI_AUTH"]);
    each(&wrong, 4, &["rejected the login", "hint: "]);
    assert!(
        missing
            .iter()
            .chain(&wrong)
            .all(|run| !run.all().contains("s3cret") && !run.all().contains("wr0ng"))
    );
    stage.is_untouched();
}

/// Takes the password away again.
fn set_logged_in(stage: &Stage) {
    let mut connection = UnixStream::connect(stage.server.socket()).unwrap();
    connection.write_all(b"AUTH s3cret\r\nCONFIG SET requirepass \"\"\r\n").unwrap();
    let mut said = [0; 10];
    connection.read_exact(&mut said).unwrap();
    assert_eq!(&said, b"+OK\r\n+OK\r\n");
}
