//! Whoever knows which owners are alive is asked.

use std::fs;
use std::time::{Duration, Instant};

use super::orphans::{PENDING, WITHOUT_GRACE, sweep};
use crate::support::{FOREVER, Server};

#[test]
fn a_lock_whose_owner_is_alive_stays() {
    let server = Server::start();
    for owner in ["alive", "dead", "odd 'name'; rm -rf $HOME", "slow"] {
        server.put(&format!("idem:started:{owner}"), owner);
        server.put(&format!("idem:started:{owner}-too"), owner);
    }
    server.put("idempotency:unknown", PENDING);
    let calls = server.folder().join("calls");
    let ask = format!(
        "echo \"$1|$IDEMCTL_OWNER\" >> {}; case $1 in alive) exit 0;; slow) sleep 60;; *) exit 1;; esac",
        calls.display()
    );
    let started = Instant::now();
    let run = sweep(&server, &[&WITHOUT_GRACE[..], &["-o", "json", "--owner-alive", &ask]].concat()).exits(0);
    assert!(started.elapsed() < Duration::from_secs(30), "one that hangs is not waited for");
    let json = run.json();
    assert_eq!((&json["done"], &json["skipped_alive"]), (&5.into(), &4.into()), "{json}");
    let left = ["idem:started:alive", "idem:started:alive-too", "idem:started:slow", "idem:started:slow-too"];
    assert_eq!(server.keys(), left);
    let mut asked: Vec<_> = fs::read_to_string(calls).unwrap().lines().map(str::to_owned).collect();
    asked.sort();
    let odd = "odd 'name'; rm -rf $HOME";
    assert_eq!(
        asked,
        ["alive|alive", "dead|dead", &format!("{odd}|{odd}"), "slow|slow"],
        "each owner is asked about once"
    );
}

#[test]
fn a_command_that_cannot_be_run_makes_no_owner_dead() {
    let server = Server::holding(&[("idem:started:a", "worker-1", FOREVER)]);
    let run = sweep(&server, &[&WITHOUT_GRACE[..], &["--owner-alive", "no-such-command"]].concat()).exits(2);
    run.says("cannot be run");
    sweep(&server, &[&WITHOUT_GRACE[..], &["--owner-alive", "kill -9 $$"]].concat()).exits(0);
    assert!(server.get("idem:started:a").is_some());
}
