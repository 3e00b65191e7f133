//! Redis runs out of memory while a worker holds the lock, under each policy of what to do then.

use crate::domain::simulation::{Story, Told};
use crate::domain::step::StepReply;
use crate::sim::simulate::run::Run;
use crate::sim::simulate::{Begun, Environment, Lock, PAYMENT, Played, Scenario};
use crate::store::pack;

pub(super) const SCENARIO: Scenario = Scenario {
    story: Story {
        name: "evicted-lock",
        summary: "Redis runs out of memory while a lock is held, under each maxmemory-policy",
        remedy: "keep idempotency keys on a server with maxmemory-policy noeviction, apart from caches",
    },
    play: |environment| Box::pin(play(environment)),
};

/// Every policy that all engines know.
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

/// Memory beyond what the empty server takes, in bytes.
const ROOM: u64 = 256 * 1024;

/// How large what fills it is, in bytes.
const FILLER: usize = 4 * 1024;

/// How many fillers are written at most: a hundred times what there is room for, so that chance spares no lock.
const MOST_FILLERS: usize = 6_400;

/// How many are written between two looks at the lock.
const BATCH: usize = 64;

async fn play(environment: &Environment<'_>) -> Played {
    let server = environment.servers.start(&[]).await?;
    for policy in POLICIES {
        let run = environment.run_on(policy, &server.target).await?;
        run.ask(&pack(["CONFIG", "SET", "maxmemory-policy", policy])).await?;
        let mut first = run.worker("worker 1", PAYMENT, Lock::Long).await?;
        match first.begins().await? {
            Begun::Acquired => {
                fill(&run).await?;
                run.asks("a retry", PAYMENT).await?;
                first.works();
                first.completes().await?;
                run.retries("a later retry", PAYMENT).await?;
            }
            Begun::Fails(why) => run.told(PAYMENT, Told::Error(why)),
            _ => run.retries("a retry", PAYMENT).await?,
        }
        run.ask(&pack(["FLUSHALL"])).await?;
    }
    Ok(())
}

/// Fills the memory until the lock is gone, or as long as chance could have spared it.
async fn fill(run: &Run<'_>) -> Played {
    let lock = run.schema().keys[run.schema().lock_role()].template.redis_key(&run.key);
    let used = used_memory(run).await?;
    run.ask(&pack(["CONFIG", "SET", "maxmemory", &(used + ROOM).to_string()])).await?;
    let filler = "x".repeat(FILLER);
    let mut is_full = false;
    for number in 0..MOST_FILLERS {
        // As results do, they live longer than locks.
        let set = pack(["SET", &format!("filler:{number}"), &filler, "EX", "86400"]);
        is_full = run.ask(&set).await.is_err();
        if is_full {
            break;
        }
        if number % BATCH == 0 && run.ask(&pack([b"EXISTS", &lock[..]])).await? == StepReply::Integer(0) {
            break;
        }
    }
    let kept = run.ask(&pack([b"EXISTS", &lock[..]])).await? == StepReply::Integer(1);
    let what = match (kept, is_full) {
        (false, _) => "memory is full: the lock is evicted",
        (true, true) => "memory is full: Redis refuses writes",
        (true, false) => "memory is full: the lock is spared",
    };
    run.note("world", what, None, None);
    run.ask(&pack(["CONFIG", "SET", "maxmemory", "0"])).await?;
    Ok(())
}

async fn used_memory(run: &Run<'_>) -> Played<u64> {
    let StepReply::Text(info) = run.ask(&pack(["INFO", "memory"])).await? else { return Ok(0) };
    let info = String::from_utf8_lossy(&info);
    let used = info.lines().find_map(|line| line.strip_prefix("used_memory:"));
    Ok(used.and_then(|used| used.trim().parse().ok()).unwrap_or(0))
}
