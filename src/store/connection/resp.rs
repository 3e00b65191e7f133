//! Parses replies of the Redis protocol token by token, in the receive buffer.
//!
//! The client crate builds a tree of owned values from every reply, which took a scan more time
//! than the server needed. This parser reads a page without copying it. A property test compares it
//! with the crate's parser.

use std::ops::Range;

use bstr::ByteSlice as _;
use redis::Value;

use self::Unreadable::{Malformed, TooLarge};

/// One element of a reply. The elements of an array follow it as separate tokens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) enum Token {
    Nil,
    Integer(i64),
    /// A string or a status, as a range of the buffer.
    Text(Range<usize>),
    /// An error, as the range of its text.
    Error(Range<usize>),
    /// An array of this many elements.
    Array(usize),
}

/// The longest line, with the same limit as in servers. Longer data is sent as a string with its
/// length first.
const LONGEST_LINE: usize = 64 * 1024;

/// The fewest bytes of an array element: `+` and the line end.
pub(in crate::store) const SHORTEST: usize = 3;

/// How many arrays may be nested, with the same limit as in the client crate, so that no reply
/// fills the stack.
const DEEPEST: usize = 99;

/// Why bytes are not a valid reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum Unreadable {
    /// They do not follow the protocol.
    Malformed,
    /// They are more than the request allows, or their header announces more.
    TooLarge,
}

/// The token at `at`, and the offset of the next one; `None` while it is incomplete. A string or an
/// array that needs more than `most` bytes is an error.
pub(in crate::store) fn token(
    buffer: &[u8],
    at: usize,
    most: usize,
) -> Result<Option<(Token, usize)>, Unreadable> {
    let Some(line) = buffer[at..].find_byte(b'\n') else {
        // A line without an end must not fill the memory.
        return if buffer.len() - at > LONGEST_LINE { Err(Malformed) } else { Ok(None) };
    };
    let next = at + line + 1;
    let Some([kind, text @ .., b'\r']) = buffer.get(at..at + line) else { return Err(Malformed) };
    let text_at = at + 1..at + 1 + text.len();
    let token = match kind {
        b'+' => Token::Text(text_at),
        b'-' => Token::Error(text_at),
        b':' => Token::Integer(integer(text)?),
        b'*' => match integer(text)? {
            -1 => Token::Nil,
            // Rejected by the header alone, before the elements arrive.
            count => match usize::try_from(count).map_err(|_| Malformed)? {
                count if count > most / SHORTEST => return Err(TooLarge),
                count => Token::Array(count),
            },
        },
        b'$' => match integer(text)? {
            -1 => Token::Nil,
            length => match usize::try_from(length).map_err(|_| Malformed)? {
                length if length > most => return Err(TooLarge),
                length => return bulk(buffer, next, length),
            },
        },
        _ => return Err(Malformed),
    };
    Ok(Some((token, next)))
}

/// The progress of a reply that is still arriving.
pub(in crate::store) struct Arriving {
    at: usize,
    missing: usize,
    most: usize,
}

impl Arriving {
    /// A reply of at most `most` bytes.
    pub(in crate::store) fn new(most: usize) -> Self {
        Self { at: 0, missing: 1, most }
    }

    /// The end of the reply at the start of the buffer; `None` while it is incomplete. Bytes that
    /// were parsed before are not parsed again.
    pub(in crate::store) fn end(&mut self, buffer: &[u8]) -> Result<Option<usize>, Unreadable> {
        while self.missing > 0 {
            let left = self.most.saturating_sub(self.at);
            let Some((token, next)) = token(buffer, self.at, left)? else { return Ok(None) };
            let elements = if let Token::Array(count) = token { count } else { 0 };
            self.missing = (self.missing - 1).checked_add(elements).ok_or(Malformed)?;
            if self.missing > left / SHORTEST {
                return Err(TooLarge);
            }
            self.at = next;
        }
        Ok(Some(self.at))
    }
}

/// The value of a complete reply, as the client crate returns it. The crate's parser fills a buffer
/// of 8 KiB for each reply, which took a purge 13 % of its time, so it gets only the errors, whose
/// code and message it separates.
///
/// # Errors
/// The bytes are not a complete reply, a status is not UTF-8, or arrays are nested too deep.
pub(in crate::store) fn value(reply: &[u8]) -> Result<Value, Unreadable> {
    value_at(reply, &mut 0, 0)
}

/// The value at `at`, which then is the offset of the next one.
fn value_at(reply: &[u8], at: &mut usize, depth: usize) -> Result<Value, Unreadable> {
    let start = *at;
    let Some((token, next)) = token(reply, start, usize::MAX)? else { return Err(Malformed) };
    *at = next;
    Ok(match token {
        Token::Nil => Value::Nil,
        Token::Integer(number) => Value::Int(number),
        Token::Text(text) if reply[start] == b'+' => match &reply[text] {
            b"OK" => Value::Okay,
            text => Value::SimpleString(text.to_str().map_err(|_| Malformed)?.to_owned()),
        },
        Token::Text(text) => Value::BulkString(reply[text].to_vec()),
        Token::Error(_) => redis::parse_redis_value(&reply[start..next]).map_err(|_| Malformed)?,
        Token::Array(count) => {
            if depth == DEEPEST {
                return Err(Malformed);
            }
            let mut elements = Vec::new();
            for _ in 0..count {
                elements.push(value_at(reply, at, depth + 1)?);
            }
            Value::Array(elements)
        }
    })
}

fn bulk(buffer: &[u8], start: usize, length: usize) -> Result<Option<(Token, usize)>, Unreadable> {
    let end = start.checked_add(length).ok_or(Malformed)?;
    match buffer.get(end..) {
        Some([b'\r', b'\n', ..]) => Ok(Some((Token::Text(start..end), end + 2))),
        Some([_, _, ..]) => Err(Malformed),
        Some([] | [_]) | None => Ok(None),
    }
}

fn integer(text: &[u8]) -> Result<i64, Unreadable> {
    let is_negative = text.starts_with(b"-");
    let digits = if is_negative { &text[1..] } else { text };
    if digits.is_empty() {
        return Err(Malformed);
    }
    let mut number: i64 = 0;
    for byte in digits {
        if !byte.is_ascii_digit() {
            return Err(Malformed);
        }
        let digit = i64::from(byte - b'0');
        let tens = number.checked_mul(10).ok_or(Malformed)?;
        // Digits are subtracted for a negative number, because the smallest number has no positive
        // counterpart.
        let next = if is_negative { tens.checked_sub(digit) } else { tens.checked_add(digit) };
        number = next.ok_or(Malformed)?;
    }
    Ok(number)
}

/// Appends a command in its wire format.
pub(in crate::store) fn pack(out: &mut Vec<u8>, words: &[&[u8]]) {
    header(out, b'*', words.len());
    for word in words {
        header(out, b'$', word.len());
        out.extend_from_slice(word);
        out.push(b'\r');
        out.push(b'\n');
    }
}

fn header(out: &mut Vec<u8>, kind: u8, number: usize) {
    let mut buffer = [0; DIGITS];
    out.push(kind);
    // Appended byte by byte, because a scan writes ten headers per Redis key, and a call of memcpy
    // takes longer than these few bytes, above all that of musl.
    for digit in digits(number, &mut buffer) {
        out.push(*digit);
    }
    out.push(b'\r');
    out.push(b'\n');
}

/// The most decimal digits of a `usize`.
pub(in crate::store) const DIGITS: usize = 20;

/// The decimal digits of a number. They are written into the caller's buffer, because a scan needs
/// them for each Redis key.
pub(in crate::store) fn digits(mut number: usize, buffer: &mut [u8; DIGITS]) -> &[u8] {
    // From the last digit to the first.
    let mut at = DIGITS;
    loop {
        at -= 1;
        buffer[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            return &buffer[at..];
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn reply() -> impl Strategy<Value = Vec<u8>> {
        let bulk = prop::collection::vec(any::<u8>(), 0..12).prop_map(|bytes| {
            [format!("${}\r\n", bytes.len()).as_bytes(), &bytes, b"\r\n"].concat()
        });
        let leaf = prop_oneof![
            4 => bulk,
            2 => prop_oneof![any::<i64>(), Just(i64::MIN), Just(i64::MAX)]
                .prop_map(|number| format!(":{number}\r\n").into_bytes()),
            1 => prop::sample::select(vec!["$-1\r\n", "*-1\r\n", "+OK\r\n", "+PONG\r\n", "-ERR no\r\n", "-NOPERM x y\r\n"])
                .prop_map(|text| text.as_bytes().to_vec()),
        ];
        leaf.prop_recursive(3, 20, 5, |inner| {
            prop::collection::vec(inner, 0..5).prop_map(|items| {
                [format!("*{}\r\n", items.len()).into_bytes(), items.concat()].concat()
            })
        })
    }

    #[test]
    fn what_is_no_reply_is_malformed() {
        for bytes in [
            "HTTP/1.1 400\r\n",
            ":\r\n",
            ":1x\r\n",
            ":-\r\n",
            "$3\r\nabcd\r\n",
            "*-2\r\n",
            "$-5\r\n",
            "\r\n",
            "\n",
        ] {
            assert_eq!(token(bytes.as_bytes(), 0, usize::MAX), Err(Malformed), "{bytes:?}");
        }
    }

    #[test]
    fn arrays_are_nested_as_deep_as_in_the_crate() {
        for depth in [DEEPEST - 1, DEEPEST, DEEPEST + 1, 100_000] {
            let reply = format!("{}:7\r\n", "*1\r\n".repeat(depth));
            let crates = redis::parse_redis_value(reply.as_bytes()).ok();
            assert_eq!(value(reply.as_bytes()).ok(), crates, "{depth}");
        }
    }

    #[test]
    fn a_line_without_end_is_malformed_before_it_fills_the_memory() {
        let line = [b"+".to_vec(), vec![b'x'; LONGEST_LINE]].concat();
        assert_eq!(token(&line[..LONGEST_LINE], 0, usize::MAX), Ok(None));
        assert_eq!(token(&line, 0, usize::MAX), Err(Malformed));
    }

    proptest! {
        #[test]
        fn replies_are_read_as_the_crate_reads_them(reply in reply(), more in prop::collection::vec(any::<u8>(), 0..4)) {
            let end = Arriving::new(usize::MAX).end(&[&reply[..], &more].concat());
            prop_assert_eq!(end, Ok(Some(reply.len())));
            prop_assert_eq!(value(&reply).ok(), redis::parse_redis_value(&reply).ok());
        }

        #[test]
        fn a_cut_reply_is_incomplete_and_nothing_makes_it_panic(reply in reply(), bytes in prop::collection::vec(any::<u8>(), 0..12)) {
            let cut = &reply[..reply.len() - 1];
            prop_assert_eq!(value(cut), Err(Malformed));
            let mut arriving = Arriving::new(usize::MAX);
            prop_assert_eq!(arriving.end(cut), Ok(None));
            prop_assert_eq!(arriving.end(&reply), Ok(Some(reply.len())));
            let _ = token(&bytes, 0, usize::MAX);
        }

        #[test]
        fn commands_are_packed_as_the_crate_packs_them(words in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..120), 1..5)) {
            let mut ours = Vec::new();
            pack(&mut ours, &words.iter().map(Vec::as_slice).collect::<Vec<_>>());
            let mut command = redis::Cmd::new();
            for word in &words {
                command.arg(word);
            }
            prop_assert_eq!(ours, command.get_packed_command());
        }
    }
}
