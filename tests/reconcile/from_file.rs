//! Outcomes from a provider's csv file.

use std::fs;
use std::os::unix::fs::symlink;

use crate::provider::{LOCK, lock, pttl, state};
use crate::support::{FOREVER, Run, Server};

fn seeded() -> Server {
    Server::holding(&[
        ("idem:a", LOCK, FOREVER),
        ("idem:b", LOCK, FOREVER),
        ("idem:c", LOCK, FOREVER),
        ("idem:guessed", LOCK, 20_000),
    ])
}

fn from(server: &Server, csv: &str) -> Run {
    let folder = server.folder().join("export");
    fs::create_dir_all(folder.join("bodies")).unwrap();
    fs::write(folder.join("bodies/a.json"), r#"{"id":"ch_9"}"#).unwrap();
    fs::write(folder.join("provider.csv"), format!("key,outcome,status,body_file\n{csv}")).unwrap();
    server.idemctl(&[
        "reconcile",
        "--from",
        "export/provider.csv",
        "--older-than",
        "1m",
        "--schema",
        "express",
        "--yes",
        "-o",
        "json",
    ])
}

/// Rule: from a file only `done` acts. Bodies are found from the folder of the csv file.
#[test]
fn only_done_acts() {
    let server = seeded();
    let ran = from(
        &server,
        "a,done,201,bodies/a.json\nb,not-done,,\nc,unknown,,\nnowhere,done,201,bodies/a.json\nguessed,done,201,bodies/a.json\n",
    )
    .exits(3);
    let report = ran.json();
    assert_eq!(lock(&report, "a")["outcome"], "completed", "{report}");
    assert_eq!(state(&server, "express", "a"), "completed");
    assert!(String::from_utf8(server.get("idem:a").unwrap()).unwrap().contains("ch_9"));
    for (key, says) in [("b", "which only --ask can confirm"), ("c", "the file says so")] {
        assert_eq!(lock(&report, key)["outcome"], "left");
        assert!(lock(&report, key)["message"].as_str().unwrap().contains(says), "{report}");
        assert_eq!(server.get(&format!("idem:{key}")).unwrap(), LOCK.as_bytes());
    }
    ran.says("Not reconciled: nowhere: no record")
        .says("Not reconciled: guessed (express): the lock TTL of this deployment is not stated");
    assert!(pttl(&server, "idem:guessed") <= 20_000);
}

/// Rule: a wrong line stops the command before anything is done.
#[test]
fn a_wrong_line_is_named_and_nothing_is_done() {
    let server = seeded();
    for (csv, says) in [
        ("a,done,201,bodies/none.json\n", "line 2: cannot read"),
        ("a,done,201,bodies/a.json\na,unknown,,\n", "line 3: its key is on line 2 already"),
        ("a,done,201,bodies/a.json\nb,sure,,\n", "line 3: the outcome must be"),
        ("a,done,999,\n", "line 2: the status must be"),
        ("a,done\n", "line 2: it has 2 columns"),
    ] {
        from(&server, csv).exits(2).says(says);
        assert_eq!(server.get("idem:a").unwrap(), LOCK.as_bytes(), "{csv}");
    }
    assert!(server.audited().is_empty());
}

/// Rule: a file names idempotency keys, because a provider knows no Redis keys. Revert: if it may name
/// a Redis key, the lock of `a` is completed.
#[test]
fn a_file_names_idempotency_keys_only() {
    let server = seeded();
    for key in ["idem:a", "express/a"] {
        let ran = from(&server, &format!("{key},done,201,bodies/a.json\n")).exits(3);
        ran.says(format!("Not reconciled: {key}: no record has this idempotency key"));
        assert_eq!(server.get("idem:a").unwrap(), LOCK.as_bytes());
    }
    // The same text as an idempotency key is not ambiguous.
    server.put("idem:idem:a", LOCK);
    let ran = from(&server, "idem:a,done,201,bodies/a.json\n").exits(0);
    assert_eq!(lock(&ran.json(), "idem:a")["outcome"], "completed", "{}", ran.all());
    assert_eq!(server.get("idem:a").unwrap(), LOCK.as_bytes());
    assert_ne!(server.get("idem:idem:a").unwrap(), LOCK.as_bytes());
}

/// Rule: a key that names two records is named and left.
#[test]
fn an_ambiguous_key_is_left() {
    let server = seeded();
    server.put("idempotency:a", crate::support::PENDING);
    let folder = server.folder().join("export");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("p.csv"), "key,outcome,status,body_file\na,unknown,,\n").unwrap();
    let all = ["reconcile", "--from", "export/p.csv", "--older-than", "1m", "--yes"];
    server.idemctl(&all).exits(3).says("Not reconciled: a: ambiguous");
}

/// Rule: clients get what a body file contains, and the provider wrote its name, so it is below the
/// folder of the csv file, and the plan names it. Revert: without `path_below`, each is stored.
#[test]
fn a_body_file_is_below_the_folder_and_in_the_plan() {
    let server = seeded();
    let secret = server.folder().join("secret");
    fs::write(&secret, r#"{"id":"sesame"}"#).unwrap();
    fs::create_dir_all(server.folder().join("export")).unwrap();
    symlink(&secret, server.folder().join("export/link")).unwrap();
    let absolute = secret.display().to_string();
    for name in ["../secret", "link", "bodies/../../secret", &absolute, "/proc/self/environ"] {
        let ran = from(&server, &format!("a,done,201,{name}\n")).exits(2);
        ran.says("it is not below the folder of the csv file");
        assert_eq!(server.get("idem:a").unwrap(), LOCK.as_bytes());
    }
    fs::write(
        server.folder().join("export/provider.csv"),
        "key,outcome,status,body_file\na,done,201,bodies/a.json\n",
    )
    .unwrap();
    let words = ["reconcile", "--from", "export/provider.csv", "--older-than", "1m"];
    let words = [&words[..], &["--schema", "express", "--dry-run"]].concat();
    server.idemctl(&words).shows("complete with the body in bodies/a.json");
}
