//! `idemctl race`, against a real server.

mod server;
mod verdict;
mod void;

use crate::support::Server;
use crate::support::terminal::{plain, shown_on};

/// Rule: the speed is a table of its own, and no line is wider than a narrow terminal.
#[test]
fn a_narrow_terminal_gets_the_speed_below_the_verdicts() {
    let server = Server::start();
    let race = ["race", "--schema", "express", "--rounds", "2", "--concurrency", "4", "-v"];
    for (columns, tables) in [(80, 2), (200, 2)] {
        let shown = shown_on(columns, &server.command(), &race);
        let text = plain(&shown);
        let mut headings = 0;
        for line in text.lines() {
            // Bars have characters of several bytes, which the test's terminal takes apart.
            if line.is_ascii() {
                assert!(line.len() <= usize::from(columns), "{columns}: {text}");
            }
            if line.contains("SCHEMA ") {
                headings += 1;
                assert_eq!(line.contains("WINNERS"), headings == 1, "{columns}: {text}");
                assert_eq!(line.contains("P99"), headings == tables, "{columns}: {text}");
            }
        }
        assert_eq!(headings, tables, "{columns}: {text}");
    }
}
