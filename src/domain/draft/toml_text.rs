//! Writes the draft as a `schema.toml`.
//!
//! The text is put together here, because its comments tell the operator what to fill in, and a
//! serializer writes no comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use serde_json::Value;

use super::formats::{DraftFormat, FormatTest, formats};
use super::sample::SampleValue;
use crate::domain::detect::{boundaries, is_separator};
use crate::domain::duration;
use crate::domain::record::{KeyState, TimeLeft};
use crate::domain::schema::closed_fields::escaped;
use crate::domain::schema::key_template::KeyTemplate;
use crate::domain::schema::{Decoder, Decoding, Encoding};

/// The placeholder for a value that a person must decide. No field of a schema accepts this word.
pub(crate) const DECIDE: &str = "DECIDE";

/// The line that makes a new schema a draft. Without it, a copied schema would claim the Redis keys
/// of its original on every server.
pub(crate) const DRAFT: &str = "# A file with the word DECIDE is a draft, which is read only if \
    --schema or a context names it.";

/// The text of a schema with this name, drafted from these strings and hashes, which match the glob
/// if there is one.
pub(crate) fn draft(name: &str, seen: &[KeyState], glob: Option<&str>) -> String {
    let all: Vec<_> = seen.iter().map(|key| &key.redis_key[..]).collect();
    let mut keys = Vec::new();
    let mut values = Vec::new();
    let mut markers = BTreeSet::new();
    for key in seen {
        match marker(&key.redis_key, &all) {
            Some(marker) => _ = markers.insert(marker),
            None => {
                keys.push(&key.redis_key[..]);
                values.push(SampleValue::of(key));
            }
        }
    }
    let count = keys.len();
    let template = match glob {
        Some(glob) => template_of_glob(glob.as_bytes()),
        None => template(&keys),
    };
    let mut ignored = String::new();
    if !markers.is_empty() {
        let of_markers = markers.iter().map(|marker| quoted(&format!("{template}{marker}")));
        ignored = format!(", ignore = [{}]", of_markers.collect::<Vec<_>>().join(", "));
    }
    let mut text = format!(
        r#"# Drafted from Redis keys ({count}). idemctl-schema(5) has the format, also of the service's steps.
format = 2
name = {name:?}
# If the lock has a Redis key of its own: lock and result instead of record, and `at` in each value.
keys = {{ record = {}{ignored} }}
[ttl]    # those that the service sets; "none" means that a key without TTL is right; delete the line of what it does not store
lock = "{DECIDE}"
result = "{DECIDE}"
"#,
        quoted(&template)
    );
    let mut names = BTreeSet::new();
    for format in formats(values) {
        write_value_format(&mut text, &format, count, &mut names);
    }
    text
}

/// What a Redis key has behind another one, as a template, if that begins with a word: a marker
/// beside a record, such as `:released:{id}`.
fn marker(redis_key: &[u8], all: &[&[u8]]) -> Option<String> {
    for other in all {
        let Some(behind) = redis_key.strip_prefix(*other) else { continue };
        let behind = str::from_utf8(behind).ok()?;
        let mut characters = behind.char_indices();
        let Some((_, separator)) = characters.next() else { continue };
        let word = behind[separator.len_utf8()..].split(separator).next()?;
        let is_word = !word.is_empty() && word.chars().all(|letter| letter.is_ascii_alphabetic());
        if is_separator(separator) && is_word {
            let rest = &behind[separator.len_utf8() + word.len()..];
            let id = if rest.is_empty() { String::new() } else { format!("{separator}{{id}}") };
            return Some(format!("{separator}{word}{id}"));
        }
    }
    None
}

/// Writes one `[[value]]` table. Writing to a `String` cannot fail, so the results are ignored.
fn write_value_format(
    text: &mut String,
    format: &DraftFormat,
    all: usize,
    names: &mut BTreeSet<String>,
) {
    let name = unique_name(format, names);
    let count = format.samples.len();
    let longest = format.samples.iter().filter_map(|sample| sample.time_left.millis()).max();
    let longest = longest.map_or("none".to_owned(), duration::short);
    let endless =
        format.samples.iter().filter(|sample| sample.time_left == TimeLeft::NoExpiry).count();
    let _ = writeln!(
        text,
        "[[value]]    # {count} of {all}; longest time left: {longest}; without expiry: {endless}\nname = {name:?}"
    );
    write_decoding(text, &format.decoding);
    match &format.test {
        FormatTest::Field(field, value) => {
            let _ = writeln!(text, "where = {{ {} = {} }}", quoted(field), literal(value));
        }
        FormatTest::Word(word) => _ = writeln!(text, "equals = {}", quoted(word)),
        FormatTest::AnyText => text.push_str("opaque = true    # any text has this format\n"),
        FormatTest::Items(count) => {
            let items: Vec<_> = (0..*count).map(|index| format!("\"/{index}\"")).collect();
            let _ = writeln!(text, "has = [{}]", items.join(", "));
        }
        FormatTest::Fields => {}
    }
    write_field_lists(text, format);
    let _ = writeln!(text, "state = {DECIDE:?}    # in-progress, completed, failed or released");
}

/// Writes how the values are decoded, unless the tests imply it.
fn write_decoding(text: &mut String, decoding: &Decoding) {
    let value = &decoding.value;
    let _ = match value.encoding {
        Encoding::Hash => writeln!(text, "type = \"hash\""),
        _ if !value.codecs.is_empty() => writeln!(text, "decode = {}", words(value)),
        Encoding::Json | Encoding::Text => Ok(()),
        other => writeln!(text, "encoding = {:?}", other.as_str()),
    };
    if !decoding.inside.is_empty() {
        let mut inside = Vec::new();
        for (path, decoder) in &decoding.inside {
            inside.push(format!("{} = {}", quoted(path), words(decoder)));
        }
        let _ = writeln!(text, "decode_at = {{ {} }}", inside.join(", "));
    }
}

/// The words of a decoder as a TOML array.
fn words(decoder: &Decoder) -> String {
    let words: Vec<_> = decoder.words().iter().map(|word| quoted(word)).collect();
    format!("[{}]", words.join(", "))
}

/// A unique name for a value format: its word, if it has one.
fn unique_name(format: &DraftFormat, names: &mut BTreeSet<String>) -> String {
    let word = match &format.test {
        FormatTest::Field(_, Value::String(word)) | FormatTest::Word(word) => word.as_str(),
        _ => "format",
    };
    let mut name =
        word.to_ascii_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    // An empty name, or one that a format with another decoding has.
    if name.is_empty() || names.contains(&name) {
        name = format!("format-{}", names.len());
    }
    names.insert(name.clone());
    name
}

/// Writes the fields that every value has, those that some have, and those that may be null: of the
/// whole value, and of each object around the field that holds the state. `where` closes such an
/// object, so that each of its fields has to be listed.
fn write_field_lists(text: &mut String, format: &DraftFormat) {
    let mut closed = vec![""];
    if let FormatTest::Field(state_field, _) = &format.test {
        for (at, _) in state_field.match_indices('/').skip(1) {
            closed.push(&state_field[..at]);
        }
    }
    let mut lists = [("required", Vec::new()), ("optional", Vec::new()), ("null", Vec::new())];
    for at in &closed {
        let mut objects = 0;
        let mut counts: BTreeMap<&String, (usize, bool)> = BTreeMap::new();
        for document in format.samples.iter().filter_map(|sample| sample.document.as_ref()) {
            let Some(Value::Object(object)) = document.pointer(at) else { continue };
            objects += 1;
            for (name, value) in object {
                let (count, is_null) = counts.entry(name).or_default();
                *count += 1;
                *is_null |= value.is_null();
            }
        }
        for (name, (count, is_null)) in counts {
            let pointer = format!("{at}/{}", escaped(name));
            if is_null {
                lists[2].1.push(quoted(&pointer));
            }
            if count < objects {
                lists[1].1.push(quoted(&pointer));
            } else if !closed.contains(&pointer.as_str()) {
                // An object is required because its fields are.
                lists[0].1.push(quoted(&pointer));
            }
        }
    }
    for (word, pointers) in lists {
        if !pointers.is_empty() {
            let _ = writeln!(text, "{word} = [{}]", pointers.join(", "));
        }
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

/// The template of the Redis keys that match a glob: the text before its first wildcard and after its
/// last one. It is never narrower than the glob, because locks outside it would not be seen.
fn template_of_glob(glob: &[u8]) -> String {
    let mut before = None;
    let mut text = Vec::new();
    let mut bytes = glob.iter().copied();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => text.extend(bytes.next()),
            b'*' | b'?' | b'[' => {
                if byte == b'[' {
                    bytes.find(|inner| *inner == b']');
                }
                let literal = std::mem::take(&mut text);
                before.get_or_insert(literal);
            }
            _ => text.push(byte),
        }
    }
    match before {
        Some(before) => KeyTemplate::around(&before, &text).display(),
        None => template(&[&text]),
    }
}

/// The template of these Redis keys, as `schema.toml` writes templates: the text before and after
/// the idempotency key, up to a separator. A single key does not show where the idempotency key
/// begins; its last part is the likeliest.
fn template(keys: &[&[u8]]) -> String {
    let Some((first, rest)) = keys.split_first() else {
        return KeyTemplate::around(b"", b"").display();
    };
    let mut alike_before = first.len();
    let mut alike_after = if rest.is_empty() { 0 } else { first.len() };
    for key in rest {
        alike_before = alike_before.min(alike(first.iter(), key.iter()));
        alike_after = alike_after.min(alike(first.iter().rev(), key.iter().rev()));
    }
    let boundaries = boundaries(first);
    let fits = |at: &&usize| **at <= alike_before && **at < first.len();
    let before = boundaries.iter().rfind(fits).copied().unwrap_or(0);
    // The separator before a boundary belongs to the text after the key.
    let mut after = first.len();
    for at in boundaries {
        if at > before + 1 && at < first.len() && first.len() - at < alike_after {
            after = at - 1;
            break;
        }
    }
    KeyTemplate::around(&first[..before], &first[after..]).display()
}

/// How many items two sequences have in common at their beginning.
fn alike<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
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

    #[test]
    fn the_template_of_a_glob_is_never_narrower() {
        for (glob, template) in [
            ("API_LOCK_*", "API_LOCK_{key}"),
            ("pay:*:lock", "pay:{key}:lock"),
            ("pay:*:lock:*", "pay:{key}"),
            (r"pay:\[x\]:[0-9]?*", "pay:[x]:{key}"),
            ("*", "{key}"),
            ("pay:v1:abc", "pay:v1:{key}"),
        ] {
            assert_eq!(template_of_glob(glob.as_bytes()), template, "{glob}");
        }
    }
}
