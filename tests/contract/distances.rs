//! Each field of each JSON value at each distance from the start of the value: the commands agree with one another, and none
//! says anything else than `inspect --full`, which reads the whole value. Space between two members moves what follows, and
//! every service reads it as before.

use std::collections::{BTreeMap, BTreeSet};

use idemctl::domain::record::response::Response;
use idemctl::domain::schema::Meaning;
use idemctl::domain::step::inputs::StepInputs;
use serde_json::Value;

use super::recorded;
use crate::support::wire;
use crate::support::{Run, Server};

/// Before, within and behind each step of reading. Every field of a value goes to two of the near ones, in turn, and one field
/// of every third value to each of the far ones, because such values take time.
const NEAR: [usize; 4] = [0, 60, 500, 5_000];
const FAR: [usize; 3] = [70_000, 900_000, 2 << 20];

/// The most bytes that a scan reads of a value with an expiry.
const MAX_SCANNED: usize = 1 << 20;

/// The offsets of the members of a JSON object and of the objects in it.
fn members(value: &[u8]) -> Vec<usize> {
    let mut offsets = Vec::new();
    // One letter for each open bracket.
    let mut open = Vec::new();
    let mut in_text = false;
    let mut is_escaped = false;
    for (at, byte) in value.iter().enumerate() {
        if in_text {
            in_text = is_escaped || *byte != b'"';
            is_escaped = !is_escaped && *byte == b'\\';
            continue;
        }
        match byte {
            b'"' => in_text = true,
            b'{' | b'[' => open.push(*byte),
            b'}' | b']' => {
                open.pop();
            }
            _ => {}
        }
        let is_before_member = *byte == b'{' || (*byte == b',' && open.last() == Some(&b'{'));
        if is_before_member && open.len() <= 3 {
            offsets.push(at + 1);
        }
    }
    offsets
}

/// The value with so much space at an offset.
fn spaced(value: &[u8], offset: usize, distance: usize) -> Vec<u8> {
    [&value[..offset], &vec![b' '; distance], &value[offset..]].concat()
}

/// The Redis key of another record: other hexadecimal digits at the end, or behind it.
fn renamed(redis_key: &str, number: usize) -> String {
    let name = redis_key.trim_end_matches('=');
    let end = &redis_key[name.len()..];
    let digits = format!("{number:06x}");
    match name.len().checked_sub(6) {
        Some(kept) if name.is_char_boundary(kept) && name[kept..].bytes().all(is_letter) => {
            format!("{}{digits}{end}", &name[..kept])
        }
        _ => format!("{name}{digits}{end}"),
    }
}

fn is_letter(byte: u8) -> bool {
    byte.is_ascii_alphanumeric()
}

/// A server whose values are moved.
struct Stage {
    server: Server,
    options: Vec<String>,
    redis_keys: Vec<String>,
}

impl Stage {
    fn new(schema: &str, prefix: Option<&str>) -> Self {
        let mut options = vec!["--schema".to_owned(), schema.to_owned()];
        if let Some(prefix) = prefix {
            options.extend(["--prefix".to_owned(), prefix.to_owned()]);
        }
        Self { server: Server::start(), options, redis_keys: Vec::new() }
    }

    /// How many members the JSON object at a Redis key has, with those of the objects in it.
    fn fields(&self, redis_key: &str) -> usize {
        let kind: String = self.server.send(&[b"TYPE", redis_key.as_bytes()]);
        if kind != "string" {
            return 0;
        }
        let value = self.server.get(redis_key).unwrap_or_default();
        if value.starts_with(b"{") { members(&value).len() } else { 0 }
    }

    /// Puts space before one member of each JSON value among these Redis keys. Every other record without a result never
    /// expires.
    fn moves(&mut self, number: usize, redis_keys: Vec<String>, offset: usize, distance: usize) {
        for redis_key in redis_keys {
            if self.fields(&redis_key) > offset {
                let value = self.server.get(&redis_key).unwrap();
                let offset = &members(&value)[offset];
                let value = spaced(&value, *offset, distance);
                self.server.send::<()>(&[b"SET", redis_key.as_bytes(), &value, b"KEEPTTL"]);
            }
            if number.is_multiple_of(2) {
                self.server.send::<i64>(&[b"PERSIST", redis_key.as_bytes()]);
            }
            self.redis_keys.push(redis_key);
        }
    }

    fn run(&self, words: &[&str]) -> Run {
        let mut words = words.to_vec();
        words.extend(self.options.iter().map(String::as_str));
        self.server.idemctl(&words)
    }

    fn json(&self, words: &[&str]) -> Value {
        self.run(&[words, &["-o", "json"]].concat()).json()
    }

    /// Every record, as `inspect --full` reads it, by its first Redis key.
    fn truth(&self) -> BTreeMap<String, Value> {
        let mut records = BTreeMap::new();
        for some in self.redis_keys.chunks(200) {
            let mut words = vec!["inspect", "--full"];
            words.extend(some.iter().map(String::as_str));
            for record in self.json(&words)["records"].as_array().unwrap() {
                records.insert(name(record), record.clone());
            }
        }
        records
    }

    /// Asserts that all commands agree.
    fn agrees(&self) {
        let truth = self.truth();
        let own: Vec<&Value> =
            truth.values().filter(|record| record["foreign_because"].is_null()).collect();
        let listed = self.json(&["list"]);
        let undecided = number(&listed["unproven"]["format"]);
        let records = listed["records"].as_array().unwrap();
        let context = || format!("{:?}: {}", self.options, listed["unproven"]);
        let count = records.len() as u64;
        assert!(count + undecided >= own.len() as u64, "{}", context());
        let mut unrecognised = 0;
        for schema in listed["foreign"].as_object().unwrap().values() {
            unrecognised += number(schema);
        }
        assert_eq!(count + undecided + unrecognised, truth.len() as u64, "{}", context());
        for record in records {
            let whole = &truth[&name(record)];
            assert!(whole["foreign_because"].is_null() || is_far(whole), "{record}");
            for field in ["state", "owner", "fingerprint", "/response/status"] {
                let (told, known) = (value_of(record, field), value_of(whole, field));
                // Under a prefix, a value that does not show its format in time is listed as unreadable.
                let is_unknown = told.is_null() || *told == "unreadable";
                assert!(told == known || (is_unknown && is_far(whole)), "{field}: {record}");
            }
        }

        self.statuses_agree(&own);
        self.texts_agree(&own, "--owner", "owner");
        self.texts_agree(&own, "--fingerprint", "fingerprint");

        let mut by_state: BTreeMap<&str, u64> = BTreeMap::new();
        for record in records {
            *by_state.entry(record["state"].as_str().unwrap()).or_default() += 1;
        }
        let stats = self.json(&["stats"]);
        for (state, count) in &by_state {
            let mut told = 0;
            for row in stats["rows"].as_array().unwrap() {
                if row["state"] == *state {
                    told += number(&row["records"]);
                }
            }
            assert_eq!(told, *count, "{state}: {stats}");
        }

        let checked = self.json(&["check"]);
        let others = truth.len() as u64 - own.len() as u64;
        let counted = number(&checked["foreign"]);
        let far = truth.values().filter(|record| is_far(record)).count() as u64;
        assert!(counted <= others && counted + far >= others, "{checked}");

        // An operator's own eyes: a lock that never expires and has no result.
        let mut stuck = 0;
        for record in &own {
            let codes: Vec<_> = record["findings"].as_array().unwrap().iter().collect();
            stuck += u64::from(codes.iter().any(|finding| finding["code"] == "no-expiry"));
        }
        let swept = self.json(&["sweep", "--orphaned", "--dry-run", "--match", "*[0-9a-zA-Z]*"]);
        let told = number(&swept["total"]) + number(&swept["unproven"]["format"]);
        assert_eq!(told, stuck, "{:?}: {swept}", self.options);
    }

    /// Asserts that `list`, `stats` and `purge` select the same records by status.
    fn statuses_agree(&self, own: &[&Value]) {
        let mut by_status: BTreeMap<i64, u64> = BTreeMap::new();
        let mut far = 0;
        for record in own {
            if let Some(status) = value_of(record, "/response/status").as_i64() {
                *by_status.entry(status).or_default() += 1;
                far += u64::from(is_far(record));
            }
        }
        if by_status.is_empty() {
            return;
        }
        let stats = self.json(&["stats", "--by", "status"]);
        for (status, expected) in by_status {
            let option = status.to_string();
            let listed = self.json(&["list", "--status", &option]);
            let records = listed["records"].as_array().unwrap();
            let count = records.len() as u64;
            for record in records {
                assert_eq!(record["response"]["status"], status, "{record}");
            }
            let undecided = number(&listed["unproven"]["format"]);
            let unknown = number(&listed["unproven"]["status"]);
            assert!(
                count <= expected && count + unknown + undecided >= expected,
                "{count} of {expected}: {}",
                listed["unproven"]
            );
            assert!(unknown <= far, "only far fields may be unknown: {}", listed["unproven"]);
            let mut grouped = 0;
            for row in stats["rows"].as_array().unwrap() {
                if row["status"] == option.as_str() {
                    grouped += number(&row["records"]);
                }
            }
            assert_eq!(grouped, count, "{status}: {stats}");
            let purge = ["purge", "--status", &option, "--dry-run", "--match", "*[0-9a-zA-Z]*"];
            let purged = self.json(&purge);
            assert_eq!(number(&purged["total"]), count, "{:?} {status}: {purged}", self.options);
            let code = self.run(&purge).code;
            let is_partial = unknown + number(&purged["unproven"]["format"]) > 0;
            assert_eq!(code, if is_partial { 3 } else { 0 }, "{purged}");
        }
    }

    /// Asserts that a filter by a text field selects the records that have the text, and no others.
    fn texts_agree(&self, own: &[&Value], option: &str, field: &str) {
        let mut texts = BTreeSet::new();
        for record in own {
            if let Some(text) = record[field].as_str()
                && text.bytes().all(|byte| is_letter(byte) || byte == b'-')
            {
                texts.insert(text);
            }
        }
        for text in texts.into_iter().take(2) {
            let expected = own.iter().filter(|record| record[field] == *text).count() as u64;
            let listed = self.json(&["list", option, text]);
            let records = listed["records"].as_array().unwrap();
            for record in records {
                assert_eq!(record[field], text, "{record}");
            }
            let count = records.len() as u64;
            let undecided = number(&listed["unproven"]["format"]);
            let unknown = number(&listed["unproven"][field]);
            assert!(
                count <= expected && count + unknown + undecided >= expected,
                "{option} {text}: {count} of {expected}: {}",
                listed["unproven"]
            );
        }
    }
}

/// True for a record with a value that no scan reads whole.
fn is_far(record: &Value) -> bool {
    record["size_bytes"].as_u64().is_none_or(|size| size > MAX_SCANNED as u64)
}

fn value_of<'a>(record: &'a Value, field: &str) -> &'a Value {
    static NULL: Value = Value::Null;
    match field.starts_with('/') {
        true => record.pointer(field).unwrap_or(&NULL),
        false => &record[field],
    }
}

fn name(record: &Value) -> String {
    record["redis_keys"][0].as_str().unwrap().to_owned()
}

fn number(value: &Value) -> u64 {
    value.as_u64().unwrap_or_default()
}

/// Each place of a field in the value with this number, and the distances that it goes to.
fn moves(fields: usize, turn: usize) -> Vec<(usize, usize)> {
    let mut moves = Vec::new();
    for offset in 0..fields.max(1) {
        for distance in NEAR.into_iter().skip(turn % 2).step_by(2) {
            moves.push((offset, distance));
        }
    }
    if turn.is_multiple_of(3) {
        for (index, distance) in FAR.into_iter().enumerate() {
            moves.push(((turn + index) % fields.max(1), distance));
        }
    }
    moves
}

#[test]
#[ignore = "long: values of megabytes"]
fn every_command_reads_the_fields_of_the_libraries_wherever_they_are() {
    for library in recorded::libraries() {
        for lot in library.lots() {
            let mut stage = Stage::new(&lot[0].schema, lot[0].prefix.as_deref());
            let mut number = 0;
            let mut with_fields = Vec::new();
            for sample in &lot {
                sample.load(&stage.server);
                let mut fields = 0;
                for redis_key in sample.redis_keys() {
                    fields = fields.max(stage.fields(&redis_key));
                }
                with_fields.push((sample, fields));
            }
            stage.server.send::<()>(&[b"FLUSHALL"]);
            for (turn, (sample, fields)) in with_fields.into_iter().enumerate() {
                if fields == 0 {
                    continue;
                }
                for (offset, distance) in moves(fields, turn) {
                    number += 1;
                    sample.load_as(&stage.server, |key| renamed(key, number));
                    let redis_keys =
                        sample.redis_keys().iter().map(|key| renamed(key, number)).collect();
                    stage.moves(number, redis_keys, offset, distance);
                }
            }
            if !stage.redis_keys.is_empty() {
                stage.agrees();
            }
        }
    }
}

#[test]
#[ignore = "long: values of megabytes"]
fn every_command_reads_the_fields_of_the_services_wherever_they_are() {
    let response = Response {
        status: Some(201),
        headers: vec![("Content-Type".into(), "application/json".into())],
        body: br#"{"id":7}"#.to_vec(),
        whole: true,
    };
    for schema in wire::built_in() {
        let mut stage = Stage::new(&schema.name, None);
        let mut connection = stage.server.connect();
        let mut number = 0;
        for is_completed in [false, true] {
            let mut put = |stage: &Stage, number: usize| -> Vec<String> {
                let key = format!("k{number:06}");
                let owner = format!("worker-{}", number % 3);
                let mut request = StepInputs::new(&schema, key.as_bytes(), &owner, &response);
                request.fingerprint = "f00d";
                let began = wire::play(&mut connection, schema.begin.as_ref().unwrap(), &request);
                assert_eq!(began.means(), Meaning::Acquired);
                if is_completed {
                    let step = schema.complete.as_ref().unwrap();
                    assert_eq!(
                        wire::play(&mut connection, step, &request).means(),
                        Meaning::Stored
                    );
                }
                let mut redis_keys = Vec::new();
                for redis_key in schema.redis_keys(key.as_bytes()) {
                    let redis_key = String::from_utf8(redis_key).unwrap();
                    if stage.server.get(&redis_key).is_some() {
                        redis_keys.push(redis_key);
                    }
                }
                redis_keys
            };
            let first = put(&stage, number);
            let fields = first.iter().map(|redis_key| stage.fields(redis_key)).max().unwrap_or(0);
            for (offset, distance) in [moves(fields, 0), moves(fields, 1)].concat() {
                number += 1;
                let redis_keys = put(&stage, number);
                stage.moves(number, redis_keys, offset, distance);
            }
            stage.redis_keys.extend(first);
            number += 1;
        }
        stage.agrees();
    }
}
