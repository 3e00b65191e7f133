//! A storm: seven services at work, and idemctl's sweeps, purges, force-unlocks and restores at once. An oracle that reads
//! the servers' own command streams judges every change of idemctl's by what truly stood there.
#![allow(clippy::unwrap_used, clippy::expect_used, reason = "a test that cannot go on says so by panicking")]

#[path = "../support/cluster.rs"]
mod cluster;
#[path = "../support/sentinel.rs"]
mod sentinel;
#[path = "../support/mod.rs"]
mod support;
#[path = "../support/wire.rs"]
mod wire;

mod account;
mod attempt;
mod backups;
mod command;
mod deployment;
mod event;
mod judge;
mod keyspace;
mod looks;
mod monitor;
mod operation;
mod operator;
mod oracle;
mod removal;
mod report;
mod run;
mod shared;
mod stage;
mod steps;
mod storm;
mod verdict;
mod worker;

use std::time::{Duration, Instant};

use operator::ON_DUTY;
use stage::Mode;
use storm::{Plan, rage};

/// What chance is made of where nobody says.
const SEED: u64 = 20;

fn seed() -> u64 {
    std::env::var("IDEMCTL_STORM_SEED").map_or(SEED, |seed| seed.parse().expect("a whole number"))
}

#[expect(clippy::print_stderr, reason = "whoever runs a storm wants to see what it was")]
fn show(table: &str) {
    eprintln!("{table}");
}

fn wait_until(what: &str, mut holds: impl FnMut() -> bool) {
    let since = Instant::now();
    while !holds() {
        assert!(since.elapsed() < Duration::from_secs(30), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

#[test]
fn idemctl_changes_only_what_it_was_shown() {
    let plan = Plan { mode: Mode::One, seed: seed(), lasts: Duration::from_secs(20), on_duty: &ON_DUTY };
    let over = rage(&plan, |_, _| {});
    show(&over.table());
    assert!(over.is_clean(), "idemctl changed what it was not shown, or told it wrong");
}

/// `make soak`: as long and on what servers as the environment says.
#[test]
#[ignore = "minutes long: make soak"]
fn soak() {
    let mode = std::env::var("IDEMCTL_STORM_MODE").unwrap_or_else(|_| "server".to_owned());
    let seconds = std::env::var("IDEMCTL_STORM_SECONDS").map_or(60, |text| text.parse().expect("whole seconds"));
    let plan =
        Plan { mode: Mode::named(&mode), seed: seed(), lasts: Duration::from_secs(seconds), on_duty: &ON_DUTY };
    let over = rage(&plan, |_, _| {});
    show(&over.table());
    assert!(over.is_clean(), "idemctl changed what it was not shown, or told it wrong");
}

#[test]
fn services_alone_alarm_nobody() {
    let plan = Plan { mode: Mode::One, seed: seed(), lasts: Duration::from_secs(4), on_duty: &[] };
    let over = rage(&plan, |_, _| {});
    assert!(over.is_clean(), "{}", over.table());
    assert!(over.verdict.counted("services", "locks taken") > 50, "{}", over.table());
}
