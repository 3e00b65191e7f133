//! The master dies before the lock has reached its replica, which is then promoted: replication is asynchronous.

use std::time::{Duration, Instant};

use crate::domain::simulation::{Story, Told};
use crate::domain::step::StepReply;
use crate::sim::simulate::private_servers::{PrivateServer, password};
use crate::sim::simulate::{Abort, Begun, Environment, Lock, PAYMENT, Played, Scenario};
use crate::store::{Connection, pack};

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "failover-loses-lock",
        summary: "the master dies before its replica, which is promoted, knows of the lock",
        remedy: "no script can help: pass the idempotency key on to the provider; WAIT after begin makes it rarer",
    },
    play: |environment| Box::pin(play(environment)),
};

/// How long a replica may take to be in step; it takes a second or two.
const PATIENCE: Duration = Duration::from_secs(10);

async fn play(environment: &Environment<'_>) -> Played {
    let password = password();
    let config = ["repl-diskless-sync yes", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"];
    let master = environment.servers.start_with_port(&config, &password).await?;
    let replica = environment.servers.start_with_port(&config, &password).await?;
    follows(&replica, &master).await?;

    let run = environment.run_on("", &master.target).await?;
    let mut first = run.worker("worker 1", PAYMENT, Lock::Long).await?;
    // The replica cannot come back under another password: what a broken network does, at a moment of our choosing.
    run.ask(&pack(["CONFIG", "SET", "requirepass", &self::password()])).await?;
    run.happens("the replica loses its link to the master", &pack(["CLIENT", "KILL", "TYPE", "replica"])).await?;
    match first.begins().await? {
        Begun::Acquired => first.works(),
        Begun::Fails(why) => run.told(PAYMENT, Told::Error(why)),
        _ => {}
    }
    first.crashes();
    drop(master);
    run.note("world", "the master dies", None, None);
    let mut promoted = Connection::connect(&replica.target).await?;
    promoted.ask(&pack(["REPLICAOF", "NO", "ONE"])).await?;
    run.note("world", "the replica is promoted", None, None);
    let mut second = run.worker_at(&replica.target, "a retry", PAYMENT, Lock::Long).await?;
    if let Begun::Acquired = second.begins().await? {
        second.works();
        second.completes().await?;
    }
    Ok(())
}

/// Makes one server the other's replica, and waits until it is in step.
async fn follows(replica: &PrivateServer, master: &PrivateServer) -> Played {
    let mut wire = Connection::connect(&replica.target).await?;
    let port = master.port.unwrap_or_default().to_string();
    wire.ask(&pack(["REPLICAOF", "127.0.0.1", &port])).await?;
    let since = Instant::now();
    while since.elapsed() < PATIENCE {
        let StepReply::Text(info) = wire.ask(&pack(["INFO", "replication"])).await? else { break };
        if String::from_utf8_lossy(&info).contains("master_link_status:up") {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Err(Abort::NotApplicable("a private replica did not come into step with its master".to_owned()))
}
