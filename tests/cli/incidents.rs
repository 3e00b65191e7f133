//! `docs/incidents.md`: every command in there does what the document says, on a real server.

use std::path::Path;
use std::process::Command;

use crate::support::{DONE, FOREVER, PENDING, Runs, Server, binary, program};

const HOUR: u64 = 3_600_000;

/// A server in the state that the document speaks of.
fn seeded() -> Server {
    let server = Server::filled(
        ["order-1", "order-2"].map(|key| (format!("idempotency:{key}"), PENDING)),
        FOREVER,
    );
    server.fill(
        ["order-3", "order-4", "order-6", "order-7"]
            .map(|key| (format!("idempotency:{key}"), PENDING)),
        HOUR,
    );
    let stored = DONE;
    server.set("idempotency:order-5", stored, 20 * HOUR);
    server.set("idempotency:order-8", stored, 20 * HOUR);
    server.set("idem:result:bad", r#"{"statusCode":503,"body":"try later"}"#, 24 * HOUR - 60_000);
    server.set("idem:result:old", r#"{"statusCode":503,"body":"try later"}"#, HOUR);
    server.set("idem:result:pay-2", r#"{"statusCode":201,"body":"paid"}"#, 20 * HOUR);
    server.set("idem:started:pay-1", "worker-7", HOUR / 2);
    server.set("shop:idempotency:7001", PENDING, HOUR);
    for key in ["checkout-9-1", "checkout-9-2"] {
        let value = crate::duplicates::reference(key, "f", 1_700_000_000_000, "o-9");
        server.set(&format!("idemkey:{key}"), value, 20 * HOUR);
    }
    server.set("idempotency:elsewhere", PENDING, HOUR);
    server.send::<i64>(&[b"MOVE", b"idempotency:elsewhere", b"3"]);
    server
}

/// The commands of the document, each with the exit status that the document gives.
fn commands() -> Vec<(String, i32)> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/incidents.md");
    let text = std::fs::read_to_string(file).unwrap();
    let status = |line: &str| match line.rsplit_once("# exit status ") {
        Some((command, code)) => (command.trim().to_owned(), code.trim().parse().unwrap()),
        None => (line.to_owned(), 0),
    };
    text.lines().filter_map(|line| line.strip_prefix("$ ")).map(status).collect()
}

/// What the commands that change something do: the Redis keys that go, and those that come. No other command changes any.
const EFFECTS: [(&str, &[&str], &[&str]); 10] = [
    ("idemctl force-unlock order-1 ", &["idempotency:order-1"], &[]),
    ("printf 'order-6", &["idempotency:order-6", "idempotency:order-7"], &[]),
    ("idemctl sweep --orphaned ", &["idempotency:order-2"], &[]),
    ("printf 'order-3", &["idempotency:order-3", "idempotency:order-4"], &[]),
    ("idemctl purge order-5 ", &["idempotency:order-5"], &[]),
    ("idemctl apply plan.jsonl --yes", &["idempotency:order-8"], &[]),
    ("idemctl purge --schema event-driven ", &["idem:result:bad"], &[]),
    ("idemctl complete pay-1 ", &["idem:started:pay-1"], &["idem:result:pay-1"]),
    ("idemctl undo --yes --reason INC-5", &["idem:result:pay-1"], &["idem:started:pay-1"]),
    (
        "idemctl undo --yes --reason 'INC-5, it was right'",
        &["idem:started:pay-1"],
        &["idem:result:pay-1"],
    ),
];

/// The keys after a command, by the keys before it.
fn expected(before: &[String], line: &str) -> Vec<String> {
    let effect = EFFECTS.iter().rev().find(|(beginning, ..)| line.starts_with(beginning));
    let Some((_, gone, come)) = effect else { return before.to_vec() };
    assert!(
        gone.iter().all(|key| before.iter().any(|there| there == key)),
        "{line}: {gone:?} of {before:?}"
    );
    let mut after: Vec<String> =
        before.iter().filter(|key| !gone.contains(&key.as_str())).cloned().collect();
    after.extend(come.iter().map(|key| (*key).to_owned()));
    after.sort();
    after
}

#[test]
fn each_command_does_what_the_document_says() {
    let server = seeded();
    let commands = commands();
    assert!(commands.len() > 20, "{commands:?}");
    let binary = binary();
    let path = format!(
        "{}:{}:/usr/bin:/bin",
        binary.parent().unwrap().display(),
        program().parent().unwrap().display()
    );
    for (beginning, ..) in EFFECTS {
        assert!(
            commands.iter().any(|(line, _)| line.starts_with(beginning)),
            "the document has no {beginning}"
        );
    }
    for (line, code) in commands {
        let before = server.keys();
        let left = server.send::<i64>(&[b"PTTL", b"idem:started:pay-1"]);
        let mut shell = Command::new("sh");
        shell.args(["-c", &line]).env_clear().env("PATH", &path).env("HOME", server.folder());
        // A race and a simulation go to a server of their own.
        if !line.contains("--sandbox") {
            shell.env("IDEMCTL_URL", server.url());
        }
        let run = shell.current_dir(server.folder()).env("USER", "ana").run();
        assert_eq!(run.code, code, "{line}\n{}", run.all());
        assert!(
            !run.stderr.contains("no such records"),
            "{line} finds what it speaks of: {}",
            run.all()
        );
        assert_eq!(server.keys(), expected(&before, &line), "{line}");
        if line.starts_with("idemctl extend pay-1 --for 1h") {
            let extended = server.send::<i64>(&[b"PTTL", b"idem:started:pay-1"]);
            let hour = i64::try_from(HOUR).unwrap();
            assert!(
                left <= hour / 2 && extended > hour - 60_000 && extended <= hour,
                "{left} ms, then {extended} ms"
            );
        }
    }
    assert_eq!(
        server.keys(),
        [
            "idem:result:old",
            "idem:result:pay-1",
            "idem:result:pay-2",
            "idemkey:checkout-9-1",
            "idemkey:checkout-9-2",
            "shop:idempotency:7001"
        ]
    );
    assert!(
        std::fs::read_to_string(server.folder().join("records.csv"))
            .unwrap()
            .starts_with("key,schema,state,owner,")
    );
    assert!(
        std::fs::read_to_string(server.folder().join("idemctl.prom"))
            .unwrap()
            .contains("idemctl_records{")
    );
}
