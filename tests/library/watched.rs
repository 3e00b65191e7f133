//! Which servers Sentinels may watch, although none is connected at the moment.

use crate::support::library::Library;
use crate::support::{Server, free_port, until};

/// Rule: right after a failover, the new master has neither replicas nor Sentinels that listen, and
/// the protection of a context that names the Sentinels applies all the same.
#[test]
fn a_master_that_had_a_replica_may_be_watched_and_one_that_never_had_is_not() {
    let port = free_port().to_string();
    let config = [&format!("port {port}"), "bind 127.0.0.1", "repl-diskless-sync-delay 0"];
    let master = Server::start_with(&config);
    let may_be_watched = || {
        let library = Library::on(&master);
        library.wait(async { library.client().may_be_watched().await })
    };
    assert!(!may_be_watched());
    let replica = Server::start();
    replica.send::<()>(&[b"REPLICAOF", b"127.0.0.1", port.as_bytes()]);
    let in_step = || replica.send::<String>(&[b"INFO", b"replication"]);
    until("the replica is in step", || in_step().contains("master_link_status:up"));
    // The replica may be in step before its master sent anything.
    master.set("k", "v", 60_000);
    until("the write arrived", || replica.get("k").is_some());
    replica.send::<()>(&[b"REPLICAOF", b"NO", b"ONE"]);
    let replicas = || master.send::<String>(&[b"INFO", b"replication"]);
    until("the replica is gone", || replicas().contains("connected_slaves:0"));
    assert!(may_be_watched());
}
