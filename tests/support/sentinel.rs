//! A master, its replica, and Sentinels that watch them, on ports of the loopback.
#![allow(dead_code, reason = "each test file uses a part of it")]
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

use std::net::TcpListener;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use redis::Connection;

use crate::support::{Server, program};

/// The service's name.
pub const SERVICE: &str = "payments";

/// A service with its Sentinel.
pub struct Watched {
    servers: Vec<(Server, u16)>,
    sentinels: Vec<(Child, u16, tempfile::TempDir)>,
}

impl Watched {
    /// Starts a master with a replica, in step with it, and so many Sentinels.
    pub fn start(sentinels: usize) -> Self {
        let servers: Vec<_> = (0..2).map(|_| server()).collect();
        let master = servers[0].1;
        let mut replica = servers[1].0.connect();
        redis::cmd("REPLICAOF").arg("127.0.0.1").arg(master).exec(&mut replica).unwrap();
        until("the replica is in step", || info(&mut replica).contains("master_link_status:up"));
        let sentinels = (0..sentinels).map(|_| sentinel(master)).collect();
        let watched = Self { servers, sentinels };
        for index in 0..watched.sentinels.len() {
            until("a Sentinel knows the replica", || {
                let told: Vec<Vec<String>> = redis::cmd("SENTINEL")
                    .arg("REPLICAS")
                    .arg(SERVICE)
                    .query(&mut watched.sentinel(index))
                    .unwrap_or_default();
                !told.is_empty()
            });
        }
        watched
    }

    /// A server, by its index: the master is the first.
    pub fn server(&self, index: usize) -> &Server {
        &self.servers[index].0
    }

    /// A server's port.
    pub fn port(&self, index: usize) -> u16 {
        self.servers[index].1
    }

    /// A connection to a Sentinel.
    pub fn sentinel(&self, index: usize) -> Connection {
        let url = format!("redis://127.0.0.1:{}", self.sentinels[index].1);
        redis::Client::open(url).and_then(|client| client.get_connection()).unwrap()
    }

    /// The URL of the service.
    pub fn url(&self) -> String {
        let hosts: Vec<_> = self.sentinels.iter().map(|(_, port, _)| format!("127.0.0.1:{port}")).collect();
        format!("redis-sentinel://{}/{SERVICE}", hosts.join(","))
    }

    /// Makes the replica the master, and waits until the Sentinels say so.
    pub fn fail_over(&self) {
        until("the failover is accepted", || {
            redis::cmd("SENTINEL").arg("FAILOVER").arg(SERVICE).exec(&mut self.sentinel(0)).is_ok()
        });
        until("the failover is over", || self.master_port() == self.port(1));
    }

    /// The port of the master, as the first Sentinel has it.
    pub fn master_port(&self) -> u16 {
        let told: (String, u16) =
            redis::cmd("SENTINEL").arg("GET-MASTER-ADDR-BY-NAME").arg(SERVICE).query(&mut self.sentinel(0)).unwrap();
        told.1
    }

    /// Kills the master, as a crash would.
    pub fn kill_master(&mut self) {
        self.servers[0].0.kill();
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        for (sentinel, ..) in &mut self.sentinels {
            let _ = sentinel.kill();
            let _ = sentinel.wait();
        }
    }
}

fn server() -> (Server, u16) {
    let port = free_port();
    let config = [format!("port {port}"), "bind 127.0.0.1".to_owned(), "repl-diskless-sync-delay 0".to_owned()];
    (Server::start_with(&config.each_ref().map(String::as_str)), port)
}

fn sentinel(master: u16) -> (Child, u16, tempfile::TempDir) {
    let folder = tempfile::Builder::new().prefix("idemctl-").tempdir_in("/tmp").unwrap();
    let port = free_port();
    let file = folder.path().join("sentinel.conf");
    let config = format!(
        "port {port}\nbind 127.0.0.1\ndir {}\nsentinel monitor {SERVICE} 127.0.0.1 {master} 1\n\
         sentinel down-after-milliseconds {SERVICE} 500\nsentinel failover-timeout {SERVICE} 2000\n",
        folder.path().display()
    );
    std::fs::write(&file, config).unwrap();
    let child = Command::new(program())
        .arg(&file)
        .arg("--sentinel")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server program starts");
    until("a Sentinel comes up", || std::net::TcpStream::connect(("127.0.0.1", port)).is_ok());
    (child, port, folder)
}

fn info(connection: &mut Connection) -> String {
    redis::cmd("INFO").arg("replication").query(connection).unwrap()
}

fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(20), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

fn free_port() -> u16 {
    TcpListener::bind(("127.0.0.1", 0)).unwrap().local_addr().unwrap().port()
}
