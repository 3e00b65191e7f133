//! Nobody there, nobody who answers: exit code 5, and soon.

use std::time::{Duration, Instant};

use crate::stage::{ADDITIONS, AMENDMENTS, PLAYS, READS, REMOVALS, Stage, each};
use crate::support::fault::{self, BlackHole, Fault};
use crate::support::{self, Signal, signal};

const ALL: &[&[&[&str]]] = &[READS, REMOVALS, ADDITIONS, AMENDMENTS, PLAYS];

/// Long enough for a busy machine, short enough to wait for.
const SOON: Duration = Duration::from_secs(30);

#[test]
fn a_port_where_nobody_listens_is_exit_5_for_every_command() {
    let stage = Stage::new(&[]);
    let port = support::free_port();
    let runs = stage.all_at(port, ALL, &[]);
    each(
        &runs,
        5,
        &[&format!("cannot reach Redis at 127.0.0.1:{port}"), "connection refused", "hint: "],
    );
    stage.is_untouched();
}

#[test]
fn a_name_that_does_not_resolve_is_exit_5_with_a_hint() {
    let stage = Stage::new(&[]);
    for words in ALL.iter().flat_map(|group| *group) {
        let run = stage.at(6379, &[&["-h", "no-such-host.invalid"], *words].concat());
        each(&[run], 5, &["cannot reach Redis at no-such-host.invalid:6379", "lookup", "hint: "]);
    }
    stage.is_untouched();
}

#[test]
fn a_server_that_takes_connections_and_never_answers_is_exit_5_in_time() {
    let (stage, port, began) = (Stage::new(&[]), fault::half_open(), Instant::now());
    let runs = stage.all_at(port, ALL, &["--timeout", "300ms"]);
    each(&runs, 5, &[&format!("Redis at 127.0.0.1:{port}/0 did not answer within 0.3s"), "hint: "]);
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_host_that_swallows_every_packet_is_exit_5_in_time() {
    let (stage, hole, began) = (Stage::new(&[]), BlackHole::open(), Instant::now());
    let runs = stage.all_at(hole.port, ALL, &["--connect-timeout", "300ms"]);
    each(
        &runs,
        5,
        &[&format!("Redis at 127.0.0.1:{}/0 did not answer within 0.3s", hole.port), "hint: "],
    );
    assert!(began.elapsed() < SOON, "{:?}", began.elapsed());
}

#[test]
fn a_stopped_server_is_exit_5_and_nothing_is_changed_once_it_goes_on() {
    let stage = Stage::new(&[]);
    let (port, _) = fault::way(&stage.server, Fault::Delay(Duration::ZERO));
    signal(stage.server.pid(), Signal::STOP);
    let runs = stage.all_at(port, ALL, &["--timeout", "300ms"]);
    signal(stage.server.pid(), Signal::CONT);
    each(&runs, 5, &["did not answer within 0.3s", "hint: "]);
    assert!(
        runs.iter().all(|run| !run.stderr.contains("no such")),
        "nobody knows that there is nothing"
    );
    stage.is_untouched();
}

#[test]
fn a_slow_server_is_waited_for() {
    let stage = Stage::new(&[]);
    let (port, _) = fault::way(&stage.server, Fault::Delay(Duration::from_millis(30)));
    let runs = stage.all_at(port, &[READS, PLAYS], &[]);
    each(&runs, 0, &[]);
    stage.is_untouched();
    for words in [REMOVALS[0], REMOVALS[3], ADDITIONS[0], ADDITIONS[1]] {
        stage.at(port, words).exits(0);
    }
}
