//! CBOR, by RFC 8949.

use std::borrow::Cow;

use super::items::{Read, Reader, Stop, document, name, odd, whole_number};
use crate::domain::record::Json;

/// What ends an item whose length was not told in front.
const BREAK: u8 = 0xff;

/// Reads a document, or with `whole` false the beginning of one.
///
/// # Errors
/// Why the bytes are no CBOR, for people.
pub(crate) fn parse(bytes: &[u8], whole: bool) -> Result<Json<'_>, String> {
    document(bytes, whole, item)
}

fn item<'a>(reader: &mut Reader<'a>) -> Read<Json<'a>> {
    let first = reader.byte()?;
    let low = first & 0x1f;
    match first >> 5 {
        0 => argument(reader, low)?.map_or_else(no_length, |number| Ok(whole_number(number))),
        // Minus one, minus the number.
        1 => argument(reader, low)?.map_or_else(no_length, |number| Ok(whole_number(-1 - i128::from(number)))),
        2 => bytes(reader, low, 2).map(Json::Bytes),
        3 => string(reader, low),
        4 => array(reader, low),
        5 => map(reader, low),
        // A tag says how to understand what follows, which stands for itself here.
        6 => tagged(reader, low),
        _ => simple(reader, low),
    }
}

/// The number in front of an item; `None` for an item that goes on until a break.
fn argument(reader: &mut Reader<'_>, low: u8) -> Read<Option<u64>> {
    match low {
        0..=23 => Ok(Some(low.into())),
        24..=27 => reader.number(1 << (low - 24)).map(Some),
        31 => Ok(None),
        _ => odd("an item has a length that CBOR keeps for later"),
    }
}

fn no_length<'a>() -> Read<Json<'a>> {
    odd("a number goes on until a break")
}

/// The bytes of a string, its chunks put together; `major` is the type that each chunk has.
fn bytes<'a>(reader: &mut Reader<'a>, low: u8, major: u8) -> Read<Cow<'a, [u8]>> {
    if let Some(length) = argument(reader, low)? {
        return Ok(Cow::Borrowed(reader.bytes(length)));
    }
    let mut whole = Vec::new();
    reader.items(None, |reader| {
        let first = reader.byte()?;
        if first == BREAK {
            return Ok(false);
        }
        let length = if first >> 5 == major { argument(reader, first & 0x1f)? } else { None };
        let Some(length) = length else { return odd("a chunk of a string is none") };
        whole.extend_from_slice(reader.bytes(length));
        Ok(true)
    })?;
    Ok(Cow::Owned(whole))
}

fn string<'a>(reader: &mut Reader<'a>, low: u8) -> Read<Json<'a>> {
    if low != 31 {
        let length = argument(reader, low)?.unwrap_or_default();
        return Ok(reader.text(length));
    }
    let whole = bytes(reader, low, 3)?;
    Ok(Json::String(Cow::Owned(String::from_utf8_lossy(&whole).into_owned())))
}

fn array<'a>(reader: &mut Reader<'a>, low: u8) -> Read<Json<'a>> {
    let count = argument(reader, low)?;
    let mut items = Vec::new();
    reader.items(count, |reader| {
        if count.is_none() && reader.takes(BREAK)? {
            return Ok(false);
        }
        items.push(item(reader)?);
        Ok(true)
    })?;
    Ok(Json::Array(items))
}

fn map<'a>(reader: &mut Reader<'a>, low: u8) -> Read<Json<'a>> {
    let count = argument(reader, low)?;
    let mut members = Vec::new();
    reader.items(count, |reader| {
        if count.is_none() && reader.takes(BREAK)? {
            return Ok(false);
        }
        let key = name(item(reader)?)?;
        // A name that is cut is no name.
        if !reader.cut {
            members.push((key, item(reader)?));
        }
        Ok(true)
    })?;
    Ok(Json::Object(members))
}

fn tagged<'a>(reader: &mut Reader<'a>, low: u8) -> Read<Json<'a>> {
    argument(reader, low)?;
    let mut inner = None;
    // A tag is a level: a chain of tags is as deep as it is long.
    reader.items(Some(1), |reader| {
        inner = Some(item(reader)?);
        Ok(true)
    })?;
    inner.ok_or(Stop::Cut)
}

fn simple<'a>(reader: &mut Reader<'a>, low: u8) -> Read<Json<'a>> {
    match low {
        20 | 21 => Ok(Json::Bool(low == 21)),
        22 | 23 => Ok(Json::Null),
        25 => Ok(whole_number(half(u16::from_be_bytes(reader.fixed()?)))),
        26 => Ok(whole_number(f32::from_be_bytes(reader.fixed()?))),
        27 => Ok(whole_number(f64::from_be_bytes(reader.fixed()?))),
        31 => odd("a break ends nothing"),
        _ => odd("a simple value that JSON has not"),
    }
}

/// A number of IEEE 754's half precision.
fn half(bits: u16) -> f64 {
    let (exponent, mantissa) = (i32::from(bits >> 10 & 0x1f), f64::from(bits & 0x3ff));
    let size = match exponent {
        0 => mantissa * f64::powi(2.0, -24),
        31 if mantissa == 0.0 => f64::INFINITY,
        31 => f64::NAN,
        _ => (mantissa + 1024.0) * f64::powi(2.0, exponent - 25),
    };
    if bits >> 15 == 1 { -size } else { size }
}
