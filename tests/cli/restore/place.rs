//! Where a backup was taken, and where a restore may go.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::support::backup;
use crate::support::cluster::Cluster;
use crate::support::proxy::{Hook, hooked_socket, says};
use crate::support::sentinel::{SERVICE, Watched};
use crate::support::{PENDING, Run, Runs, Server, free_port, idemctl};

const REDIS_KEY: &str = "idempotency:k";
const HELD: &str = PENDING;
const UNLOCK: [&str; 7] =
    ["force-unlock", "k", "--schema", "go-middleware", "--yes", "--backup", "b"];

/// Backs a lock up to `b` in this home, through these options.
fn back_up(home: &Path, server: &[&str]) {
    idemctl(home).args(server).args(UNLOCK).run().exits(0);
}

fn restore(home: &Path, server: &[&str], more: &[&str]) -> Run {
    idemctl(home).args(server).args(["restore", "b", "--yes"]).args(more).run()
}

/// Where the backup in this home says that it was taken.
fn from(home: &Path) -> Value {
    let text = fs::read_to_string(home.join("b")).unwrap();
    let line: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    line["from"].clone()
}

fn run_id(server: &Server) -> String {
    let info: String = server.send(&[b"INFO", b"server"]);
    info.lines().find_map(|line| line.strip_prefix("run_id:")).unwrap().to_owned()
}

/// The rule: a backup goes back to where it came from. Elsewhere it is refused before anything is restored, with both
/// places named, and done by those alone who say so.
#[test]
fn another_server_is_refused_unless_it_is_meant() {
    let (server, other) = (Server::start(), Server::start());
    server.set(REDIS_KEY, HELD, 60_000);
    let (here, there) =
        (server.socket().display().to_string(), other.socket().display().to_string());
    back_up(server.folder(), &["-s", &here]);
    let from = from(server.folder());
    assert_eq!((&from["address"], &from["db"]), (&here.clone().into(), &0.into()));
    assert_eq!(from["run_id"], run_id(&server));
    for more in [&[][..], &["--dry-run"]] {
        let run = restore(server.folder(), &["-s", &there], more).exits(2);
        run.says(format!("is from {here}/0 (run id {})", run_id(&server)));
        run.says(format!("this server is {there}/0 (run id {})", run_id(&other)));
        run.says("hint: nothing was restored").says("--elsewhere");
        assert_eq!(other.size(), 0);
    }
    restore(server.folder(), &["-s", &there], &["--elsewhere"]).exits(0).says(&here).says(&there);
    assert_eq!(other.get(REDIS_KEY).unwrap(), HELD.as_bytes());
}

#[test]
fn another_database_of_the_server_is_elsewhere() {
    let server = Server::holding(&[(REDIS_KEY, HELD, 60_000)]);
    let socket = server.socket().display().to_string();
    back_up(server.folder(), &["-s", &socket]);
    let run = restore(server.folder(), &["-s", &socket, "-n", "1"], &[]).exits(2);
    run.says(format!("{socket}/0 ")).says(format!("{socket}/1 "));
    restore(server.folder(), &["-s", &socket, "-n", "1"], &["--elsewhere"]).exits(0);
}

#[test]
fn one_server_behind_two_addresses_is_one_place() {
    let port = free_port();
    let server = Server::start_with(&[&format!("port {port}"), "bind 127.0.0.1"]);
    server.set(REDIS_KEY, HELD, 60_000);
    back_up(server.folder(), &["-p", &port.to_string()]);
    restore(server.folder(), &["-s", &server.socket().display().to_string()], &[]).exits(0);
    // Without the right to ask who the server is, only the address tells.
    server.send::<()>(&[b"DEL", REDIS_KEY.as_bytes()]);
    server.send::<()>(&[b"ACL", b"SETUSER", b"default", b"-info"]);
    restore(server.folder(), &["-p", &port.to_string()], &[]).exits(0);
    restore(server.folder(), &["-s", &server.socket().display().to_string()], &[])
        .exits(2)
        .says("run id unknown");
}

/// The rule: who may not ask for the run id backs up and restores all the same.
#[test]
fn a_server_that_does_not_tell_its_run_id_is_known_by_its_address() {
    let server = Server::holding(&[(REDIS_KEY, HELD, 60_000)]);
    server.send::<()>(&[b"ACL", b"SETUSER", b"default", b"-info"]);
    let socket = server.socket().display().to_string();
    back_up(server.folder(), &["-s", &socket]);
    assert_eq!(
        (&from(server.folder())["address"], &from(server.folder())["run_id"]),
        (&socket.clone().into(), &Value::Null)
    );
    let run = restore(server.folder(), &["-s", &socket], &[]).exits(0);
    assert!(!run.stderr.contains("warning"), "{}", run.all());
}

/// The rule: a restart is no other place, and what it may be besides is said.
#[test]
fn a_restart_does_not_block_and_is_said() {
    let port = free_port();
    let config = [format!("port {port}"), "bind 127.0.0.1".to_owned()];
    let start = || Server::start_with(&config.each_ref().map(String::as_str));
    let mut server = start();
    server.set(REDIS_KEY, HELD, 60_000);
    let home = tempfile::tempdir().unwrap();
    back_up(home.path(), &["-p", &port.to_string()]);
    server.kill();
    let server = start();
    let run = restore(home.path(), &["-p", &port.to_string()], &[]).exits(0);
    run.says("It restarted or failed over since, or is another server at that address");
    assert_eq!(server.get(REDIS_KEY).unwrap(), HELD.as_bytes());
}

/// The rule: a failover is no other place.
#[test]
fn a_service_is_known_by_its_sentinels_across_a_failover() {
    let watched = Watched::start(1);
    let home = watched.server(0).folder();
    watched.server(0).set(REDIS_KEY, HELD, 600_000);
    let url = watched.url();
    back_up(home, &["-u", &url]);
    let from = from(home);
    assert_eq!(from["service"]["name"], SERVICE);
    assert_eq!(from["address"], format!("127.0.0.1:{}", watched.port(0)));
    watched.fail_over();
    let run = restore(home, &["-u", &url], &[]).exits(0);
    assert!(!run.stderr.contains("warning"), "{}", run.all());
    assert_eq!(watched.server(1).get(REDIS_KEY).unwrap(), HELD.as_bytes());
    // Named by its address, nothing tells that the new master is the service's.
    let direct = ["-p", &watched.port(1).to_string()];
    restore(home, &direct, &[]).exits(2).says(format!("{SERVICE} of the Sentinels"));
}

#[test]
fn a_cluster_is_one_place_by_whichever_node_it_is_reached() {
    let (cluster, other) = (Cluster::start(3), Cluster::start(3));
    let home = tempfile::tempdir().unwrap();
    let through = |cluster: &Cluster, index| ["-p".to_owned(), cluster.port(index).to_string()];
    let run = |at: &[String; 2], more: &[&str]| {
        restore(home.path(), &at.each_ref().map(String::as_str), more)
    };
    cluster.set(REDIS_KEY, HELD, 600_000);
    back_up(home.path(), &through(&cluster, 0).each_ref().map(String::as_str));
    let mut ids: Vec<_> = (0..3).map(|index| cluster.id(index)).collect();
    ids.sort();
    assert_eq!(from(home.path())["cluster"], Value::from(ids));
    run(&through(&cluster, 2), &[]).exits(0);
    assert_eq!(cluster.get(REDIS_KEY).as_deref(), Some(HELD));
    run(&through(&other, 0), &[]).exits(2).says("a cluster of 3 nodes");
    assert_eq!(other.size(), 0);
    run(&through(&other, 0), &["--elsewhere"]).exits(0);
    assert_eq!(other.get(REDIS_KEY).as_deref(), Some(HELD));
}

/// A place is text of a file, and reaches no terminal as it is.
#[test]
fn a_place_is_escaped() {
    let server = Server::holding(&[(REDIS_KEY, HELD, 60_000)]);
    let mut from = backup::from(&server);
    from["from"]["address"] = "a\u{1b}[31m\u{202e}".into();
    let file = backup::write(&server, &[from, backup::line(&server, REDIS_KEY)]);
    fs::rename(file, server.folder().join("b")).unwrap();
    let run =
        restore(server.folder(), &["-s", &server.socket().display().to_string()], &[]).exits(2);
    assert!(
        !run.stderr.contains(['\u{1b}', '\u{202e}']) && run.stderr.contains("is from a\\"),
        "{}",
        run.all()
    );
}

/// The rule: a server that was up before the backup was taken is no restart of the one that it was taken from.
#[test]
fn another_server_at_the_same_address_that_was_up_before_is_refused_unless_it_is_meant() {
    let (server, other) = (Server::holding(&[(REDIS_KEY, HELD, 60_000)]), Server::start());
    let way = server.folder().join("way");
    let lead_to = |server: &Server, info: Option<String>| {
        let _ = fs::remove_file(&way);
        let hook = move |request: &[u8]| match &info {
            Some(info) if says(request, "INFO") => {
                Hook::Replace(format!("${}\r\n{info}\r\n", info.len()).into_bytes())
            }
            _ => Hook::Pass,
        };
        std::os::unix::fs::symlink(hooked_socket(server, hook), &way).unwrap();
    };
    let way_there = ["-s", way.to_str().unwrap()];
    let up = |seconds: u64| {
        Some(format!("# Server\r\nrun_id:{}\r\nuptime_in_seconds:{seconds}\r\n", run_id(&other)))
    };
    lead_to(&server, None);
    back_up(server.folder(), &way_there);
    lead_to(&other, up(90_000));
    for more in [&[][..], &["--dry-run"]] {
        let run = restore(server.folder(), &way_there, more).exits(2);
        run.says("another server at the same address")
            .says("hint: nothing was restored")
            .says("--elsewhere");
    }
    let undo = idemctl(server.folder()).args(way_there).args(["undo", "--yes"]).run().exits(2);
    undo.says("another server at the same address");
    assert_eq!(other.size(), 0);
    restore(server.folder(), &way_there, &["--elsewhere"])
        .exits(0)
        .says("which was already running at that time");
    assert_eq!(other.get(REDIS_KEY).unwrap(), HELD.as_bytes());
}
