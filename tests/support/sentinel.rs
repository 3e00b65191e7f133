//! A master, its replica, and Sentinels that watch them, on ports of the loopback.

use std::path::Path;
use std::process::{Child, Command, Stdio};

use redis::Connection;

use crate::support::{Server, free_port, program, until};

/// The service's name.
pub const SERVICE: &str = "payments";

/// Who may do all at a Sentinel that lets in nobody else, and the password.
pub const ADMIN: &str = "admin";

/// A service with its Sentinel.
pub struct Watched {
    servers: Vec<(Server, u16)>,
    sentinels: Vec<(Child, u16, tempfile::TempDir)>,
}

impl Watched {
    /// Starts a master with a replica, in step with it, and so many Sentinels.
    pub fn start(sentinels: usize) -> Self {
        Self::start_as(sentinels, &[], &[]).expect("the server program takes this configuration")
    }

    /// The same, all with these lines on TLS where there are any, and the Sentinels with lines of their own; nothing
    /// where the program does not know them.
    pub fn start_as(sentinels: usize, tls: &[String], own: &[&str]) -> Option<Self> {
        let servers: Vec<_> = (0..2).map(|_| server(tls)).collect::<Option<_>>()?;
        let master = servers[0].1;
        let mut replica = servers[1].0.connect();
        redis::cmd("REPLICAOF").arg("127.0.0.1").arg(master).exec(&mut replica).unwrap();
        until("the replica is in step", || info(&mut replica).contains("master_link_status:up"));
        let sentinels = (0..sentinels).map(|_| sentinel(master, tls, own)).collect();
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
        Some(watched)
    }

    /// A server, by its index: the master is the first.
    pub fn server(&self, index: usize) -> &Server {
        &self.servers[index].0
    }

    /// A server's port.
    pub fn port(&self, index: usize) -> u16 {
        self.servers[index].1
    }

    /// A Sentinel's port.
    pub fn sentinel_port(&self, index: usize) -> u16 {
        self.sentinels[index].1
    }

    /// A connection to a Sentinel.
    pub fn sentinel(&self, index: usize) -> Connection {
        connect(self.sentinels[index].2.path()).unwrap()
    }

    /// The URL of the service.
    pub fn url(&self) -> String {
        let hosts: Vec<_> =
            self.sentinels.iter().map(|(_, port, _)| format!("127.0.0.1:{port}")).collect();
        format!("redis-sentinel://{}/{SERVICE}", hosts.join(","))
    }

    /// Makes the replica the master, and waits until the Sentinels say so.
    pub fn fail_over(&self) {
        self.fail_over_to(1);
    }

    /// Makes a server the master, whichever is it now, and waits until it is and the Sentinels say so.
    pub fn fail_over_to(&self, index: usize) {
        until("the failover is accepted", || {
            redis::cmd("SENTINEL").arg("FAILOVER").arg(SERVICE).exec(&mut self.sentinel(0)).is_ok()
        });
        until("the failover is over", || self.master_port() == self.port(index));
    }

    /// The port of the master, as the first Sentinel has it.
    pub fn master_port(&self) -> u16 {
        let told: (String, u16) = redis::cmd("SENTINEL")
            .arg("GET-MASTER-ADDR-BY-NAME")
            .arg(SERVICE)
            .query(&mut self.sentinel(0))
            .unwrap();
        told.1
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

/// What a test does at a Sentinel goes over its socket, by its administrator.
fn connect(folder: &Path) -> redis::RedisResult<Connection> {
    let url = format!("unix://{}", folder.join("s").display());
    let mut connection = redis::Client::open(url)?.get_connection()?;
    // Where there is no such user, whoever comes may do all.
    let _ = redis::cmd("AUTH").arg(ADMIN).arg(ADMIN).exec(&mut connection);
    Ok(connection)
}

fn server(tls: &[String]) -> Option<(Server, u16)> {
    let port = free_port();
    let mut config = vec![
        listens(port, tls),
        "bind 127.0.0.1".to_owned(),
        "repl-diskless-sync-delay 0".to_owned(),
    ];
    config.extend_from_slice(tls);
    Server::try_start_with(&config.iter().map(String::as_str).collect::<Vec<_>>())
        .map(|server| (server, port))
}

fn listens(port: u16, tls: &[String]) -> String {
    if tls.is_empty() { format!("port {port}") } else { format!("port 0\ntls-port {port}") }
}

fn sentinel(master: u16, tls: &[String], own: &[&str]) -> (Child, u16, tempfile::TempDir) {
    let folder = tempfile::Builder::new().prefix("idemctl-").tempdir().unwrap();
    let port = free_port();
    let file = folder.path().join("sentinel.conf");
    let config = format!(
        "{}\nbind 127.0.0.1\nunixsocket {}/s\ndir {}\n{}\n{}\nsentinel monitor {SERVICE} 127.0.0.1 {master} 1\n\
         sentinel down-after-milliseconds {SERVICE} 3000\nsentinel failover-timeout {SERVICE} 2000\n",
        listens(port, tls),
        folder.path().display(),
        folder.path().display(),
        tls.join("\n"),
        own.join("\n"),
    );
    std::fs::write(&file, config).unwrap();
    let child = Command::new(program())
        .arg(&file)
        .arg("--sentinel")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the server program starts");
    until("a Sentinel comes up", || connect(folder.path()).is_ok());
    (child, port, folder)
}

fn info(connection: &mut Connection) -> String {
    redis::cmd("INFO").arg("replication").query(connection).unwrap()
}
