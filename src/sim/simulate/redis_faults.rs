//! Faults of a server that no command of a service causes: its memory is full, or it dies before its
//! replica has the last writes.

use std::time::{Duration, Instant};

use super::job::{Aborted, Played};
use super::local_servers::{LocalServer, LocalServers, password};
use super::player::Player;
use crate::domain::step::StepReply;
use crate::store::{Connection, Writable, pack};

/// The policies that all engines support.
pub(super) const POLICIES: [&str; 8] = [
    "noeviction",
    "allkeys-lru",
    "allkeys-lfu",
    "allkeys-random",
    "volatile-lru",
    "volatile-lfu",
    "volatile-random",
    "volatile-ttl",
];

/// The memory limit above what the empty server uses, in bytes. It is small, so that few fillers
/// reach it.
const ROOM: u64 = 256 * 1024;

/// The size of each filler value, in bytes.
const FILLER: usize = 4 * 1024;

/// How many fillers are written at most. This is a hundred times the available memory, so that a
/// random policy does not spare the lock by chance.
const MAX_FILLERS: usize = 6_400;

/// How many fillers are written between two checks of the lock. Together they are as large as
/// [`ROOM`].
const BATCH: usize = 64;

/// Fills the memory until the lock is evicted, or until it can no longer have been spared by
/// chance.
pub(super) async fn fill(player: &mut Player<'_>) -> Played {
    let exists = pack([b"EXISTS", player.lock_key()]);
    let limit = used_memory(player).await? + ROOM;
    player.send(&pack(["CONFIG", "SET", "maxmemory", &limit.to_string()])).await?;
    let filler = "x".repeat(FILLER);
    let mut is_full = false;
    for number in 0..MAX_FILLERS {
        // Fillers live longer than locks, as results do: `volatile-ttl` evicts the key with the
        // shortest TTL.
        let set = pack(["SET", &format!("filler:{number}"), &filler, "EX", "86400"]);
        is_full = player.send(&set).await.is_err();
        let is_checked = number % BATCH == 0;
        if is_full || is_checked && player.send(&exists).await? == StepReply::Integer(0) {
            break;
        }
    }
    let is_evicted = player.send(&exists).await? == StepReply::Integer(0);
    let what = match (is_evicted, is_full) {
        (true, _) => "memory is full: the lock is evicted",
        (false, true) => "memory is full: Redis refuses writes",
        (false, false) => "memory is full: the lock is kept",
    };
    player.note("world", what, None, None);
    // Without a limit, so that the story continues even if Redis refused writes.
    player.send(&pack(["CONFIG", "SET", "maxmemory", "0"])).await?;
    Ok(())
}

async fn used_memory(player: &mut Player<'_>) -> Played<u64> {
    let StepReply::Text(info) = player.send(&pack(["INFO", "memory"])).await? else {
        return Ok(0);
    };
    let info = String::from_utf8_lossy(&info);
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(used.and_then(|used| used.trim().parse().ok()).unwrap_or(0))
}

/// A master and its replica. Replication is asynchronous.
pub(super) struct Replicas {
    /// `None` after it died, because dropping a local server ends it.
    master: Option<LocalServer>,
    replica: LocalServer,
}

/// How long a replica may take until it is in sync. It usually takes one or two seconds.
const PATIENCE: Duration = Duration::from_secs(10);

impl Replicas {
    /// Starts both servers, and waits until the replica is in sync.
    pub(super) async fn start(servers: &LocalServers) -> Played<Self> {
        // Both servers have the same password, with which the replica logs in to the master.
        let password = password();
        let config =
            ["repl-diskless-sync yes", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"];
        let master = servers.start_with_port(&config, &password).await?;
        let replica = servers.start_with_port(&config, &password).await?;
        let mut connection = Connection::connect(&replica.target).await?;
        let port = master.port.unwrap_or_default().to_string();
        connection.ask(&pack(["REPLICAOF", "127.0.0.1", &port])).await?;
        let since = Instant::now();
        while since.elapsed() < PATIENCE {
            let info = connection.ask(&pack(["INFO", "replication"])).await?;
            let StepReply::Text(info) = info else { break };
            if String::from_utf8_lossy(&info).contains("master_link_status:up") {
                return Ok(Self { master: Some(master), replica });
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Err(Aborted::NotApplicable(
            "a private replica did not come into step with its master".to_owned(),
        ))
    }

    /// The server on which the workers begin.
    pub(super) fn target(&self) -> &Writable {
        let server = self.master.as_ref().unwrap_or(&self.replica);
        &server.target
    }

    /// The replica loses its link, as in a broken network, but at a chosen time. With another
    /// password it cannot connect again.
    pub(super) async fn cut_link(&self, player: &mut Player<'_>) -> Played {
        let mut connection = Connection::connect(&self.replica.target).await?;
        connection.ask(&pack(["CONFIG", "SET", "masterauth", &password()])).await?;
        player.send(&pack(["CLIENT", "KILL", "TYPE", "replica"])).await?;
        player.note("world", "the replica loses its link to the master", None, None);
        Ok(())
    }

    /// The master dies, and the replica is promoted.
    pub(super) async fn fail_over(&mut self, player: &mut Player<'_>) -> Played {
        self.master = None;
        let mut promoted = Connection::connect(&self.replica.target).await?;
        promoted.ask(&pack(["REPLICAOF", "NO", "ONE"])).await?;
        player.note("world", "the master dies, and the replica is promoted", None, None);
        Ok(player.move_to(&self.replica.target).await?)
    }
}
