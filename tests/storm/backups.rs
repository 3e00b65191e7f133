//! Backups as a run leaves them, and the values in them, which a server of the oracle's own reads.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use redis::Connection;
use serde_json::Value;

use crate::run::Held;
use crate::support::Server;

/// Reads what DUMP gave.
pub struct Dumps {
    connection: Connection,
    _server: Server,
}

impl Dumps {
    /// Starts a server to read with.
    pub fn new() -> Self {
        let server = Server::start();
        Self { connection: server.connect(), _server: server }
    }

    /// The bytes of a string.
    pub fn value(&mut self, dump: &[u8]) -> Arc<[u8]> {
        let mut pipeline = redis::pipe();
        pipeline
            .cmd("RESTORE")
            .arg("copy")
            .arg(0)
            .arg(dump)
            .arg("REPLACE")
            .ignore()
            .cmd("GET")
            .arg("copy");
        let (value,): (Vec<u8>,) = pipeline.query(&mut self.connection).unwrap();
        value.into()
    }

    /// What a backup says was removed; nothing where there is none.
    pub fn held(&mut self, backup: &Path) -> Vec<Held> {
        let decode = |text: &Value| STANDARD.decode(text.as_str().unwrap()).unwrap();
        let mut held: BTreeMap<Vec<u8>, Vec<Value>> = BTreeMap::new();
        let mut records: Vec<Value> = Vec::new();
        for line in fs::read_to_string(backup).unwrap_or_default().lines() {
            let line: Value = serde_json::from_str(line).unwrap();
            for key in line["keys"].as_array().into_iter().flatten() {
                held.entry(decode(&key["redis_key_base64"])).or_default().push(key.clone());
                records.push(line["keys"].clone());
            }
            for void in line["void"].as_array().into_iter().flatten() {
                let is_of = |keys: &Value| {
                    keys.as_array().is_some_and(|keys| keys[0]["redis_key_base64"] == *void)
                };
                let last = records.iter().rposition(is_of).expect("what is taken back was there");
                for key in records[last].as_array().unwrap() {
                    held.get_mut(&decode(&key["redis_key_base64"]))
                        .and_then(Vec::pop)
                        .expect("it was there");
                }
            }
        }
        let lines = held
            .into_iter()
            .flat_map(|(key, lines)| lines.into_iter().map(move |line| (key.clone(), line)));
        lines
            .map(|(key, line)| Held {
                key,
                value: self.value(&decode(&line["dump_base64"])),
                ends_at: line["expires_at_ms"].as_u64(),
            })
            .collect()
    }
}
