//! The header of every script is its contract: proven against its body.

use std::collections::BTreeSet;

use crate::support::header::Script;
use crate::support::wire;

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
        let places: Vec<_> =
            script.positions.iter().map(|p| format!("{}[{}]", p.list, p.index)).collect();
        let many = places.first().is_some_and(|place| place == "KEYS[1..n]");
        let keys = if many {
            vec!["KEYS[1..n]".to_owned()]
        } else {
            numbered("KEYS", 1..=script.count("KEYS"))
        };
        let args = match script.count("ARGV") {
            count if places.contains(&"ARGV[n+1..2n]".to_owned()) => {
                let more = (1..count - 1).map(|index| format!("ARGV[2n+{index}]"));
                ["ARGV[1..n]".to_owned(), "ARGV[n+1..2n]".to_owned()]
                    .into_iter()
                    .chain(more)
                    .collect()
            }
            count if places.last() == Some(&format!("ARGV[{count}..m]")) => {
                let mut before = numbered("ARGV", 1..=count - 1);
                before.push(format!("ARGV[{count}..m]"));
                before
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
            let value = value
                .unwrap_or_else(|| panic!("{}: `{line}` does not name {position:?}", script.path));
            assert!(
                reads(value, &position.expression()),
                "{}: `{line}` is not {position:?}",
                script.path
            );
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

pub(crate) fn words_of(code: &str) -> impl Iterator<Item = &str> {
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
    let reads = code.contains("redis.call('GET'") || code.contains("redis.call('HGET'");
    if reads && !code.contains("redis.call('TYPE'") {
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
    let is_array =
        script.code().iter().any(|line| line.starts_with(&format!("local {value} = {{")));
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
fn read_records_answers_as_many_elements_for_a_key_as_its_header_lists() {
    let script = Script::read("admin/read_records");
    let inner =
        script.replies[0].split(", {").nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let rows: Vec<_> =
        script.body.iter().filter_map(|line| line.trim().strip_prefix("return {")).collect();
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
