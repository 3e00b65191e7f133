//! What talks like no Redis: told soon, with little memory, and never believed.

use std::io::{self, Read as _, Write};
use std::time::{Duration, Instant};

use crate::stage::{ADDITIONS, AMENDMENTS, PLAYS, READS, REMOVALS, Stage, bounded};
use crate::support::at_once;
use crate::support::fault::{self, Hook, Talk};

/// A port where every connection gets an answer to the first thing it says, and then nothing.
fn says(talk: Talk) -> u16 {
    fault::fake(move |stream| {
        let _ = stream.read(&mut [0; 4096]);
        let _ = talk(stream);
        while let Ok(1..) = stream.read(&mut [0; 4096]) {}
    })
}

/// A port that leads to the server, until a request with this word is answered otherwise.
fn says_at(stage: &Stage, word: &'static str, talk: Talk) -> u16 {
    fault::hooked(&stage.server, move |sent| {
        if fault::says(sent, word) { Hook::Talk(talk) } else { Hook::Pass }
    })
}

/// Asserts that every command ends soon with exit code 5, and without a crash, on what is said at this port.
#[track_caller]
fn is_turned_down(stage: &Stage, port: u16, timeout: &str, commands: &[&[&[&str]]]) {
    at_once(commands.iter().flat_map(|group| *group), |words| {
        let began = Instant::now();
        let run = bounded(&stage.command_at(port, &[&["--timeout", timeout], *words].concat()));
        // An array is the protocol, and only no answer that a Redis gives.
        let is_unexpected = run.code == 70 && run.stderr.contains("unexpected reply from Redis at");
        assert!(run.code == 5 || is_unexpected, "{words:?}: {}", run.all());
        assert!(run.stderr.contains(&format!("127.0.0.1:{port}")), "{words:?}: {}", run.all());
        assert!(began.elapsed() < Duration::from_secs(60), "{words:?}: {:?}", began.elapsed());
    });
}

fn endless(stream: &mut dyn Write) -> io::Result<()> {
    stream.write_all(b"+")?;
    loop {
        stream.write_all(&[b'x'; 65_536])?;
    }
}

const NO_PROTOCOL: &[Talk] = &[
    |stream| stream.write_all(b"SSH-2.0-OpenSSH_9.6\r\n"),
    |stream| stream.write_all(b"\r\n\r\n\r\n\r\n"),
    |stream| stream.write_all(b"\0\0\0\0\0\0\0\0\r\n"),
    |stream| stream.write_all(b"*x\r\n"),
    |stream| stream.write_all(b":\r\n"),
    |stream| stream.write_all(b"$3\r\nabcdefg\r\n"),
];

const TOO_MUCH: &[Talk] = &[
    |stream| stream.write_all(b"$1073741824\r\nabc"),
    |stream| stream.write_all(b"$9223372036854775807\r\nabc"),
    |stream| stream.write_all(b"*1000000000\r\n:1\r\n"),
    |stream| stream.write_all(b"*9223372036854775807\r\n:1\r\n"),
    |stream| stream.write_all(b"%1000000000\r\n:1\r\n"),
    |stream| stream.write_all(&b"*1\r\n".repeat(100_000)),
    |stream| stream.write_all(&b"*1000000\r\n".repeat(99)),
];

/// Hears these in place of every answer, or of the first to a walk, or to a service's step done by hand.
fn every_command_is_told(stage: &Stage, timeout: &str, talks: &[Talk]) {
    for talk in talks {
        std::thread::scope(|scope| {
            let down = |port, commands: &[_]| is_turned_down(stage, port, timeout, commands);
            scope
                .spawn(move || down(says(*talk), &[READS, REMOVALS, ADDITIONS, AMENDMENTS, PLAYS]));
            scope.spawn(move || {
                down(says_at(stage, "SCAN", *talk), &[&READS[1..], &REMOVALS[1..3]])
            });
            scope.spawn(move || {
                down(says_at(stage, "WATCH", *talk), &[&REMOVALS[3..], &ADDITIONS[1..]])
            });
        });
    }
    stage.is_untouched();
}

#[test]
fn what_is_not_the_protocol_is_exit_5_for_every_command() {
    every_command_is_told(&Stage::new(&[]), "400ms", NO_PROTOCOL);
}

#[test]
fn a_reply_that_promises_or_brings_too_much_is_exit_5_and_takes_little_memory() {
    every_command_is_told(&Stage::new(&[]), "400ms", TOO_MUCH);
}

#[test]
fn a_line_without_end_is_not_kept_until_time_is_up() {
    every_command_is_told(&Stage::new(&[]), "5s", &[endless]);
}
