//! A server with one script to try on it.

use idemctl::domain::step::reply::StepReply;
use redis::Connection;

use crate::support::Server;
use crate::support::wire;

/// The types a Redis key can have besides string, and how each is made.
const TYPES: &[&[&str]] = &[
    &["HSET", "KEY", "status", "PENDING"],
    &["RPUSH", "KEY", "PENDING"],
    &["SADD", "KEY", "PENDING"],
    &["ZADD", "KEY", "1", "PENDING"],
    &["XADD", "KEY", "*", "status", "PENDING"],
];

/// Everything about a Redis key that a script could have changed.
#[derive(Debug, PartialEq)]
pub struct Left {
    pub dump: StepReply,
    pub expires: bool,
}

/// A server of its own, and one script.
pub struct Bench {
    server: Server,
    connection: Connection,
    script: String,
}

impl Bench {
    pub fn of(script: &str) -> Self {
        let server = Server::start();
        let connection = server.connect();
        Self { server, connection, script: wire::script(script) }
    }

    /// The same, with this in front of the script.
    pub fn behind(prelude: &str, script: &str) -> Self {
        let bench = Self::of(script);
        Self { script: format!("{prelude}\n{}", bench.script), ..bench }
    }

    /// Sends a plain command.
    pub fn ask<W: AsRef<[u8]>>(&mut self, words: &[W]) -> StepReply {
        wire::ask(&mut self.connection, words)
    }

    /// Runs the script; its reply on one line.
    pub fn run<K: AsRef<[u8]>, A: AsRef<[u8]>>(&mut self, keys: &[K], args: &[A]) -> String {
        wire::line(&self.reply(keys, args))
    }

    /// Runs the script.
    pub fn reply<K: AsRef<[u8]>, A: AsRef<[u8]>>(&mut self, keys: &[K], args: &[A]) -> StepReply {
        wire::eval(&mut self.connection, &self.script, keys, args)
    }

    /// Goes on as a user who may touch every Redis key, and do only what these rules say.
    pub fn log_in_with(&mut self, rules: &str) {
        self.server.add_user("limited", &format!("~* {rules}"));
        assert_eq!(wire::line(&self.ask(&["AUTH", "limited", "pw"])), "OK");
    }

    /// Puts a string there, without expiry.
    pub fn put(&mut self, key: &str, value: impl AsRef<[u8]>) {
        assert_eq!(wire::line(&self.ask(&[b"SET", key.as_bytes(), value.as_ref()])), "OK");
    }

    /// Puts a string there for a minute.
    pub fn put_expiring(&mut self, key: &str, value: impl AsRef<[u8]>) {
        assert_eq!(
            wire::line(&self.ask(&[b"SET", key.as_bytes(), value.as_ref(), b"EX", b"60"])),
            "OK"
        );
    }

    /// The string that is there.
    pub fn get(&mut self, key: &str) -> Option<Vec<u8>> {
        match self.ask(&["GET", key]) {
            StepReply::Text(text) => Some(text),
            _ => None,
        }
    }

    /// The milliseconds left; -1 without expiry, -2 absent.
    pub fn pttl(&mut self, key: &str) -> i64 {
        let StepReply::Integer(left) = self.ask(&["PTTL", key]) else {
            panic!("PTTL answers a number")
        };
        left
    }

    /// When the Redis key expires, as a rule of `change_many_if_same` says it.
    pub fn deadline(&mut self, key: &str) -> String {
        if let StepReply::Integer(at) = self.ask(&["PEXPIRETIME", key]) {
            return at.to_string();
        }
        loop {
            let (before, left, after) = (self.time(), self.pttl(key), self.time());
            if after - before <= 1 {
                return format!("~{}", after + left);
            }
        }
    }

    fn time(&mut self) -> i64 {
        let StepReply::Array(time) = self.ask(&["TIME"]) else { panic!("TIME answers an array") };
        let part = |part: &StepReply| wire::line(part).parse::<i64>().unwrap();
        part(&time[0]) * 1_000 + part(&time[1]) / 1_000
    }

    /// Asserts that the Redis key has just been given this many seconds.
    #[track_caller]
    pub fn assert_ttl(&mut self, key: &str, seconds: i64) {
        let left = self.pttl(key);
        assert!(
            left <= seconds * 1_000 && left > seconds * 1_000 - 2_000,
            "{key}: {left} ms left of {seconds} s"
        );
    }

    /// Everything about a Redis key.
    pub fn left(&mut self, key: &str) -> Left {
        Left { dump: self.ask(&["DUMP", key]), expires: self.pttl(key) >= 0 }
    }

    /// Runs `check` with a key of each type that is not string.
    pub fn each_type(&mut self, key: &str, mut check: impl FnMut(&mut Self)) {
        for make in TYPES {
            self.ask(&["DEL", key]);
            let words: Vec<_> =
                make.iter().map(|word| if *word == "KEY" { key } else { word }).collect();
            assert!(!wire::line(&self.ask(&words)).starts_with("error"), "{words:?}");
            check(self);
        }
        self.ask(&["DEL", key]);
    }

    /// Asserts that the script gives this reply and leaves the Redis key as it was.
    #[track_caller]
    pub fn assert_leaves<A: AsRef<[u8]>>(&mut self, keys: &[&str], args: &[A], reply: &str) {
        let before: Vec<_> = keys.iter().map(|key| self.left(key)).collect();
        assert_eq!(self.run(keys, args), reply, "{before:?}");
        let after: Vec<_> = keys.iter().map(|key| self.left(key)).collect();
        assert_eq!(after, before);
    }

    /// Asserts that TTLs that are no whole number above 0 are an error, and nothing is written.
    #[track_caller]
    pub fn refuses_bad_ttls(&mut self, keys: &[&str], args_with: impl Fn(&str) -> Vec<String>) {
        for ttl in ["0", "-1", "1.5", "30.0", "", "ten", "99999999999999999999"] {
            self.assert_leaves(keys, &args_with(ttl), "error ERR");
        }
    }
}
