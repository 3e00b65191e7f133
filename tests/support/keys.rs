//! The Redis keys of a test's server.

use std::time::Duration;

use super::server::Server;

/// The TTL of a Redis key without expiry.
pub const FOREVER: u64 = 0;

impl Server {
    /// Starts the server program under test with these Redis keys: name, value, TTL in milliseconds.
    pub fn holding<V: AsRef<[u8]>>(entries: &[(&str, V, u64)]) -> Self {
        let server = Self::start();
        for (key, value, ttl_ms) in entries {
            server.fill([(key, value)], *ttl_ms);
        }
        server
    }

    /// The same with many Redis keys that have one TTL.
    pub fn filled<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        entries: impl IntoIterator<Item = (K, V)>,
        ttl_ms: u64,
    ) -> Self {
        let server = Self::start();
        server.fill(entries, ttl_ms);
        server
    }

    /// `SET key value PX ttl`.
    pub fn set(&self, key: &str, value: impl AsRef<[u8]>, ttl_ms: u64) {
        self.send::<()>(&[
            b"SET",
            key.as_bytes(),
            value.as_ref(),
            b"PX",
            ttl_ms.to_string().as_bytes(),
        ]);
    }

    /// `SET key value`, without expiry.
    pub fn put(&self, key: &str, value: impl AsRef<[u8]>) {
        self.send::<()>(&[b"SET", key.as_bytes(), value.as_ref()]);
    }

    /// Sets many Redis keys at once; `FOREVER` is no TTL.
    pub fn fill<K: AsRef<[u8]>, V: AsRef<[u8]>>(
        &self,
        entries: impl IntoIterator<Item = (K, V)>,
        ttl_ms: u64,
    ) {
        fill(&mut self.connect(), entries, ttl_ms);
    }

    /// How many Redis keys there are.
    pub fn size(&self) -> usize {
        self.send(&[b"DBSIZE"])
    }

    /// How often the server has executed this command, e.g. `eval`.
    pub fn calls(&self, command: &str) -> usize {
        let stats: String = self.send(&[b"INFO", b"commandstats"]);
        let found =
            stats.lines().find_map(|line| line.strip_prefix(&format!("cmdstat_{command}:calls=")));
        found.and_then(|rest| rest.split(',').next()).map_or(0, |count| count.parse().unwrap())
    }

    /// The names of all Redis keys, in their order.
    pub fn keys(&self) -> Vec<String> {
        let mut keys: Vec<String> = self.send(&[b"KEYS", b"*"]);
        keys.sort();
        keys
    }

    /// Which of these Redis keys are gone.
    pub fn gone(&self, before: &[String]) -> Vec<String> {
        let left = self.keys();
        before.iter().filter(|key| !left.contains(key)).cloned().collect()
    }

    /// `GET key`.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.send(&[b"GET", key.as_bytes()])
    }

    /// Asserts that every key ends by itself within this time; gives how many keys there are.
    #[track_caller]
    pub fn keys_live_at_most(&self, most: Duration) -> usize {
        let keys: Vec<Vec<u8>> = self.send(&[b"KEYS", b"*"]);
        for key in &keys {
            let left: i64 = self.send(&[b"PTTL", key]);
            // One that ended just now has -2.
            let ends = left == -2 || (left >= 0 && left.unsigned_abs() <= most.as_millis() as u64);
            assert!(ends, "{} lives for {left} ms", String::from_utf8_lossy(key));
        }
        keys.len()
    }
}

/// Sets many Redis keys at once; `FOREVER` is no TTL.
pub fn fill<K: AsRef<[u8]>, V: AsRef<[u8]>>(
    connection: &mut redis::Connection,
    entries: impl IntoIterator<Item = (K, V)>,
    ttl_ms: u64,
) {
    let mut pipeline = redis::pipe();
    for (key, value) in entries {
        let set = pipeline.cmd("SET").arg(key.as_ref()).arg(value.as_ref());
        if ttl_ms != FOREVER {
            set.arg("PX").arg(ttl_ms);
        }
        set.ignore();
    }
    pipeline.exec(connection).expect("the keys are set");
}
