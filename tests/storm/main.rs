//! A storm: seven services at work, and idemctl's sweeps, purges, force-unlocks and restores at once. An oracle that reads
//! the servers' own command streams judges every change of idemctl's by what truly stood there.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]

#[path = "../support/mod.rs"]
mod support;

mod account;
mod attempt;
mod backups;
mod callers;
mod command;
mod deployment;
mod doubt;
mod event;
mod judge;
mod keyspace;
mod looks;
mod monitor;
mod operation;
mod operator;
mod oracle;
mod order;
mod planted;
mod removal;
mod report;
mod run;
mod shared;
mod stage;
mod steps;
mod storm;
mod verdict;
mod worker;

use std::time::Duration;

use operator::{Duty, ON_DUTY};
use stage::Mode;
use storm::{Plan, rage};

/// What chance is made of where nobody says.
const SEED: u64 = 20;

/// A storm on what servers, by what chance and as long as the environment says, or so many seconds.
fn plan(seconds: u64, on_duty: &[Duty]) -> Plan<'_> {
    let said = |name: &str| std::env::var(format!("IDEMCTL_STORM_{name}")).ok();
    let number = |name: &str| said(name).map(|text| text.parse().expect("a whole number"));
    Plan {
        mode: said("MODE").map_or(Mode::One, |mode| Mode::named(&mode)),
        seed: number("SEED").unwrap_or(SEED),
        lasts: Duration::from_secs(number("SECONDS").unwrap_or(seconds)),
        on_duty,
    }
}

#[expect(clippy::print_stderr, reason = "whoever runs a storm wants to see what it was")]
fn show(table: &str) {
    eprintln!("{table}");
}

#[test]
#[ignore = "long: 20 seconds of storm, or IDEMCTL_STORM_SECONDS"]
fn idemctl_changes_only_what_it_was_shown() {
    let over = rage(&plan(20, &ON_DUTY), |_, _| {});
    show(&over.table());
    assert!(over.is_clean(), "idemctl changed what it was not shown, or told it wrong");
    for word in ["sweep --orphaned", "purge --older-than", "purge --match", "force-unlock"] {
        assert!(over.verdict.counted("disappeared", word) > 0, "no storm: {word} removed nothing");
    }
    assert!(over.verdict.total("restored") > 0, "no storm: nothing was restored");
}

/// The same for a moment. What a storm that short removes depends on chance.
#[test]
fn idemctl_changes_only_what_it_was_shown_in_a_short_storm() {
    let over = rage(&plan(4, &ON_DUTY), |_, _| {});
    assert!(over.is_clean(), "{}", over.table());
}

#[test]
fn services_alone_alarm_nobody() {
    let over = rage(&plan(4, &[]), |_, _| {});
    assert!(over.is_clean(), "{}", over.table());
    assert!(over.verdict.counted("services", "locks taken") > 50, "{}", over.table());
}
