//! Two sweeps at once, and locks that are renewed or retaken while they are looked at.

use std::sync::{Arc, Mutex};

use super::touched::{LOCK, query, right_before};
use crate::support::fault::{self, Hook, says};
use crate::support::{Running, Runs, Server};

/// A sweep of the locks that stay longer than express's lock TTL, which the deployment states.
const SWEEP: [&str; 8] =
    ["sweep", "--include", "excess-ttl", "--schema", "express", "--lock-ttl", "30s", "--yes"];

/// Rule: two sweeps at once remove no lock that was taken between the look of one and the removal of the other.
#[test]
fn two_sweeps_at_once_begin_no_operation_a_second_time() {
    const LOCKS: usize = 3_000;
    let server =
        Server::filled((0..LOCKS).map(|index| (format!("idem:k{index}"), LOCK)), 28_800_000);
    let words = [&SWEEP[..], &["--grace", "300ms", "-o", "json"]].concat();
    let mut sweeps = [(); 2].map(|()| server.command().args(&words).start());
    // Retries take every lock that is free, with the same bytes, and hold it: a second time is one too many.
    let mut connection = server.connect();
    let (mut taken, mut again, mut is_over) = (vec![0_u8; LOCKS], 0, false);
    while !is_over {
        is_over = sweeps.iter_mut().all(|sweep| sweep.try_wait().unwrap().is_some());
        let mut pipeline = redis::pipe();
        for index in 0..LOCKS {
            pipeline
                .cmd("SET")
                .arg(format!("idem:k{index}"))
                .arg(LOCK)
                .arg("NX")
                .arg("PX")
                .arg(30_000);
        }
        let replies: Vec<Option<String>> = pipeline.query(&mut connection).unwrap();
        for (count, reply) in taken.iter_mut().zip(replies) {
            *count += u8::from(reply.is_some());
            again += usize::from(*count > 1 && reply.is_some());
        }
    }
    let done: u64 =
        sweeps.map(|child| child.ends().exits(0).json()["done"].as_u64().unwrap()).iter().sum();
    assert_eq!(again, 0, "operations begun a second time");
    assert_eq!(done, LOCKS as u64);
    assert!(taken.iter().all(|count| *count == 1));
}

/// Rule: a lock that was retaken after another sweep removed the one that was seen is no longer that one.
#[test]
fn a_sweep_leaves_the_lock_that_was_retaken_after_another_sweep() {
    let server = Server::holding(&[("idem:k", LOCK, 28_800_000)]);
    let words = [&SWEEP[..], &["--grace", "0", "-o", "json"]].concat();
    let (mut other, mut connection) = (server.command(), server.connect());
    other.args(&words);
    let port = right_before(&server, "UNLINK", move || {
        assert_eq!(other.run().exits(0).json()["done"], 1);
        query(&mut connection, &["SET", "idem:k", LOCK, "NX", "PX", "30000"]);
    });
    let json = server.at(port, &words).exits(0).json();
    assert_eq!(
        (&json["total"], &json["done"], &json["changed"]),
        (&1.into(), &0.into(), &1.into()),
        "{json}"
    );
    assert!((25_000..=30_000).contains(&server.send::<i64>(&[b"PTTL", b"idem:k"])));
}

/// Rule: what is left of a lock is counted from a time behind the reads: one that is renewed while it is read would have
/// more left than its TTL otherwise.
#[test]
fn the_time_is_asked_behind_the_reads() {
    let server = Server::holding(&[("idem:k", LOCK, 28_800_000)]);
    let reads = Arc::new(Mutex::new(Vec::new()));
    let sink = Arc::clone(&reads);
    let port = fault::hooked(&server, move |sent| {
        // The look that waits out the grace is a script where PEXPIRETIME is not known.
        if says(sent, "GETRANGE") && !says(sent, "UNLINK") && !says(sent, "redis.call") {
            sink.lock().unwrap().push(sent.to_vec());
        }
        Hook::Pass
    });
    server.at(port, &[&SWEEP[..], &["--grace", "100ms", "--timeout", "5s"]].concat()).exits(0);
    let reads = reads.lock().unwrap();
    let tells_exactly =
        redis::cmd("PEXPIRETIME").arg("gone").query::<i64>(&mut server.connect()).is_ok();
    assert!(
        reads.len() >= if tells_exactly { 2 } else { 1 },
        "the walk's page, and the look before the change"
    );
    for read in reads.iter() {
        // Behind them all is the request that proves whose each reply is.
        let text = String::from_utf8_lossy(read);
        let (asked, mark) = text.rsplit_once("*2\r\n$4\r\nPING\r\n").unwrap();
        assert!(
            asked.ends_with("*1\r\n$4\r\nTIME\r\n") && mark.starts_with("$24\r\nidemctl-"),
            "{text:?}"
        );
    }
}
