//! One line of MONITOR: when, whose, and the command, as far as it concerns records.

use std::str;

/// Who sent a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Who {
    /// A service's worker.
    Worker(usize),
    /// A command of idemctl's, by its place among those of the storm.
    Operator(usize),
    /// The master that a replica follows.
    Master,
    /// Who logged in, and was gone before anybody could ask who it was.
    Gone,
    /// Anybody else.
    UnclaimedKey,
}

/// When a Redis key ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expiry {
    Never,
    /// As before.
    Kept,
    /// After so many milliseconds.
    In(u64),
    /// At so many milliseconds since the epoch.
    At(u64),
}

/// A command that reads or changes records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    Set {
        key: Vec<u8>,
        value: Vec<u8>,
        if_absent: bool,
        expiry: Expiry,
    },
    Remove(Vec<Vec<u8>>),
    Expire(Vec<u8>, Expiry),
    Restore {
        key: Vec<u8>,
        dump: Vec<u8>,
        expiry: Expiry,
        replaces: bool,
    },
    /// The value was read, or a part of it.
    Read(Vec<u8>),
    Echo(Vec<u8>),
    /// A script, whose own commands follow.
    Script,
}

/// Who a line says sent it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sender<'a> {
    /// The script that was sent last.
    Script,
    /// A client at this address.
    Client(&'a str),
}

/// A line of MONITOR, its words as they are written.
pub struct Line<'a> {
    /// Microseconds since the epoch.
    pub at: u64,
    pub sender: Sender<'a>,
    pub name: &'a [u8],
    words: &'a [u8],
}

impl<'a> Line<'a> {
    /// Takes a line apart; nothing for what is no command, such as the reply to MONITOR itself.
    pub fn parse(line: &'a [u8]) -> Option<Self> {
        let line = line.strip_prefix(b"+")?;
        let open = line.iter().position(|byte| *byte == b'[')?;
        let close = open + line[open..].iter().position(|byte| *byte == b']')?;
        let (seconds, micros) = str::from_utf8(&line[..open]).ok()?.trim().split_once('.')?;
        let (_, sender) = str::from_utf8(&line[open + 1..close]).ok()?.split_once(' ')?;
        let sender = if sender == "lua" { Sender::Script } else { Sender::Client(sender) };
        let words = line.get(close + 2..)?;
        let name = words.strip_prefix(b"\"")?;
        let name = &name[..name.iter().position(|byte| *byte == b'"')?];
        let at = seconds.parse::<u64>().ok()? * 1_000_000 + micros.parse::<u64>().ok()?;
        Some(Self { at, sender, name, words })
    }

    /// True when the command is this one.
    pub fn is(&self, name: &str) -> bool {
        self.name.eq_ignore_ascii_case(name.as_bytes())
    }

    /// True when it is a script, whose own commands follow.
    pub fn is_script(&self) -> bool {
        self.name.get(..4).is_some_and(|name| name.eq_ignore_ascii_case(b"EVAL"))
    }

    /// True when this is its last word.
    pub fn ends_with(&self, word: &[u8]) -> bool {
        let last = self.words.trim_ascii_end().strip_suffix(b"\"");
        last.and_then(|last| last.strip_suffix(word)).is_some_and(|before| before.ends_with(b"\""))
    }

    /// The command; nothing for one that does not concern records.
    pub fn command(&self) -> Option<Command> {
        let name = str::from_utf8(self.name).ok()?.to_ascii_uppercase();
        if self.is_script() {
            return Some(Command::Script);
        }
        let known =
            ["SET", "DEL", "UNLINK", "RESTORE", "GET", "GETRANGE", "DUMP", "ECHO", "PERSIST"];
        if !known.contains(&name.as_str()) && !name.contains("EXPIRE") || name.ends_with("TIME") {
            return None;
        }
        let mut words = words(self.words);
        let mut key = || words.get_mut(1).map(std::mem::take);
        Some(match name.as_str() {
            "GET" | "GETRANGE" | "DUMP" => Command::Read(key()?),
            "ECHO" => Command::Echo(key()?),
            "DEL" | "UNLINK" => Command::Remove(words.split_off(1)),
            "PERSIST" => Command::Expire(key()?, Expiry::Never),
            "SET" => set(words)?,
            "RESTORE" => restore(words)?,
            expire => Command::Expire(key()?, expiry(expire, words.get(2)?)?),
        })
    }
}

fn set(words: Vec<Vec<u8>>) -> Option<Command> {
    let mut words = words.into_iter().skip(1);
    let (key, value) = (words.next()?, words.next()?);
    let (mut if_absent, mut ends) = (false, Expiry::Never);
    while let Some(option) = words.next() {
        match option.to_ascii_uppercase().as_slice() {
            b"NX" => if_absent = true,
            b"KEEPTTL" => ends = Expiry::Kept,
            b"EX" => ends = expiry("EXPIRE", &words.next()?)?,
            b"PX" => ends = expiry("PEXPIRE", &words.next()?)?,
            b"EXAT" => ends = expiry("EXPIREAT", &words.next()?)?,
            b"PXAT" => ends = expiry("PEXPIREAT", &words.next()?)?,
            _ => {}
        }
    }
    Some(Command::Set { key, value, if_absent, expiry: ends })
}

fn restore(words: Vec<Vec<u8>>) -> Option<Command> {
    let has = |option: &[u8]| words.iter().skip(4).any(|word| word.eq_ignore_ascii_case(option));
    let name = if has(b"ABSTTL") { "PEXPIREAT" } else { "PEXPIRE" };
    let expiry = if words.get(2)? == b"0" { Expiry::Never } else { expiry(name, words.get(2)?)? };
    Some(Command::Restore {
        key: words.get(1)?.clone(),
        dump: words.get(3)?.clone(),
        expiry,
        replaces: has(b"REPLACE"),
    })
}

/// What a number means to EXPIRE, PEXPIRE, EXPIREAT or PEXPIREAT.
fn expiry(command: &str, number: &[u8]) -> Option<Expiry> {
    let number: u64 = str::from_utf8(number).ok()?.parse().ok()?;
    let millis = if command.starts_with('P') { number } else { number * 1_000 };
    Some(if command.ends_with("AT") { Expiry::At(millis) } else { Expiry::In(millis) })
}

/// The words of a command, each of which stands in quotes, with its bytes escaped.
fn words(text: &[u8]) -> Vec<Vec<u8>> {
    let mut words = Vec::new();
    let mut bytes = text.iter().copied();
    while bytes.any(|byte| byte == b'"') {
        let mut word = Vec::new();
        while let Some(byte) = bytes.next().filter(|byte| *byte != b'"') {
            word.push(if byte == b'\\' { escaped(&mut bytes) } else { byte });
        }
        words.push(word);
    }
    words
}

fn escaped(bytes: &mut impl Iterator<Item = u8>) -> u8 {
    match bytes.next() {
        Some(b'n') => b'\n',
        Some(b'r') => b'\r',
        Some(b't') => b'\t',
        Some(b'a') => 7,
        Some(b'b') => 8,
        Some(b'x') => {
            let mut digit =
                || bytes.next().and_then(|byte| char::from(byte).to_digit(16)).unwrap_or(0);
            u8::try_from(digit() * 16 + digit()).unwrap_or(0)
        }
        other => other.unwrap_or(b'\\'),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &str) -> Option<Command> {
        Line::parse(line.as_bytes()).unwrap().command()
    }

    #[test]
    fn a_line_is_taken_apart_and_its_bytes_are_what_was_sent() {
        let line = br#"+1795307310.934126 [0 127.0.0.1:34724] "set" "k" "\x00\xff\"\\\n v" "EX" "10" "nx""#;
        let line = Line::parse(line).unwrap();
        assert_eq!(
            (line.at, line.sender),
            (1_795_307_310_934_126, Sender::Client("127.0.0.1:34724"))
        );
        let value = b"\x00\xff\"\\\n v".to_vec();
        let set =
            Command::Set { key: b"k".to_vec(), value, if_absent: true, expiry: Expiry::In(10_000) };
        assert_eq!(line.command(), Some(set));
        assert!(Line::parse(b"+OK").is_none());
    }

    #[test]
    fn only_what_concerns_records_is_a_command() {
        assert_eq!(command(r#"+1.0 [0 lua] "PEXPIRETIME" "k""#), None);
        assert_eq!(command(r#"+1.0 [0 lua] "TIME""#), None);
        let expire = Command::Expire(b"k".to_vec(), Expiry::At(5_000));
        assert_eq!(command(r#"+1.0 [0 lua] "EXPIREAT" "k" "5""#), Some(expire));
        let both = Command::Remove(vec![b"a".to_vec(), b"b".to_vec()]);
        assert_eq!(command(r#"+1.0 [0 lua] "UNLINK" "a" "b""#), Some(both));
    }
}
