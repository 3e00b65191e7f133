//! A command and its reply in one line.

use std::time::Duration;

use super::{escape, words};
use crate::domain::exchange::Exchange;

/// One line for `--debug`: the server, the duration, the command, and the size or the error of the
/// reply.
pub fn line(told: &Exchange) -> String {
    let command: Vec<_> = told.words.iter().map(|word| escape::text(word)).collect();
    let time = words::latency(Duration::from_micros(told.micros));
    let reply = match &told.error {
        Some(error) => format!("error {}", escape::text(error)),
        // Only the size, because the values of records may be confidential.
        None => words::bytes(told.bytes as u64),
    };
    format!("debug: {}  {time}  {}  -> {reply}", told.server, command.join(" "))
}
