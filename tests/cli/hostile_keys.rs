//! Keys and values nobody would choose: binary, control characters, bidi, globs, spaces, dashes, huge ones.

use crate::support::terminal::{ends, on_terminal};
use crate::support::{Run, Runs, Server};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

const PENDING: &[u8] = br#"{"status":"PENDING"}"#;

/// Keys that break naive tools.
fn hostile() -> Vec<Vec<u8>> {
    let mut keys: Vec<Vec<u8>> = [
        "with space",
        "new\nline\r\n",
        "tab\there",
        "\u{1b}[31mred\u{1b}[0m\u{7}",
        "\u{202e}gnp.exe",
        "zero\u{200b}width",
        "c1\u{9b}31m",
        "*",
        "a?[b-c]\\",
        "--yes",
        "-",
        "{tag}",
        "quote\"'`$(x)",
        "für-Zoë-😀",
        "idem:lock:nested",
    ]
    .iter()
    .map(|key| key.as_bytes().to_vec())
    .collect();
    keys.push(b"\xff\xfe\x80binary".to_vec());
    keys.push(vec![b'k'; 10_240]);
    keys
}

fn with_key(server: &Server, words: &[&str], key: &[u8]) -> Run {
    use std::os::unix::ffi::OsStrExt as _;
    server.command().args(words).arg("--").arg(std::ffi::OsStr::from_bytes(key)).run()
}

fn seeded() -> Server {
    Server::filled(
        hostile().iter().map(|key| ([b"idempotency:", &key[..]].concat(), PENDING)),
        200_000,
    )
}

fn key_of(record: &serde_json::Value) -> Vec<u8> {
    match record["key_base64"].as_str() {
        Some(base64) => STANDARD.decode(base64).unwrap(),
        None => record["key"].as_str().unwrap().as_bytes().to_vec(),
    }
}

#[test]
fn every_key_is_found_and_carried_without_loss() {
    let server = seeded();
    for key in hostile() {
        if key == b"-" {
            continue; // the word for stdin
        }
        let run = with_key(&server, &["inspect", "-o", "jsonl"], &key).exits(0);
        assert_eq!(key_of(&run.json_lines()[0]), key);
    }
    let mut listed: Vec<_> =
        server.idemctl(&["list", "-o", "jsonl"]).exits(0).json_lines().iter().map(key_of).collect();
    let mut expected = hostile();
    listed.sort();
    expected.sort();
    assert_eq!(listed, expected);
}

#[test]
fn nothing_from_redis_reaches_the_terminal_unescaped() {
    let server = seeded();
    server.set("idem:started:x", "\u{1b}]0;owned\u{7}\u{202e}", 20_000);
    server.set(
        "idem:y",
        "{\"status\":\"COMPLETED\",\"statusCode\":200,\"headers\":{\"x\u{202e}\":\"\\u001b[2J\"},\"body\":\"\\u001b[31m\u{9b}\"}",
        20_000,
    );
    let mut outputs = vec![
        server.idemctl(&["list"]),
        server.idemctl(&["list", "-o", "json"]),
        server.idemctl(&["list", "-o", "jsonl", "--full"]),
        server.idemctl(&["inspect", "y", "x"]),
        server.idemctl(&["inspect", "y", "x", "-o", "json"]),
        server.idemctl(&["force-unlock", "x", "--dry-run"]),
    ];
    for key in hostile() {
        outputs.push(with_key(&server, &["inspect"], &key));
        outputs.push(with_key(&server, &["force-unlock", "--dry-run"], &key));
        outputs.push(with_key(&server, &["inspect", "--schema", "express"], &key));
    }
    for run in outputs {
        for text in [run.text(), run.stderr.clone()] {
            let bad = text
                .chars()
                .find(|c| (c.is_control() && *c != '\n') || "\u{200b}\u{202e}".contains(*c));
            assert_eq!(bad, None, "{}", run.all().escape_debug());
        }
    }
}

#[test]
fn a_lock_with_any_key_can_be_removed_and_only_that_one() {
    let server = seeded();
    let all = hostile().len();
    for (index, key) in hostile().iter().enumerate() {
        let redis_key = [b"idempotency:", &key[..]].concat();
        // `-` is the word for stdin: that key is named by its Redis key.
        let named = if key == b"-" { &redis_key } else { key };
        with_key(&server, &["force-unlock", "--yes", "--schema", "go-middleware"], named).exits(0);
        assert_eq!(server.send::<usize>(&[b"EXISTS", &redis_key]), 0);
        assert_eq!(server.size(), all - index - 1);
    }
}

#[test]
fn values_of_all_kinds_are_survived() {
    let server = Server::start();
    let deep = [vec![b'['; 100_000], vec![b']'; 100_000]].concat();
    let huge = [
        br#"{"status":"COMPLETED","code":200,"headers":{},"body":""#,
        &vec![b'A'; 20 << 20][..],
        br#""}"#,
    ]
    .concat();
    let values: [(&str, &[u8], &str); 8] = [
        ("deep", &deep, "unreadable"),
        ("huge", &huge, "completed"),
        ("empty", b"", "unreadable"),
        ("binary", b"\x00\xff\x1b[2J", "unreadable"),
        ("cut", br#"{"status":"PEND"#, "unreadable"),
        ("null", b"null", "unreadable"),
        ("array", b"[1,2]", "unreadable"),
        ("other", br#"{"status":"WHO"}"#, "unreadable"),
    ];
    for (key, value, state) in values {
        server.set(&format!("idempotency:{key}"), value, 9_000_000);
        let ways = if key == "huge" { &[&[][..]][..] } else { &[&[][..], &["--full"]] };
        for more in ways {
            let document =
                inspect(&server, &[&[key, "-o", "json"], *more].concat()).exits(0).json();
            assert_eq!(document["records"][0]["state"], state, "{key}");
            assert_eq!(document["records"][0]["size_bytes"], value.len());
        }
        inspect(&server, &[key]).exits(0);
    }
    let listed = server.idemctl(&["-v", "list", "-o", "jsonl"]).exits(0);
    // JSON of another shape, and what does not begin as JSON, is somebody else's.
    assert_eq!(listed.json_lines().len(), values.len() - 5);
    listed.says("values that match no format of their schema: go-middleware 5");
}

/// Whose value it is, the operator says.
fn inspect(server: &Server, words: &[&str]) -> Run {
    server.idemctl(&[&["inspect", "--schema", "go-middleware"], words].concat())
}

#[test]
fn keys_of_the_wrong_type_are_named() {
    let server = Server::start();
    server.send::<()>(&[b"HSET", b"idempotency:hash", b"f", b"v"]);
    server.send::<()>(&[b"RPUSH", b"idem:result:list", b"v"]);
    server.send::<()>(&[b"SADD", b"idem:lock:set", b"v"]);
    for (kind, schema) in
        [("hash", "go-middleware"), ("list", "event-driven"), ("set", "event-consumer")]
    {
        let words = ["inspect", kind, "--schema", schema, "-o", "json"];
        let document = server.idemctl(&words).exits(0).json();
        let finding = &document["records"][0]["findings"][0];
        assert_eq!(finding["code"], "wrong-type");
        assert!(finding["message"].as_str().unwrap().contains(kind));
    }
    let listed = server.idemctl(&["list", "-o", "json"]).exits(0).json();
    assert_eq!(listed["records"], serde_json::json!([]));
    assert_eq!(
        listed["foreign"],
        serde_json::json!({ "event-driven": 1, "event-consumer": 1, "go-middleware": 1 })
    );
    server
        .idemctl(&["list", "--finding", "wrong-type"])
        .exits(2)
        .says("invalid value 'wrong-type'");
}

#[test]
fn steps_by_hand_work_on_every_key() {
    let server = seeded();
    let complete = [
        "complete",
        "--schema",
        "go-middleware",
        "--yes",
        "--status",
        "200",
        "--body",
        "x",
        "-o",
        "jsonl",
    ];
    for key in hostile() {
        let stored = with_key(&server, &complete, &key).exits(0);
        assert_eq!(key_of(&stored.json_lines()[0]), key);
        let replay =
            with_key(&server, &["begin", "--schema", "go-middleware", "--yes"], &key).exits(1);
        let shown = [&replay.stdout[..], replay.stderr.as_bytes()].concat();
        assert!(!shown.iter().any(|byte| *byte < b' ' && *byte != b'\n'), "{}", replay.all());
        with_key(&server, &["begin", "--schema", "go-chi", "--yes", "--prefix", "p:"], &key)
            .exits(0);
        with_key(&server, &["release", "--schema", "go-chi", "--yes", "--prefix", "p:"], &key)
            .exits(0);
    }
    assert_eq!(server.size(), hostile().len());
}

/// Rule: a terminal that does not tell its size is a terminal, also under --debug.
#[test]
fn nothing_raw_reaches_a_terminal_without_a_size() {
    let server = Server::start();
    server.put(
        "idem:\u{1b}]0;title\u{7}\u{1b}[31mX",
        r#"{"status":"COMPLETED","statusCode":200,"headers":{},"body":1}"#,
    );
    for words in [
        &["list", "--schema", "express", "-o", "name"][..],
        &["--debug", "list", "--schema", "express", "-o", "name"],
        // Raw names that end with NUL are for programs.
        &["list", "--schema", "express", "-o", "name", "-0"],
    ] {
        let shown = ends(on_terminal(server.command(), words)).exits(0).text();
        assert!(shown.contains("\\x1b]0;title\\x07"), "{words:?}: {shown:?}");
        assert!(!shown.contains("\u{1b}]0;"), "{words:?}: {shown:?}");
    }
}

/// Rule: nothing that stands in a message moves a cursor, names of files and what they hold included.
#[test]
fn paths_and_files_in_messages_are_escaped() {
    let server = Server::start();
    let hostile = "x\u{1b}[2J\u{7}\u{202e}";
    let folder = server.folder().join(hostile);
    std::fs::create_dir(&folder).unwrap();
    let file = folder.join("schema.toml");
    std::fs::write(&file, "\u{1b}]0;title\u{7} = \"").unwrap();
    let (folder, file) = (folder.to_str().unwrap(), file.to_str().unwrap());
    let option = format!("--{hostile}");
    for words in [
        &["diff", folder][..],
        &["diff", file],
        &["--schema-dir", folder, "list"],
        &["--schema-dir", file, "list"],
        &["--config", file, "list"],
        &["--config", folder, "list"],
        &["schema", "check", file],
        &["restore", folder, "--yes"],
        &["undo", hostile, "--yes"],
        &["purge", "--key-file", folder, "--yes"],
        &["--context", hostile, "list"],
        &["list", "--schema", hostile],
        &["list", "-o", hostile],
        &[option.as_str()],
        &["-h", hostile, "list"],
        &["-s", file, "list"],
        &["--pass-file", folder, "list"],
        &["--cacert", file, "--tls", "list"],
    ] {
        let run = server.idemctl(words);
        assert_ne!(run.code, 0, "{words:?}: {}", run.all());
        let said = run.all();
        let moves = |character: char| {
            character.is_control() && character != '\n' || character == '\u{202e}'
        };
        assert!(!said.contains(moves), "{words:?}: {said:?}");
    }
}

/// The greatest moment that PXAT takes, as services write it that mean "for ever", and two moments whose last digits Lua's
/// numbers cannot hold.
#[test]
fn an_expiry_in_the_far_future_is_read_kept_and_compared() {
    let moments =
        [i64::MAX.to_string(), ((1_i64 << 53) + 1).to_string(), "9223369999999999999".to_owned()];
    for moment in &moments {
        let server = Server::start();
        let holds = |key: &str, value: &[u8]| {
            let words: [&[u8]; 5] = [b"SET", key.as_bytes(), value, b"PXAT", moment.as_bytes()];
            server.send::<()>(&words);
        };
        server.send::<()>(&[b"SET", b"idem:lock:stuck", b"1"]);
        holds("idem:lock:two", b"1");
        holds("idem:done:two", b"1");
        holds("idempotency:one", PENDING);
        holds("idempotency:damaged", b"{x");

        assert!(server.idemctl(&["check"]).exits(2).text().contains("1 stuck lock"));
        let listed = server.idemctl(&["list", "-o", "json"]).exits(0).json();
        assert_eq!(listed["records"].as_array().unwrap().len(), 4, "{moment}: {listed}");
        server.idemctl(&["stats"]).exits(0);
        let shown = server.idemctl(&["inspect", "stuck", "two", "one"]);
        assert!(shown.code == 0 || shown.code == 3, "{}", shown.all());

        server.idemctl(&["purge", "two", "--yes"]).exits(0);
        assert_eq!(server.send::<u64>(&[b"EXISTS", b"idem:done:two"]), 0);
        server.idemctl(&["undo", "--yes"]).exits(0);
        let expires: i64 = server.send::<i64>(&[b"PTTL", b"idem:done:two"]);
        assert!(expires > 1 << 52, "{moment}: {expires} ms left");

        server.idemctl(&["complete", "one", "--status", "200", "--body", "{}", "--yes"]).exits(0);
        server.idemctl(&["sweep", "--orphaned", "--grace", "0s", "--yes"]).exits(0).says("1 of 1");
    }
}
