//! How large a reply may be, by what was asked for. A header that promises more is given up before its bytes come.

use std::collections::VecDeque;
use std::time::Duration;

use crate::store::connection::resp::{self, Token, Unreadable};

/// A whole value, or the name of a Redis key: what Redis takes from a client (`proto-max-bulk-len`, 512 MiB), and what DUMP
/// or a script puts around it.
pub(super) const WHOLE: usize = 600 << 20;

/// What speaks of the server, of a client or of one Redis key.
const SMALL: usize = 1 << 20;

/// The slots of a cluster, if each of the 16,384 is a range of its own with several replicas.
const SLOTS: usize = 16 << 20;

/// The bounds of the replies to come, and how far the first of them has come.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    ahead: VecDeque<usize>,
    /// Of the reply that is read token by token: the elements to come, and the bytes read.
    missing: usize,
    read: usize,
}

impl Bounds {
    /// Takes in a request of these words.
    pub(super) fn ask(&mut self, words: &[&[u8]]) {
        self.ahead.push_back(most(words));
    }

    /// Takes in requests as they go over the wire.
    pub(super) fn ask_packed(&mut self, requests: &[u8]) {
        let mut at = 0;
        while let Ok(Some((Token::Array(count), next))) = resp::token(requests, at, usize::MAX) {
            at = next;
            let mut words = Vec::with_capacity(count.min(8));
            for _ in 0..count {
                let Ok(Some((Token::Text(word), next))) = resp::token(requests, at, usize::MAX)
                else {
                    return;
                };
                words.push(&requests[word]);
                at = next;
            }
            self.ask(&words);
        }
    }

    /// How many bytes the next reply may have.
    pub(super) fn of_reply(&self) -> usize {
        self.ahead.front().copied().unwrap_or(WHOLE)
    }

    /// Notes that the next reply was read as a whole.
    pub(super) fn took_reply(&mut self) {
        self.ahead.pop_front();
        (self.missing, self.read) = (0, 0);
    }

    /// How many bytes the reply that is read token by token may still have.
    pub(super) fn of_token(&self) -> usize {
        self.of_reply().saturating_sub(self.read)
    }

    /// Notes a token of so many bytes.
    pub(super) fn took_token(&mut self, token: &Token, bytes: usize) {
        let elements = if let Token::Array(count) = token { *count } else { 0 };
        self.missing = self.missing.saturating_sub(1).saturating_add(elements);
        self.read = self.read.saturating_add(bytes);
        if self.missing == 0 {
            self.took_reply();
        }
    }

    /// Passes an array whose elements the reply has room for, as [`resp::token`] does not: it sees one array of several.
    pub(super) fn check(&self, token: &Token) -> Result<(), Unreadable> {
        let Token::Array(count) = token else { return Ok(()) };
        let missing = self.missing.saturating_add(*count);
        if missing > self.of_token() / resp::SHORTEST { Err(Unreadable::TooLarge) } else { Ok(()) }
    }
}

/// How many bytes the reply to a request may have, an error included. Commands are in capitals; any other may have a value.
fn most(words: &[&[u8]]) -> usize {
    let Some(command) = words.first() else { return WHOLE };
    match *command {
        b"GETRANGE" => part(words)
            .map_or(WHOLE, |bytes| bytes.saturating_add(2 * resp::LONGEST_LINE).min(WHOLE)),
        b"CLUSTER" if words.get(1).is_some_and(|word| *word == b"GETKEYSINSLOT") => WHOLE,
        b"CLUSTER" => SLOTS,
        // Their replies hold no value and no name.
        b"ASKING" | b"AUTH" | b"CLIENT" | b"CONFIG" | b"DBSIZE" | b"DEL" | b"DISCARD"
        | b"EXISTS" | b"HELLO" | b"HLEN" | b"INFO" | b"MEMORY" | b"MULTI" | b"OBJECT"
        | b"PEXPIRE" | b"PEXPIREAT" | b"PEXPIRETIME" | b"PING" | b"PTTL" | b"READONLY"
        | b"RESTORE" | b"ROLE" | b"SCRIPT" | b"SELECT" | b"SENTINEL" | b"STRLEN" | b"TIME"
        | b"UNLINK" | b"WAIT" | b"WATCH" => SMALL,
        _ => WHOLE,
    }
}

/// How many bytes `GETRANGE key from to` asks for, if it says.
fn part(words: &[&[u8]]) -> Option<usize> {
    let [_, _, from, to] = words else { return None };
    let number = |word: &[u8]| std::str::from_utf8(word).ok()?.parse::<usize>().ok();
    Some(number(to)?.saturating_sub(number(from)?).saturating_add(1))
}

/// The fewest bytes a second at which long replies come.
const SLOWEST: u64 = 64 * 1024;

/// How long was waited for the replies to what was sent, and how much has come.
///
/// The replies to one write take `--timeout` as a whole, not each of their pieces: a server that sends a byte now and then
/// would be waited for without end. Long replies get the time more that their bytes need at [`SLOWEST`]. Only waiting
/// counts: whoever reads a page may do so slowly.
#[derive(Debug, Default)]
pub(super) struct Patience {
    pub(super) waited: Duration,
    pub(super) received: u64,
}

impl Patience {
    /// How long to wait for the next piece: never longer than the timeout, however much came at once before.
    pub(super) fn left(&self, timeout: Duration) -> Duration {
        let for_bytes = Duration::from_millis(self.received.saturating_mul(1_000) / SLOWEST);
        timeout.saturating_add(for_bytes).saturating_sub(self.waited).min(timeout)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reply_is_bounded_by_what_was_asked_for() {
        let most = |line: &str| most(&line.split(' ').map(str::as_bytes).collect::<Vec<_>>());
        assert_eq!(most("GETRANGE k 0 4095"), 4096 + 2 * resp::LONGEST_LINE);
        assert_eq!(
            [most("GETRANGE k 0 -1"), most("DUMP k"), most("EVALSHA f 1 k"), most("SCAN 0")],
            [WHOLE; 4]
        );
        assert_eq!([most("CLUSTER SLOTS"), most("CLUSTER GETKEYSINSLOT 1 9")], [SLOTS, WHOLE]);
        assert_eq!([most("PTTL k"), most("CLIENT SETNAME x"), most("INFO server")], [SMALL; 3]);
    }

    #[test]
    fn each_reply_has_the_bound_of_its_own_request() {
        let mut bounds = Bounds::default();
        bounds.ask_packed(b"*2\r\n$4\r\nDUMP\r\n$1\r\nk\r\n*1\r\n$4\r\nTIME\r\n");
        bounds.ask(&[b"PTTL", b"k"]);
        assert_eq!(bounds.of_reply(), WHOLE);
        bounds.took_reply();
        bounds.took_token(&Token::Array(2), 4);
        assert_eq!(bounds.of_token(), SMALL - 4);
        assert_eq!(bounds.check(&Token::Array(SMALL)), Err(Unreadable::TooLarge));
        bounds.took_token(&Token::Integer(1), 4);
        bounds.took_token(&Token::Integer(1), 4);
        assert_eq!((bounds.of_token(), bounds.ahead.len()), (SMALL, 1));
    }
}

#[cfg(test)]
mod patience_tests {
    use super::*;

    #[test]
    fn time_is_given_by_the_bytes_that_came() {
        let left = |waited, received| Patience { waited, received }.left(Duration::from_secs(1));
        let seconds = Duration::from_secs;
        assert_eq!((left(seconds(0), 0), left(seconds(1), 0)), (seconds(1), seconds(0)));
        assert_eq!(
            (left(seconds(2), 2 * SLOWEST), left(seconds(9), SLOWEST)),
            (seconds(1), seconds(0))
        );
        assert_eq!(
            (left(seconds(0), u64::MAX), left(seconds(9), 9 * SLOWEST)),
            (seconds(1), seconds(1))
        );
    }
}
