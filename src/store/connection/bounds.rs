//! The maximum size of a reply, by request. A reply whose header announces more is rejected before
//! its bytes arrive.

use std::collections::VecDeque;
use std::time::Duration;

use crate::store::connection::resp::{self, Token, Unreadable};

/// For a whole value or the name of a Redis key. Redis accepts up to 512 MiB from a client
/// (`proto-max-bulk-len`), and DUMP or a script adds some bytes.
pub(super) const WHOLE: usize = 600 << 20;

/// For replies about the server, a client, or one Redis key.
const SMALL: usize = 1 << 20;

/// For the slots of a cluster, even if each of the 16,384 slots is a range with several replicas.
const SLOTS: usize = 16 << 20;

/// The limits of the pending replies, and the progress of the first of them.
#[derive(Debug, Default)]
pub(super) struct Bounds {
    ahead: VecDeque<usize>,
    /// For the reply that is read token by token: the number of elements still to read, and the
    /// bytes read.
    missing: usize,
    read: usize,
}

impl Bounds {
    /// Adds a request with these arguments.
    pub(super) fn ask(&mut self, words: &[&[u8]]) {
        self.ahead.push_back(most(words));
    }

    /// Adds requests in their wire format.
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

    /// The maximum size of the next reply, in bytes.
    pub(super) fn of_reply(&self) -> usize {
        self.ahead.front().copied().unwrap_or(WHOLE)
    }

    /// Records that the next reply was read as a whole.
    pub(super) fn took_reply(&mut self) {
        self.ahead.pop_front();
        self.missing = 0;
        self.read = 0;
    }

    /// How many bytes the reply that is read token by token may still have.
    pub(super) fn of_token(&self) -> usize {
        self.of_reply().saturating_sub(self.read)
    }

    /// Records a token of this many bytes.
    pub(super) fn took_token(&mut self, token: &Token, bytes: usize) {
        let elements = if let Token::Array(count) = token { *count } else { 0 };
        self.missing = self.missing.saturating_sub(1).saturating_add(elements);
        self.read = self.read.saturating_add(bytes);
        if self.missing == 0 {
            self.took_reply();
        }
    }

    /// Checks that the reply has room for the elements of an array. [`resp::token`] checks each
    /// array alone and cannot see nested ones together.
    pub(super) fn check(&self, token: &Token) -> Result<(), Unreadable> {
        let Token::Array(count) = token else { return Ok(()) };
        let missing = self.missing.saturating_add(*count);
        if missing > self.of_token() / resp::SHORTEST { Err(Unreadable::TooLarge) } else { Ok(()) }
    }
}

/// The maximum size of the reply to a request, or of an error. Command names are in capitals; the
/// reply to any other command may contain a value.
fn most(words: &[&[u8]]) -> usize {
    let Some(command) = words.first() else { return WHOLE };
    match *command {
        // Besides the requested bytes, there is room for the length in front of them, or an error.
        b"GETRANGE" => match part(words) {
            Some(bytes) => bytes.saturating_add(2 * resp::LONGEST_LINE).min(WHOLE),
            None => WHOLE,
        },
        // A scan sends these for each Redis key, so they come first.
        b"PEXPIRETIME" | b"PTTL" | b"STRLEN" => SMALL,
        b"CLUSTER" if words.get(1).is_some_and(|word| *word == b"GETKEYSINSLOT") => WHOLE,
        b"CLUSTER" => SLOTS,
        // The replies to these commands contain neither a value nor a key name.
        b"ASKING" | b"AUTH" | b"CLIENT" | b"CONFIG" | b"DBSIZE" | b"DEL" | b"DISCARD"
        | b"EXISTS" | b"HELLO" | b"HLEN" | b"INFO" | b"MEMORY" | b"MULTI" | b"OBJECT"
        | b"PEXPIRE" | b"PEXPIREAT" | b"PING" | b"READONLY" | b"RESTORE" | b"ROLE" | b"SCRIPT"
        | b"SELECT" | b"SENTINEL" | b"TIME" | b"UNLINK" | b"WAIT" | b"WATCH" => SMALL,
        _ => WHOLE,
    }
}

/// The number of bytes that `GETRANGE key from to` requests, if both ends are given.
fn part(words: &[&[u8]]) -> Option<usize> {
    let [_, _, from, to] = words else { return None };
    Some(number(to)?.saturating_sub(number(from)?).saturating_add(1))
}

/// A number in digits. A scan reads two for each Redis key, so that the bytes are not checked for
/// UTF-8 first.
fn number(word: &[u8]) -> Option<usize> {
    let mut number: usize = 0;
    for digit in word {
        if !digit.is_ascii_digit() {
            return None;
        }
        number = number.checked_mul(10)?.checked_add(usize::from(digit - b'0'))?;
    }
    if word.is_empty() { None } else { Some(number) }
}

/// The slowest accepted rate of a long reply, in bytes per second. Over a slower link, large values
/// need a longer `--timeout`.
const SLOWEST: u64 = 64 * 1024;

/// How long idemctl has waited for the replies to one write, and how many bytes have arrived.
///
/// `--timeout` covers all replies to one write, not each piece of them. Otherwise a server that
/// sends one byte now and then could delay idemctl without limit. Long replies get the additional
/// time that their bytes need at [`SLOWEST`]. Only waiting counts, so a caller may process a page
/// slowly.
#[derive(Debug, Default)]
pub(super) struct Patience {
    pub(super) waited: Duration,
    pub(super) received: u64,
}

impl Patience {
    /// How long to wait for the next piece. It is never longer than the timeout, even if many bytes
    /// arrived at once before.
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
