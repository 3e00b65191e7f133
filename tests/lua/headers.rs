//! The header of every script is its contract: proven against its body, against what idemctl sends, and against the
//! calls and replies of `schema.toml`.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;

use idemctl::domain::record::observation::Observation;
use idemctl::domain::record::response::Response;
use idemctl::domain::schema::{Action, Call, Pattern, Schema};
use idemctl::domain::step::reply::{self, StepReply};
use idemctl::domain::step::request::Request;
use idemctl::store::backup::{About, Saved};
use idemctl::store::{self, Change, Head, Outcome, Return};

use crate::support::Server;
use crate::support::header::{Position, Script};
use crate::support::wire::{self, Library};

/// Every script there is, as `<folder>/<file>`.
fn paths() -> Vec<String> {
    let mut paths = Vec::new();
    for folder in std::fs::read_dir(wire::lua()).unwrap() {
        let folder = folder.unwrap().path();
        for file in folder.read_dir().into_iter().flatten() {
            let file = file.unwrap().path();
            if file.extension().is_some_and(|extension| extension == "lua") {
                let path = file.strip_prefix(wire::lua()).unwrap().with_extension("");
                paths.push(path.to_str().unwrap().to_owned());
            }
        }
    }
    paths.sort();
    paths
}

fn scripts() -> Vec<Script> {
    let scripts: Vec<_> = paths().iter().map(|path| Script::read(path)).collect();
    assert!(scripts.len() >= 11, "the scripts are not found");
    scripts
}

#[test]
fn the_first_line_names_the_file() {
    for script in scripts() {
        assert_eq!(script.path.rsplit('/').next(), Some(&script.name[..]));
    }
}

#[test]
fn positions_are_numbered_without_gaps_keys_first() {
    for script in scripts() {
        let places: Vec<_> = script.positions.iter().map(|p| format!("{}[{}]", p.list, p.index)).collect();
        let many = places.first().is_some_and(|place| place == "KEYS[1..n]");
        let keys = if many { vec!["KEYS[1..n]".to_owned()] } else { numbered("KEYS", 1..=script.count("KEYS")) };
        let args = match script.count("ARGV") {
            count if places.contains(&"ARGV[n+1..2n]".to_owned()) => {
                let more = (1..count - 1).map(|index| format!("ARGV[2n+{index}]"));
                ["ARGV[1..n]".to_owned(), "ARGV[n+1..2n]".to_owned()].into_iter().chain(more).collect()
            }
            count => numbered("ARGV", 1..=count),
        };
        assert_eq!(places, [keys, args].concat(), "{}", script.path);
    }
}

fn numbered(list: &str, indexes: impl Iterator<Item = usize>) -> Vec<String> {
    indexes.map(|index| format!("{list}[{index}]")).collect()
}

#[test]
fn the_body_names_each_position_first_and_no_other() {
    for script in scripts() {
        for (position, line) in script.positions.iter().zip(&script.body) {
            let value = line.strip_prefix(&format!("local {} = ", position.name));
            let value = value.unwrap_or_else(|| panic!("{}: `{line}` does not name {position:?}", script.path));
            assert!(reads(value, &position.expression()), "{}: `{line}` is not {position:?}", script.path);
        }
        for line in script.code() {
            let unnamed = line.contains("KEYS[") || line.contains("ARGV[");
            assert!(!unnamed, "{}: `{line}` uses a position without its name", script.path);
        }
    }
}

/// True when a `local` takes its value from this expression: alone, as a number, or with a default.
fn reads(value: &str, expression: &str) -> bool {
    let bare = value.split(" or ").next().unwrap_or_default();
    bare == expression || bare == format!("tonumber({expression})")
}

#[test]
fn a_position_is_used_unless_the_header_says_it_is_not() {
    for script in scripts() {
        let code = script.code().join("\n");
        for position in &script.positions {
            let used = words_of(&code).any(|word| word == position.name);
            assert_ne!(used, position.is_declared_unused(), "{}: {position:?}", script.path);
        }
    }
}

fn words_of(code: &str) -> impl Iterator<Item = &str> {
    code.split(|c: char| !(c.is_alphanumeric() || c == '_'))
}

/// What a body can answer, written as in a header; placeholders are all `<>`.
fn replies_in(script: &Script) -> BTreeSet<String> {
    let mut replies = BTreeSet::new();
    let mut in_function = false;
    for line in script.code() {
        in_function |= line.starts_with("local function");
        if let Some((_, rest)) = line.split_once("redis.error_reply('") {
            replies.insert(format!("error {}", rest.split([' ', '\'']).next().unwrap_or_default()));
        } else if let Some(value) = line.trim().strip_prefix("return ").filter(|_| !in_function) {
            replies.insert(returned(script, value));
        }
        in_function &= line != "end";
    }
    let code = script.code().join("\n");
    // What Redis and cjson raise where nothing guards against it.
    if code.contains("redis.call('GET'") && !code.contains("redis.call('TYPE'") {
        replies.insert("error WRONGTYPE".to_owned());
    }
    if code.contains("cjson.decode(") || code.contains("redis.call('RESTORE'") {
        replies.insert("error ERR".to_owned());
    }
    replies
}

/// A returned value as a header writes it.
fn returned(script: &Script, value: &str) -> String {
    if let Some(word) = value.strip_prefix('\'').and_then(|value| value.strip_suffix('\'')) {
        return word.to_owned();
    }
    if value == "nil" || value.parse::<i64>().is_ok() {
        return value.to_owned();
    }
    if let Some(items) = value.strip_prefix('{').and_then(|value| value.strip_suffix('}')) {
        let items: Vec<_> = items.split(", ").map(|item| returned(script, item)).collect();
        return format!("{{{}}}", items.join(", "));
    }
    let is_array = script.code().iter().any(|line| line.starts_with(&format!("local {value} = {{")));
    if is_array { "{...}".to_owned() } else { "<>".to_owned() }
}

/// A header's reply with its placeholders emptied; an array of arrays is only that.
fn shape(reply: &str) -> String {
    if reply.contains(", ...}") {
        return "{...}".to_owned();
    }
    let mut shape = String::new();
    let mut inside = false;
    for character in reply.chars() {
        inside &= character != '>';
        if !inside {
            shape.push(character);
        }
        inside |= character == '<';
    }
    shape
}

#[test]
fn the_header_lists_each_reply_of_the_body_and_no_other() {
    for script in scripts() {
        let listed: BTreeSet<_> = script.replies.iter().map(|reply| shape(reply)).collect();
        assert_eq!(listed.len(), script.replies.len(), "{}: a reply is listed twice", script.path);
        assert_eq!(listed, replies_in(&script), "{}: header left, body right", script.path);
    }
}

#[test]
fn observe_answers_as_many_elements_for_a_key_as_its_header_lists() {
    let script = Script::read("admin/observe");
    let inner = script.replies[0].split(", {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let rows: Vec<_> = script.body.iter().filter_map(|line| line.trim().strip_prefix("return {")).collect();
    assert_eq!(rows.len(), 3, "one for an absent key, one for a string, one for anything else");
    for row in rows {
        assert_eq!(top_level_items(row.trim_end_matches('}')), inner.split(", ").count(), "{row}");
    }
}

fn top_level_items(list: &str) -> usize {
    let mut depth = 0;
    let commas = list.chars().filter(|character| {
        depth += i32::from(*character == '(') - i32::from(*character == ')');
        *character == ',' && depth == 0
    });
    commas.count() + 1
}

/// Every call of a schema, with the step's name.
fn calls(schema: &Schema) -> Vec<&Call> {
    schema.steps().flat_map(|step| &step.calls).collect()
}

/// The calls of all schemas that run a script: the schema, the script, the call.
fn script_calls(check: impl Fn(&Schema, &Script, &Call, &[Vec<u8>], &[Vec<u8>])) {
    let response = Response { body: b"{}".to_vec(), ..Response::default() };
    for schema in wire::built_in() {
        let request = Request::new(&schema, b"{key}", "the-owner", &response);
        for call in calls(&schema) {
            if let Action::Script { name, keys, args } = &call.action {
                let script = Script::read(&format!("{}/{name}", schema.name));
                let fill = |words: &[_]| words.iter().map(|word| request.word(word)).collect::<Vec<_>>();
                check(&schema, &script, call, &fill(keys), &fill(args));
            }
        }
    }
}

#[test]
fn every_script_of_a_schema_is_called_by_a_step() {
    for schema in wire::built_in() {
        let called: BTreeSet<_> = calls(&schema)
            .iter()
            .filter_map(|call| match &call.action {
                Action::Script { name, .. } => Some(name.as_str()),
                Action::Command(_) => None,
            })
            .collect();
        assert_eq!(called, schema.scripts.keys().map(String::as_str).collect(), "{}", schema.name);
    }
}

#[test]
fn schemas_send_the_keys_and_arguments_of_the_header() {
    script_calls(|schema, script, _, keys, args| {
        assert_eq!(keys.len(), script.count("KEYS"), "{}: KEYS", script.path);
        assert_eq!(args.len(), script.count("ARGV"), "{}: ARGV", script.path);
        for (position, word) in script.positions.iter().zip(keys.iter().chain(args)) {
            let word = std::str::from_utf8(word).unwrap();
            assert!(is_meant(schema, position, word), "{}: {position:?} is sent {word}", script.path);
        }
    });
}

/// True when what is sent is what the header says of the position.
fn is_meant(schema: &Schema, position: &Position, sent: &str) -> bool {
    if position.list == "KEYS" {
        let redis_key = position.meaning.split([',', ' ']).next().unwrap_or_default();
        return redis_key.trim_start_matches("{prefix}") == sent;
    }
    match position.name.as_str() {
        "lock_ttl" => sent == schema.lock_ttl.as_secs().to_string(),
        "result_ttl" => sent == schema.result_ttl.as_secs().to_string(),
        "worker" | "owner" => sent == "the-owner",
        "fingerprint" => sent.is_empty(),
        // The header lists what it may be.
        "on_failed" | "outcome" => words_of(&position.meaning).any(|word| word == sent),
        _ => sent.as_bytes() == replayed(schema),
    }
}

fn replayed(schema: &Schema) -> Vec<u8> {
    let response = Response { body: b"{}".to_vec(), ..Response::default() };
    Request::new(schema, b"{key}", "the-owner", &response).replayed()
}

#[test]
fn schemas_know_every_reply_of_the_header_and_no_other() {
    script_calls(|_, script, call, _, _| {
        let mut met = BTreeSet::new();
        for reply in &script.replies {
            let known = reply::recognise(call, &example(reply));
            let known = known.unwrap_or_else(|| panic!("{}: schema.toml does not know `{reply}`", script.path));
            assert!(is_exact(&known.pattern, reply), "{}: `{reply}` is taken for {:?}", script.path, known.pattern);
            met.insert(call.replies.iter().position(|other| std::ptr::eq(other, known)));
        }
        assert_eq!(met.len(), call.replies.len(), "{}: schema.toml knows more replies", script.path);
    });
}

/// A reply as the server would send it.
fn example(reply: &str) -> StepReply {
    if let Some(code) = reply.strip_prefix("error ") {
        return StepReply::Error { code: code.to_owned(), message: "some text".to_owned() };
    }
    if let Some(items) = reply.strip_prefix('{').and_then(|reply| reply.strip_suffix('}')) {
        return StepReply::Array(items.split(", ").map(example).collect());
    }
    match reply.parse() {
        Ok(number) => StepReply::Integer(number),
        Err(_) if reply == "nil" => StepReply::Nil,
        Err(_) => StepReply::Text(reply.as_bytes().to_vec()),
    }
}

/// True when a word is recognised as that word, and not as any text.
fn is_exact(pattern: &Pattern, reply: &str) -> bool {
    (*pattern == Pattern::Text) == reply.starts_with('<')
}

/// What reaches the server while something is done, as the server itself tells it.
struct Monitor(BufReader<UnixStream>);

impl Monitor {
    fn on(server: &Server) -> Self {
        let mut stream = UnixStream::connect(server.socket()).unwrap();
        stream.write_all(b"MONITOR\r\n").unwrap();
        let mut lines = BufReader::new(stream);
        let mut ok = String::new();
        lines.read_line(&mut ok).unwrap();
        assert!(ok.starts_with("+OK"), "{ok}");
        Self(lines)
    }

    /// The words of the next script that is sent.
    fn next_script(&mut self) -> Vec<String> {
        loop {
            let mut line = String::new();
            assert!(self.0.read_line(&mut line).unwrap() > 0, "the server ended");
            let words = quoted_words(&line);
            if words.first().is_some_and(|word| word.starts_with("EVAL")) {
                return words;
            }
        }
    }
}

/// The words of a line of MONITOR: each in double quotes, with `\n`, `\"` and `\\` for what would end it.
fn quoted_words(line: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut open: Option<String> = None;
    let mut characters = line.chars();
    while let Some(character) = characters.next() {
        match (&mut open, character) {
            (None, '"') => open = Some(String::new()),
            (Some(_), '"') => words.extend(open.take()),
            (Some(word), '\\') => word.push(match characters.next() {
                Some('n') => '\n',
                Some(other) => other,
                None => '\\',
            }),
            (Some(word), other) => word.push(other),
            (None, _) => {}
        }
    }
    words
}

/// Something of the library that sends a script of idemctl's own, for one record.
type Caller = fn(&Library, &[Vec<u8>]);

/// The typed functions, and the script each sends.
const CALLERS: &[(&str, Caller)] = &[
    ("admin/observe", send_observe),
    ("admin/change_many_if_same", send_removal),
    ("admin/change_many_if_same", send_expiry),
    ("admin/restore_if_absent", send_restore_if_absent),
];

fn send_observe(library: &Library, redis_keys: &[Vec<u8>]) {
    let mut reader = library.link().reader();
    let _ = library.wait(reader.observe(&[redis_keys.to_vec()], Head::Bytes(7))).unwrap();
}

fn send_removal(library: &Library, redis_keys: &[Vec<u8>]) {
    change(library, redis_keys, store::Action::Remove);
}

fn send_expiry(library: &Library, redis_keys: &[Vec<u8>]) {
    change(library, redis_keys, store::Action::ExpireIn(5_000));
}

/// A backup holds one Redis key a line, and names the record's other one.
fn send_restore_if_absent(library: &Library, redis_keys: &[Vec<u8>]) {
    let saved = Saved { redis_key: redis_keys[0].clone(), dump: Vec::new(), ttl_ms: None, expires_at_ms: None };
    let wanted = Return { saved: &saved, barred_by: redis_keys.get(1).map(Vec::as_slice) };
    let (fates, ended) = library.wait(library.writer().restore(&[wanted]));
    ended.unwrap();
    assert!(matches!(fates[..], [Ok(store::Fate::Present)]));
}

fn change(library: &Library, redis_keys: &[Vec<u8>], action: store::Action) {
    let seen: Observation = library.observe(&[redis_keys.to_vec()]).remove(0);
    let about = About { schema: "any".to_owned(), key: b"any".to_vec(), state: "in-progress" };
    let (outcomes, ended) = library.wait(library.writer().apply(&[Change { slot: 0, seen, about }], action, None));
    ended.unwrap();
    assert_eq!(outcomes, [Outcome::Done]);
}

#[test]
fn idemctl_sends_the_keys_and_arguments_of_the_header() {
    let server = Server::start();
    let library = Library::on(&server);
    for (path, send) in CALLERS {
        let script = Script::read(path);
        for redis_keys in [vec![b"a".to_vec()], vec![b"a".to_vec(), b"b".to_vec()]] {
            server.set("a", "value", 60_000);
            let mut monitor = Monitor::on(&server);
            send(&library, &redis_keys);
            let words =
                std::iter::from_fn(|| Some(monitor.next_script())).find(|w| w[1] == wire::script(path)).unwrap();
            let keys: usize = words[2].parse().unwrap();
            let expected = if script.takes_many_keys() { redis_keys.len() } else { script.count("KEYS") };
            assert_eq!(keys, expected, "{path}: KEYS");
            let is_list = |position: &&Position| position.list == "ARGV" && position.index.contains("..");
            let lists = script.positions.iter().filter(is_list).count();
            let args = script.count("ARGV") + lists * (keys - 1);
            assert_eq!(words.len() - 3 - keys, args, "{path}: ARGV");
        }
    }
}

#[test]
fn every_own_script_that_is_sent_is_among_the_callers() {
    let source = std::fs::read_to_string(wire::lua().join("../src/store/scripts.rs")).unwrap();
    let included = source.split("lua/admin/").skip(1).filter_map(|rest| rest.split_once(".lua\")"));
    let sent: BTreeSet<_> =
        included.filter(|(name, _)| !name.contains('/')).map(|(name, _)| format!("admin/{name}")).collect();
    assert_eq!(sent, CALLERS.iter().map(|(path, _)| (*path).to_owned()).collect());
}

#[test]
fn the_script_that_reads_runs_where_writing_is_refused() {
    let server = Server::start();
    let mut connection = server.connect();
    // Redis 6.2 has no EVAL_RO: there the server itself says so.
    if wire::ask(&mut connection, &["COMMAND", "INFO", "EVAL_RO"]) == StepReply::Array(vec![StepReply::Nil]) {
        return;
    }
    server.set("a", "value", 60_000);
    let observe = wire::script("admin/observe");
    let seen = wire::ask(&mut connection, &["EVAL_RO", &observe, "2", "a", "b", "-1", "1"]);
    assert!(matches!(&seen, StepReply::Array(items) if items.len() == 3), "{seen:?}");
    wire::ask(&mut connection, &["PERSIST", "a"]);
    let change = wire::script("admin/change_many_if_same");
    let refused = wire::ask(&mut connection, &["EVAL_RO", &change, "1", "a", "value", "-1", "UNLINK"]);
    assert!(matches!(&refused, StepReply::Error { message, .. } if message.contains("read-only")), "{refused:?}");
}
