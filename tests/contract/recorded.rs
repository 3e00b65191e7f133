//! What `tests/libraries/` keeps of a published library: the bytes of each of its states, put into a server as if they had been
//! written just now.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use serde_json::Value;

use crate::support::Server;

/// A `fixtures.json`.
pub struct Recorded {
    pub folder: String,
    schema: String,
    pub samples: Vec<Sample>,
}

/// One state.
pub struct Sample {
    pub name: String,
    pub schema: String,
    pub prefix: Option<String>,
    document: Value,
}

/// Every library there is.
pub fn libraries() -> Vec<Recorded> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/libraries");
    let mut files: Vec<PathBuf> =
        fs::read_dir(root).unwrap().map(|entry| entry.unwrap().path()).collect();
    files.sort();
    // A library that is only probed has no bytes here.
    let is_only_probed = |folder: &Path| {
        folder.join("probed.json").is_file() && !folder.join("fixtures.json").exists()
    };
    files.retain(|folder| folder.is_dir() && !is_only_probed(folder));
    files.iter().map(|folder| read(&folder.join("fixtures.json"))).collect()
}

fn read(file: &Path) -> Recorded {
    let document: Value = serde_json::from_slice(&fs::read(file).unwrap()).unwrap();
    let schema = text(&document["schema"]);
    let samples = document["samples"]
        .as_array()
        .unwrap()
        .iter()
        .map(|sample| Sample::new(sample, &schema))
        .collect();
    let folder = file.parent().unwrap().file_name().unwrap().to_str().unwrap().to_owned();
    Recorded { folder, schema, samples }
}

impl Recorded {
    /// The samples in lots that fit into one server: no two of a lot share a Redis key, and all have one schema and one prefix.
    pub fn lots(&self) -> Vec<Vec<&Sample>> {
        let mut lots: Vec<Vec<&Sample>> = Vec::new();
        for sample in &self.samples {
            match lots.iter_mut().find(|lot| lot.iter().all(|other| other.stands_beside(sample))) {
                Some(lot) => lot.push(sample),
                None => lots.push(vec![sample]),
            }
        }
        lots
    }

    /// The schema of most samples.
    pub fn schema(&self) -> &str {
        &self.schema
    }
}

impl Sample {
    fn new(document: &Value, schema: &str) -> Self {
        Self {
            name: text(&document["name"]),
            schema: document["schema"].as_str().unwrap_or(schema).to_owned(),
            prefix: document["prefix"].as_str().map(str::to_owned),
            document: document.clone(),
        }
    }

    fn stands_beside(&self, other: &Self) -> bool {
        let shares = self.redis_keys().iter().any(|key| other.redis_keys().contains(key));
        self.schema == other.schema && self.prefix == other.prefix && !shares
    }

    pub fn redis_keys(&self) -> Vec<String> {
        self.entries().map(|entry| text(&entry["key"])).collect()
    }

    /// What the library answered to a kind of request.
    pub fn answer(&self, request: &str) -> Option<&str> {
        self.document["next"][request]["answer"].as_str()
    }

    /// What the library answered to each kind of request: `same conflict, other mismatch`.
    pub fn answers(&self) -> String {
        let answers = self.document["next"].as_object().unwrap().iter();
        answers
            .map(|(kind, told)| format!("{kind} {}", text(&told["answer"])))
            .collect::<Vec<_>>()
            .join(", ")
    }

    /// Puts the state into the server. The moments in the values and the expiries are as far off as they were in the recording.
    pub fn load(&self, server: &Server) {
        self.load_as(server, str::to_owned);
    }

    /// The same under other Redis keys.
    pub fn load_as(&self, server: &Server, named: impl Fn(&str) -> String) {
        let taken = Duration::from_millis(self.document["taken_at_ms"].as_u64().unwrap());
        let passed = SystemTime::UNIX_EPOCH.elapsed().unwrap().saturating_sub(taken);
        for entry in self.entries() {
            let key = named(&text(&entry["key"]));
            write(server, &key, entry, passed);
            if let Some(left @ 1..) = entry["pttl_ms"].as_i64() {
                server.send::<()>(&[b"PEXPIRE", key.as_bytes(), left.to_string().as_bytes()]);
            }
        }
    }

    fn entries(&self) -> impl Iterator<Item = &Value> {
        self.document["redis_keys"].as_array().unwrap().iter()
    }
}

fn write(server: &Server, key: &str, entry: &Value, passed: Duration) {
    match entry["type"].as_str().unwrap() {
        "string" => {
            server.send::<()>(&[
                b"SET",
                key.as_bytes(),
                &moved(bytes(&entry["value"]), entry, None, passed),
            ]);
        }
        "hash" => {
            for (field, value) in entry["fields"].as_object().unwrap() {
                let value = moved(bytes(value), entry, Some(field), passed);
                server.send::<()>(&[b"HSET", key.as_bytes(), field.as_bytes(), &value]);
            }
        }
        "zset" => {
            for member in entry["members"].as_array().unwrap() {
                let (score, member) = (member["score"].to_string(), text(&member["member"]));
                server.send::<()>(&[b"ZADD", key.as_bytes(), score.as_bytes(), member.as_bytes()]);
            }
        }
        other => panic!("{key}: no test loads a {other}"),
    }
}

/// The value, with the moments in it moved on by the time that has passed since the recording.
fn moved(mut value: Vec<u8>, entry: &Value, field: Option<&String>, passed: Duration) -> Vec<u8> {
    let moments = entry["moments"].as_array().map_or(&[][..], Vec::as_slice);
    for moment in
        moments.iter().filter(|moment| moment["field"].as_str() == field.map(String::as_str))
    {
        let old = text(&moment["text"]);
        let new = later(&old, moment["unit"].as_str().unwrap(), passed);
        value = replaced(&value, old.as_bytes(), new.as_bytes());
    }
    value
}

/// A moment as the library writes it, so much later.
fn later(moment: &str, unit: &str, passed: Duration) -> String {
    let whole = || moment.parse::<u64>().unwrap();
    match unit {
        "s" if moment.contains('.') => {
            format!("{:.4}", moment.parse::<f64>().unwrap() + passed.as_secs_f64())
        }
        "s" => (whole() + passed.as_secs()).to_string(),
        "ms" => (u128::from(whole()) + passed.as_millis()).to_string(),
        "ticks" => (u128::from(whole()) + passed.as_nanos() / 100).to_string(),
        "rfc3339" => {
            humantime::format_rfc3339_micros(humantime::parse_rfc3339(moment).unwrap() + passed)
                .to_string()
        }
        other => panic!("no test moves a moment in {other}"),
    }
}

/// Every place of a text replaced by another; the text is there.
fn replaced(value: &[u8], old: &[u8], new: &[u8]) -> Vec<u8> {
    let mut result = Vec::with_capacity(value.len());
    let mut rest = value;
    while let Some(at) = rest.windows(old.len()).position(|window| window == old) {
        result.extend_from_slice(&rest[..at]);
        result.extend_from_slice(new);
        rest = &rest[at + old.len()..];
    }
    assert_ne!(
        rest.len(),
        value.len(),
        "{}: the moment is not in the value",
        String::from_utf8_lossy(old)
    );
    result.extend_from_slice(rest);
    result
}

fn bytes(value: &Value) -> Vec<u8> {
    let of_text = || value["text"].as_str().map(|text| text.as_bytes().to_vec());
    of_text().unwrap_or_else(|| BASE64_STANDARD.decode(value["base64"].as_str().unwrap()).unwrap())
}

fn text(value: &Value) -> String {
    value.as_str().unwrap().to_owned()
}

#[test]
fn moments_move_in_the_form_they_have() {
    let hour = Duration::from_secs(3600);
    assert_eq!(later("1795379923", "s", hour), "1795383523");
    assert_eq!(later("1795377000.7362", "s", hour), "1795380600.7362");
    assert_eq!(later("1795379923415", "ms", hour), "1795383523415");
    assert_eq!(later("639309069688864656", "ticks", hour), "639309105688864656");
    assert_eq!(
        later("2026-11-22T23:45:36.351859Z", "rfc3339", hour),
        "2026-11-23T00:45:36.351859Z"
    );
}
