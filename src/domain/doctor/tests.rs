//! Judgements of recorded facts: INFO of four servers, the restrictions of managed services, and
//! each check's bad and good state.

mod capacity;
mod guards;
mod observed;
mod violations;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use super::acceptance::{accept, parse_acceptances};
use super::checks::registry::{CHECKS, judge};
use super::doctor_check::CheckGroup;
use super::facts::{
    ClockReading, DeniedCommand, DeploymentFacts, NodeFacts, SentinelFacts, UserRights,
};
use super::info::InfoFields;
use super::judgement::CheckJudgement;
use super::judgement::CheckSeverity::{self, Error, Note, Ok as Fine, Unknown, Warning};
use super::judgement::ModelledFault;
use super::lock_count::LockCount;
use super::refusal::{FactResult, RefusedFact};
use super::sample::RecordSample;
use super::statement::{Statement, covered, keep_worst};
use super::{Counterexample, FaultOutcome};
use crate::domain::diagnosis::{self, Thresholds};
use crate::domain::exploration::{Invariant, invariants};
use crate::domain::record::{Record, TimeLeft};
use crate::domain::samples::{record, schema, text};
use crate::domain::schema::{Schema, TtlOf};
use crate::exit::{Exit, judged};

/// INFO as each server wrote it, with the fields that checks read.
const RECORDED: [(&str, &str); 4] = [
    ("Redis 6.2.14", include_str!("recorded/redis-6.2.info")),
    ("Redis 7.0.15", include_str!("recorded/redis-7.0.info")),
    ("Redis 8.2.3", include_str!("recorded/redis-8.2.info")),
    ("valkey 9.1.2", include_str!("recorded/valkey-9.1.info")),
];

/// The reply to CONFIG GET for each parameter of a server with the default configuration.
const CONFIG: [(&str, &str); 8] = [
    ("maxmemory", "0"),
    ("maxmemory-policy", "noeviction"),
    ("appendonly", "no"),
    ("appendfsync", "everysec"),
    ("save", "3600 1 300 100 60 10000"),
    ("stop-writes-on-bgsave-error", "yes"),
    ("min-replicas-to-write", "0"),
    ("min-replicas-max-lag", "10"),
];

fn node(info: &str) -> NodeFacts {
    let config = CONFIG.iter().map(|(name, value)| (*name, Ok((*value).to_owned())));
    NodeFacts {
        name: "a:6379/0".to_owned(),
        info: Ok(InfoFields::parse("INFO", info)),
        config: config.collect(),
        clock: Ok(ClockReading { before_ms: 10_000, server_ms: 10_001, after_ms: 10_002 }),
        missing_commands: Ok(Vec::new()),
        cluster_info: None,
        cluster_line: None,
        user: Ok(UserRights { user: "default".to_owned(), denied: Vec::new(), account: None }),
        service_user: None,
    }
}

/// Redis 7.0 with these lines of INFO in place of its own.
fn with(lines: &[&str]) -> NodeFacts {
    let mut info = String::new();
    for line in RECORDED[1].1.lines() {
        let name = line.split(':').next().unwrap();
        if !lines.iter().any(|own| own.split(':').next() == Some(name)) {
            info.push_str(&format!("{line}\n"));
        }
    }
    node(&(info + &lines.join("\n")))
}

fn configured(mut node: NodeFacts, parameter: &'static str, value: &str) -> NodeFacts {
    node.config.insert(parameter, Ok(value.to_owned()));
    node
}

fn deployment(nodes: Vec<NodeFacts>) -> DeploymentFacts {
    DeploymentFacts {
        nodes,
        is_cluster: false,
        sentinels: Vec::new(),
        schemas: Vec::new(),
        explorations: Vec::new(),
        sample: Ok(RecordSample::default()),
        locks: Ok(LockCount::default()),
        retry_windows: BTreeMap::new(),
        observed: None,
        longest_run_ms: None,
    }
}

fn statements(facts: &DeploymentFacts, code: &str) -> Vec<Statement> {
    judge(facts, |check| check.code == code)
}

/// The severities that a check gives these facts.
fn severities(facts: &DeploymentFacts, code: &str) -> Vec<CheckSeverity> {
    let statements = statements(facts, code);
    statements.iter().map(|statement| statement.judgement.severity).collect()
}

#[track_caller]
fn gives(code: &str, node: NodeFacts, severity: CheckSeverity) {
    let statements = statements(&deployment(vec![node]), code);
    assert_eq!(statements.len(), 1, "{code}");
    let judgement = &statements[0].judgement;
    assert_eq!(judgement.severity, severity, "{code}: {}", judgement.fact);
}

fn refusal(command: &str, rule: Option<&str>) -> RefusedFact {
    RefusedFact {
        command: command.to_owned(),
        rule: rule.map(str::to_owned),
        why: "no permissions".to_owned(),
        instead: None,
    }
}

#[test]
fn each_recorded_server_is_judged_alike() {
    for (version, info) in RECORDED {
        let facts = deployment(vec![node(info)]);
        // Without a key, nothing is known of locks and schemas.
        let all: Vec<_> = judge(&facts, |check| check.group == CheckGroup::Server)
            .iter()
            .map(|statement| (statement.check.code, statement.judgement.severity))
            .collect();
        let expected = [
            ("writes", Fine),
            ("eviction-policy", Fine),
            ("memory-headroom", Note),
            ("evictions", Fine),
            ("persistence", Warning),
            ("replication", Note),
            ("failover-loss", Fine),
            ("clock-local", Fine),
            ("commands", Fine),
            ("user-rights", Fine),
        ];
        assert_eq!(all, expected, "{version}");
    }
}

/// Rule: what a managed service hides is unknown, and neither OK nor an alarm.
#[test]
fn what_is_hidden_is_unknown_and_named() {
    // CONFIG does not exist, and INFO leaves out the policy.
    let mut without_config = node("redis_version:7.1.0\nmaxmemory:100\nused_memory:1\n");
    for answer in without_config.config.values_mut() {
        *answer = Err(refusal("CONFIG GET", None));
    }
    // The Redis user may not send CONFIG, and INFO has an empty policy.
    let mut empty_policy = with(&["maxmemory_policy:", "aof_enabled:1"]);
    for answer in empty_policy.config.values_mut() {
        *answer = Err(refusal("CONFIG GET", Some("+config|get")));
    }
    // INFO has no persistence, statistics and replication.
    let few_sections = node("redis_version:7.2.4\nmaxmemory:0\nmaxmemory_policy:noeviction\n");
    let unknown = |node: &NodeFacts| {
        let facts = deployment(vec![node.clone()]);
        let mut unknown = Vec::new();
        for statement in judge(&facts, |check| check.group == CheckGroup::Server) {
            let severity = statement.judgement.severity;
            assert!(severity != Error, "{}", statement.check.code);
            if severity == Unknown {
                assert!(statement.judgement.refusal.is_some());
                assert!(statement.consequence().is_none());
                unknown.push(statement.check.code);
            }
        }
        unknown
    };
    assert_eq!(
        unknown(&without_config),
        ["writes", "eviction-policy", "evictions", "persistence", "replication", "failover-loss"]
    );
    assert_eq!(unknown(&empty_policy), ["eviction-policy", "persistence"]);
    assert_eq!(
        unknown(&few_sections),
        ["writes", "evictions", "persistence", "replication", "failover-loss"]
    );
    let facts = deployment(vec![empty_policy]);
    let remedy = statements(&facts, "eviction-policy")[0].remedy().unwrap();
    assert!(remedy.contains("+config|get") && remedy.contains("--skip eviction-policy"));
}

#[test]
fn memory_is_judged_by_policy_limit_and_use() {
    gives("eviction-policy", with(&["maxmemory:100", "maxmemory_policy:allkeys-lru"]), Error);
    gives("eviction-policy", with(&["maxmemory:100", "maxmemory_policy:volatile-ttl"]), Error);
    gives("eviction-policy", with(&["maxmemory:0", "maxmemory_policy:allkeys-lru"]), Note);
    for (used, severity) in [(89, Fine), (90, Warning), (99, Warning), (100, Error), (120, Error)] {
        let used = format!("used_memory:{used}");
        gives("memory-headroom", with(&["maxmemory:100", &used]), severity);
    }
    gives("evictions", with(&["evicted_keys:1"]), Warning);
}

#[test]
fn persistence_is_judged_by_what_a_crash_loses() {
    let aof = |appendfsync| configured(with(&["aof_enabled:1"]), "appendfsync", appendfsync);
    gives("persistence", aof("always"), Fine);
    gives("persistence", aof("everysec"), Note);
    gives("persistence", aof("no"), Warning);
    let none = configured(with(&[]), "save", "");
    let facts = deployment(vec![none]);
    let statement = statements(&facts, "persistence").swap_remove(0);
    assert_eq!(statement.judgement.severity, Warning);
    assert_eq!(statement.judgement.fault, Some(ModelledFault::Restart));
    gives("persistence", with(&["rdb_last_bgsave_status:err"]), Error);
    gives("persistence", with(&["aof_last_write_status:err"]), Error);
}

/// Rule: what makes a server refuse writes now is known before anything else.
#[test]
fn refused_writes_are_an_error_with_their_reason() {
    let says = |node: NodeFacts, reason: &str| {
        let found = statements(&deployment(vec![node]), "writes").swap_remove(0).judgement;
        assert_eq!(found.severity, Error, "{}", found.fact);
        assert!(found.fact.contains(reason), "{}", found.fact);
    };
    let replicas = |good: &str| {
        let node = with(&[&format!("min_slaves_good_slaves:{good}")]);
        configured(node, "min-replicas-to-write", "2")
    };
    says(replicas("1"), "NOREPLICAS (1 of 2 replicas)");
    gives("writes", replicas("2"), Fine);
    says(with(&["role:slave", "slave_read_only:1"]), "READONLY");
    gives("writes", with(&["role:slave", "slave_read_only:0"]), Fine);
    says(with(&["rdb_last_bgsave_status:err"]), "MISCONF");
    let failed = with(&["rdb_last_bgsave_status:err"]);
    gives("writes", configured(failed.clone(), "stop-writes-on-bgsave-error", "no"), Fine);
    gives("writes", configured(failed, "save", ""), Fine);
    says(with(&["aof_last_write_status:err"]), "MISCONF");
    let memory = |policy: &str, used: &str| {
        let policy = format!("maxmemory_policy:{policy}");
        let lines = ["maxmemory:100", "mem_not_counted_for_evict:10", &policy, used];
        with(&lines)
    };
    says(memory("noeviction", "used_memory:111"), "OOM");
    gives("writes", memory("noeviction", "used_memory:110"), Fine);
    gives("writes", memory("volatile-lru", "used_memory:111"), Unknown);
    let mut down = cluster("", "cluster_state:fail");
    says(down.nodes.swap_remove(0), "CLUSTERDOWN");
    assert_eq!(CHECKS[0].code, "writes");
}

/// Rule: the advice against one risk does not bring about another one.
#[test]
fn a_memory_limit_is_set_only_after_the_policy() {
    let node = with(&["maxmemory:0", "maxmemory_policy:allkeys-lru"]);
    let remedy = statements(&deployment(vec![node]), "memory-headroom")[0].remedy().unwrap();
    let policy = remedy.find("CONFIG SET maxmemory-policy noeviction").unwrap();
    assert!(policy < remedy.find("CONFIG SET maxmemory BYTES").unwrap(), "{remedy}");
}

#[test]
fn replicas_are_judged_by_state_and_lag() {
    let slave = |line: &str| with(&["role:master", "connected_slaves:1", line]);
    let online = "slave0:ip=10.0.0.2,port=6379,state=online,offset=1,lag=1";
    gives("replication", slave(online), Fine);
    gives("replication", slave("slave0:ip=b,port=1,state=online,offset=1,lag=11"), Warning);
    gives("replication", slave("slave0:ip=b,port=1,state=wait_bgsave,offset=0,lag=0"), Warning);
    gives("replication", with(&["role:slave", "master_link_status:up"]), Warning);
    gives("replication", with(&["role:slave", "master_link_status:down"]), Error);
    gives("failover-loss", slave(online), Warning);
    let one = |line: &str| configured(slave(line), "min-replicas-to-write", "1");
    gives("failover-loss", one(online), Note);
    gives("failover-loss", configured(one(online), "min-replicas-max-lag", "0"), Warning);
    // What is not reported is not in order.
    gives("failover-loss", with(&["role:slave", "master_link_status:up"]), Unknown);
    gives("replication", with(&["role:master", "connected_slaves:2", online]), Unknown);
    gives("replication", slave("slave0:ip=b,port=1,state=online,offset=1"), Unknown);
}

/// Rule: a slow round trip is no difference of clocks.
#[test]
fn clocks_differ_only_if_the_round_trip_does_not_explain_it() {
    let at = |before_ms, server_ms, after_ms| {
        let clock = Ok(ClockReading { before_ms, server_ms, after_ms });
        NodeFacts { clock, ..with(&[]) }
    };
    gives("clock-local", at(10_000, 12_000, 10_900), Note);
    gives("clock-local", at(10_000, 12_000, 11_500), Unknown);
    gives("clock-local", at(10_000, 10_300, 10_900), Fine);
    gives("clock-local", at(10_000, 8_000, 10_100), Note);
    let telling = DeploymentFacts {
        schemas: vec![Arc::new(schema("timed"))],
        ..deployment(vec![at(10_000, 20_000, 10_100)])
    };
    assert_eq!(severities(&telling, "clock-local"), [Warning]);
}

#[test]
fn a_missing_command_is_an_error_only_if_a_step_sends_it() {
    let without = |command: &str| {
        let missing_commands = Ok(vec![command.to_owned()]);
        let nodes = vec![NodeFacts { missing_commands, ..with(&[]) }];
        DeploymentFacts { schemas: vec![Arc::new(schema("timed"))], ..deployment(nodes) }
    };
    assert_eq!(severities(&without("SET"), "commands"), [Error]);
    assert_eq!(severities(&without("RESTORE"), "commands"), [Note]);
}

/// The account of a user as ACL GETUSER shows it.
fn account(flag: &str, patterns: &str) -> FactResult<BTreeMap<String, Vec<String>>> {
    let words = |text: &str| text.split(' ').map(str::to_owned).collect();
    Ok(BTreeMap::from([("flags".to_owned(), words(flag)), ("keys".to_owned(), words(patterns))]))
}

/// Rule: one key that may be used stands for no other one.
#[test]
fn a_service_has_its_rights_if_it_is_on_and_a_pattern_allows_all_keys() {
    let of = |flag: &str, patterns: &str| {
        let rights = UserRights {
            user: "app".to_owned(),
            denied: Vec::new(),
            account: Some(account(flag, patterns)),
        };
        let node = NodeFacts { service_user: Some(Ok(rights)), ..with(&[]) };
        let schemas = vec![Arc::new(schema("express"))];
        severities(&DeploymentFacts { schemas, ..deployment(vec![node]) }, "service-rights")
    };
    for patterns in ["~*", "~idem:*", "~a ~idem*"] {
        assert_eq!(of("on", patterns), [Fine], "{patterns}");
    }
    for patterns in ["", "~idem:idem*", "~idem:[a-m]*", "%R~*", "~*:x*", "~idem:"] {
        assert_eq!(of("on", patterns), [Unknown], "{patterns}");
    }
    assert_eq!(of("off", "~*"), [Error]);
}

#[test]
fn rights_of_a_service_are_errors_and_own_rights_are_notes() {
    let denied = DeniedCommand {
        schema: Some("mine".to_owned()),
        needed_by: "complete".to_owned(),
        command: "SET".to_owned(),
        why: "no permissions".to_owned(),
    };
    let rights = Ok(UserRights {
        user: "app".to_owned(),
        denied: vec![denied],
        account: Some(account("on", "~*")),
    });
    let node = NodeFacts { user: rights.clone(), service_user: Some(rights), ..with(&[]) };
    let schemas = vec![Arc::new(schema("timed"))];
    let facts = DeploymentFacts { schemas, ..deployment(vec![node]) };
    assert_eq!(severities(&facts, "user-rights"), [Note]);
    let shown = statements(&facts, "service-rights").swap_remove(0).judgement;
    assert_eq!(shown.severity, Error);
    assert_eq!(shown.schemas, ["mine"]);
    assert!(shown.fact.contains("SET (needed by complete of mine)"), "{}", shown.fact);
    let user = Err(refusal("ACL DRYRUN", Some("+acl|dryrun")));
    let facts = deployment(vec![NodeFacts { user, ..with(&[]) }]);
    assert_eq!(severities(&facts, "user-rights"), [Unknown]);
}

fn cluster(line: &str, info: &str) -> DeploymentFacts {
    let node = NodeFacts {
        cluster_info: Some(Ok(InfoFields::parse("CLUSTER INFO", info))),
        cluster_line: Some(Ok(line.to_owned())),
        ..with(&[])
    };
    DeploymentFacts { is_cluster: true, ..deployment(vec![node]) }
}

#[test]
fn clusters_are_judged_by_slots() {
    let sound = "cluster_state:ok\ncluster_slots_assigned:16384\ncluster_slots_fail:0\n";
    let line = "id 127.0.0.1:1@2 myself,master - 0 0 1 connected 0-5460";
    assert_eq!(severities(&cluster(line, sound), "cluster-state"), [Fine]);
    for wrong in ["cluster_state:fail", "cluster_slots_assigned:16383", "cluster_slots_fail:9"] {
        let name = wrong.split(':').next().unwrap();
        let rest = sound.lines().filter(|field| !field.starts_with(name));
        let info = rest.chain([wrong]).collect::<Vec<_>>().join("\n");
        let found = statements(&cluster(line, &info), "cluster-state").swap_remove(0);
        assert_eq!(found.judgement.severity, Error, "{wrong}");
    }
    for moving in ["[77->-abc]", "[77-<-abc]"] {
        let facts = cluster(&format!("{line} {moving}"), sound);
        assert_eq!(severities(&facts, "cluster-state"), [Warning]);
    }
    let apart = |of: Schema| {
        let schemas = vec![Arc::new(of)];
        severities(&DeploymentFacts { schemas, ..cluster(line, sound) }, "keys-in-slots")
    };
    assert_eq!(apart(schema("express")), [Fine]);
    assert_eq!(apart(schema("event-driven")), [Error]);
    assert!(severities(&deployment(vec![with(&[])]), "keys-in-slots").is_empty());
}

fn sentinel(quorum: &str, others: &str) -> SentinelFacts {
    let mut master = BTreeMap::new();
    for (name, value) in
        [("quorum", quorum), ("num-other-sentinels", others), ("down-after-milliseconds", "5000")]
    {
        master.insert(name.to_owned(), value.to_owned());
    }
    let quorum = Ok(Ok("OK 3 usable Sentinels".to_owned()));
    SentinelFacts { name: "Sentinel a:1".to_owned(), master: Ok(master), quorum }
}

#[test]
fn sentinels_are_judged_by_number_quorum_and_down_after() {
    let of = |sentinels: Vec<SentinelFacts>| DeploymentFacts {
        sentinels,
        ..deployment(vec![with(&[])])
    };
    assert_eq!(severities(&of(vec![sentinel("2", "2")]), "sentinels"), [Fine]);
    assert_eq!(severities(&of(vec![sentinel("2", "1")]), "sentinels"), [Warning]);
    let differing = of(vec![sentinel("2", "2"), sentinel("3", "2")]);
    assert_eq!(severities(&differing, "sentinels"), [Warning]);
    let no_quorum = Ok(Err("NOQUORUM 1 usable Sentinels".to_owned()));
    let without = SentinelFacts { quorum: no_quorum, ..sentinel("2", "2") };
    assert_eq!(severities(&of(vec![without]), "sentinels"), [Error]);
    let master: FactResult<_> = Err(refusal("SENTINEL MASTER", Some("+sentinel|master")));
    let silent = SentinelFacts { master, ..sentinel("2", "2") };
    assert_eq!(severities(&of(vec![silent]), "sentinels"), [Unknown]);
    let down_after = |schema: Schema| {
        let schemas = vec![Arc::new(schema)];
        let facts = DeploymentFacts { schemas, ..of(vec![sentinel("2", "2")]) };
        severities(&facts, "sentinel-down-after")
    };
    assert_eq!(down_after(schema("express")), [Fine]);
    let mut short = schema("express");
    short.lock_ttl = Duration::from_secs(5);
    assert_eq!(down_after(short.clone()), [Note]);
    short.stated = vec![TtlOf::Lock];
    assert_eq!(down_after(short), [Warning]);
}

/// A record of express with this value and this time left.
fn express(value: &str, time_left: TimeLeft) -> Record {
    record("express", &[(text(value), time_left)])
}

fn sampled(records: &[Record]) -> DeploymentFacts {
    let mut sample = RecordSample { is_all: true, ..RecordSample::default() };
    let mut locks = LockCount::default();
    for record in records {
        sample.add(record, 1);
        let mut found = record.clone();
        found.findings = diagnosis::findings(record, &Thresholds::default(), None);
        locks.add(&found);
        locks.covered.read += 1;
    }
    DeploymentFacts { sample: Ok(sample), locks: Ok(locks), ..deployment(vec![with(&[])]) }
}

const LOCK: &str = r#"{"status":"IN_PROGRESS"}"#;
const RESULT: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;

#[test]
fn times_left_are_compared_with_the_ttl_of_each_record() {
    // The default lock TTL is 30 s, the result TTL 24 h. Times are compared with a tolerance.
    let fine = sampled(&[
        express(LOCK, TimeLeft::Millis(30_500)),
        express(RESULT, TimeLeft::Millis(1_000)),
        express(RESULT, TimeLeft::Millis(86_400_000)),
    ]);
    assert_eq!(severities(&fine, "observed-ttls"), [Fine]);
    let longer =
        sampled(&[express(LOCK, TimeLeft::Millis(31_500)), express(LOCK, TimeLeft::Millis(5_000))]);
    let judgement = statements(&longer, "observed-ttls").swap_remove(0).judgement;
    assert_eq!(judgement.severity, Note);
    let fact = "locks of express with more time left than the default TTL (30s): 1, up to 31s";
    assert_eq!(judgement.fact, fact);
    let mut stated = express(LOCK, TimeLeft::Millis(31_500));
    Arc::make_mut(&mut stated.schema).stated = vec![TtlOf::Lock];
    assert_eq!(severities(&sampled(&[stated]), "observed-ttls"), [Warning]);
    let refused = DeploymentFacts { sample: Err(refusal("SCAN", Some("+scan"))), ..sampled(&[]) };
    for code in ["observed-ttls", "endless-locks"] {
        assert_eq!(severities(&refused, code), [Unknown]);
    }
}

/// Rule: a lock that has lost its TTL is a finding, whatever explore finds.
#[test]
fn a_lock_without_expiry_stays_a_finding_without_a_history() {
    assert_eq!(
        severities(&sampled(&[express(RESULT, TimeLeft::NoExpiry)]), "endless-locks"),
        [Fine]
    );
    let found = sampled(&[express(LOCK, TimeLeft::Millis(1_000))]);
    assert_eq!(severities(&found, "endless-locks"), [Fine]);
    let fact = statements(&found, "endless-locks").swap_remove(0).judgement.fact;
    assert_eq!(fact, "no problem found");
    let found = sampled(&[express(LOCK, TimeLeft::NoExpiry)]);
    let mut statement = statements(&found, "endless-locks").swap_remove(0);
    statement.explain(&[("express".to_owned(), FaultOutcome::Holds)], true);
    assert_eq!(statement.judgement.severity, Error);
}

/// The invariant with this name.
fn named(name: &str) -> &'static Invariant {
    invariants::ALL.iter().find(|invariant| invariant.name == name).unwrap()
}

fn counterexample(schema: &str, invariant: &str, steps: usize) -> (String, FaultOutcome) {
    let outcome = FaultOutcome::Violates(Counterexample {
        schema: schema.to_owned(),
        invariant: named(invariant),
        faults: "1 eviction".to_owned(),
        steps,
        token: "1:x:s0".to_owned(),
    });
    (schema.to_owned(), outcome)
}

fn evicting() -> Statement {
    let facts = deployment(vec![with(&["maxmemory:100", "maxmemory_policy:allkeys-lru"])]);
    statements(&facts, "eviction-policy").swap_remove(0)
}

#[test]
fn a_history_explains_a_finding_and_without_any_it_is_none() {
    let mut shown = evicting();
    shown.explain(
        &[
            counterexample("a", "owner-only", 3),
            counterexample("b", "one-effect", 7),
            counterexample("c", "one-effect", 5),
        ],
        true,
    );
    let order: Vec<_> = shown.counterexamples.iter().map(|found| found.schema.as_str()).collect();
    assert_eq!(order, ["c", "b", "a"]);
    assert_eq!(shown.judgement.severity, Error);
    let mut harmless = evicting();
    // A sample does not show every schema that is in use.
    let mut sampled = evicting();
    sampled.explain(&[("a".to_owned(), FaultOutcome::Holds)], false);
    assert_eq!(sampled.judgement.severity, Error);
    harmless.explain(&[("a".to_owned(), FaultOutcome::Holds)], true);
    assert_eq!(harmless.judgement.severity, Fine);
    assert!(harmless.judgement.fact.ends_with("explore finds no violation by it in a"));
    // What was not explored may be harmed.
    let mut unsure = evicting();
    let unknown = FaultOutcome::Unknown("it has no [begin]".to_owned());
    unsure.explain(&[("a".to_owned(), FaultOutcome::Holds), ("b".to_owned(), unknown)], true);
    assert_eq!(unsure.judgement.severity, Error);
    // Without any schema, nothing was explored.
    let mut alone = evicting();
    alone.explain(&[], true);
    assert_eq!(alone.judgement.severity, Error);
}

#[test]
fn servers_that_are_alike_share_a_statement() {
    let mut other = with(&["evicted_keys:3"]);
    other.name = "b:6379/0".to_owned();
    let mut third = with(&[]);
    third.name = "c:6379/0".to_owned();
    let facts = deployment(vec![with(&[]), other, third]);
    let nodes: Vec<_> = statements(&facts, "evictions")
        .into_iter()
        .map(|statement| statement.judgement.nodes)
        .collect();
    assert_eq!(nodes, [vec!["a:6379/0", "c:6379/0"], vec!["b:6379/0"]]);
}

/// The exit code of these statements.
fn exit(statements: &[Statement]) -> Exit {
    judged(statements.iter().any(Statement::is_alarm), &covered(statements))
}

/// Rule: an alarm counts before what is unknown, and an expired acceptance does not silence it.
#[test]
fn the_verdict_follows_from_alarms_unknowns_and_acceptances() {
    let on = |today: &str| {
        let file = "[[accept]]\ncode = \"eviction-policy\"\nreason = \"only mails\"\n\
                    expires = 2026-02-01\n";
        parse_acceptances(file, today).unwrap()
    };
    let mut found = vec![evicting()];
    assert_eq!(exit(&found), Exit::No);
    accept(&mut found, &on("2026-02-01"));
    assert_eq!(exit(&found), Exit::No, "it expired");
    assert!(found[0].accepted.as_ref().unwrap().is_expired);
    accept(&mut found, &on("2026-01-31"));
    assert_eq!(exit(&found), Exit::Done);
    let mut hidden = with(&[]);
    hidden.info = Err(refusal("INFO", Some("+info")));
    found.extend(statements(&deployment(vec![hidden]), "evictions"));
    assert_eq!(exit(&found), Exit::Partial);
    found.push(evicting());
    assert_eq!(exit(&found), Exit::No);
    // What an accepted alarm does not cover is still unknown.
    let mut hidden = evicting();
    hidden.judgement = CheckJudgement::unknown(refusal("INFO", None));
    let mut both = vec![evicting(), hidden];
    accept(&mut both, &on("2026-01-31"));
    keep_worst(&mut both);
    assert_eq!((both.len(), exit(&both)), (2, Exit::Partial));
    both[0].accepted = None;
    keep_worst(&mut both);
    assert_eq!(both.len(), 1, "a check is not both an error and unknown");
}

#[test]
fn a_file_of_acceptances_needs_code_reason_and_day() {
    let parse = |text: &str| parse_acceptances(&format!("[[accept]]\n{text}"), "2026-01-01");
    let whole = "code = \"evictions\"\nreason = \"x\"\nexpires = 2026-02-01\n";
    assert_eq!(parse(whole).unwrap().len(), 1);
    for (from, to) in [
        ("\"evictions\"", "\"nothing\""),
        ("\"x\"", "\" \""),
        ("2026-02-01", "2026-02-01T10:00:00Z"),
        ("expires", "until"),
        ("reason = \"x\"\n", ""),
    ] {
        let wrong = whole.replace(from, to);
        assert!(parse(&wrong).is_err(), "{wrong}");
    }
}

#[test]
fn codes_are_unique_and_short() {
    for (index, check) in CHECKS.iter().enumerate() {
        assert!(check.code.len() <= 20, "{}", check.code);
        assert!(CHECKS[..index].iter().all(|other| other.code != check.code));
    }
}

/// Rule: the document says of each check what the check says of itself.
#[test]
fn the_document_describes_every_check() {
    let document = include_str!("../../../docs/doctor.md");
    let chapter = document.split("\n## Checks\n").nth(1).expect("a chapter on the checks");
    for check in CHECKS {
        let heading = format!("### {}\n", check.code);
        let section = chapter.split(&heading).nth(1).expect(check.code);
        let section = section.split("\n#").next().unwrap();
        let section = section.split_whitespace().collect::<Vec<_>>().join(" ");
        for field in ["- Reads: ", "- Rule: ", "- Source: "] {
            assert!(section.contains(field), "{}: no {field}", check.code);
        }
        for text in [check.title, check.consequence, check.remedy] {
            let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
            assert!(section.contains(&text), "{}: no `{text}` in: {section}", check.code);
        }
    }
}
