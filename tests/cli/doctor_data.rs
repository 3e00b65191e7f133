//! `idemctl doctor --data`: what records and keys contain, found on real servers, and never printed.

use serde_json::{Value, json};

use crate::support::{LOCK, Runs as _, Server};

const CARD: &str = "4532015112830366";

/// A result of express with this body.
fn done(body: &Value) -> String {
    json!({"status": "COMPLETED", "statusCode": 201, "headers": {}, "body": body}).to_string()
}

/// A key like those of clients.
fn key(number: u32) -> String {
    format!("idem:6f1c2d3e-aaaa-4bbb-8ccc-{number:012x}")
}

/// A server with 25 results of express that contain nothing sensitive.
fn server() -> Server {
    let server = Server::start();
    for number in 0..25 {
        server.set(&key(number), done(&json!({"id": number, "ok": true})), 3_600_000);
    }
    server
}

/// The statements of these checks, whatever the exit code.
fn checks(server: &Server, only: &str) -> Vec<Value> {
    let run = server.idemctl(&["doctor", "--data", "--only", only, "-o", "json"]);
    run.json()["checks"].as_array().unwrap().clone()
}

/// The severity and the fact of the only statement of a check.
#[track_caller]
fn check(server: &Server, code: &str) -> (String, String) {
    let checks = checks(server, code);
    assert_eq!(checks.len(), 1, "{checks:#?}");
    let text = |field: &str| checks[0][field].as_str().unwrap().to_owned();
    (text("severity"), text("fact"))
}

#[test]
fn card_numbers_secrets_and_personal_data_fail_and_pass() {
    let server = server();
    for (code, nothing) in [
        ("card-numbers", "no card number and no verification code in all 25 records"),
        (
            "stored-secrets",
            "no secret of a known form, and no value under a known name that looks like a secret in all 25 records",
        ),
        ("personal-data", "no IBAN and no e-mail address in all 25 records"),
    ] {
        assert_eq!(check(&server, code), ("ok".to_owned(), nothing.to_owned()));
    }
    server.put("idem:card-holder-0000001", done(&json!({"card": {"number": "4242424242424242"}})));
    let (severity, fact) = check(&server, "card-numbers");
    assert_eq!(severity, "error");
    assert_eq!(
        fact,
        "express stores card numbers at /body/card/number (1 of 26 records); all are published test numbers"
    );
    server.put("idem:cookie-0000000001", done(&json!({"set-cookie": "sid=31d4d96e407aad42"})));
    let (severity, fact) = check(&server, "stored-secrets");
    assert_eq!(severity, "warning", "{fact}");
    assert_eq!(fact, "express stores cookies at /body/set-cookie (1 of 27 records)");
    server.put(
        "idem:stripe-0000000001",
        done(&json!({"secret": "sk_live_4eC39HqLyjWDarjtT1zdp7dc"})),
    );
    assert_eq!(check(&server, "stored-secrets").0, "error");
    server.put("idem:mail-00000000001", done(&json!({"email": "jane@corp.example"})));
    assert_eq!(check(&server, "personal-data").0, "note");
    server.put("idem:iban-00000000001", done(&json!({"iban": "DE89 3704 0044 0532 0130 00"})));
    assert_eq!(check(&server, "personal-data").0, "warning");
    let page = server.idemctl(&["doctor", "--data", "--only", "card-numbers"]).exits(1);
    page.shows("error    card-numbers: express stores card numbers").shows("Remedy");
}

/// Rule: a header, a hash, a base64 body and a lock beside a result are looked at as the schema
/// decodes them, and a record with two Redis keys counts once.
#[test]
fn each_part_of_a_record_is_looked_at_once() {
    let server = Server::start();
    let body = "eyJjYXJkIjp7Im51bWJlciI6IjQyNDI0MjQyNDI0MjQyNDIifX0=";
    let value = json!({"status": "COMPLETED", "code": 200, "headers": {"Set-Cookie": ["sid=31d4d96e407aad42"]}, "body": body});
    server.put("idempotency:one", value.to_string());
    server.put("idem:lock:two", "1");
    server.put("idem:done:two", "1");
    let (_, fact) = check(&server, "card-numbers");
    assert!(
        fact.starts_with("go-middleware stores card numbers at /body/card/number (1 of 1 record)"),
        "{fact}"
    );
    let (_, fact) = check(&server, "stored-secrets");
    assert_eq!(fact, "go-middleware stores cookies at /headers/Set-Cookie (1 of 1 record)");
    let (_, fact) = check(&server, "personal-data");
    assert_eq!(fact, "no IBAN and no e-mail address in all 2 records");
}

/// Rule: nothing of a value is printed, in any form of output: neither where it is a value, nor a
/// name, nor a header's name, nor a key.
#[test]
fn no_part_of_a_secret_is_printed() {
    let server = server();
    let secrets = [
        CARD,
        "4111 1111 1111 1111",
        "jane.privacy@zorgwerk.nu",
        "sk_live_9fK27Xw3LyjWDarjQ1zdp7dc",
        "Bearer 7QpotnFZFEjr1zCsicMWpAA",
        "DE89370400440532013000",
        "hunter7seven7zebra",
    ];
    for (index, secret) in secrets.iter().enumerate() {
        let body = json!({
            *secret: {"a": secret}, "authorization": secret, "list": [secret],
            "headers": [[secret, secret]], "text": json!({*secret: secret}).to_string(),
        });
        server.put(&format!("idem:{secret}"), done(&body));
        server.put(&format!("idem:\"{secret}\""), LOCK);
        server.put(&key(1_000 + u32::try_from(index).unwrap()), done(&body));
        server.put(&format!("idempotency:{secret}"), format!("{secret} {{broken"));
    }
    let accepted = server.folder().join("accepted.toml");
    std::fs::write(&accepted, "").unwrap();
    let accepted = accepted.display().to_string();
    for words in [
        &["doctor", "--data"][..],
        &["doctor", "--data", "-v"],
        &["doctor", "--data", "-o", "json"],
        &["doctor", "--data", "-o", "jsonl", "--accept", &accepted],
        &["doctor", "--data", "--schema", "express", "--sample", "10000"],
    ] {
        let run = server.idemctl(words);
        let all = run.all();
        assert!(all.contains("card-numbers"), "{all}");
        for secret in secrets {
            let letters: Vec<char> = secret.chars().collect();
            for part in letters.windows(6) {
                let part: String = part.iter().collect();
                assert!(!all.contains(&part), "{words:?}: {part}: {all}");
            }
        }
    }
    // The commands in the reports of --debug contain keys.
    server.idemctl(&["doctor", "--data", "--debug"]).exits(2).says("--debug");
}

#[test]
fn keys_without_tenant_weak_shared_and_quoted_keys_fail_and_pass() {
    let server = server();
    for code in ["tenant-in-keys", "guessable-keys", "quoted-keys"] {
        assert_eq!(check(&server, code).0, "ok", "{code}");
    }
    let (severity, fact) = check(&server, "shared-keys");
    assert_eq!(severity, "ok");
    assert_eq!(fact, "none of 25 sampled keys is used by two schemas");
    let words = ["doctor", "--data", "--schema", "express", "--only", "shared-keys", "-o", "json"];
    let alone = server.idemctl(&words).exits(0).json();
    assert_eq!(alone["checks"], json!([]), "there is no other schema");
    server.put("idem:\"6f1c2d3e-aaaa-4bbb-8ccc-000000000003\"", LOCK);
    let (severity, fact) = check(&server, "quoted-keys");
    assert_eq!(severity, "warning");
    assert_eq!(
        fact,
        "express: 2 of 26 keys exist in two forms, with and without quotation marks or in upper and lower case"
    );
    server.put("idempotency:6f1c2d3e-aaaa-4bbb-8ccc-000000000003", r#"{"status":"PENDING"}"#);
    let shared = checks(&server, "shared-keys");
    assert_eq!(shared.len(), 2, "{shared:#?}");
    assert_eq!(shared[0]["severity"], "note");
    assert_eq!(
        shared[0]["fact"],
        "1 of 26 sampled keys of express also exists under the template of go-middleware"
    );
    server.send::<()>(&[b"FLUSHALL"]);
    for number in 0..10 {
        server.put(&key(number), LOCK);
        let other = key(number).replace("idem:", "");
        let other = if number % 2 == 0 { other.to_uppercase() } else { format!("'{other}'") };
        server.put(&format!("idem:{other}"), LOCK);
    }
    let (_, fact) = check(&server, "quoted-keys");
    assert!(fact.starts_with("express: 20 of 20 keys exist in two forms"), "{fact}");
    server.send::<()>(&[b"FLUSHALL"]);
    for number in 0..30 {
        server.put(&format!("idem:{}", number + 42), LOCK);
    }
    assert_eq!(check(&server, "guessable-keys").0, "warning");
    server.send::<()>(&[b"FLUSHALL"]);
    for number in 0..30 {
        server.put(&format!("idem:acme:{:x}", 0x1000_0000_0000_u64 + number), LOCK);
    }
    assert_eq!(check(&server, "tenant-in-keys").0, "ok");
    server.put("idem:100000000042a", LOCK);
    let (severity, fact) = check(&server, "tenant-in-keys");
    assert_eq!(severity, "note");
    assert!(fact.contains("30 of 31 keys have a part before `:`, and 1 has none"), "{fact}");
}

/// Rule: what was not looked at is counted, and OK says how much was.
#[test]
fn large_and_unreadable_values_are_counted() {
    let server = Server::start();
    let large = done(&json!({"text": "x".repeat(3 << 20), "card": "4242424242424242"}));
    server.put("idem:large-000001", &large);
    let run =
        server.idemctl(&["doctor", "--data", "--only", "card-numbers", "-o", "json"]).exits(3);
    let found = &run.json()["checks"][0];
    assert_eq!(found["severity"], "unknown");
    assert_eq!(
        found["fact"],
        "no card number and no verification code in 0 of 1 record; 1 too large to be read as a whole"
    );
    for number in 0..10 {
        server.put(&key(number), done(&json!({"text": "y".repeat(100_000)})));
    }
    let (severity, fact) = check(&server, "card-numbers");
    assert_eq!(severity, "unknown");
    assert_eq!(
        fact,
        "no card number and no verification code in 10 of 11 records; 1 too large to be read as a whole"
    );
    server.add_user("half", "~idem:6f* +@all");
    let run = server
        .command()
        .env("REDISCLI_AUTH", "pw")
        .args(["--user", "half", "doctor", "--data", "--only", "card-numbers", "-o", "json"])
        .run();
    let fact = run.json()["checks"][0]["fact"].as_str().unwrap().to_owned();
    assert!(fact.contains("1 not readable"), "{fact}");
    server.add_user("blind", "+hello +ping");
    let run = server
        .command()
        .env("REDISCLI_AUTH", "pw")
        .args(["--user", "blind", "doctor", "--data", "--only", "card-numbers", "-o", "json"])
        .run();
    assert_eq!(run.exits(3).json()["checks"][0]["severity"], "unknown");
    server.put("other", "x");
    for number in 100..200 {
        server.put(&key(number), LOCK);
    }
    let run = server.idemctl(&[
        "doctor",
        "--data",
        "--sample",
        "20",
        "--only",
        "card-numbers",
        "-o",
        "json",
    ]);
    let fact = run.json()["checks"][0]["fact"].as_str().unwrap().to_owned();
    assert!(fact.contains("from a sample of 20 of 112 Redis keys"), "{fact}");
}

#[test]
fn data_is_only_read_if_the_operator_asks() {
    let server = server();
    server.put("idem:card-000000001", done(&json!({"card": "4242424242424242"})));
    let run = server.idemctl(&["doctor", "--schema", "express", "-o", "json"]);
    assert!(!run.all().contains("card-numbers"), "{}", run.all());
    server.idemctl(&["doctor", "--only", "card-numbers"]).exits(2).says("--data");
    server.idemctl(&["doctor", "--sample", "5"]).exits(2).says("--data");
    server.idemctl(&["doctor", "--data", "--sample", "0"]).exits(2);
    server.idemctl(&["doctor", "--data", "--sample", "10001"]).exits(2);
    server.idemctl(&["doctor", "--list"]).exits(0).shows("card-numbers");
}

/// A schema whose records are members of the Redis key `jobs`.
fn describe_jobs(server: &Server, members: &str) {
    let value = match members {
        "hash" => {
            "[[value]]\nname = \"done\"\nwhere = { \"/state\" = \"done\" }\nstate = \"completed\"\n\
             fields = { body = \"/out\" }\n"
        }
        "zset" => "[[value]]\nname = \"held\"\nopaque = true\nstate = \"in-progress\"\n",
        _ => "[[value]]\nname = \"seen\"\nequals = \"\"\nstate = \"completed\"\n",
    };
    let jobs = format!(
        "format = 2\nname = \"jobs\"\nkeys = {{ record = \"jobs\", members = \"{members}\" }}\n\
         ttl = {{ lock = \"none\", result = \"none\" }}\n\n{value}"
    );
    server.describe("jobs", &[("schema.toml", &jobs)]);
}

/// Rule: the members of a hash are records. All are looked at, or a sample of them.
#[test]
fn members_of_a_hash_are_looked_at() {
    let server = server();
    describe_jobs(&server, "hash");
    let nothing = "no card number and no verification code in all 25 records";
    assert_eq!(check(&server, "card-numbers"), ("ok".to_owned(), nothing.to_owned()));
    let done = |out: Value| json!({"state": "done", "out": out}).to_string();
    server.send::<i64>(&[b"HSET", b"jobs", b"j-1", done(json!({"id": 1})).as_bytes()]);
    let nothing = "no card number and no verification code in all 26 records";
    assert_eq!(check(&server, "card-numbers"), ("ok".to_owned(), nothing.to_owned()));
    let secrets = done(json!({"card": CARD, "api_token": "31d4d96e407aad42c0de31d4d96e407a",
        "mail": "jane@corp.example"}));
    server.send::<i64>(&[b"HSET", b"jobs", b"j-2", secrets.as_bytes()]);
    for (code, what) in [
        ("card-numbers", "jobs stores card numbers at /out/card (1 of 2 records)"),
        ("stored-secrets", "jobs stores tokens or keys at /out/api_token (1 of 2 records)"),
        ("personal-data", "jobs stores e-mail addresses at /out/mail (1 of 2 records)"),
    ] {
        let (severity, fact) = check(&server, code);
        assert!(fact.starts_with(what), "{severity} {fact}");
    }
    server.send::<i64>(&[b"HDEL", b"jobs", b"j-2"]);
    let text = "y".repeat(100);
    for number in 0..1_000 {
        let field = format!("6f1c2d3e-aaaa-4bbb-9ccc-{number:012x}");
        let value = done(json!({"text": text}));
        server.send::<i64>(&[b"HSET", b"jobs", field.as_bytes(), value.as_bytes()]);
    }
    let words = ["doctor", "--data", "--sample", "50", "--only", "card-numbers", "-o", "json"];
    let run = server.idemctl(&words).exits(0).json();
    let fact = run["checks"][0]["fact"].as_str().unwrap();
    assert_eq!(run["checks"][0]["evidence"], "estimated");
    assert!(fact.contains(" of 1001 members of jobs"), "{fact}");
    let looked_at = fact.split(" of 1001 members").next().unwrap().rsplit(' ').next().unwrap();
    assert!((50..600).contains(&looked_at.parse::<u32>().unwrap()), "{fact}");
}

/// Rule: members that the user may not read are unknown and not free of data.
#[test]
fn members_that_the_user_may_not_read_are_unknown() {
    let server = server();
    describe_jobs(&server, "hash");
    let done = json!({"state": "done", "out": {"card": CARD}}).to_string();
    server.send::<i64>(&[b"HSET", b"jobs", b"j-1", done.as_bytes()]);
    server.add_user("half", "~* +@all -hrandfield");
    let read = |words: &[&str]| {
        let mut command = server.command();
        command.env("REDISCLI_AUTH", "pw").args(["--user", "half"]).args(words);
        command.run().exits(3).json()["checks"][0].clone()
    };
    let found = read(&["doctor", "--data", "--only", "card-numbers", "-o", "json"]);
    let fact = "no card number and no verification code in all 25 records; the members of jobs could \
                not be read";
    assert_eq!(found["fact"], fact);
    assert!(found["remedy"].as_str().unwrap().contains("+@read"), "{found}");
    server.send::<()>(&[b"FLUSHALL"]);
    server.send::<i64>(&[b"HSET", b"jobs", b"j-1", done.as_bytes()]);
    let found = read(&["doctor", "--data", "--only", "card-numbers", "-o", "json"]);
    assert_eq!(found["fact"], "the members of the Redis key of jobs could not be read");
    for number in 0..25 {
        server.put(&key(number), LOCK);
    }
    for code in ["guessable-keys", "quoted-keys", "tenant-in-keys", "shared-keys"] {
        let found = read(&["doctor", "--data", "--only", code, "-o", "json"]);
        assert_eq!(found["fact"], "the members of jobs could not be read", "{code}");
    }
}

/// Rule: Redis sends values of a hash as a whole, so only those whose length is small enough are
/// asked for, and a key of another type has no members.
#[test]
fn large_members_are_not_read() {
    let server = server();
    describe_jobs(&server, "hash");
    let large = json!({"state": "done", "out": {"text": "x".repeat(3 << 20)}}).to_string();
    for number in 0..10 {
        let field = format!("j-{number}");
        server.send::<i64>(&[b"HSET", b"jobs", field.as_bytes(), large.as_bytes()]);
    }
    let sent = || -> u64 {
        let info = server.send::<String>(&[b"INFO", b"stats"]);
        let line = info.lines().find_map(|line| line.strip_prefix("total_net_output_bytes:"));
        line.unwrap().trim().parse().unwrap()
    };
    let before = sent();
    let (severity, fact) = check(&server, "card-numbers");
    assert!(sent() - before < 1 << 20, "{before}");
    assert_eq!(severity, "unknown");
    assert_eq!(
        fact,
        "no card number and no verification code in 25 of 35 records; 10 too large to be read as a whole"
    );
    server.send::<()>(&[b"DEL", b"jobs"]);
    server.send::<i64>(&[b"ZADD", b"jobs", b"7", b"j-1"]);
    let nothing = "no card number and no verification code in all 25 records";
    assert_eq!(check(&server, "card-numbers"), ("ok".to_owned(), nothing.to_owned()));
}

/// Rule: checks that do not read members do not say that there are no locks.
#[test]
fn members_are_unknown_without_data() {
    let server = server();
    describe_jobs(&server, "zset");
    let only = ["doctor", "--only", "endless-locks,mixed-releases", "-o", "json"];
    server.idemctl(&only).exits(0);
    server.send::<i64>(&[b"ZADD", b"jobs", b"7", b"j-1"]);
    let run = server.idemctl(&only).exits(3).json();
    assert_eq!(run["checks"][0]["fact"], "not read: schema jobs: records are members");
}

/// Rule: a sample without any record is no proof of anything.
#[test]
fn records_that_are_rare_among_other_keys_are_unknown() {
    let server = Server::start();
    let mut pipeline = redis::pipe();
    for number in 0..20_000 {
        pipeline.cmd("SET").arg(format!("cache:{number}")).arg("x").ignore();
    }
    pipeline.exec(&mut server.connect()).unwrap();
    let only = ["doctor", "--only", "endless-locks,observed-ttls,capacity"];
    let run = server.idemctl(&only).exits(3);
    run.shows("endless-locks, observed-ttls: there is no key of a known schema");
    run.shows("capacity: none of ").shows("--schema");
}

/// Rule: the names of members are keys, which may be data, weak, shared and in two forms.
#[test]
fn names_of_members_are_judged_as_keys() {
    for members in ["zset", "set"] {
        let server = server();
        describe_jobs(&server, members);
        let add = |name: &str| match members {
            "zset" => server.send::<i64>(&[b"ZADD", b"jobs", b"7", name.as_bytes()]),
            _ => server.send::<i64>(&[b"SADD", b"jobs", name.as_bytes()]),
        };
        for number in 0..30 {
            add(&format!("6f1c2d3e-bbbb-4bbb-8ccc-{number:012x}"));
        }
        for code in ["card-numbers", "guessable-keys", "quoted-keys", "shared-keys"] {
            let (severity, fact) = check(&server, code);
            assert_eq!(severity, "ok", "{members} {code}: {fact}");
        }
        add("\"6f1c2d3e-bbbb-4bbb-8ccc-000000000003\"");
        let quoted = checks(&server, "quoted-keys");
        let fact = quoted[0]["fact"].as_str().unwrap();
        assert!(fact.starts_with("jobs: 2 of 31 keys exist in two forms"), "{fact}");
        assert_eq!(quoted[0]["severity"], "warning");
        add(&key(3).replace("idem:", ""));
        let shared = checks(&server, "shared-keys");
        assert_eq!(shared.len(), 2, "{shared:#?}");
        for (found, fact) in shared.iter().zip([
            "1 of 25 sampled keys of express also exists under the template of jobs",
            "1 of 32 sampled keys of jobs also exists under the template of express",
        ]) {
            assert_eq!(found["fact"], fact);
        }
        add("4242424242424242");
        let (_, fact) = check(&server, "card-numbers");
        assert!(
            fact.starts_with("jobs stores card numbers in the key (1 of 33 records)"),
            "{fact}"
        );
    }
}

/// Rule: names that end like those of secrets count, except those of pages and payments.
#[test]
fn secrets_are_found_by_the_ends_of_their_names() {
    let hex = "31d4d96e407aad42c0de31d4d96e407a";
    let letters = "QwErTyUiOpAsDfGhJkLzXcVbNmQwErTyUiOpAsDf";
    for (name, value) in [
        ("api_token", hex),
        ("api_secret", hex),
        ("webhook_secret", hex),
        ("bearer_token", hex),
        ("encryption_key", hex),
        ("session", hex),
        ("sid", hex),
        ("auth", hex),
        ("access_token", letters),
        ("token", "7QpotnFZFEjr"),
        ("client_secret", "mysecretvalue"),
    ] {
        let server = server();
        server.put(&key(900), done(&json!({name: value})));
        let (severity, fact) = check(&server, "stored-secrets");
        assert_eq!(severity, "warning", "{name}: {fact}");
    }
    let server = server();
    for (number, name) in
        ["next_page_token", "continuationToken", "idempotency_token", "card_token", "clientToken"]
            .iter()
            .enumerate()
    {
        let number = u32::try_from(number).unwrap();
        server.put(&key(900 + number), done(&json!({*name: hex})));
    }
    server.put(&key(950), done(&json!({"sid": "SM31d4d96e407aad42c0de31d4d96e407a"})));
    let (severity, fact) = check(&server, "stored-secrets");
    assert_eq!(severity, "ok", "{fact}");
}

/// Rule: words and short numbers are told, whatever separates them.
#[test]
fn numbers_behind_colons_are_told() {
    for (before, after) in
        [("payment:", ""), ("42:order:", ""), ("acme:order-", ""), ("order-", "-v1")]
    {
        let server = Server::start();
        for number in 0..30 {
            server.put(&format!("idem:{before}{}{after}", number + 100_000), LOCK);
        }
        let (severity, fact) = check(&server, "guessable-keys");
        assert_eq!(severity, "note", "{before}{after}: {fact}");
    }
    let server = server();
    let fact = "found no pattern of counters, times, constants or short keys: express (25 keys)";
    assert_eq!(check(&server, "guessable-keys"), ("ok".to_owned(), fact.to_owned()));
}

/// Rule: numbers that chance explains may still contain cards, so the check does not deny it.
#[test]
fn numbers_that_chance_explains_are_told() {
    let server = server();
    for digit in 0..10 {
        let number = format!("453201511283036{digit}");
        server.put(&key(900 + digit), done(&json!({"note": number})));
    }
    let (severity, fact) = check(&server, "card-numbers");
    assert_eq!(severity, "note", "{fact}");
    assert_eq!(
        fact,
        "express: 1 of 10 different numbers of a card's form has a valid check digit, as chance gives one of ten; whether it is a card is unknown"
    );
}
