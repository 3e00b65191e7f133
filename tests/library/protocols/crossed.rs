//! Protocols that chance makes: the steps of some, put together, and spoiled a little.

use std::path::{Path, PathBuf};

use fastrand::Rng;
use toml_edit::{Array, ArrayOfTables, DocumentMut, Item, Table, value};

use super::protocol::{folder, names};

const STEPS: [&str; 4] = ["begin", "renew", "complete", "release"];

/// The name of a protocol that chance makes.
pub fn name(seed: u64) -> String {
    format!("crossed-{seed}")
}

/// Writes one protocol into a folder of protocols, and says what it is made of.
pub fn write(into: &Path, seed: u64) -> String {
    let mut chance = Rng::with_seed(seed);
    let all = names();
    let base = &all[chance.usize(..all.len())];
    let mut schema = read(base);
    let to = into.join(name(seed));
    std::fs::create_dir_all(&to).unwrap();
    let mut origin = vec![base.clone()];
    for step in STEPS {
        let mut from = base.clone();
        let other = &all[chance.usize(..all.len())];
        let donor = read(other);
        if chance.bool() && fits(&donor, step, &schema) {
            from.clone_from(other);
            match donor.get(step) {
                Some(item) => _ = schema.insert(step, item.clone()),
                None => _ = schema.remove(step),
            }
        }
        copy_scripts(&mut schema, step, &from, &to);
        origin.push(format!("{step} of {from}"));
    }
    // Without these there is no request.
    for step in ["begin", "complete"] {
        assert!(schema.contains_key(step), "{origin:?}");
    }
    spoil(&mut schema, &mut chance);
    // What has no TTL cannot send it.
    if schema["ttl"]["lock"].as_str() == Some("none") && schema.to_string().contains("{lock_ttl}") {
        schema["ttl"]["lock"] = value("30s");
    }
    let origin = origin.join(", ");
    schema["name"] = value(name(seed));
    schema["summary"] = value(&origin);
    std::fs::write(to.join("schema.toml"), schema.to_string()).unwrap();
    origin
}

fn path(name: &str) -> PathBuf {
    folder().join(name)
}

fn read(name: &str) -> DocumentMut {
    std::fs::read_to_string(path(name).join("schema.toml")).unwrap().parse().unwrap()
}

/// A step fits where the keys are the same, and there are the values that it speaks of.
fn fits(donor: &DocumentMut, step: &str, schema: &DocumentMut) -> bool {
    let is_hash = |schema: &DocumentMut| schema.to_string().contains("type = \"hash\"");
    if donor["keys"].to_string() != schema["keys"].to_string() || is_hash(donor) != is_hash(schema)
    {
        return false;
    }
    // The tables below an item are not in its own text.
    let step = format!("{:?}", donor.get(step));
    let missing = |value: &Table| {
        let is_same = |own: &Table| own["name"].as_str() == value["name"].as_str();
        !values(schema).iter().any(is_same) && step.contains(value["name"].as_str().unwrap())
    };
    !values(donor).iter().any(missing)
}

fn values(schema: &DocumentMut) -> &ArrayOfTables {
    schema["value"].as_array_of_tables().unwrap()
}

fn calls<'a>(schema: &'a mut DocumentMut, step: &str) -> Option<&'a mut ArrayOfTables> {
    schema.get_mut(step)?.get_mut("call")?.as_array_of_tables_mut()
}

/// Copies the scripts of a step under names that say whose they are.
fn copy_scripts(schema: &mut DocumentMut, step: &str, from: &str, to: &Path) {
    let Some(calls) = calls(schema, step) else { return };
    for call in calls.iter_mut() {
        let Some(script) = call.get("script").and_then(Item::as_str) else { continue };
        let text = std::fs::read_to_string(path(from).join(script).with_extension("lua")).unwrap();
        let own = format!("{}_{script}", from.replace('-', "_"));
        let text = text.replacen(&format!("-- {script}:"), &format!("-- {own}:"), 1);
        std::fs::write(to.join(&own).with_extension("lua"), text).unwrap();
        call["script"] = value(own);
    }
}

/// Changes some of what a service may get wrong.
fn spoil(schema: &mut DocumentMut, chance: &mut Rng) {
    if chance.bool() {
        schema["service"]["on_failure"] = value(choice(chance, &["store", "release", "keep"]));
    }
    if chance.u8(..4) == 0 {
        schema["ttl"]["lock"] = value(choice(chance, &["30s", "24h", "48h"]));
    }
    for step in STEPS {
        let Some(calls) = calls(schema, step) else { continue };
        let whole = calls.clone();
        if calls.len() > 1 && chance.u8(..6) == 0 {
            calls.remove(chance.usize(..calls.len()));
        }
        if calls.len() > 1 && chance.u8(..6) == 0 {
            let first = calls.get(0).unwrap().clone();
            calls.remove(0);
            calls.push(in_a_row(first));
        }
        let end = end(step);
        ends_with_its_last_call(calls, end);
        // A step that never ends well is no protocol, nor is a begin that never replays, nor a
        // complete that stores nothing.
        let left = format!("{calls:?}");
        let has = |word: &str| left.contains(&format!("\"{word}\""));
        let stores = has("{result_value}") || has("{body}");
        if !has(end) || step == "begin" && !has("replay") || step == "complete" && !stores {
            *calls = whole;
        }
        let last = calls.len() - 1;
        for (number, call) in calls.iter_mut().enumerate() {
            let is_last = number == last;
            let Some(command) = call.get_mut("command").and_then(Item::as_array_mut) else {
                continue;
            };
            if chance.u8(..5) == 0 && is_last {
                leave_out(command, "NX", 1);
            }
            if chance.u8(..5) == 0 {
                leave_out(command, "EX", 2);
            }
        }
    }
}

/// What a reply means that ends a step well.
fn end(step: &str) -> &'static str {
    match step {
        "begin" => "acquired",
        "renew" => "renewed",
        "complete" => "stored",
        _ => "released",
    }
}

/// Behind the last call of a step there is no next one, and nothing is stored before all calls are
/// made.
fn ends_with_its_last_call(calls: &mut ArrayOfTables, end: &str) {
    let last = calls.len() - 1;
    for (number, call) in calls.iter_mut().enumerate() {
        for reply in call["replies"].as_array_mut().unwrap().iter_mut() {
            let reply = reply.as_inline_table_mut().unwrap();
            match reply["means"].as_str() {
                Some("next") if number == last => _ = reply.insert("means", end.into()),
                Some("stored") if number < last => _ = reply.insert("means", "next".into()),
                _ => {}
            }
        }
    }
}

/// A call that stands behind all others, wherever it stood in its file.
fn in_a_row(mut call: Table) -> Table {
    call.set_position(None);
    call
}

fn choice<'a>(chance: &mut Rng, of: &[&'a str]) -> &'a str {
    of[chance.usize(..of.len())]
}

/// Leaves out a word of a command, and what belongs to it.
fn leave_out(command: &mut Array, word: &str, words: usize) {
    let Some(at) = command.iter().position(|found| found.as_str() == Some(word)) else { return };
    for _ in 0..words {
        command.remove(at);
    }
}
