//! Writes the draft as a `schema.toml`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use crate::domain::detect::boundaries;
use crate::domain::draft::case::{DraftFormat, FormatTest, cases};
use crate::domain::draft::sample::SampleValue;
use crate::domain::draft::{fields, states};
use crate::domain::duration;
use crate::domain::record::{Expiry, KeyState};
use crate::domain::schema::key_template::KeyTemplate;
use crate::domain::schema::{Decoder, Decoding, Encoding, State};

/// The placeholder for a value that a person must decide. No field of a schema accepts this word.
pub(crate) const DECIDE: &str = "DECIDE";

/// The line that excludes a new schema from use until it is named. Without it, a copied schema
/// would claim the Redis keys of its original on every server.
pub(crate) const DRAFT: &str = "draft = true    # read only if --schema or a context names it; delete the line when it is ready";

/// The format of `schema.toml` in which drafts are written.
const FORMAT: u32 = 2;

/// The text of a schema with this name, drafted from these strings and hashes.
pub(crate) fn draft(name: &str, seen: &[KeyState]) -> String {
    let keys: Vec<_> = seen.iter().map(|key| &key.redis_key[..]).collect();
    let template = template(&keys);
    let cases = cases(seen.iter().map(SampleValue::of).collect());
    let mut text = format!(
        "# A draft from {} Redis keys. Replace each {DECIDE}; `idemctl schema check` refuses the word.\n\
         # The file says how records look; idemctl-schema(5) says how the service's steps are described, too.\n\
         format = {FORMAT}\nname = {name:?}\n{DRAFT}\nsummary = {:?}\n\n[keys]\n{}record = {}\n\n[ttl]\n",
        seen.len(),
        format!("{name}, drafted from sample keys"),
        if template.starts_with("{key}") {
            "# The template has no text before the key, so any Redis key fits: select the schema by name.\n"
        } else {
            ""
        },
        quoted(&template),
    );
    ttls(&mut text, &cases);
    let mut names = BTreeSet::new();
    cases.iter().for_each(|case| form(&mut text, case, seen.len(), &mut names));
    if !cases.iter().any(|case| case.state != Some(State::Completed)) {
        text.push_str(
            "\n# None of the keys is in progress. If the service keeps a lock here, describe its format as well.\n",
        );
    }
    text
}

/// Writes the `[ttl]` table.
fn ttls(text: &mut String, cases: &[DraftFormat]) {
    for (name, state) in [("lock", State::InProgress), ("result", State::Completed)] {
        // A format without a state may be either kind, so its TTL cannot be left out.
        let is_open = cases.iter().any(|case| case.state.is_none());
        let of: Vec<_> = cases
            .iter()
            .filter(|case| case.state == Some(state))
            .flat_map(|case| &case.samples)
            .collect();
        if of.is_empty() && is_open {
            let _ = writeln!(
                text,
                "# {DECIDE}: the service's TTL of a {name}, or \"none\". Delete the line if there is no {name}.\n{name} = {DECIDE:?}"
            );
        }
        let left: Vec<_> = of.iter().filter_map(|sample| sample.expiry.millis()).collect();
        match left.iter().max() {
            Some(most) => {
                let ttl = states::usual_ttl(*most);
                let (shown, keys) =
                    (duration::short(*most), if of.len() == 1 { "key" } else { "keys" });
                let _ = writeln!(
                    text,
                    "# The longest remaining TTL was {shown} ({} {keys} of this state).\n{name} = {ttl:?}",
                    of.len()
                );
            }
            None if of.iter().any(|sample| sample.expiry == Expiry::Never) => {
                let _ = writeln!(
                    text,
                    "# {DECIDE}: the keys have no TTL. \"none\" if that is intended, otherwise the service's TTL.\n{name} = {DECIDE:?}"
                );
            }
            None => {}
        }
    }
}

/// Writes one `[[value]]` table.
fn form(text: &mut String, case: &DraftFormat, all: usize, names: &mut BTreeSet<String>) {
    let name = form_name(case, names);
    let _ =
        writeln!(text, "\n# {} of {all} values.\n[[value]]\nname = {name:?}", case.samples.len());
    opened(text, &case.decoding);
    match &case.test {
        FormatTest::Field(field, value) => {
            let _ = writeln!(
                text,
                "where = {{ {} = {} }}",
                quoted(&format!("/{}", fields::step(field))),
                literal(value)
            );
        }
        FormatTest::Word(word) => _ = writeln!(text, "equals = {}", quoted(word)),
        FormatTest::AnyText => text.push_str(
            "# Any text has this format. Only the Redis key shows that the service wrote it.\nopaque = true\n",
        ),
        FormatTest::Items(count) => {
            let items: Vec<_> = (0..*count).map(|index| format!("\"/{index}\"")).collect();
            let _ = writeln!(text, "has = [{}]", items.join(", "));
        }
        FormatTest::Fields => {}
    }
    members(text, case);
    match case.state {
        Some(state) => _ = writeln!(text, "state = {:?}", state.as_str()),
        None => _ = writeln!(text, "# {DECIDE}: in-progress or completed.\nstate = {DECIDE:?}"),
    }
    meanings(text, case);
}

/// Writes how the values are decoded, unless the tests imply it.
fn opened(text: &mut String, decoding: &Decoding) {
    let list = |decoder: &Decoder| {
        let words: Vec<_> = decoder.words().iter().map(|word| quoted(word)).collect();
        format!("[{}]", words.join(", "))
    };
    let value = &decoding.value;
    let _ = match value.encoding {
        Encoding::Hash => writeln!(text, "type = \"hash\""),
        _ if !value.codecs.is_empty() => writeln!(text, "decode = {}", list(value)),
        Encoding::Json | Encoding::Text => Ok(()),
        other => writeln!(text, "encoding = {:?}", other.as_str()),
    };
    if !decoding.inside.is_empty() {
        let inside = decoding
            .inside
            .iter()
            .map(|(path, decoder)| format!("{} = {}", quoted(path), list(decoder)));
        let _ = writeln!(text, "decode_at = {{ {} }}", inside.collect::<Vec<_>>().join(", "));
    }
}

/// A unique name for a value format.
fn form_name(case: &DraftFormat, names: &mut BTreeSet<String>) -> String {
    let word = match &case.test {
        FormatTest::Field(_, Value::String(word)) | FormatTest::Word(word) => word.clone(),
        FormatTest::Field(field, value) => format!("{field}-{value}"),
        FormatTest::Fields | FormatTest::Items(_) => "record".to_owned(),
        FormatTest::AnyText => "held".to_owned(),
    };
    let plain =
        word.to_ascii_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    let plain = if plain.is_empty() { "empty".to_owned() } else { plain };
    let name = if names.contains(&plain) { format!("{plain}-{}", names.len()) } else { plain };
    names.insert(name.clone());
    name
}

/// Writes the fields that every value has, those that some have, and those that may be null.
fn members(text: &mut String, case: &DraftFormat) {
    let objects: Vec<_> = case.samples.iter().filter_map(SampleValue::fields).collect();
    let mut counts: BTreeMap<&String, (usize, bool)> = BTreeMap::new();
    for (name, value) in objects.iter().flat_map(|object| object.iter()) {
        let (count, is_null) = counts.entry(name).or_default();
        *count += 1;
        *is_null |= value.is_null();
    }
    let list = |passes: &dyn Fn(&(usize, bool)) -> bool| {
        let passing = counts.iter().filter(|(_, counted)| passes(counted));
        passing
            .map(|(name, _)| quoted(&format!("/{}", fields::step(name))))
            .collect::<Vec<_>>()
            .join(", ")
    };
    for (word, names) in [
        ("required", list(&|(count, _)| *count == objects.len())),
        ("optional", list(&|(count, _)| *count < objects.len())),
        ("null", list(&|(_, is_null)| *is_null)),
    ] {
        if !names.is_empty() {
            let _ = writeln!(text, "{word} = [{names}]");
        }
    }
}

/// Writes the guessed meanings of the fields.
fn meanings(text: &mut String, case: &DraftFormat) {
    let state_field = match &case.test {
        FormatTest::Field(field, _) => Some(field.as_str()),
        _ => None,
    };
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for document in case.samples.iter().filter_map(|sample| sample.document.as_ref()) {
        fields::of(document, state_field)
            .into_iter()
            .for_each(|(what, pointer)| _ = found.entry(what).or_insert(pointer));
    }
    if found.is_empty() {
        return;
    }
    let shown: Vec<_> =
        found.iter().map(|(what, pointer)| format!("{what} = {}", quoted(pointer))).collect();
    let _ = writeln!(
        text,
        "# Guessed from the names. Check that the fields contain this.\nfields = {{ {} }}",
        shown.join(", ")
    );
    let at = |what: &str| {
        let pointer = found.get(what)?;
        case.samples.iter().find_map(|sample| {
            sample.document.as_ref()?.pointer(pointer).filter(|value| !value.is_null())
        })
    };
    if at("body").is_some_and(|body| !body.is_string()) {
        text.push_str("body_encoding = \"json\"\n");
    }
    let unit = at("created_at").or_else(|| at("completed_at")).and_then(fields::timestamp);
    if let Some(unit) = unit.filter(|unit| *unit != "ms") {
        let _ = writeln!(text, "timestamp = {unit:?}");
    }
}

/// A text as a TOML string.
fn quoted(text: &str) -> String {
    toml_edit::Value::from(text).to_string().trim().to_owned()
}

fn literal(value: &Value) -> String {
    match value {
        Value::String(text) => quoted(text),
        other => other.to_string(),
    }
}

/// The template of these Redis keys, as `schema.toml` writes templates.
pub(super) fn template(keys: &[&[u8]]) -> String {
    let (first, rest) = keys.split_first().map_or((&[][..], keys), |(first, rest)| (*first, rest));
    let shared =
        rest.iter().fold(first.len(), |most, key| most.min(alike(first.iter(), key.iter())));
    // A single key does not show where the idempotency key begins; its last part is the likeliest.
    let most = if rest.is_empty() { last_part(first) } else { shared };
    let before =
        boundaries(first).into_iter().rfind(|at| *at <= most && *at < first.len()).unwrap_or(0);
    let behind = rest
        .iter()
        .fold(usize::MAX, |most, key| most.min(alike(first.iter().rev(), key.iter().rev())));
    let behind = if rest.is_empty() { 0 } else { suffix(&first[before..], behind) };
    KeyTemplate::around(&first[..before], &first[first.len() - behind..]).display()
}

fn alike<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

fn last_part(key: &[u8]) -> usize {
    boundaries(key).into_iter().rfind(|at| *at < key.len()).unwrap_or(0)
}

/// The number of bytes after the idempotency key, from a separator to the end.
fn suffix(rest: &[u8], most: usize) -> usize {
    let ends = boundaries(rest)
        .into_iter()
        .filter(|at| *at > 1 && *at < rest.len())
        .map(|at| rest.len() - at + 1);
    ends.filter(|length| *length <= most && *length < rest.len()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_template_is_the_common_text_up_to_a_separator() {
        let of =
            |keys: &[&str]| template(&keys.iter().map(|key| key.as_bytes()).collect::<Vec<_>>());
        assert_eq!(of(&["pay:order-1", "pay:order-2"]), "pay:{key}");
        assert_eq!(of(&["pay:a:lock", "pay:b:lock"]), "pay:{key}:lock");
        assert_eq!(of(&["pay:v1:abc"]), "pay:v1:{key}");
        assert_eq!(of(&["abc", "abd"]), "{key}");
        assert_eq!(of(&["qo_a-1", "qo_b-1"]), "qo_{key}");
        assert_eq!(of(&["abc"]), "{key}");
        assert_eq!(of(&["{shop}:a", "{shop}:b"]), r"\{shop\}:{key}");
    }
}
