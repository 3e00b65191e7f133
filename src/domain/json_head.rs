//! JSON that was cut off: closing what is open, so that the part that was read can be used.
//!
//! A stored value may be megabytes long; its state, status and headers stand at its beginning.
//!
//! The services' scripts read JSON with cjson, which takes the bytes inside a string as they come. So that a record's
//! state is told as the scripts tell it, bytes that are not UTF-8 and bare control characters are let through here
//! too; the former become U+FFFD. What cjson takes beyond that is `unreadable`: nesting deeper than 128, numbers such
//! as `0x10` and `nan`, and anything behind a zero byte.

use std::borrow::Cow;
use std::fmt::Write as _;

use serde_json::Value;

use crate::domain::json::{self, Json};

/// Parses JSON bytes, or the beginning of some.
///
/// With `whole` false the bytes may end anywhere: what is open is closed, a string is cut where the bytes end,
/// and an incomplete member is dropped.
///
/// # Errors
/// Why the bytes are not JSON, for people.
pub fn parse(bytes: &[u8], whole: bool) -> Result<Json<'_>, String> {
    json::plain(bytes, whole).map_or_else(|| parse_with_care(bytes, whole).map(Json::from), Ok)
}

/// The same for what is odd.
pub(super) fn parse_with_care(bytes: &[u8], whole: bool) -> Result<Value, String> {
    let json = if whole { Cow::Borrowed(bytes) } else { Cow::Owned(close(bytes)) };
    serde_json::from_slice(&json)
        .or_else(|error| serde_json::from_str(&with_sound_strings(&json)).map_err(|_| error.to_string()))
}

/// The same JSON with what JSON forbids inside strings put in a form it allows. A zero byte stays: cjson stops there.
fn with_sound_strings(json: &[u8]) -> String {
    let mut sound = String::with_capacity(json.len());
    let (mut in_string, mut escaped) = (false, false);
    for character in String::from_utf8_lossy(json).chars() {
        match character {
            '\u{1}'..='\u{1f}' if in_string && !escaped => {
                let _ = write!(sound, "\\u{:04x}", u32::from(character));
            }
            _ => sound.push(character),
        }
        in_string ^= character == '"' && !escaped;
        escaped = in_string && !escaped && character == '\\';
    }
    sound
}

/// Closes the beginning of a JSON document: every prefix of valid JSON becomes valid JSON, but for the prefixes
/// that hold no complete value yet.
fn close(head: &[u8]) -> Vec<u8> {
    let head = &head[..head.utf8_end()];
    let mut scan = Scan::default();
    for (index, byte) in head.iter().enumerate() {
        scan.step(index, *byte);
    }
    scan.finish(head)
}

trait Utf8End {
    fn utf8_end(&self) -> usize;
}

impl Utf8End for [u8] {
    /// The end of the last whole character, when only the last one is cut; else the end of the bytes.
    fn utf8_end(&self) -> usize {
        match std::str::from_utf8(self) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.len(),
        }
    }
}

/// Where a scan of JSON stands: what is open, and up to where everything is complete.
#[derive(Default)]
struct Scan {
    /// The closing bytes of the open objects and arrays, outermost first.
    open: Vec<u8>,
    /// Everything before this index can be kept, once the first `safe_open` containers are closed behind it.
    safe: usize,
    safe_open: usize,
    in_string: bool,
    /// The open string is a value, not a member's name.
    value_string: bool,
    /// Where the open escape sequence began, and how many bytes of it are still to come.
    escape: Option<(usize, usize)>,
    after_colon: bool,
}

impl Scan {
    fn step(&mut self, index: usize, byte: u8) {
        if self.in_string {
            self.step_in_string(index, byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                self.value_string = self.after_colon || self.open.last() != Some(&b'}');
            }
            b'{' | b'[' => {
                self.open.push(if byte == b'{' { b'}' } else { b']' });
                self.after_colon = false;
                self.keep(index + 1);
            }
            b'}' | b']' => {
                // A scalar ends where its container does.
                self.open.pop();
                self.after_colon = false;
                self.keep(index + 1);
            }
            b',' => {
                self.after_colon = false;
                self.keep(index);
            }
            b':' => self.after_colon = true,
            _ => {}
        }
    }

    fn step_in_string(&mut self, index: usize, byte: u8) {
        match (self.escape, byte) {
            (Some((start, left)), _) => {
                let left = if left == 1 && byte == b'u' && index == start + 1 { 4 } else { left - 1 };
                self.escape = (left > 0).then_some((start, left));
            }
            (None, b'\\') => self.escape = Some((index, 1)),
            (None, b'"') => {
                self.in_string = false;
                if self.value_string {
                    self.keep(index + 1);
                }
            }
            (None, _) => {}
        }
    }

    fn keep(&mut self, index: usize) {
        self.safe = index;
        self.safe_open = self.open.len();
    }

    fn finish(&self, head: &[u8]) -> Vec<u8> {
        let mut closed;
        if self.in_string && self.value_string {
            let end = self.escape.map_or(head.len(), |(start, _)| start);
            closed = without_lone_surrogate(&head[..end]).to_vec();
            closed.push(b'"');
            closed.extend(self.open.iter().rev());
        } else if self.open.is_empty() && self.safe == 0 {
            closed = head.to_vec();
        } else {
            closed = head[..self.safe].to_vec();
            closed.extend(self.open[..self.safe_open].iter().rev());
        }
        closed
    }
}

/// Drops a trailing `\ud83d` whose second half was cut off.
fn without_lone_surrogate(text: &[u8]) -> &[u8] {
    let Some(start) = text.len().checked_sub(6) else { return text };
    let tail = &text[start..];
    let high =
        tail[0] == b'\\' && tail[1] == b'u' && tail[2].eq_ignore_ascii_case(&b'd') && b"89abAB".contains(&tail[3]);
    // An even number of backslashes before it would make it plain text; cutting it is harmless then.
    if high { &text[..start] } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i32>().prop_map(Value::from),
            "[a-zé\"\\\\😀\u{1}]{0,8}".prop_map(Value::from),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                prop::collection::vec(("[a-z\"]{1,4}", inner), 0..4)
                    .prop_map(|members| Value::Object(members.into_iter().collect())),
            ]
        })
    }

    #[test]
    fn a_cut_body_leaves_status_and_headers() {
        let head = br#"{"status":"COMPLETED","code":201,"headers":{"A":["b"]},"body":"aGVsbG8"#;
        let value = parse_with_care(head, false).unwrap();
        assert_eq!(value["code"], 201);
        assert_eq!(value["headers"]["A"][0], "b");
        assert_eq!(value["body"], "aGVsbG8");
    }

    #[test]
    fn a_cut_number_is_dropped_for_it_may_go_on() {
        assert_eq!(parse_with_care(br#"{"status":1,"code":20"#, false).unwrap(), serde_json::json!({"status": 1}));
    }

    #[test]
    fn a_cut_surrogate_pair_is_dropped() {
        assert_eq!(parse_with_care(br#"{"a":"x\ud83d"#, false).unwrap(), serde_json::json!({"a": "x"}));
        assert_eq!(parse_with_care(br#"{"a":"x\ud83d\ude0"#, false).unwrap(), serde_json::json!({"a": "x"}));
    }

    #[test]
    fn any_bytes_in_strings_leave_the_rest_readable() {
        assert_eq!(parse_with_care(b"{\"status\":1,\"body\":\"caf\xe9\"}", true).unwrap()["body"], "caf\u{fffd}");
        assert_eq!(parse_with_care(b"{\"status\":1,\"body\":\"caf\xe9 cr", false).unwrap()["body"], "caf\u{fffd} cr");
        assert_eq!(parse_with_care(b"{\"a\":\"two\nlines\\\\\"}", true).unwrap()["a"], "two\nlines\\");
    }

    #[test]
    fn other_damage_stays_unreadable() {
        for damaged in
            [&b"{\"a\":1\xe9}"[..], b"{\"a\":\"\\\n\"}", b"{\"a\":\"\0\"}", b"{\"a\":\"\\ud83d\"}", b"caf\xe9", b"\x01"]
        {
            assert!(parse_with_care(damaged, true).is_err(), "{}", damaged.escape_ascii());
        }
    }

    proptest! {
        #[test]
        fn every_beginning_of_an_object_parses(value in json(), cut in any::<prop::sample::Index>()) {
            let text = serde_json::to_vec(&serde_json::json!({ "a": value })).unwrap();
            let cut = 1 + cut.index(text.len());
            prop_assert!(parse_with_care(&text[..cut], false).is_ok(), "{}", String::from_utf8_lossy(&text[..cut]));
        }

        #[test]
        fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..60)) {
            let _ = parse_with_care(&bytes, false);
            let _ = parse_with_care(&bytes, true);
        }
    }
}
