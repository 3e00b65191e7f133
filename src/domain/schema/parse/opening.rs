//! `encoding`, `decode` and `decode_at` of a form.

use super::format;
use crate::domain::schema::location::{At as _, Checked, wrong};
use crate::domain::schema::opening::{Encoding, Opening, Pipeline, ValueType};
use crate::domain::schema::raw::RawValue;

/// How a value of the form is opened.
pub(super) fn resolve(raw: &RawValue) -> Checked<Opening> {
    let other = raw.kind.and_then(ValueType::encoding);
    let value = match (raw.encoding, &raw.decode) {
        (None, None) if other.is_some() => other.unwrap_or(Encoding::Hash).into(),
        _ if other.is_some() => {
            return wrong("`encoding` and `decode` are of strings: a hash has `decode_at`").at("type");
        }
        (Some(encoding), None) => encoding.into(),
        (None, Some(words)) => pipeline(words).at("decode")?,
        (Some(_), Some(_)) => return wrong("`decode` ends with the encoding: leave `encoding` out").at("encoding"),
        (None, None) => format::encoding(raw)?.into(),
    };
    if !raw.decode_at.is_empty() && !value.encoding.has_fields() {
        return wrong("`decode_at` looks into JSON, msgpack, CBOR or a hash").at("decode_at");
    }
    let mut inside = Vec::with_capacity(raw.decode_at.len());
    // In the order of the pointers an outer one comes before those that lead into what it holds.
    for (path, words) in &raw.decode_at {
        let opened =
            if path.starts_with('/') { pipeline(words) } else { wrong("a pointer to a field starts with `/`") };
        inside.push((path.clone(), opened.at(path.as_str()).at("decode_at")?));
    }
    Ok(Opening { value, inside })
}

fn pipeline(words: &[String]) -> Checked<Pipeline> {
    Pipeline::parse(words).or_else(|(index, why)| wrong(why).at(index))
}
