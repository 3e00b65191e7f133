//! What a judgement does not say, because it is not known or not certain.

use std::sync::Arc;

use super::*;
use crate::domain::doctor::doctor_check::SampleNeed;
use crate::domain::doctor::sample::SampledResult;
use crate::domain::doctor::sent_commands;
use crate::domain::schema::Script;
use crate::domain::schema::ttl::NO_TTL;

fn denied(command: &str, why: &str) -> DeniedCommand {
    DeniedCommand {
        schema: Some("express".to_owned()),
        needed_by: "begin".to_owned(),
        command: command.to_owned(),
        why: why.to_owned(),
    }
}

const NOT_THE_COMMAND: &str = "User app has no permissions to run the 'x' command";
const NOT_THE_KEY: &str = "User app has no permissions to access the 'idemctl-doctor' key";

/// A deployment in which the services' user and the user of the run may not send these commands.
fn denying(commands: &[DeniedCommand], schemas: &[&str]) -> DeploymentFacts {
    let rights = Ok(UserRights {
        user: "app".to_owned(),
        denied: commands.to_vec(),
        account: Some(account("on", "~*")),
    });
    let node = NodeFacts { user: rights.clone(), service_user: Some(rights), ..with(&[]) };
    let schemas = schemas.iter().map(|name| Arc::new(schema(name))).collect();
    DeploymentFacts { schemas, ..deployment(vec![node]) }
}

#[test]
fn without_a_schema_rights_for_keys_are_unknown_and_no_key_is_named() {
    let by_key = denying(&[denied("GET", NOT_THE_KEY)], &[]);
    assert_eq!(severities(&by_key, "service-rights"), [Unknown]);
    let own = statements(&by_key, "user-rights").swap_remove(0);
    assert_eq!(own.judgement.severity, Unknown);
    let shown = format!("{} {:?}", own.judgement.fact, own.remedy());
    assert!(shown.contains("no schema is in use") && shown.contains("--schema"), "{shown}");
    assert!(!shown.contains("idemctl-doctor"), "{shown}");
    // A command that may not be sent is certain, whatever the keys are.
    let both = [denied("GET", NOT_THE_KEY), denied("SCAN", NOT_THE_COMMAND)];
    let own = statements(&denying(&both, &[]), "user-rights").swap_remove(0).judgement;
    assert_eq!(own.severity, Note);
    assert!(own.fact.contains("SCAN") && !own.fact.contains("GET"), "{}", own.fact);
    // A schema in use has Redis keys.
    let named = denying(&[denied("GET", NOT_THE_KEY)], &["express"]);
    assert_eq!(severities(&named, "user-rights"), [Note]);
    assert_eq!(severities(&named, "service-rights"), [Error]);
    assert_eq!(severities(&denying(&[], &[]), "service-rights"), [Unknown]);
}

#[test]
fn a_script_that_can_be_called_in_one_way_is_a_note() {
    let of = |commands: &[&str]| {
        let denied: Vec<_> =
            commands.iter().map(|command| denied(command, NOT_THE_COMMAND)).collect();
        severities(&denying(&denied, &["express"]), "service-rights")
    };
    assert_eq!(of(&["EVAL"]), [Note]);
    assert_eq!(of(&["EVALSHA"]), [Note]);
    assert_eq!(of(&["EVAL", "EVALSHA"]), [Error]);
    let of_steps = [
        denied("EVAL", NOT_THE_COMMAND),
        DeniedCommand { needed_by: "complete".to_owned(), ..denied("EVALSHA", NOT_THE_COMMAND) },
    ];
    assert_eq!(severities(&denying(&of_steps, &["express"]), "service-rights"), [Note]);
    let sent = sent_commands::of_service(&schema("express"));
    for command in ["EVAL", "EVALSHA"] {
        assert!(sent.iter().any(|sent| sent.command == command), "{command}");
    }
}

/// Rule: the channel of PUBLISH is not a Redis key, and its right is unknown.
#[test]
fn commands_with_unknown_arguments_are_neither_denied_nor_allowed() {
    let mut publishing = schema("express");
    for script in publishing.scripts.values_mut() {
        *script = Script {
            text: "redis.call('PUBLISH', 'done', KEYS[1]) redis.call(\"GET\", KEYS[1])".into(),
            ..script.clone()
        };
    }
    let sent = sent_commands::of_service(&publishing);
    assert!(sent.iter().any(|sent| sent.command == "GET"));
    assert!(sent.iter().all(|sent| sent.command != "PUBLISH"), "it would be asked with a key");
    let mut facts = denying(&[], &[]);
    facts.schemas = vec![Arc::new(publishing)];
    for code in ["user-rights", "service-rights"] {
        let judgement = statements(&facts, code).swap_remove(0).judgement;
        assert_eq!(judgement.severity, Unknown, "{code}");
        assert!(judgement.fact.contains("PUBLISH"), "{}", judgement.fact);
    }
    facts.schemas = vec![Arc::new(schema("express"))];
    assert_eq!(severities(&facts, "service-rights"), [Fine]);
}

#[test]
fn rights_are_judged_node_by_node() {
    let sound = denying(&[], &["express"]);
    let mut facts = denying(&[denied("SET", NOT_THE_COMMAND)], &["express"]);
    facts.nodes[0].name = "b:6379/0".to_owned();
    facts.nodes.insert(0, sound.nodes[0].clone());
    for (code, severity) in [("user-rights", Note), ("service-rights", Error)] {
        let found = statements(&facts, code);
        let found: Vec<_> = found.iter().map(|found| &found.judgement).collect();
        assert_eq!((found[0].severity, &found[0].nodes[..]), (Fine, &["a:6379/0".to_owned()][..]));
        assert_eq!(
            (found[1].severity, &found[1].nodes[..]),
            (severity, &["b:6379/0".to_owned()][..])
        );
    }
}

/// Rule: what was not read is not in order, and what was read can still prove that something is wrong.
#[test]
fn locks_are_in_order_only_if_all_keys_were_read() {
    let both = ["endless-locks", "observed-ttls"];
    let leave_out = |facts: &mut DeploymentFacts| {
        facts.locks.as_mut().unwrap().covered.leave_out("other keys", "it took too long");
    };
    let mut facts = sampled(&[express(LOCK, TimeLeft::Millis(20_000))]);
    for code in both {
        assert_eq!(severities(&facts, code), [Fine], "{code}");
    }
    leave_out(&mut facts);
    for code in both {
        let found = statements(&facts, code).swap_remove(0);
        assert_eq!(found.judgement.severity, Unknown, "{code}");
        assert_eq!(found.remedy().unwrap(), "Count them with `idemctl check`.");
    }
    // A schema without a record in the sample has some all the same.
    let mut unsampled = sampled(&[express(LOCK, TimeLeft::NoExpiry)]);
    unsampled.sample = Ok(RecordSample::default());
    let found = statements(&unsampled, "endless-locks").swap_remove(0);
    assert_eq!(found.judgement.fact, "1 lock never expires (express)");
    assert!(found.remedy().unwrap().contains("`idemctl sweep --orphaned`"));
    leave_out(&mut unsampled);
    assert_eq!(severities(&unsampled, "endless-locks"), [Error, Unknown]);
    let mut long = sampled(&[express(LOCK, TimeLeft::Millis(99_000))]);
    leave_out(&mut long);
    assert_eq!(severities(&long, "observed-ttls"), [Note, Unknown]);
    // The time did not suffice for the values with a long TTL, of which none is without expiry.
    let mut some = sampled(&[express(LOCK, TimeLeft::Millis(20_000))]);
    some.locks.as_mut().unwrap().unread_long = 1;
    assert_eq!(severities(&some, "observed-ttls"), [Unknown]);
    assert_eq!(severities(&some, "endless-locks"), [Fine]);
}

#[test]
fn a_hidden_sentinel_hides_nothing_that_another_one_reports() {
    let refused: FactResult<_> = Err(refusal("SENTINEL MASTER", Some("+sentinel|master")));
    let no_quorum = Err(refusal("SENTINEL CKQUORUM", None));
    let hidden = SentinelFacts { master: refused, quorum: no_quorum, ..sentinel("2", "2") };
    let of = |sentinels: Vec<SentinelFacts>, lock_ttl| {
        let mut express = schema("express");
        express.lock_ttl = Duration::from_secs(lock_ttl);
        let schemas = vec![Arc::new(express)];
        DeploymentFacts { sentinels, schemas, ..deployment(vec![with(&[])]) }
    };
    let facts = of(vec![hidden.clone(), sentinel("2", "2")], 30);
    assert_eq!(severities(&facts, "sentinels"), [Unknown]);
    assert_eq!(severities(&facts, "sentinel-down-after"), [Unknown]);
    let without = SentinelFacts {
        quorum: Ok(Err("NOQUORUM 1 usable Sentinels".to_owned())),
        ..sentinel("2", "2")
    };
    let facts = of(vec![hidden, without], 5);
    assert_eq!(severities(&facts, "sentinels"), [Error]);
    assert_eq!(severities(&facts, "sentinel-down-after"), [Note]);
}

#[test]
fn eviction_is_unknown_if_the_limit_is() {
    let mut hidden = with(&["maxmemory:", "maxmemory_policy:allkeys-lru"]);
    hidden.config.insert("maxmemory", Err(refusal("CONFIG GET maxmemory", None)));
    gives("eviction-policy", hidden.clone(), Unknown);
    gives("memory-headroom", hidden.clone(), Unknown);
    hidden.config.insert("maxmemory", Ok("100".to_owned()));
    gives("eviction-policy", hidden.clone(), Error);
    // Without evictions, the limit does not matter.
    hidden.config.insert("maxmemory", Err(refusal("CONFIG GET maxmemory", None)));
    let noeviction = "maxmemory_policy:noeviction";
    let mut sound = with(&["maxmemory:", noeviction]);
    sound.config = hidden.config;
    gives("eviction-policy", sound, Fine);
}

/// Rule: a check that needs a schema is unknown if no key belongs to a known one.
#[test]
fn keys_of_no_known_schema_are_not_in_order() {
    const CODES: [&str; 4] =
        ["endless-locks", "observed-ttls", "schema-violations", "retry-window"];
    let of = |keys: u64, is_all: bool| {
        let sample = RecordSample { keys, is_all, ..RecordSample::default() };
        let facts = DeploymentFacts { sample: Ok(sample), ..deployment(vec![with(&[])]) };
        let mut found = Vec::new();
        for code in CODES {
            found.extend(severities(&facts, code));
        }
        found
    };
    assert_eq!(of(4, true), [Unknown; 4]);
    assert_eq!(of(500, false), [Unknown; 4]);
    assert_eq!(of(0, true), [Unknown; 4], "an empty database");
    let refusal = RefusedFact {
        command: "SCAN".to_owned(),
        rule: Some("+@read".to_owned()),
        why: "no".to_owned(),
        instead: None,
    };
    let facts = DeploymentFacts { sample: Err(refusal), ..deployment(vec![with(&[])]) };
    assert_eq!(severities(&facts, "schema-violations"), [Unknown]);
    assert_eq!(severities(&facts, "retry-window"), [Unknown]);
}

/// Rule: keys are only read for checks whose judgement depends on them.
#[test]
fn a_check_judges_the_same_without_what_it_does_not_need() {
    let mut whole = sampled(&[express(LOCK, TimeLeft::Millis(20_000))]);
    whole.schemas = vec![Arc::new(schema("event-driven"))];
    whole.sentinels = vec![sentinel("2", "2")];
    whole.is_cluster = true;
    whole.nodes[0].cluster_info = Some(Ok(InfoFields::parse("CLUSTER INFO", "cluster_state:ok")));
    whole.nodes[0].service_user = Some(whole.nodes[0].user.clone());
    let judged = |facts: &DeploymentFacts, check: &str| {
        let statements = statements(facts, check);
        statements.into_iter().map(|statement| statement.judgement).collect::<Vec<_>>()
    };
    let mut dependent = 0;
    for check in CHECKS {
        let all = judged(&whole, check.code);
        let mut without_sample = DeploymentFacts {
            sample: Err(refusal("SCAN", None)),
            nodes: whole.nodes.clone(),
            is_cluster: whole.is_cluster,
            sentinels: whole.sentinels.clone(),
            schemas: whole.schemas.clone(),
            ..deployment(Vec::new())
        };
        if check.needs < SampleNeed::Records {
            assert_eq!(judged(&without_sample, check.code), all, "{}", check.code);
        } else if judged(&without_sample, check.code) != all {
            dependent += 1;
        }
        without_sample.schemas.clear();
        if check.needs == SampleNeed::Nothing {
            assert_eq!(judged(&without_sample, check.code), all, "{}", check.code);
        }
    }
    assert!(dependent >= 2);
}

/// Rule: a result without a TTL is told, unless the deployment states that there is none.
#[test]
fn results_without_a_ttl_are_told() {
    let mut facts = sampled(&[express(RESULT, TimeLeft::NoExpiry)]);
    let endless = SampledResult { left_ms: None, is_longer: false, bytes: None, weight: 1.0 };
    let of_schema = &mut facts.sample.as_mut().unwrap().schemas[0];
    of_schema.results = vec![endless];
    let mut stated = Schema::clone(&of_schema.schema);
    let found = statements(&facts, "observed-ttls").swap_remove(0).judgement;
    assert_eq!(found.severity, Note);
    assert_eq!(found.fact, "sampled results of express without a TTL: 1 of 1");
    stated.result_ttl = NO_TTL;
    facts.sample.as_mut().unwrap().schemas[0].schema = Arc::new(stated);
    assert_eq!(severities(&facts, "observed-ttls"), [Fine]);
}
