//! `[[value]]`: how a value is decoded and recognised, and where its fields are.

use serde_json::Value;

use super::symbol_table::SymbolTable;
use crate::domain::schema::closed_fields::ClosedFields;
use crate::domain::schema::decoder::{Decoder, Decoding, Encoding};
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::raw::RawValue;
use crate::domain::schema::steps::KeyIs;
use crate::domain::schema::value_format::{State, ValueFormat, Where};

/// Resolves a `[[value]]`.
pub(super) fn resolve(symbols: &SymbolTable, raw: &RawValue) -> Checked<ValueFormat> {
    let key_index = key_index(symbols, raw)?;
    let decoding = decoding(raw)?;
    let encoding = decoding.value.encoding;
    check_tests(raw, encoding)?;
    let closed = closed_fields(raw, encoding)?;
    for (name, path) in raw.fields.pointers() {
        check_pointer(path, encoding).at(name).at("fields")?;
    }
    if let Some(expires_at) = &raw.expires_at {
        check_pointer(&expires_at.field, encoding).at("field").at("expires_at")?;
    }
    let mut fields = Vec::with_capacity(raw.fields_are.len());
    for (path, value) in &raw.fields_are {
        fields.push((path.clone(), as_stored(&decoding, path, value)));
    }
    let equals = raw.equals.as_ref().map(|text| text.clone().into_bytes());
    let state = state(symbols, raw)?;
    Ok(ValueFormat {
        name: raw.name.clone(),
        key_index,
        tests: Where { equals, fields, has: raw.has.clone() },
        decoding,
        closed,
        state,
        fields: raw.fields.clone(),
        shared_parents: raw.fields.shared_parents(),
        body_encoding: raw.body_encoding.unwrap_or_default(),
        body_is: raw.body_is,
        timestamp: raw.timestamp.unwrap_or_default(),
        expires_at: raw.expires_at.clone(),
        rivals: Vec::new(),
    })
}

/// Finds the rivals of each format.
pub(super) fn find_rivals(formats: &mut [ValueFormat]) {
    for index in 0..formats.len() {
        let mut rivals = Vec::new();
        for later in index + 1..formats.len() {
            if formats[index].has_rival(&formats[later]) {
                rivals.push(later);
            }
        }
        formats[index].rivals = rivals;
    }
}

/// The index of the Redis key that holds the value. It is an error if another value format of that
/// key has the same name.
fn key_index(symbols: &SymbolTable, raw: &RawValue) -> Checked<usize> {
    let name = &raw.name;
    if KeyIs::from_word(name).is_some() {
        return wrong(format!("`{name}` is a word that `when` already uses")).at("name");
    }
    let key_index = match &raw.at {
        Some(name) => match symbols.index_named(name) {
            Some(index) => index,
            None => return wrong(format!("[keys] has no `{name}`")).at("at"),
        },
        // A value without `at` is that of the lock or result, if one Redis key holds both.
        None if !symbols.has_separate_result() => 0,
        None => return wrong("`at` is missing; write `at = \"lock\"` or `at = \"result\"`"),
    };
    if symbols.value(key_index, name).is_some() {
        let at = symbols.keys[key_index].role.as_str();
        return wrong(format!("`{name}` is defined twice at `{at}`")).at("name");
    }
    Ok(key_index)
}

/// The state of a record with this value.
fn state(symbols: &SymbolTable, raw: &RawValue) -> Checked<State> {
    match raw.state {
        None => wrong("missing field `state`"),
        Some(State::Released) if symbols.has_separate_result() => {
            wrong("`released` is a state of one Redis key; a separate lock is absent then")
                .at("state")
        }
        Some(state) => Ok(state),
    }
}

/// How a value is decoded, according to `type`, `encoding`, `decode` and `decode_at`.
fn decoding(raw: &RawValue) -> Checked<Decoding> {
    let value = match (raw.kind, raw.encoding, &raw.decode) {
        (Some(collection), None, None) => Decoder::from(collection),
        (Some(_), ..) => {
            return wrong("`encoding` and `decode` are for strings; a hash has `decode_at`")
                .at("type");
        }
        (None, Some(encoding), None) => Decoder::from(encoding),
        (None, None, Some(words)) => decoder(words).at("decode")?,
        (None, Some(_), Some(_)) => {
            return wrong("`decode` ends with the encoding; leave `encoding` out").at("encoding");
        }
        (None, None, None) => Decoder::from(derived_encoding(raw)?),
    };
    if !raw.decode_at.is_empty() && !value.encoding.has_fields() {
        return wrong("`decode_at` is only for JSON, msgpack and hashes").at("decode_at");
    }
    let mut inside = Vec::with_capacity(raw.decode_at.len());
    // In this order, a pointer comes before the pointers that lead into its decoded field.
    for (path, words) in &raw.decode_at {
        let decoder = check_start(path).and_then(|()| decoder(words));
        inside.push((path.clone(), decoder.at(path.as_str()).at("decode_at")?));
    }
    Ok(Decoding { value, inside })
}

fn decoder(words: &[String]) -> Checked<Decoder> {
    Decoder::parse(words).or_else(|(index, why)| wrong(why).at(index))
}

/// The encoding of a value format that does not name one: JSON if it tests fields, text if it
/// compares the whole text.
fn derived_encoding(raw: &RawValue) -> Checked<Encoding> {
    if raw.equals.is_some() || raw.opaque {
        return Ok(Encoding::Text);
    }
    if !raw.fields_are.is_empty() || !raw.has.is_empty() || raw.required.is_some() {
        return Ok(Encoding::Json);
    }
    wrong(
        "nothing distinguishes this value; write `where` or `has` for JSON, `equals` for one text, \
        `opaque = true` for any",
    )
}

fn check_tests(raw: &RawValue, encoding: Encoding) -> Checked<()> {
    let asks_for_fields = !raw.fields_are.is_empty() || !raw.has.is_empty();
    if asks_for_fields && !encoding.has_fields() {
        return wrong(has_no_fields(encoding));
    }
    if encoding != Encoding::Text && raw.equals.is_some() {
        return wrong("`equals` compares the whole text; use `where` for fields").at("equals");
    }
    for (index, path) in raw.has.iter().enumerate() {
        check_pointer(path, encoding).at(index).at("has")?;
    }
    for (path, value) in &raw.fields_are {
        check_compared(path, value).at(path.as_str()).at("where")?;
    }
    if raw.opaque && (encoding != Encoding::Text || raw.equals.is_some()) {
        return wrong(
            "`opaque` means any text; use it with encoding = \"text\" and without `equals`",
        )
        .at("opaque");
    }
    check_distinguished(raw, encoding)
}

/// Checks that a value format distinguishes its values from others, or is marked to match any text.
fn check_distinguished(raw: &RawValue, encoding: Encoding) -> Checked<()> {
    match encoding {
        Encoding::Text if raw.equals.is_none() && !raw.opaque => {
            wrong("matches any text; write `equals`, or `opaque = true` if that is intended")
        }
        Encoding::Json | Encoding::Msgpack
            if raw.fields_are.is_empty() && raw.has.is_empty() && raw.required.is_none() =>
        {
            wrong(
                "matches any JSON; write `where`, `has` or `required`, or leave `encoding` out and \
                mark it `opaque`",
            )
        }
        // The type of the Redis key, or the first bytes, distinguish the value.
        _ => Ok(()),
    }
}

fn check_compared(path: &str, value: &Value) -> Checked<()> {
    check_start(path)?;
    if value.is_string() || value.is_boolean() || value.is_i64() {
        return Ok(());
    }
    wrong("`where` needs a text, a whole number, true or false to compare with")
}

fn check_pointer(path: &str, encoding: Encoding) -> Checked<()> {
    if path.is_empty() {
        return Ok(());
    }
    if !encoding.has_fields() {
        return wrong(has_no_fields(encoding));
    }
    check_start(path)
}

/// The error about a field of a value without fields.
fn has_no_fields(encoding: Encoding) -> String {
    format!("{} has no fields; write \"\" for the whole value", encoding.as_str())
}

fn check_start(path: &str) -> Checked<()> {
    if path.starts_with('/') {
        return Ok(());
    }
    wrong(format!("`{path}` is not a JSON pointer, which starts with `/`"))
}

/// The form in which `where` compares a value. A hash field holds text, unless `decode_at` decodes
/// the field.
fn as_stored(decoding: &Decoding, path: &str, value: &Value) -> Value {
    if value.is_string() || decoding.value.encoding != Encoding::Hash {
        return value.clone();
    }
    for (outer, _) in &decoding.inside {
        // `/result` also begins `/results`, which is another field.
        if let Some(rest) = path.strip_prefix(outer.as_str())
            && (rest.is_empty() || rest.starts_with('/'))
        {
            return value.clone();
        }
    }
    Value::String(value.to_string())
}

/// The fields of a value format that lists them; `None` if it lists none.
fn closed_fields(raw: &RawValue, encoding: Encoding) -> Checked<Option<ClosedFields>> {
    let lists = [
        ("required", raw.required.as_ref()),
        ("optional", raw.optional.as_ref()),
        ("null", Some(&raw.null)),
    ];
    for (name, list) in lists {
        for (index, path) in list.into_iter().flatten().enumerate() {
            check_field(path, encoding).at(index).at(name)?;
        }
    }
    if raw.required.is_none() && raw.optional.is_none() {
        for (name, is_there) in [("null", !raw.null.is_empty()), ("strict", raw.strict)] {
            if is_there {
                return wrong(format!("`{name}` needs `required` or `optional`")).at(name);
            }
        }
        return Ok(None);
    }
    // A field that a test needs exists in every value of the format.
    let required = raw.fields_are.keys().chain(&raw.has).chain(raw.required.iter().flatten());
    let optional: Vec<_> = raw.optional.iter().flatten().map(String::as_str).collect();
    let mut closed = ClosedFields::new(required.map(String::as_str), &optional, raw.strict);
    // A field that idemctl reads is allowed even if the file lists it only in `fields`.
    for (_, path) in raw.fields.pointers() {
        allow(&mut closed, path);
    }
    if let Some(expires_at) = &raw.expires_at {
        allow(&mut closed, &expires_at.field);
    }
    for (index, path) in raw.null.iter().enumerate() {
        match closed.get_mut(path) {
            Some(member) => member.may_be_null = true,
            None => {
                return wrong(format!("`{path}` is not a field of this value format"))
                    .at(index)
                    .at("null");
            }
        }
    }
    Ok(Some(closed))
}

/// Allows a field that `fields` or `expires_at` names. The empty pointer is the whole value, not a
/// field.
fn allow(closed: &mut ClosedFields, path: &str) {
    if !path.is_empty() {
        closed.allow(path);
    }
}

fn check_field(path: &str, encoding: Encoding) -> Checked<()> {
    if !encoding.has_fields() {
        return wrong(has_no_fields(encoding));
    }
    check_start(path)
}
