//! Writes the draft as a `schema.toml`.
//!
//! The text is put together here, because its comments tell the operator what to check, and a
//! serializer writes no comments.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use crate::domain::detect::{boundaries, has_lock_name, is_separator};
use crate::domain::draft::case::{DraftFormat, FormatTest, cases};
use crate::domain::draft::sample::SampleValue;
use crate::domain::draft::{fields, states};
use crate::domain::duration;
use crate::domain::record::{KeyState, TimeLeft};
use crate::domain::schema::key_template::KeyTemplate;
use crate::domain::schema::{Decoder, Decoding, Encoding, State};

/// The placeholder for a value that a person must decide. No field of a schema accepts this word.
pub(crate) const DECIDE: &str = "DECIDE";

/// The line that excludes a new schema from use until it is named. Without it, a copied schema
/// would claim the Redis keys of its original on every server.
pub(crate) const DRAFT: &str = "draft = true    # read only if --schema or a context names it; \
    delete the line when it is ready";

/// The fewest samples of a format that show a TTL of its own. Fewer may have little time left by
/// chance.
const FEWEST_WITH_TTL: usize = 3;

/// The length of a UUID with hyphens.
const UUID_LENGTH: usize = 36;

/// The format of `schema.toml` in which drafts are written.
const FORMAT: u32 = 2;

/// The text of a schema with this name, drafted from these strings and hashes.
pub(crate) fn draft(name: &str, seen: &[KeyState]) -> String {
    let Layout { templates, cases } = lock_and_result(seen).unwrap_or_else(|| one_key(seen));
    let summary = format!("{name}, drafted from sample keys");
    let warning = if templates.iter().any(|(_, template)| template.starts_with("{key}")) {
        "# The template has no text before the key, so any Redis key fits: select the schema by \
        name.\n"
    } else {
        ""
    };
    let mut text = format!(
        "# A draft from {} Redis keys. Replace each {DECIDE}; `idemctl schema check` refuses the \
         word.\n\
         # The file says how records look; idemctl-schema(5) says how the service's steps are \
         described, too.\n\
         format = {FORMAT}\nname = {name:?}\n{DRAFT}\nsummary = {summary:?}\n\n\
         [keys]\n{warning}",
        seen.len(),
    );
    // Writing to a `String` cannot fail, so the results of `writeln!` are ignored in this file.
    for (role, template) in &templates {
        let _ = writeln!(text, "{role} = {}", quoted(template));
    }
    text.push_str("\n[ttl]\n");
    write_ttls(&mut text, &cases);
    let mut names = BTreeSet::new();
    let mut results = Vec::new();
    for case in &cases {
        if case.state == Some(State::Completed) {
            results.push(case);
        }
    }
    let result_longest = longest(&results);
    for case in &cases {
        write_value_format(&mut text, case, seen.len(), result_longest, &mut names);
    }
    if cases.iter().all(|case| case.state == Some(State::Completed)) {
        text.push_str(
            "\n# None of the keys is in progress. If the service keeps a lock here, describe its \
            format as well.\n",
        );
    }
    text
}

/// The Redis keys of a record, and the formats of their values.
struct Layout {
    /// The role and the template of each Redis key.
    templates: Vec<(&'static str, String)>,
    cases: Vec<DraftFormat>,
}

/// The layout of samples whose records have one Redis key each.
fn one_key(seen: &[KeyState]) -> Layout {
    let keys: Vec<_> = seen.iter().map(|key| &key.redis_key[..]).collect();
    let cases = cases(seen.iter().map(SampleValue::of).collect());
    Layout { templates: vec![("record", template(&keys))], cases }
}

/// The layout of samples of which some are locks with a Redis key of their own:
/// `pay:1:lock` beside `pay:1`. `None` if the names do not show that.
fn lock_and_result(seen: &[KeyState]) -> Option<Layout> {
    let (locks, results): (Vec<_>, Vec<_>) =
        seen.iter().partition(|key| has_lock_name(&key.redis_key));
    if locks.is_empty() || results.is_empty() {
        return None;
    }
    let template_of = |keys: &[&KeyState]| {
        let keys: Vec<_> = keys.iter().map(|key| &key.redis_key[..]).collect();
        template(&keys)
    };
    let result = template_of(&results);
    let lock = template_of(&locks);
    // Without the word for locks at its beginning or its end, the template of the lock has to be
    // that of the result. A word in the middle may be one of many names below a common prefix.
    let bounds = boundaries(lock.as_bytes());
    let (Some(first), Some(last)) = (bounds.get(1), bounds.iter().rev().nth(1)) else {
        return None;
    };
    let is_before = has_lock_name(&lock.as_bytes()[..*first]) && result == lock[*first..];
    let is_behind = has_lock_name(&lock.as_bytes()[*last..])
        && result == lock[..*last].trim_end_matches(is_separator);
    if !is_before && !is_behind {
        return None;
    }
    let mut all = Vec::new();
    for (role, keys) in [("lock", locks), ("result", results)] {
        for mut case in cases(keys.into_iter().map(SampleValue::of).collect()) {
            // A Redis key that is named after locks has locks. Whether all others are results is
            // for a person to decide.
            if role == "lock" && case.state.is_none() {
                case.state = Some(State::InProgress);
            }
            case.role = Some(role);
            all.push(case);
        }
    }
    Some(Layout { templates: vec![("lock", lock), ("result", result)], cases: all })
}

/// The longest remaining TTL of the samples of these formats in milliseconds, if one expires.
fn longest(cases: &[&DraftFormat]) -> Option<u64> {
    let mut longest = None;
    for sample in cases.iter().flat_map(|case| &case.samples) {
        longest = longest.max(sample.time_left.millis());
    }
    longest
}

/// Writes the `[ttl]` table.
fn write_ttls(text: &mut String, cases: &[DraftFormat]) {
    // A format without a state may be either kind, so its TTL cannot be left out. A failure is no
    // lock.
    let is_open = cases.iter().any(|case| case.state.is_none() && !case.is_failure());
    let has_failures = cases.iter().any(DraftFormat::is_failure);
    for (name, state) in [("lock", State::InProgress), ("result", State::Completed)] {
        let mut count = 0;
        let mut never_expires = false;
        let mut longest = None;
        for case in cases.iter().filter(|case| case.state == Some(state)) {
            for sample in &case.samples {
                count += 1;
                never_expires |= sample.time_left == TimeLeft::NoExpiry;
                longest = longest.max(sample.time_left.millis());
            }
        }
        if count == 0 && (is_open || (has_failures && state == State::Completed)) {
            let _ = writeln!(
                text,
                "# {DECIDE}: the service's TTL of a {name}, or \"none\". Delete the line if there \
                is no {name}.\n{name} = {DECIDE:?}"
            );
        }
        if let Some(longest) = longest {
            let ttl = states::usual_ttl(longest);
            let shown = duration::short(longest);
            let keys = if count == 1 { "key" } else { "keys" };
            let _ = writeln!(
                text,
                "# The longest remaining TTL was {shown} ({count} {keys} of this state).\n\
                {name} = {ttl:?}"
            );
        } else if never_expires {
            let _ = writeln!(
                text,
                "# {DECIDE}: the keys have no TTL. \"none\" if that is intended, otherwise the \
                service's TTL.\n{name} = {DECIDE:?}"
            );
        }
    }
}

/// Writes one `[[value]]` table.
fn write_value_format(
    text: &mut String,
    case: &DraftFormat,
    all: usize,
    result_longest: Option<u64>,
    names: &mut BTreeSet<String>,
) {
    let name = unique_name(case, names);
    let _ =
        writeln!(text, "\n# {} of {all} values.\n[[value]]\nname = {name:?}", case.samples.len());
    if let Some(role) = case.role {
        let _ = writeln!(text, "at = {role:?}");
    }
    write_decoding(text, &case.decoding);
    match &case.test {
        FormatTest::Field(field, value) => {
            let _ = writeln!(text, "where = {{ {} = {} }}", quoted(field), literal(value));
        }
        FormatTest::Word(word) => _ = writeln!(text, "equals = {}", quoted(word)),
        FormatTest::AnyText => text.push_str(
            "# Any text has this format. Only the Redis key shows that the service wrote it.\n\
            opaque = true\n",
        ),
        FormatTest::Items(count) => {
            let items: Vec<_> = (0..*count).map(|index| format!("\"/{index}\"")).collect();
            let _ = writeln!(text, "has = [{}]", items.join(", "));
        }
        FormatTest::Fields => {}
    }
    write_field_lists(text, case);
    match case.state {
        Some(state) => _ = writeln!(text, "state = {:?}", state.as_str()),
        None if case.is_failure() => {
            let _ = writeln!(
                text,
                "# {DECIDE}: failed, if the service keeps the failure. Whether the next request \
                gets it or\n# executes again is for the begin step to say.\nstate = {DECIDE:?}"
            );
        }
        None => {
            let _ = writeln!(
                text,
                "# {DECIDE}: in-progress, completed, failed or released.\nstate = {DECIDE:?}"
            );
        }
    }
    // Failures often have a shorter TTL than other results. A few results may only be older, so a
    // TTL that is nearly the same says nothing.
    if (case.state == Some(State::Completed) || case.is_failure())
        && case.samples.len() >= FEWEST_WITH_TTL
        && let Some(longest) = longest(&[case])
        && result_longest.is_some_and(|result| longest < result / 4)
    {
        let ttl = states::usual_ttl(longest);
        let shown = duration::short(longest);
        let keys = case.samples.len();
        let _ = writeln!(
            text,
            "# The longest remaining TTL of these {keys} keys was {shown}, less than that of other \
            results.\nttl = {ttl:?}"
        );
    }
    write_meanings(text, case);
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

/// A unique name for a value format.
fn unique_name(case: &DraftFormat, names: &mut BTreeSet<String>) -> String {
    let word = match &case.test {
        FormatTest::Field(_, Value::String(word)) | FormatTest::Word(word) => word.clone(),
        FormatTest::Field(field, value) => {
            let name = field.rsplit('/').next().unwrap_or_default();
            format!("{name}-{value}")
        }
        FormatTest::Fields | FormatTest::Items(_) => "record".to_owned(),
        FormatTest::AnyText => "held".to_owned(),
    };
    let mut name =
        word.to_ascii_lowercase().replace(|letter: char| !letter.is_ascii_alphanumeric(), "-");
    if name.is_empty() {
        name.push_str("empty");
    }
    // Two formats may have the same word, for example if their codecs differ.
    if names.contains(&name) {
        name = format!("{name}-{}", names.len());
    }
    names.insert(name.clone());
    name
}

/// Writes the fields that every value has, those that some have, and those that may be null: of the
/// whole value, and of each object around the field that holds the state. `where` closes such an
/// object, so that each of its fields has to be listed.
fn write_field_lists(text: &mut String, case: &DraftFormat) {
    let mut closed = vec![""];
    if let FormatTest::Field(state_field, _) = &case.test {
        for (at, _) in state_field.match_indices('/').skip(1) {
            closed.push(&state_field[..at]);
        }
    }
    let mut lists = [("required", Vec::new()), ("optional", Vec::new()), ("null", Vec::new())];
    for at in &closed {
        let mut objects = 0;
        let mut counts: BTreeMap<&String, (usize, bool)> = BTreeMap::new();
        for document in case.samples.iter().filter_map(|sample| sample.document.as_ref()) {
            let Some(Value::Object(object)) = document.pointer(at) else { continue };
            objects += 1;
            for (name, value) in object {
                let (count, is_null) = counts.entry(name).or_default();
                *count += 1;
                *is_null |= value.is_null();
            }
        }
        for (name, (count, is_null)) in counts {
            let pointer = format!("{at}/{}", fields::step(name));
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

/// Writes the guessed meanings of the fields.
fn write_meanings(text: &mut String, case: &DraftFormat) {
    let state_field = match &case.test {
        FormatTest::Field(pointer, _) => Some(pointer.as_str()),
        _ => None,
    };
    let mut found: BTreeMap<&str, String> = BTreeMap::new();
    for document in case.samples.iter().filter_map(|sample| sample.document.as_ref()) {
        for (what, pointer) in fields::of(document, state_field) {
            found.entry(what).or_insert(pointer);
        }
    }
    if found.is_empty() {
        return;
    }
    let mut shown = Vec::new();
    for (what, pointer) in &found {
        shown.push(format!("{what} = {}", quoted(pointer)));
    }
    let _ = writeln!(
        text,
        "# Guessed from the names. Check that the fields contain this.\nfields = {{ {} }}",
        shown.join(", ")
    );
    match first_value(case, found.get("body")) {
        Some(Value::String(body)) if is_base64_text(body) => {
            text.push_str("body_encoding = \"base64\"\n");
        }
        Some(Value::String(_)) | None => {}
        Some(_) => text.push_str("body_encoding = \"json\"\n"),
    }
    let time = first_value(case, found.get("created_at"))
        .or_else(|| first_value(case, found.get("completed_at")));
    // Without `timestamp`, a schema's times are in milliseconds.
    if let Some(unit) = time.and_then(fields::timestamp)
        && unit != "ms"
    {
        let _ = writeln!(text, "timestamp = {unit:?}");
    }
}

/// True for text in Base64, as services store bodies that may be bytes. Short words such as `paid`
/// are Base64 as well, so the decoded text has to begin as JSON or a page does, or the text ends as
/// only Base64 does.
fn is_base64_text(body: &str) -> bool {
    let Ok(bytes) = STANDARD.decode(body) else { return false };
    body.ends_with('=')
        || bytes.starts_with(b"{")
        || bytes.starts_with(b"[")
        || bytes.starts_with(b"<")
}

/// The first value other than null at this JSON pointer of a sample.
fn first_value<'a>(case: &'a DraftFormat, pointer: Option<&String>) -> Option<&'a Value> {
    let pointer = pointer?;
    for document in case.samples.iter().filter_map(|sample| sample.document.as_ref()) {
        if let Some(value) = document.pointer(pointer)
            && !value.is_null()
        {
            return Some(value);
        }
    }
    None
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
    let Some((first, rest)) = keys.split_first() else {
        return KeyTemplate::around(b"", b"").display();
    };
    if rest.is_empty() {
        // A single key does not show where the idempotency key begins; its last part is the
        // likeliest.
        if let Some(at) = before_uuid(&[first]) {
            return KeyTemplate::around(&first[..at], b"").display();
        }
        return KeyTemplate::around(&first[..last_boundary(first, first.len())], b"").display();
    }
    let mut alike_before = first.len();
    let mut alike_after = usize::MAX;
    for key in rest {
        alike_before = alike_before.min(alike(first.iter(), key.iter()));
        alike_after = alike_after.min(alike(first.iter().rev(), key.iter().rev()));
    }
    let mut before = last_boundary(first, alike_before);
    if before == 0 {
        // Some services write no separator, or only a hyphen.
        before = match before_uuid(keys) {
            Some(at) if at <= alike_before => at,
            _ => after_hyphen(&first[..alike_before]),
        };
    }
    let after = suffix(&first[before..], alike_after);
    KeyTemplate::around(&first[..before], &first[first.len() - after..]).display()
}

/// The offset behind the last hyphen of this common text; 0 if there is none, or if a digit before
/// it shows that the text belongs to identifiers or dates.
fn after_hyphen(common: &[u8]) -> usize {
    match common.iter().rposition(|byte| *byte == b'-') {
        Some(at) if !common[..at].iter().any(u8::is_ascii_digit) => at + 1,
        _ => 0,
    }
}

/// Where a UUID begins that ends each of these keys; `None` if a key does not end with one, or it
/// begins at different offsets.
fn before_uuid(keys: &[&[u8]]) -> Option<usize> {
    let at = keys.first()?.len().checked_sub(UUID_LENGTH)?;
    for key in keys {
        let text = std::str::from_utf8(key.get(at..)?).ok()?;
        if text.len() != UUID_LENGTH || uuid::Uuid::try_parse(text).is_err() {
            return None;
        }
    }
    Some(at)
}

/// How many items two sequences have in common at their beginning.
fn alike<'a>(one: impl Iterator<Item = &'a u8>, other: impl Iterator<Item = &'a u8>) -> usize {
    one.zip(other).take_while(|(one, other)| one == other).count()
}

/// The last boundary between words at or before `most`, and before the end of the key.
fn last_boundary(key: &[u8], most: usize) -> usize {
    boundaries(key).into_iter().rfind(|at| *at <= most && *at < key.len()).unwrap_or(0)
}

/// The number of bytes after the idempotency key, from a separator to the end.
fn suffix(rest: &[u8], most: usize) -> usize {
    // Boundaries ascend, so the first one that fits gives the longest suffix.
    for at in boundaries(rest) {
        if at <= 1 || at >= rest.len() {
            continue;
        }
        // The separator before the boundary belongs to the suffix.
        let length = rest.len() - at + 1;
        if length <= most && length < rest.len() {
            return length;
        }
    }
    0
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
