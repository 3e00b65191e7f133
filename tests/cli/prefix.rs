//! A deployment's prefix: every built-in schema takes one, and every command works at the Redis keys that come of it.

use crate::support::{FOREVER, LOCK, PENDING, Run, Server, wire};
use idemctl::domain::schema::Schema;
use serde_json::Value;

/// Each built-in schema, and the Redis keys of the idempotency key `k` with the prefix `shop:`.
const DEPLOYED: [(&str, &[&str]); 7] = [
    ("event-consumer", &["shop:idem:lock:k", "shop:idem:done:k"]),
    ("event-driven", &["idem:started:shop:k", "idem:result:shop:k"]),
    ("express", &["shop:idem:k"]),
    ("go-chi", &["shop:k"]),
    ("go-middleware", &["shop:idempotency:k"]),
    ("go-middleware-v1", &["shop:idempotency:k"]),
    ("reference", &["shop:idemkey:k"]),
];

/// A command on one schema with the prefix.
fn deployed(server: &Server, schema: &str, words: &[&str]) -> Run {
    server.idemctl(&[words, &["--schema", schema, "--prefix", "shop:"]].concat())
}

/// Options that name a lock's owner, where the schema has owners.
fn owner(schema: &Schema) -> &'static [&'static str] {
    if schema.names_owner() { &["--owner", "w-7"] } else { &[] }
}

/// Options with a response, as far as the schema's results keep one.
fn response(schema: &Schema) -> Vec<&'static str> {
    let keeps = schema.write.keeps();
    let status = if keeps.status { &["--status", "201"][..] } else { &[] };
    let body = if keeps.body { &["--body", "paid"][..] } else { &[] };
    [status, body].concat()
}

fn record(run: &Run) -> Value {
    run.json()["records"][0].clone()
}

fn is_there(server: &Server, redis_key: &str) -> bool {
    server.get(redis_key).is_some()
}

#[test]
fn every_step_and_every_look_is_at_the_redis_keys_with_the_prefix() {
    for (name, redis_keys) in DEPLOYED {
        let server = Server::start();
        let schema = wire::schema(name);
        let on = |words: &[&str]| deployed(&server, name, words);
        on(&[&["begin", "k", "--yes"], owner(&schema)].concat()).exits(0);
        assert!(is_there(&server, redis_keys[0]) && server.size() == 1, "{name}");
        let held = record(&on(&["inspect", "k", "-o", "json"]).exits(0));
        assert_eq!(
            (&held["state"], &held["next_request"]["answer"]),
            (&"in-progress".into(), &"conflict".into())
        );
        on(&["begin", "k", "--yes"]).exits(1);
        on(&[&["complete", "k", "--yes"], &response(&schema)[..], owner(&schema)].concat())
            .exits(0);
        let result = redis_keys[redis_keys.len() - 1];
        assert!(is_there(&server, result) && server.size() == 1, "{name}");
        for text in ["k", result] {
            let done = record(&on(&["inspect", text, "-o", "json"]).exits(0));
            assert_eq!(
                (&done["key"], &done["state"]),
                (&"k".into(), &"completed".into()),
                "{name}: {text}"
            );
        }
        let listed = on(&["list", "-o", "jsonl"]).exits(0).json_lines();
        let [line] = &listed[..] else { panic!("{name}: {listed:?}") };
        assert_eq!(
            (&line["key"], &line["schema"], &line["state"]),
            (&"k".into(), &name.into(), &"completed".into())
        );
        server.idemctl(&["inspect", "k", "--schema", name]).exits(1);
    }
}

#[test]
fn a_lock_is_released_and_unlocked_at_the_redis_key_with_the_prefix() {
    for (name, redis_keys) in DEPLOYED {
        let server = Server::start();
        let schema = wire::schema(name);
        let on = |words: &[&str]| deployed(&server, name, words);
        let begin = [&["begin", "k", "--yes"], owner(&schema)].concat();
        on(&begin).exits(0);
        if schema.release.is_some() {
            on(&[&["release", "k", "--yes"], owner(&schema)].concat()).exits(0);
            assert!(!is_there(&server, redis_keys[0]), "{name}");
            on(&begin).exits(0);
        }
        server.idemctl(&["force-unlock", "k", "--yes", "--schema", name]).exits(1);
        assert!(is_there(&server, redis_keys[0]), "{name}");
        on(&["force-unlock", "k", "--yes"]).exits(0);
        assert_eq!(server.size(), 0, "{name}");
    }
}

#[test]
fn races_and_simulations_are_at_the_redis_keys_with_the_prefix() {
    let server = Server::start();
    for (name, redis_keys) in DEPLOYED {
        // Whoever touches other Redis keys is turned away.
        let test_keys = |redis_key: &&str| format!("~{}idemctl-*", redis_key.trim_end_matches('k'));
        let mut rules: Vec<_> = redis_keys.iter().map(test_keys).collect();
        rules.extend((name == "event-driven").then(|| "~shop:idemctl-*".to_owned()));
        server.add_user("tester", &format!("resetkeys +@all {}", rules.join(" ")));
        let on = |words: &[&str]| {
            let words =
                [words, &["--user", "tester", "-a", "pw", "--no-auth-warning", "-o", "json"]]
                    .concat();
            deployed(&server, name, &words)
        };
        let race = on(&[
            "race",
            "--rounds",
            "3",
            "--concurrency",
            "4",
            "--strategy",
            "schema",
            "--fail-every",
            "2",
        ]);
        assert_eq!(race.exits(0).json()["runs"][0]["verdict"], "atomic", "{name}");
        let cell = on(&["simulate", "first-then-retry"]).exits(0).json()["cells"][0].clone();
        assert_eq!(cell["verdict"], "safe", "{name}: {cell}");
        assert_eq!(server.size(), 0, "{name}");
    }
}

/// A server whose default context says this.
fn in_context(says: &str) -> Server {
    let server = Server::start();
    server.configure(&format!("default_context = \"eu\"\n{says}"));
    server
}

#[test]
fn a_context_states_the_prefix_of_each_schema() {
    let server = in_context(
        "[contexts.eu.deployment.express]\nprefix = \"shop:\"\n[contexts.eu.deployment.go-middleware]\nprefix = \"eu:\"\n",
    );
    server.set("shop:idem:a", LOCK, 20_000);
    server.set("eu:idempotency:b", PENDING, 20_000);
    server.set("idem:started:c", "w-7", 20_000);
    let listed = server.idemctl(&["list", "-o", "jsonl"]).exits(0).json_lines();
    let mut told: Vec<_> = listed
        .iter()
        .map(|line| format!("{} {}", line["key"], line["schema"]).replace('"', ""))
        .collect();
    told.sort();
    assert_eq!(told, ["a express", "b go-middleware", "c event-driven"]);
}

#[test]
fn an_older_release_has_the_prefix_of_the_newer() {
    let server = in_context("[contexts.eu.deployment.go-middleware]\nprefix = \"shop:\"\n");
    server.set("shop:idempotency:k", "completed", 3_600_000);
    let told = |server: &Server| {
        let told = record(&server.idemctl(&["inspect", "k", "-o", "json"]).exits(0));
        (told["schema"].clone(), told["findings"][0]["code"].clone())
    };
    assert_eq!(told(&server), ("go-middleware-v1".into(), "foreign-schema".into()));
    let own = "[contexts.eu.deployment]\ngo-middleware.prefix = \"eu:\"\ngo-middleware-v1.prefix = \"shop:\"\n";
    let server = in_context(own);
    server.set("shop:idempotency:k", "completed", 3_600_000);
    assert_eq!(told(&server).0, "go-middleware-v1");
}

#[test]
fn a_contexts_own_prefix_is_for_schemas_whose_templates_write_one() {
    let server = in_context("[contexts.eu]\nprefix = \"pay:\"\n");
    server.set("pay:a", r#"{"status":0}"#, 20_000);
    server.set("idem:started:b", "w-7", 20_000);
    server.set("idem:c", LOCK, 20_000);
    let told = |key: &str| {
        record(&server.idemctl(&["inspect", key, "-o", "json"]).exits(0))["schema"].clone()
    };
    assert_eq!([told("a"), told("b"), told("c")], ["go-chi", "event-driven", "express"]);
}

#[test]
fn schema_show_says_where_a_prefix_stands() {
    let server = Server::start();
    for (name, place) in
        [("go-chi", "written"), ("express", "in-front"), ("event-driven", "in-key")]
    {
        let shown =
            server.idemctl(&["schema", "show", name, "-o", "json"]).exits(0).json()["schemas"][0]
                .clone();
        assert_eq!(
            (&shown["prefix"]["place"], &shown["takes_prefix"]),
            (&place.into(), &true.into()),
            "{name}"
        );
        let page = server.idemctl(&["schema", "show", name]).exits(0).text();
        assert!(
            page.contains("\n  Prefix        none; a deployment sets one with --prefix, "),
            "{page}"
        );
    }
}

/// Rule: a preview says if the change itself would be refused.
#[test]
fn a_dry_run_without_a_prefix_says_that_the_change_is_refused() {
    let server = Server::holding(&[("k", r#"{"status":0}"#, FOREVER)]);
    for words in [["sweep", "--orphaned"], ["purge", "--all"]] {
        let of = |more| server.idemctl(&[&words[..], &["--schema", "go-chi", more]].concat());
        let refused = "go-chi has no fixed prefix, so any Redis key could match it";
        let preview = of("--dry-run").exits(0);
        preview.says(format!("without --dry-run, this is refused: {refused}"));
        of("--yes").exits(2).says(refused);
    }
}
