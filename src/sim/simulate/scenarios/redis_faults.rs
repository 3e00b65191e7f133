//! Failures of Redis: it is unreachable, forgets scripts, evicts the lock, fails over, or
//! distributes keys over slots.

use std::rc::Rc;
use std::time::{Duration, Instant};

use crate::domain::schema::WithoutRedis;
use crate::domain::simulation::{ClientAnswer, Excuse, Story};
use crate::domain::step::StepReply;
use crate::sim::simulate::local_servers::{Cluster, LocalServer, password};
use crate::sim::simulate::{
    Aborted, BeginOutcome, LockLifetime, PAYMENT, Scenario, ScenarioEnvironment, ScenarioResult,
    ScenarioRun,
};
use crate::store::{Connection, pack};

/// Redis is unreachable when a request arrives. Does the service reject the request, or execute it
/// without a lock?
pub(super) const STORE_DOWN: Scenario = Scenario {
    story: Story {
        name: "store-down",
        summary: "Redis is unreachable for a request and its retry",
        remedy: "fail closed, with a 503 response if Redis is unreachable, because a request \
            without a lock cannot be retried safely",
    },
    run: |environment| Box::pin(store_down(environment)),
};

async fn store_down(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let Some(does) = environment.schema.service.without_redis else {
        return Err(Aborted::NotApplicable(
            "schema.toml does not define this behaviour (without_redis)".to_owned(),
        ));
    };
    let run = environment.run("").await?;
    for name in ["worker 1", "a retry"] {
        let mut worker = run.worker(name, PAYMENT, LockLifetime::Long).await?;
        worker.disconnect();
        if let BeginOutcome::Unreachable(why) = worker.begin().await? {
            match does {
                WithoutRedis::Refuse => run.note_client_answer(PAYMENT, ClientAnswer::Error(why)),
                WithoutRedis::Execute => worker.have_effect(),
            }
        }
    }
    Ok(())
}

/// Redis forgets its scripts between a worker's steps, as after a restart or SCRIPT FLUSH.
pub(super) const SCRIPT_FLUSH: Scenario = Scenario {
    story: Story {
        name: "script-flush",
        summary: "Redis forgets the scripts between two steps (NOSCRIPT)",
        remedy: "on NOSCRIPT, send the whole script, because it was not executed",
    },
    run: |environment| Box::pin(script_flush(environment)),
};

async fn script_flush(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    if environment.schema.scripts.is_empty() {
        return Err(Aborted::NotApplicable("it runs no script".to_owned()));
    }
    let server = environment.servers.start(&[]).await?;
    let run = environment.run_on("", &server.target).await?;
    let flush = pack(["SCRIPT", "FLUSH"]);
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    run.apply_fault("the scripts are flushed", &flush).await?;
    if first.acquire_lock().await? {
        first.have_effect();
        run.apply_fault("the scripts are flushed", &flush).await?;
        first.complete().await?;
    }
    run.apply_fault("the scripts are flushed", &flush).await?;
    run.retry_until_served("a retry", PAYMENT).await
}

/// The schema's steps on a cluster. Can its scripts run there, and what happens if they cannot?
pub(super) const CLUSTER_SLOTS: Scenario = Scenario {
    story: Story {
        name: "cluster-slots",
        summary: "the schema's steps on a Redis Cluster",
        remedy: "keep a record in one Redis key, or put a hash tag around the idempotency key, and \
            send every Redis key of a script in KEYS",
    },
    run: |environment| Box::pin(cluster_slots(environment)),
};

async fn cluster_slots(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let cluster = Rc::new(Cluster::start(environment.servers).await?);
    let run = environment.run_on("", cluster.target()).await?;
    run.run_on_cluster(&cluster);
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Short).await?;
    match first.begin().await? {
        BeginOutcome::Acquired => {
            first.have_effect();
            if !first.complete().await? {
                run.remark(format!(
                    "its result cannot be stored: {}",
                    cluster.slots().unwrap_or_default()
                ));
            }
        }
        BeginOutcome::Fails(why) => {
            let why = match cluster.slots() {
                Some(slots) => format!("{why} ({slots})"),
                None => why,
            };
            run.note_client_answer(PAYMENT, ClientAnswer::Error(why));
            return Ok(());
        }
        _ => {}
    }
    run.retry_until_served("a retry", PAYMENT).await
}

/// Redis runs out of memory while a worker holds the lock, under each `maxmemory-policy`.
pub(super) const EVICTED_LOCK: Scenario = Scenario {
    story: Story {
        name: "evicted-lock",
        summary: "Redis runs out of memory while a lock is held, under each maxmemory-policy",
        remedy: "keep idempotency keys on a server with maxmemory-policy noeviction, apart from \
            caches",
    },
    run: |environment| Box::pin(evicted_lock(environment)),
};

/// The policies that all engines support.
const POLICIES: [&str; 8] = [
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

async fn evicted_lock(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    let server = environment.servers.start(&[]).await?;
    for policy in POLICIES {
        let run = environment.run_on(policy, &server.target).await?;
        run.excuse(Excuse::Environment);
        run.send(&pack(["CONFIG", "SET", "maxmemory-policy", policy])).await?;
        let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Long).await?;
        match first.begin().await? {
            BeginOutcome::Acquired => {
                fill(&run).await?;
                run.request_once("a retry", PAYMENT).await?;
                first.have_effect();
                first.complete().await?;
                run.retry_until_served("a later retry", PAYMENT).await?;
            }
            BeginOutcome::Fails(why) => run.note_client_answer(PAYMENT, ClientAnswer::Error(why)),
            _ => run.retry_until_served("a retry", PAYMENT).await?,
        }
        // The next policy uses the same key on this server, which belongs to the scenario.
        run.send(&pack(["FLUSHALL"])).await?;
    }
    Ok(())
}

/// Fills the memory until the lock is evicted, or until it can no longer have been spared by
/// chance.
async fn fill(run: &ScenarioRun<'_>) -> ScenarioResult {
    let lock = run.schema().keys[run.schema().lock_key_index()].template.redis_key(&run.key);
    let used = used_memory(run).await?;
    run.send(&pack(["CONFIG", "SET", "maxmemory", &(used + ROOM).to_string()])).await?;
    let filler = "x".repeat(FILLER);
    let mut is_full = false;
    for number in 0..MAX_FILLERS {
        // Fillers live longer than locks, as results do: `volatile-ttl` evicts the key with the
        // shortest TTL.
        let set = pack(["SET", &format!("filler:{number}"), &filler, "EX", "86400"]);
        is_full = run.send(&set).await.is_err();
        if is_full {
            break;
        }
        if number % BATCH == 0
            && run.send(&pack([b"EXISTS", &lock[..]])).await? == StepReply::Integer(0)
        {
            break;
        }
    }
    let kept = run.send(&pack([b"EXISTS", &lock[..]])).await? == StepReply::Integer(1);
    let what = match (kept, is_full) {
        (false, _) => "memory is full: the lock is evicted",
        (true, true) => "memory is full: Redis refuses writes",
        (true, false) => "memory is full: the lock is kept",
    };
    run.note("world", what, None, None);
    // Without a limit, so that the story continues even if Redis refused writes.
    run.send(&pack(["CONFIG", "SET", "maxmemory", "0"])).await?;
    Ok(())
}

async fn used_memory(run: &ScenarioRun<'_>) -> ScenarioResult<u64> {
    let StepReply::Text(info) = run.send(&pack(["INFO", "memory"])).await? else { return Ok(0) };
    let info = String::from_utf8_lossy(&info);
    for line in info.lines() {
        if let Some(used) = line.strip_prefix("used_memory:") {
            return Ok(used.trim().parse().unwrap_or(0));
        }
    }
    Ok(0)
}

/// The master crashes before the lock reaches its replica, which is then promoted. Replication is
/// asynchronous.
pub(super) const FAILOVER_LOSES_LOCK: Scenario = Scenario {
    story: Story {
        name: "failover-loses-lock",
        summary: "the master dies before its replica has the lock, and the replica is promoted",
        remedy: "no script can help; pass the idempotency key on to the provider. WAIT after begin \
            makes this rarer",
    },
    run: |environment| Box::pin(failover_loses_lock(environment)),
};

/// How long a replica may take until it is in sync. It usually takes one or two seconds.
const PATIENCE: Duration = Duration::from_secs(10);

async fn failover_loses_lock(environment: &ScenarioEnvironment<'_>) -> ScenarioResult {
    // Both servers have the same password, with which the replica logs in to the master.
    let password = password();
    let config =
        ["repl-diskless-sync yes", "repl-diskless-sync-delay 0", "repl-ping-replica-period 1"];
    let master = environment.servers.start_with_port(&config, &password).await?;
    let replica = environment.servers.start_with_port(&config, &password).await?;
    follow_master(&replica, &master).await?;

    let run = environment.run_on("", &master.target).await?;
    run.excuse(Excuse::Environment);
    let mut first = run.worker("worker 1", PAYMENT, LockLifetime::Long).await?;
    // With another password the replica cannot reconnect, as in a broken network, but at a chosen
    // time.
    run.send(&pack(["CONFIG", "SET", "requirepass", &self::password()])).await?;
    run.apply_fault(
        "the replica loses its link to the master",
        &pack(["CLIENT", "KILL", "TYPE", "replica"]),
    )
    .await?;
    match first.begin().await? {
        BeginOutcome::Acquired => first.have_effect(),
        BeginOutcome::Fails(why) => run.note_client_answer(PAYMENT, ClientAnswer::Error(why)),
        _ => {}
    }
    first.crash();
    // Dropping a local server ends it.
    drop(master);
    run.note("world", "the master dies", None, None);
    let mut promoted = Connection::connect(&replica.target).await?;
    promoted.ask(&pack(["REPLICAOF", "NO", "ONE"])).await?;
    run.note("world", "the replica is promoted", None, None);
    let mut second = run.worker_at(&replica.target, "a retry", PAYMENT, LockLifetime::Long).await?;
    if second.acquire_lock().await? {
        second.have_effect();
        second.complete().await?;
    }
    Ok(())
}

/// Makes one server a replica of the other, and waits until it is in sync.
async fn follow_master(replica: &LocalServer, master: &LocalServer) -> ScenarioResult {
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
    Err(Aborted::NotApplicable(
        "a private replica did not come into step with its master".to_owned(),
    ))
}
