//! Backups as a test writes and reads them.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use crate::support::Server;

/// The entry of a backup for what is there now.
pub fn line(server: &Server, redis_key: &str) -> Value {
    let dump: Vec<u8> = server.send(&[b"DUMP", redis_key.as_bytes()]);
    let left: i64 = server.send(&[b"PTTL", redis_key.as_bytes()]);
    let left = u64::try_from(left).ok();
    json!({
        "format": 2,
        "keys": [{
            "redis_key_base64": STANDARD.encode(redis_key),
            "dump_base64": STANDARD.encode(dump),
            "ttl_ms": left,
            "expires_at_ms": left.map(|left| now_ms(server) + left),
        }],
        "schema": "express",
        "key": redis_key.trim_start_matches("idem:"),
        "state": "in-progress",
    })
}

/// The line that takes these back.
pub fn void(redis_keys: &[&str]) -> Value {
    let keys: Vec<_> = redis_keys.iter().map(|redis_key| STANDARD.encode(redis_key)).collect();
    json!({ "format": 2, "void": keys })
}

/// The line that says where those behind were taken: at another server.
pub fn from(server: &Server) -> Value {
    let address = server.folder().join("another").display().to_string();
    json!({ "format": 2, "from": { "address": address, "db": 0 } })
}

/// What checks lines, as `src/store/backup/integrity.rs` documents it for others.
const CRC: crc::Crc<u64> = crc::Crc::<u64>::new(&crc::CRC_64_XZ);

/// A line with its checksum.
pub fn sealed(line: &Value) -> String {
    let text = line.to_string();
    let fields = text.strip_suffix('}').unwrap();
    format!("{fields},\"crc64\":\"{:016x}\"}}", CRC.checksum(fields.as_bytes()))
}

/// The closing line of a backup that has these lines.
pub fn closing(lines: &[Value]) -> Value {
    let (mut records, mut redis_keys, mut crc64_above) = (0, 0, 0_u64);
    for line in lines {
        let keys = line["keys"].as_array().map_or(0, Vec::len);
        records += usize::from(keys > 0);
        redis_keys += keys;
        let sealed = sealed(line);
        let seal = &sealed.as_bytes()[sealed.len() - 28..];
        crc64_above = CRC.checksum(&[&crc64_above.to_be_bytes(), seal].concat());
    }
    json!({
        "format": 2,
        "end": { "records": records, "redis_keys": redis_keys, "lines": lines.len(), "crc64_above": crc64_above },
    })
}

/// The server's clock.
pub fn now_ms(server: &Server) -> u64 {
    let (seconds, micros): (u64, u64) = server.send(&[b"TIME"]);
    seconds * 1_000 + micros / 1_000
}

/// Writes a whole backup of these lines into the server's folder.
pub fn write(server: &Server, lines: &[Value]) -> PathBuf {
    let file = server.folder().join("backup.jsonl");
    write_to(&file, lines);
    file
}

/// Writes a whole backup of these lines into a file.
pub fn write_to(file: &Path, lines: &[Value]) {
    let mut text = String::new();
    for line in lines {
        text += &(sealed(line) + "\n");
    }
    text += &(sealed(&closing(lines)) + "\n");
    fs::write(file, text).unwrap();
}

/// The same DUMP with the number of a later version, which no server restores.
pub fn of_later_version(dump_base64: &Value) -> String {
    let mut dump = STANDARD.decode(dump_base64.as_str().unwrap()).unwrap();
    // A DUMP ends with the version in two bytes and a checksum of everything before in eight.
    let checksum = dump.len() - 8;
    dump[checksum - 2..checksum].copy_from_slice(&u16::MAX.to_le_bytes());
    let sum = crc::Crc::<u64>::new(&crc::CRC_64_REDIS).checksum(&dump[..checksum]);
    dump[checksum..].copy_from_slice(&sum.to_le_bytes());
    STANDARD.encode(dump)
}

/// The Redis keys a backup holds, without those it takes back; the last line may be cut short.
pub fn held(file: &Path) -> BTreeSet<Vec<u8>> {
    let text = fs::read_to_string(file).unwrap_or_default();
    let whole = text.rsplit_once('\n').map_or("", |(whole, _)| whole);
    let mut held = BTreeSet::new();
    for line in whole.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        let decode = |value: &Value| STANDARD.decode(value.as_str().unwrap()).unwrap();
        for key in line["keys"].as_array().into_iter().flatten() {
            held.insert(decode(&key["redis_key_base64"]));
        }
        for key in line["void"].as_array().into_iter().flatten() {
            held.remove(&decode(key));
        }
    }
    held
}

/// The only backup in the default folder.
pub fn only(server: &Server) -> PathBuf {
    let folder = server.folder().join(".local/state/idemctl/backups");
    let mut files: Vec<_> =
        fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).collect();
    assert_eq!(files.len(), 1);
    files.remove(0)
}
