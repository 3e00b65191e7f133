//! Keys that are named one by one.

use std::sync::atomic::{AtomicUsize, Ordering};

use super::choice::{purge, seeded};
use crate::support::Server;
use crate::support::proxy::{Hook, hooked_socket, says};

#[test]
fn keys_that_are_not_there_or_not_chosen_are_named_and_the_others_are_purged() {
    let server = seeded();
    let run = purge(&server, &["old", "nowhere", "held", "bare", "--yes"]).exits(3);
    run.says("1 of 1 record purged").says("not found: nowhere, bare");
    run.says("unchanged: go-middleware/held (it is in-progress and not selected)");
    run.says("`idemctl ").says(" force-unlock go-middleware/held`");
    let run = purge(&server, &["nowhere", "--dry-run", "-o", "json"]).exits(3).json();
    assert_eq!((&run["keys_not_found"], &run["not_found"][0]), (&1.into(), &"nowhere".into()));
}

#[test]
fn keys_that_cannot_be_meant_are_refused() {
    let server = seeded();
    for words in
        [&["old", "-"][..], &["old", "--key-file", "-"], &["--max-percent", "5", "old"], &[""]]
    {
        purge(&server, &[words, &["--yes"]].concat()).exits(2);
    }
    assert!(server.get("idempotency:old").is_some());
}

/// Rule: the beginning of a key names another record, so that a list which is cut inside a key changes nothing.
#[test]
fn a_list_that_is_cut_inside_its_last_key_is_refused() {
    let server = seeded();
    let before = server.keys();
    for list in [&b"old\0new"[..], b"old"] {
        for words in [["-", "-0"], ["--key-file=-", "-0"]] {
            let all = [&["purge"], &words[..], &["--yes"]].concat();
            let run = server.idemctl_fed(&all, list).exits(2);
            run.says("the last key does not end with NUL").says("nothing was changed");
        }
    }
    assert_eq!(server.keys(), before);
    // The last line of a file may have no line feed.
    let run = server.idemctl_fed(&["purge", "-", "--yes"], b"old").exits(0);
    run.says("1 of 1 record purged");
    server.idemctl_fed(&["purge", "-", "-0", "--yes"], b"new\0").exits(0);
}

/// Rule: a key that is named twice is one, however far apart the two places are.
#[test]
fn a_key_that_a_long_list_names_twice_is_counted_and_missed_once() {
    let server = Server::start();
    let result = r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#;
    server.fill((0..600).map(|number| (format!("idempotency:k-{number}"), result)), 3_600_000);
    let once = (0..600)
        .map(|number| format!("k-{number}"))
        .chain(["nowhere".to_owned()])
        .collect::<Vec<_>>();
    let list = [once.clone(), once].concat().join("\n");
    let run =
        server.idemctl_fed(&["purge", "-", "--yes", "-o", "json"], list.as_bytes()).exits(3).json();
    assert_eq!((&run["done"], &run["keys_not_found"]), (&600.into(), &1.into()), "{run}");
}

/// Rule: the lock and the result of a record go in one call, so that nothing can come between the two.
#[test]
fn both_redis_keys_of_a_record_go_in_one_call() {
    let server = Server::start();
    server.put("idem:lock:c1", "1");
    server.set("idem:done:c1", "1", 4_000_000);
    let calls = AtomicUsize::new(0);
    let socket = hooked_socket(&server, move |sent| {
        let is_second = says(sent, "$6\r\nUNLINK\r\n") && calls.fetch_add(1, Ordering::SeqCst) == 1;
        if is_second {
            Hook::Answer(b"-BUSY Redis is busy running a script.\r\n".to_vec())
        } else {
            Hook::Pass
        }
    });
    let run =
        server.through(&socket, &["purge", "c1", "--schema", "event-consumer", "--yes"]).exits(0);
    run.says("1 of 1 record purged");
    assert_eq!((server.size(), server.audited().len()), (0, 2), "{}", run.all());
}

/// Rule: a key that was named and to whose record nothing is done is named, with the reason, and the run has done a part.
#[test]
fn a_named_key_that_is_left_alone_is_named() {
    let server = seeded();
    server.put("idempotency:odd", r#"{"x":1}"#);
    let before = server.keys();
    let run = purge(&server, &["held", "odd", "--yes", "-o", "json"]).exits(3);
    let (locked, odd) = (
        "go-middleware/held (it is in-progress and not selected)",
        "go-middleware/odd (it does not match schema go-middleware (",
    );
    run.says(format!("unchanged: {locked}")).says(format!("unchanged: {odd}"));
    let json = run.json();
    assert_eq!(
        (&json["done"], &json["keys_left_alone"], &json["keys_not_found"]),
        (&0.into(), &2.into(), &0.into()),
        "{json}"
    );
    let names: Vec<_> = json["left_alone"]
        .as_array()
        .unwrap()
        .iter()
        .map(|left| left["name"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"go-middleware/held") && names.contains(&"go-middleware/odd"),
        "{json}"
    );
    purge(&server, &["held", "--dry-run"]).exits(3).says(locked);
    assert_eq!(server.keys(), before);
}
