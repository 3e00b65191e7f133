//! What goes wrong between idemctl and its server, each with the exit code that the design gives it, with a message that
//! names the server and what to do, nothing lost and nothing sent twice.
//!
//! | fault | commands | where |
//! |---|---|---|
//! | refused, DNS, half-open, black hole, stopped server | all | `unreachable` |
//! | LOADING, BUSY, max clients, NOAUTH, WRONGPASS, NOPERM | all | `refusing`; rights one by one in `failures`, `library/guarded.rs` |
//! | READONLY, OOM, MISCONF, NOREPLICAS | all | `refusing` |
//! | protocol garbage, huge headers, nesting, a line without end | all | `garbage` |
//! | a SCAN without end, lengths that are promised and never come | inspect, list, race | `endless` |
//! | a connection cut at any byte of requests or replies | every change | `lost`; the moments one by one in `kill`, `library/guarded.rs` |
//! | a proxy that forwards a change and answers an error of its own, odd reply types | every change | `forwarded` |
//! | cut off or stopped in the middle of many records | sweep, purge, restore | `middle`; list in `failures`, simulate in `cli/simulate/server.rs` |
//! | idemctl killed, interrupted, its disk full | sweep, purge | `kill` |
//! | services at work meanwhile | sweep, purge | `tests/storm/` |
//! | CLUSTERDOWN, a master that is down or stops | all; sweep, purge | `nodes`; list in `clusters/cluster.rs` |
//! | something in between a change and what is made of it | force-unlock, purge, restore | `between` |
//! | slots that move | list, purge | `clusters/cluster.rs` |
//! | SCRIPT FLUSH | race | `odd`; simulate has a scenario for it |
//! | 512 MB value | inspect, list | `odd` |
//! | eviction during a scan | list | `odd` |
//! | clock skew | inspect, list, force-unlock | `odd`; restore in `cli/restore/moment.rs` |
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that cannot go on says so by panicking"
)]
#![allow(clippy::print_stderr, reason = "a test that cannot be run here says so")]

#[path = "../support/mod.rs"]
mod support;

mod between;
mod bounds;
mod endless;
mod failures;
mod forwarded;
mod garbage;
mod kill;
mod lost;
mod middle;
mod nodes;
mod odd;
mod refusing;
mod scans;
mod stage;
mod unreachable;
