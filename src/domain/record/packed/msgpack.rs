//! MessagePack, according to its specification:
//! <https://github.com/msgpack/msgpack/blob/master/spec.md>.

use std::borrow::Cow;

use super::items::{PackedReader, UnpackResult, document, name, odd, whole_number};
use crate::domain::record::Json;
use crate::domain::record::json::Members;

/// Reads a document, or with `whole` false the beginning of one.
///
/// # Errors
/// Why the bytes are not MessagePack, for people.
pub(crate) fn parse(bytes: &[u8], whole: bool) -> Result<Json<'_>, String> {
    document(bytes, whole, item)
}

fn item<'a>(reader: &mut PackedReader<'a>) -> UnpackResult<Json<'a>> {
    let first = reader.byte()?;
    match first {
        0x00..=0x7f => Ok(whole_number(first)),
        0x80..=0x8f => map(reader, u64::from(first & 0x0f)),
        0x90..=0x9f => array(reader, u64::from(first & 0x0f)),
        0xa0..=0xbf => Ok(reader.text(u64::from(first & 0x1f))),
        0xc0 => Ok(Json::Null),
        0xc1 => odd("0xc1 is no type of MessagePack"),
        0xc2 | 0xc3 => Ok(Json::Bool(first == 0xc3)),
        0xc4..=0xc6 => sized(reader, first - 0xc4, |reader, length| {
            Ok(Json::Bytes(Cow::Borrowed(reader.bytes(length))))
        }),
        0xc7..=0xc9 => sized(reader, first - 0xc7, extension),
        0xca => Ok(whole_number(f32::from_be_bytes(reader.fixed()?))),
        0xcb => Ok(whole_number(f64::from_be_bytes(reader.fixed()?))),
        0xcc..=0xcf => reader.number(1 << (first - 0xcc)).map(whole_number),
        0xd0 => Ok(whole_number(i8::from_be_bytes(reader.fixed()?))),
        0xd1 => Ok(whole_number(i16::from_be_bytes(reader.fixed()?))),
        0xd2 => Ok(whole_number(i32::from_be_bytes(reader.fixed()?))),
        0xd3 => Ok(whole_number(i64::from_be_bytes(reader.fixed()?))),
        0xd4..=0xd8 => extension(reader, 1 << (first - 0xd4)),
        0xd9..=0xdb => sized(reader, first - 0xd9, |reader, length| Ok(reader.text(length))),
        0xdc | 0xdd => sized(reader, first - 0xdc + 1, array),
        0xde | 0xdf => sized(reader, first - 0xde + 1, map),
        0xe0..=0xff => Ok(whole_number(i8::from_be_bytes([first]))),
    }
}

/// An item with a length prefix of 1, 2 or 4 bytes.
fn sized<'a>(
    reader: &mut PackedReader<'a>,
    power: u8,
    read: impl FnOnce(&mut PackedReader<'a>, u64) -> UnpackResult<Json<'a>>,
) -> UnpackResult<Json<'a>> {
    let length = reader.number(1 << power)?;
    read(reader, length)
}

fn array<'a>(reader: &mut PackedReader<'a>, count: u64) -> UnpackResult<Json<'a>> {
    let mut items = Vec::new();
    reader.items(count, |reader| {
        items.push(item(reader)?);
        Ok(())
    })?;
    Ok(Json::Array(items))
}

fn map<'a>(reader: &mut PackedReader<'a>, count: u64) -> UnpackResult<Json<'a>> {
    // A writer may repeat a key. Readers keep the last value, and a format counts each field once.
    let mut members = Members::default();
    reader.items(count, |reader| {
        let key = name(item(reader)?)?;
        // A truncated name is dropped.
        if !reader.cut {
            members.put(key, item(reader)?);
        }
        Ok(())
    })?;
    Ok(Json::Object(members.into_inner()))
}

/// An application's own type: its raw bytes, because only the application knows their meaning.
fn extension<'a>(reader: &mut PackedReader<'a>, length: u64) -> UnpackResult<Json<'a>> {
    // The byte is the application's number for the type.
    reader.byte()?;
    Ok(Json::Bytes(Cow::Borrowed(reader.bytes(length))))
}
