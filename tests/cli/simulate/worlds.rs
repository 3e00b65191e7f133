//! What the world around a service does: Redis cannot be reached, forgets, is a cluster, is full, fails over.

use super::attempts::READS;
use super::variant::{Variant, plays, reference};
use crate::support::Server;

#[test]
fn without_redis_a_service_refuses_or_makes_the_payment_twice() {
    plays("reference", "store-down").is("refused").makes(0);
    let without_redis = "without_redis = \"refuse\"";
    let executes =
        reference().with("schema.toml", without_redis, "without_redis = \"execute\"").checked();
    executes.plays("store-down").is("duplicate").makes(2);
    reference()
        .with("schema.toml", without_redis, "")
        .plays("store-down")
        .is("n/a")
        .because("without_redis");
}

#[test]
fn a_script_that_redis_forgot_is_sent_again() {
    let cell = plays("reference", "script-flush").is("safe").makes(1);
    assert!(cell.to_string().contains("NOSCRIPT: sends it whole"), "{cell}");
    plays("go-middleware-v1", "script-flush").is("n/a").because("runs no script");
}

#[test]
fn a_service_that_knows_only_a_scripts_digest_is_stuck_when_redis_forgot_it() {
    let script =
        std::fs::read(format!("{}/lua/reference/begin.lua", env!("CARGO_MANIFEST_DIR"))).unwrap();
    let digest: String = Server::start().send(&[b"SCRIPT", b"LOAD", &script]);
    let by_digest = reference().with_block(
        "schema.toml",
        ("script = \"begin\"", "replies"),
        &format!("command = [\"EVALSHA\", \"{digest}\", \"1\", \"{{record}}\", \"{{owner}}\", \"{{fingerprint}}\", \"{{lock_ttl}}\", \"retry\"]\n"),
    );
    by_digest.plays("first-then-retry").is("safe").makes(1);
    by_digest.plays("script-flush").is("stuck").makes(0).because("NOSCRIPT");
}

#[test]
fn two_redis_keys_need_a_hash_tag_on_a_cluster() {
    plays("reference", "cluster-slots").is("safe").makes(1);
    let consumer = || Variant::of("event-consumer");
    let apart = consumer().plays("cluster-slots").is("duplicate").makes(2);
    apart
        .because("idem:done:order-1 is in slot 10518")
        .because("idem:lock:order-1 is in slot 2546");
    let tagged = consumer().with("schema.toml", "idem:lock:{key}", "idem:lock:{{key}}").with(
        "schema.toml",
        "idem:done:{key}",
        "idem:done:{{key}}",
    );
    tagged.checked().plays("cluster-slots").is("safe").makes(1);
    // Its script builds the Redis keys itself, from a key that no client of a cluster can send to the right node.
    let builds = plays("event-driven", "cluster-slots").is("refused").makes(0);
    builds.because("idem:result:order-1 is in slot").because("not in KEYS");
}

/// Rule: the node of a call that names no Redis key serves, and has none of the record's keys.
#[test]
fn a_script_without_keys_is_refused_on_a_cluster() {
    let nameless = Variant::of("event-driven")
        .with(
            "schema.toml",
            "keys = [\"{prefix}{key}\"]\nargs = [\"{owner}\", ",
            "keys = []\nargs = [\"{owner}\", ",
        )
        .with(
            "schema.toml",
            "\"{lock_ttl}\", \"{result_ttl}\"]",
            "\"{lock_ttl}\", \"{result_ttl}\", \"{prefix}{key}\"]",
        )
        .with("idempotency.lua", "local key = KEYS[1]", "local key = ARGV[4]");
    let cell = nameless.plays("cluster-slots").is("refused").makes(0);
    cell.because("idem:result:order-1 is in slot").because("not in KEYS");
}

#[test]
fn an_evicted_lock_makes_the_payment_twice_under_every_policy_but_noeviction() {
    let cell = plays("reference", "evicted-lock").is("duplicate").makes(2);
    assert_eq!(
        ["noeviction", "allkeys-lru", "volatile-ttl"].map(|policy| cell.made_in(policy)),
        [1, 2, 2],
        "{cell}"
    );
}

#[test]
fn a_begin_that_works_under_noeviction_alone_refuses() {
    let asks = "if not string.find(redis.call('INFO', 'memory'), 'maxmemory_policy:noeviction', 1, true) then
  return redis.error_reply('INVALID this server evicts')
end";
    let careful = reference().with("begin.lua", READS, &format!("{asks}\n{READS}"));
    let cell = careful.plays("evicted-lock").is("refused").because("this server evicts");
    assert_eq!((cell.made_in("noeviction"), cell.made_in("allkeys-lru")), (1, 0), "{cell}");
}

#[test]
fn a_failover_loses_the_lock_unless_begin_waits_for_the_replica() {
    plays("reference", "failover-loses-lock").is("duplicate").makes(2);
    let waits = r#"[[begin.call]]
command = ["WAIT", "1", "200"]
replies = [{ integer = 1, means = "acquired" }, { integer = 0, means = "fail" }]

[renew]"#;
    let acquired =
        "means = \"acquired\", when = [{ record = \"absent\" }, { record = \"failed\" }]";
    let waiting = reference().with("schema.toml", acquired, "means = \"next\"").with(
        "schema.toml",
        "[renew]",
        waits,
    );
    // The promoted replica has none of its own yet, so that the retry is refused as well.
    waiting.plays("failover-loses-lock").is("refused").makes(0);
}
