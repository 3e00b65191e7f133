//! What has no end, or promises more than ever comes: given up, with little memory.

use std::io::{BufRead as _, BufReader, Write as _};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use crate::stage::Stage;
use crate::support::at_once;
use crate::support::fault::{self, Hook, Talk};
use crate::support::memory::peak_of;

/// More than idemctl takes for itself, far less than what is promised.
const LITTLE: u64 = 96 * 1024 * 1024;

/// A server that answers SCAN with whatever `page` says for the n-th one, and knows hardly anything else.
fn scans(page: impl Fn(u64) -> String + Send + Sync + 'static) -> u16 {
    let pages = AtomicU64::new(0);
    fault::fake(move |stream| {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        while let Some(count) = lines.next() {
            let count = count.trim_start_matches('*').parse().unwrap_or(0);
            let words: Vec<_> = (0..count).filter_map(|_| lines.by_ref().nth(1)).collect();
            let answer = match words.first().map(String::as_str) {
                Some("SCAN") => page(pages.fetch_add(1, Ordering::Relaxed)),
                Some("DBSIZE") => ":3\r\n".to_owned(),
                Some("TIME") => "*2\r\n$1\r\n1\r\n$1\r\n0\r\n".to_owned(),
                Some("GETRANGE") => "$0\r\n\r\n".to_owned(),
                Some("PTTL") => ":-2\r\n".to_owned(),
                Some("PING") => match words.get(1) {
                    Some(text) => format!("${}\r\n{text}\r\n", text.len()),
                    None => "+PONG\r\n".to_owned(),
                },
                Some("CLUSTER") => "-ERR This instance has cluster support disabled\r\n".to_owned(),
                _ => "+OK\r\n".to_owned(),
            };
            if stream.write_all(answer.as_bytes()).is_err() {
                return;
            }
        }
    })
}

fn page(cursor: u64, keys: impl Iterator<Item = String>) -> String {
    let keys: Vec<_> = keys.map(|key| format!("${}\r\n{key}\r\n", key.len())).collect();
    let cursor = cursor.to_string();
    format!("*2\r\n${}\r\n{cursor}\r\n*{}\r\n{}", cursor.len(), keys.len(), keys.concat())
}

#[test]
fn a_scan_without_end_is_given_up() {
    let stage = Stage::new(&[]);
    let none = std::iter::empty::<String>;
    let fresh = |number: u64| (0..500).map(move |key| format!("other:{number}:{key}"));
    let servers = [
        scans(move |_| page(17, none())),
        scans(move |number| page(5 + number % 7, none())),
        scans(move |number| page(5 + number, fresh(number))),
    ];
    let is_given_up = |port: u16| {
        let began = Instant::now();
        let (run, peak) = peak_of(&mut stage.command_at(port, &["list"]));
        // What was listed before is no whole list.
        assert!([3, 5].contains(&run.code), "{}", run.all());
        run.says("its SCAN has no end");
        assert!(
            peak < LITTLE && began.elapsed() < Duration::from_secs(120),
            "{peak} bytes, {:?}",
            began.elapsed()
        );
    };
    at_once(servers, is_given_up);
}

/// A server that answers so, and then sends these bytes as fast as they are taken, or with pauses.
fn floods(header: &'static str, piece: &'static [u8], pause: Duration) -> u16 {
    fault::fake(move |stream| {
        let lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        for line in lines {
            match line.to_ascii_uppercase().as_str() {
                "HELLO" => drop(stream.write_all(b"-ERR unknown command\r\n")),
                "NO-TOUCH" | "SETNAME" => drop(stream.write_all(b"+OK\r\n")),
                "SLOTS" => {
                    drop(stream.write_all(b"-ERR This instance has cluster support disabled\r\n"))
                }
                "SCAN" | "TIME" | "EVAL" | "EVAL_RO" | "EVALSHA_RO" | "INFO" | "GETRANGE" => {
                    let _ = stream.write_all(header.as_bytes());
                    while stream.write_all(piece).is_ok() {
                        std::thread::sleep(pause);
                    }
                }
                _ => {}
            }
        }
    })
}

/// Rule: a reply has at most as many bytes as what was asked for. What promises more is given up before it comes.
#[test]
fn a_reply_that_promises_gigabytes_and_keeps_coming_is_given_up() {
    let stage = Stage::new(&[]);
    static TEXT: [u8; 65_536] = [b'a'; 65_536];
    let nils: &'static [u8] = b"$-1\r\n".repeat(10_000).leak();
    let floods = [
        floods("$4000000000\r\n", &TEXT, Duration::ZERO),
        floods("*1000000000\r\n", nils, Duration::ZERO),
        floods("*2\r\n$1\r\n7\r\n*1000000000\r\n", nils, Duration::ZERO),
        // Fast enough for the time that its bytes are given.
        floods("$4000000000\r\n", &TEXT, Duration::from_millis(300)),
    ];
    at_once(floods, |port| {
        for words in [&["inspect", "k"][..], &["list"], &["check"]] {
            let began = Instant::now();
            let (run, peak) =
                peak_of(&mut stage.command_at(port, &[&["--timeout", "1s"], words].concat()));
            assert!([3, 5].contains(&run.code), "{words:?}: {}", run.all());
            assert!(peak < LITTLE, "{words:?} took {peak} bytes");
            assert!(began.elapsed() < Duration::from_secs(10), "{words:?}: {:?}", began.elapsed());
        }
    });
}

#[test]
fn what_is_promised_takes_no_memory_before_it_comes() {
    let stage = Stage::new(&[]);
    let nested = "*1\r\n".repeat(1_000_000);
    let promises = [
        "$536870912\r\nabc",
        "$9223372036854775807\r\nabc",
        "*1000000000\r\n",
        "*1000000000\r\n:1\r\n",
        "*2\r\n$1\r\n7\r\n*1000000000\r\n",
        &nested,
    ];
    at_once(promises, |promise| takes_no_memory(&stage, promise));
}

/// Whatever a command asks, it gets this promise.
fn takes_no_memory(stage: &Stage, promise: &str) {
    let said = promise.to_owned();
    let port = fault::fake(move |stream| {
        let mut lines = BufReader::new(stream.try_clone().unwrap()).lines().map_while(Result::ok);
        while lines.next().is_some() {
            let _ = stream.write_all(said.as_bytes());
        }
    });
    for words in
        [&["inspect", "k"][..], &["list"], &["race", "--rounds", "1", "--concurrency", "1"]]
    {
        let began = Instant::now();
        let (run, peak) =
            peak_of(&mut stage.command_at(port, &[&["--timeout", "1s"], words].concat()));
        assert!([3, 5, 70].contains(&run.code), "{words:?}: {}", run.all());
        assert!(!run.stderr.contains("panicked"), "{words:?}: {}", run.all());
        let shown = &promise[..promise.len().min(40)];
        assert!(peak < LITTLE, "{words:?} took {peak} bytes for {shown:?}");
        assert!(began.elapsed() < Duration::from_secs(60), "{words:?}: {:?}", began.elapsed());
    }
}

/// Rule: `--timeout` limits the replies to one write as a whole. A server that sends a byte now and then does not hold a command.
#[test]
fn replies_that_come_byte_by_byte_are_given_up() {
    // Whole after ten seconds, and never silent for a tenth of the timeout.
    let byte_by_byte: Talk = |client| {
        let key = "k".repeat(80);
        for byte in format!("*2\r\n$1\r\n0\r\n*1\r\n$80\r\n{key}\r\n").bytes() {
            std::thread::sleep(Duration::from_millis(100));
            client.write_all(&[byte])?;
        }
        Ok(())
    };
    let stage = Stage::new(&[]);
    let port = fault::hooked(&stage.server, move |sent| {
        let is_slow = ["SCAN", "EVAL", "GETRANGE"].iter().any(|word| fault::says(sent, word));
        if is_slow { Hook::Talk(byte_by_byte) } else { Hook::Pass }
    });
    let commands: [&[&str]; 4] = [&["list"], &["check"], &["stats"], &["inspect", "k"]];
    at_once(commands, |words: &[&str]| {
        let began = Instant::now();
        let run = stage.at(port, &[&["--timeout", "1s"], words].concat());
        assert!([3, 5].contains(&run.code), "{words:?}: {}", run.all());
        assert!(run.all().contains("did not answer within 1s"), "{words:?}: {}", run.all());
        assert!(
            began.elapsed() < Duration::from_secs(6),
            "{words:?}: {:?}; {}",
            began.elapsed(),
            run.all()
        );
    });
}
