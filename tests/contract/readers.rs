//! How published libraries read the results that they stored, written from their source and from that of what they build on.
//! Nothing here comes from idemctl's own decoders.

use std::collections::HashMap;
use std::io::Read as _;

use flate2::read::{GzDecoder, ZlibDecoder};
use serde_json::{Map, Value};

use super::given::{Replayed, ReplayedBody};

type Headers = Vec<(String, String)>;

/// hono-idempotency 0.9.1, src/stores/redis.ts (`JSON.parse`) and src/middleware.ts (`replayResponse`): `new Headers(headers)` and
/// `new Response(body, { status })` of the Fetch standard, which throw for what is an error here.
pub fn hono(value: &[u8]) -> Result<Replayed, String> {
    let record: Value = serde_json::from_slice(value).map_err(|why| why.to_string())?;
    let response = &record["response"];
    let status = response["status"].as_u64().filter(|status| (200..=599).contains(status));
    // clampHttpStatus
    let status = u16::try_from(status.unwrap_or(500)).unwrap();
    let body = response["body"].as_str().ok_or("the body is not a text")?;
    if [204, 205, 304].contains(&status) {
        return Err(format!("Response constructor: Invalid response status code {status}"));
    }
    let mut headers = Vec::new();
    for (name, value) in response["headers"].as_object().ok_or("no headers")? {
        // A list would become one text, with commas.
        let value = value.as_str().ok_or("a header is not a text")?;
        // A ByteString has no other characters; Node.js sends each as one byte.
        if value.chars().any(|character| u32::from(character) > 0xff) {
            return Err(format!("Cannot convert argument to a ByteString: {value}"));
        }
        let sent: Vec<u8> = value.chars().map(|character| u32::from(character) as u8).collect();
        headers.push((name.clone(), String::from_utf8_lossy(&sent).trim().to_owned()));
    }
    Ok(Replayed {
        status: Some(status),
        headers: Some(headers),
        body: ReplayedBody::Bytes(body.into()),
    })
}

/// Fiber 3, middleware/idempotency/response.go at 046b4a9d and the code that github.com/tinylib/msgp makes of it. `ReadIntBytes`,
/// `ReadStringBytes` and `ReadBytesBytes` take nothing of another kind. idempotency.go at 073ed97e (`maybeWriteCachedResponse`).
pub fn fiber(value: &[u8]) -> Result<Replayed, String> {
    let mut rest = value;
    let members = map_of(packed(&mut rest)?)?;
    if !rest.is_empty() {
        return Err("more behind the response".to_owned());
    }
    let mut replayed =
        Replayed { status: Some(0), headers: Some(Vec::new()), body: ReplayedBody::Bytes(vec![]) };
    for (name, value) in members {
        match (name.as_str(), value) {
            ("sc", Packed::Int(status)) => replayed.status = u16::try_from(status).ok(),
            ("hs", lists) => {
                let mut headers = Vec::new();
                for (name, values) in map_of(lists)? {
                    let Packed::Array(values) = values else {
                        return Err("a header is not a list".to_owned());
                    };
                    for value in values {
                        headers.push((name.clone(), text_of(value)?));
                    }
                }
                replayed.headers = Some(headers);
            }
            ("b", Packed::Bytes(body)) => replayed.body = ReplayedBody::Bytes(body),
            (name, other) => return Err(format!("{name} is {other:?}")),
        }
    }
    Ok(replayed)
}

/// idempo, lib/idempo.rb at 000baffa (`from_persisted_response`): the triplet that a Rack server sends. The msgpack gem gives bytes
/// as texts.
pub fn idempo(value: &[u8]) -> Result<Replayed, String> {
    let deflated = value.strip_suffix(b":1").ok_or("Unknown serialization")?;
    let mut inflated = Vec::new();
    ZlibDecoder::new(deflated).read_to_end(&mut inflated).map_err(|why| why.to_string())?;
    let mut rest = &inflated[..];
    let triplet = packed(&mut rest)?;
    let Packed::Array(triplet) = triplet else { return Err(format!("{triplet:?}")) };
    let [Packed::Int(status), headers, Packed::Array(parts)] =
        <[Packed; 3]>::try_from(triplet).map_err(|other| format!("no triplet: {other:?}"))?
    else {
        return Err("no triplet of a status, headers and parts".to_owned());
    };
    let mut all = Vec::new();
    for (name, value) in map_of(headers)? {
        all.push((name, text_of(value)?));
    }
    let mut body = Vec::new();
    for part in parts {
        match part {
            Packed::Text(bytes) | Packed::Bytes(bytes) => body.extend(bytes),
            other => return Err(format!("a part is {other:?}")),
        }
    }
    let status = u16::try_from(status).ok();
    Ok(Replayed { status, headers: Some(all), body: ReplayedBody::Bytes(body) })
}

/// MessagePack, as <https://github.com/msgpack/msgpack/blob/master/spec.md> has it.
#[derive(Debug, Clone, PartialEq)]
enum Packed {
    Nil,
    Bool,
    Int(i128),
    Float,
    Text(Vec<u8>),
    Bytes(Vec<u8>),
    Array(Vec<Self>),
    Map(Vec<(Self, Self)>),
}

fn map_of(packed: Packed) -> Result<Vec<(String, Packed)>, String> {
    let Packed::Map(members) = packed else { return Err(format!("{packed:?} is not a map")) };
    let mut named = Vec::new();
    for (name, value) in members {
        named.push((text_of(name)?, value));
    }
    Ok(named)
}

fn text_of(packed: Packed) -> Result<String, String> {
    match packed {
        Packed::Text(bytes) => String::from_utf8(bytes).map_err(|why| why.to_string()),
        other => Err(format!("{other:?} is not a text")),
    }
}

fn take<'a>(rest: &mut &'a [u8], count: usize) -> Result<&'a [u8], String> {
    let (taken, left) = rest.split_at_checked(count).ok_or("cut")?;
    *rest = left;
    Ok(taken)
}

/// A number of so many bytes, the highest first.
fn big_endian(rest: &mut &[u8], count: usize) -> Result<usize, String> {
    let mut number = 0;
    for byte in take(rest, count)? {
        number = number << 8 | usize::from(*byte);
    }
    Ok(number)
}

fn packed(rest: &mut &[u8]) -> Result<Packed, String> {
    let lead = take(rest, 1)?[0];
    let low = usize::from(lead & 0x0f);
    // The bytes of the length that follows: 1, 2, 4 or 8.
    let wide = |first: u8| 1 << (lead - first);
    Ok(match lead {
        0x00..=0x7f => Packed::Int(lead.into()),
        0xe0..=0xff => Packed::Int(i128::from(lead.cast_signed())),
        0x80..=0x8f => map(rest, low)?,
        0x90..=0x9f => array(rest, low)?,
        0xa0..=0xbf => Packed::Text(take(rest, usize::from(lead & 0x1f))?.to_vec()),
        0xc0 => Packed::Nil,
        0xc2 | 0xc3 => Packed::Bool,
        0xc4..=0xc6 => {
            let count = big_endian(rest, wide(0xc4))?;
            Packed::Bytes(take(rest, count)?.to_vec())
        }
        0xca | 0xcb => {
            take(rest, 4 * wide(0xca))?;
            Packed::Float
        }
        0xcc..=0xcf => Packed::Int(big_endian(rest, wide(0xcc))? as i128),
        0xd9..=0xdb => {
            let count = big_endian(rest, wide(0xd9))?;
            Packed::Text(take(rest, count)?.to_vec())
        }
        0xdc | 0xdd => {
            let count = big_endian(rest, 2 * wide(0xdc))?;
            array(rest, count)?
        }
        0xde | 0xdf => {
            let count = big_endian(rest, 2 * wide(0xde))?;
            map(rest, count)?
        }
        other => return Err(format!("0x{other:02x} is not expected here")),
    })
}

fn array(rest: &mut &[u8], count: usize) -> Result<Packed, String> {
    let mut items = Vec::new();
    for _ in 0..count {
        items.push(packed(rest)?);
    }
    Ok(Packed::Array(items))
}

fn map(rest: &mut &[u8], count: usize) -> Result<Packed, String> {
    let mut members = Vec::new();
    for _ in 0..count {
        members.push((packed(rest)?, packed(rest)?));
    }
    Ok(Packed::Map(members))
}

/// square1/laravel-idempotency at 7d5a57b, IdempotencyMiddleware.php (`handleCachedResponse`): an object of CachedResponseValue,
/// whose properties have these types, goes into `response(body, status)->withHeaders(headers)`.
pub fn laravel(value: &[u8], path: &str) -> Result<Replayed, String> {
    let mut rest = value;
    let object = unserialized(&mut rest)?;
    let Php::Object(class, mut properties) = object else { return Err(format!("{object:?}")) };
    if class != b"Square1\\LaravelIdempotency\\Providers\\CachedResponseValue" || !rest.is_empty() {
        return Err("another class, or more behind it".to_owned());
    }
    let mut property = |name: &str| {
        properties.remove(name.as_bytes()).ok_or_else(|| format!("{name} is uninitialized"))
    };
    let (Php::Text(body), Php::Int(status), Php::Array(lists)) =
        (property("body")?, property("status")?, property("headers")?)
    else {
        return Err("TypeError".to_owned());
    };
    let (Php::Text(stored_path), Php::Text(_)) = (property("path")?, property("originalKey")?)
    else {
        return Err("TypeError".to_owned());
    };
    if stored_path != path.as_bytes() {
        return Err("MismatchedPathException".to_owned());
    }
    let mut headers = Vec::new();
    for (name, values) in lists {
        let (Php::Text(name), Php::Array(values)) = (name, values) else {
            return Err("a header is not a list".to_owned());
        };
        let name = String::from_utf8(name).unwrap();
        for (_, value) in values {
            let Php::Text(value) = value else { return Err("a value is not a text".to_owned()) };
            headers.push((name.clone(), String::from_utf8(value).unwrap()));
        }
    }
    let status = u16::try_from(status).ok();
    Ok(Replayed { status, headers: Some(headers), body: ReplayedBody::Bytes(body) })
}

/// What PHP's `serialize` writes of texts, numbers, arrays and objects.
#[derive(Debug, PartialEq)]
enum Php {
    Int(i64),
    Text(Vec<u8>),
    Array(Vec<(Self, Self)>),
    Object(Vec<u8>, HashMap<Vec<u8>, Self>),
}

/// The bytes before the next such byte, which is taken, too.
fn until<'a>(rest: &mut &'a [u8], end: u8) -> Result<&'a [u8], String> {
    let at = rest.iter().position(|byte| *byte == end).ok_or("cut")?;
    let found = take(rest, at)?;
    take(rest, 1)?;
    Ok(found)
}

fn number(rest: &mut &[u8], end: u8) -> Result<i64, String> {
    let digits = std::str::from_utf8(until(rest, end)?).map_err(|why| why.to_string())?;
    digits.parse().map_err(|why| format!("{digits}: {why}"))
}

fn expect(rest: &mut &[u8], wanted: &[u8]) -> Result<(), String> {
    if take(rest, wanted.len())? == wanted { Ok(()) } else { Err(format!("no {wanted:?}")) }
}

/// A text in quotation marks, behind its length in bytes.
fn quoted(rest: &mut &[u8]) -> Result<Vec<u8>, String> {
    let length = usize::try_from(number(rest, b':')?).map_err(|why| why.to_string())?;
    expect(rest, b"\"")?;
    let text = take(rest, length)?.to_vec();
    expect(rest, b"\"")?;
    Ok(text)
}

fn unserialized(rest: &mut &[u8]) -> Result<Php, String> {
    let kind = take(rest, 2)?;
    match kind {
        b"i:" => Ok(Php::Int(number(rest, b';')?)),
        b"s:" => {
            let text = quoted(rest)?;
            expect(rest, b";")?;
            Ok(Php::Text(text))
        }
        b"a:" => Ok(Php::Array(pairs(rest)?)),
        b"O:" => {
            let class = quoted(rest)?;
            expect(rest, b":")?;
            let mut properties = HashMap::new();
            for (name, value) in pairs(rest)? {
                let Php::Text(name) = name else { return Err("a property has no name".into()) };
                properties.insert(name, value);
            }
            Ok(Php::Object(class, properties))
        }
        other => Err(format!("{} is not expected here", other.escape_ascii())),
    }
}

/// Keys and values behind their number.
fn pairs(rest: &mut &[u8]) -> Result<Vec<(Php, Php)>, String> {
    let count = number(rest, b':')?;
    expect(rest, b"{")?;
    let mut all = Vec::new();
    for _ in 0..count {
        all.push((unserialized(rest)?, unserialized(rest)?));
    }
    expect(rest, b"}")?;
    Ok(all)
}

/// IdempotentAPI 2.6.0, Core/Idempotency.cs (`ApplyPreIdempotency`) and Helpers/Utils.cs (`DeSerialize`), with Newtonsoft.Json 13 and
/// its defaults: `TypeNameHandling.Auto`, `DateParseHandling.DateTime`, `MaxDepth = 64`.
pub fn idempotent_api(data: &[u8], hash: &str) -> Result<Replayed, String> {
    let mut text = String::new();
    GzDecoder::new(data).read_to_string(&mut text).map_err(|why| why.to_string())?;
    let document: Value = serde_json::from_str(&text).map_err(|why| why.to_string())?;
    if depth(&document) > 64 {
        return Err("The reader's MaxDepth of 64 has been exceeded.".to_owned());
    }
    let Value::Object(data) = untyped(&document)? else { return Err("no dictionary".to_owned()) };
    if data["Request.DataHash"] != hash {
        return Err("400 Bad Request".to_owned());
    }
    let status = data["Response.StatusCode"].as_i64().and_then(|status| status.try_into().ok());
    // A cast to Dictionary<string, List<string>>.
    let headers = match &document["Response.Headers"] {
        Value::Null => Vec::new(),
        typed
            if is_type(
                typed,
                "Dictionary`2[[System.String, System.Private.CoreLib],[System.Collections.Generic.List`1",
            ) =>
        {
            headers_of_lists(&data["Response.Headers"])
        }
        other => return Err(format!("Unable to cast {other}")),
    };
    let result = &data["Context.Result"];
    if result["ResultType"]
        != "Microsoft.AspNetCore.Mvc.ObjectResult, Microsoft.AspNetCore.Mvc.Core"
    {
        return Err("NotImplementedException".to_owned());
    }
    // new ObjectResult(value). HttpNoContentOutputFormatter of ASP.NET Core sends no body for null.
    let body = match result.get("ResultValue") {
        Some(Value::Null) => ReplayedBody::Bytes(Vec::new()),
        Some(value) => ReplayedBody::Value(value.clone()),
        None => return Err("KeyNotFoundException".to_owned()),
    };
    Ok(Replayed { status, headers: Some(headers), body })
}

fn headers_of_lists(lists: &Value) -> Headers {
    let mut headers = super::given::headers_of(lists);
    // The formatter chooses the content type.
    headers.retain(|(name, _)| name != "Content-Type");
    headers
}

/// How many objects and lists lie within one another.
fn depth(value: &Value) -> usize {
    match value {
        Value::Array(items) => 1 + items.iter().map(depth).max().unwrap_or(0),
        Value::Object(members) => 1 + members.values().map(depth).max().unwrap_or(0),
        _ => 0,
    }
}

fn is_type(value: &Value, name: &str) -> bool {
    value["$type"].as_str().is_some_and(|kind| {
        kind.strip_prefix("System.Collections.Generic.").is_some_and(|kind| kind.starts_with(name))
    })
}

/// What Newtonsoft.Json makes of a value of the type `object`, as System.Text.Json writes that.
fn untyped(value: &Value) -> Result<Value, String> {
    match value {
        Value::String(text) => Ok(read_text(text)),
        Value::Number(number) => {
            let text = number.to_string();
            if text.contains(['.', 'e', 'E']) {
                let double: f64 = text.parse().unwrap();
                return serde_json::Number::from_f64(double)
                    .map(Value::Number)
                    .ok_or("infinity cannot be written as JSON".to_owned());
            }
            // A BigInteger is written as an object with its properties.
            Ok(text.parse::<i64>().map_or(Value::from("a BigInteger"), Value::from))
        }
        Value::Object(members) => object(value, members),
        Value::Array(_) => Err("a JArray".to_owned()),
        other => Ok(other.clone()),
    }
}

fn object(value: &Value, members: &Map<String, Value>) -> Result<Value, String> {
    if members.keys().next().is_none_or(|name| name != "$type") {
        return Err("a JObject".to_owned());
    }
    if is_type(value, "List`1") {
        let items = value["$values"].as_array().ok_or("no $values")?;
        let of_texts = is_type(value, "List`1[[System.String,");
        let mut read = Vec::new();
        for item in items {
            read.push(if of_texts { item.clone() } else { untyped(item)? });
        }
        return Ok(Value::Array(read));
    }
    if !is_type(value, "Dictionary`2[[System.String,") {
        return Err(format!("the type {}", value["$type"]));
    }
    let mut read = Map::new();
    for (name, member) in members.iter().skip(1) {
        // It would choose a type.
        if name.starts_with('$') {
            return Err(format!("a member {name}"));
        }
        read.insert(name.clone(), untyped(member)?);
    }
    Ok(Value::Object(read))
}

/// A text, or the time that Newtonsoft.Json takes it for (`DateTimeUtils.TryParseDateTime`).
fn read_text(text: &str) -> Value {
    if text.starts_with("/Date(") && text.ends_with(")/") && text.len() >= 9 {
        return Value::from("a time");
    }
    let digits = text.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte });
    let shape: Vec<u8> = digits.collect();
    let Some(rest) = shape.strip_prefix(b"0000-00-00T00:00:00") else { return Value::from(text) };
    let fraction = rest
        .strip_prefix(b".")
        .map_or(0, |rest| 1 + rest.iter().take_while(|byte| **byte == b'0').count());
    let (fraction, zone) = text[19..].split_at(fraction);
    match zone {
        // DateTime in UTC, or without a zone.
        "Z" | "" => {
            let shorter = fraction.trim_end_matches('0').trim_end_matches('.');
            Value::from(format!("{}{shorter}{zone}", &text[..19]))
        }
        _ if zone.starts_with(['+', '-']) => Value::from("a time in the zone of the server"),
        _ => Value::from(text),
    }
}

/// Midaz v4.0.0-beta.11, adapters/http/in/holder.go at 22569c49 (`CreateHolder`): `json.Unmarshal` into the Holder of
/// pkg/mmodel/holder.go, which is written again, with 201. Of its members only these are followed here.
pub fn midaz_holder(value: &[u8]) -> Result<Replayed, String> {
    const TEXTS: [&str; 4] = ["externalId", "type", "name", "document"];
    let entity: Value = serde_json::from_slice(value).map_err(|why| why.to_string())?;
    let Value::Object(members) = entity else { return Err("no struct Holder".to_owned()) };
    let mut holder = Map::new();
    for (name, member) in &members {
        let text = member.as_str();
        match name.as_str() {
            "id" => {
                let id = text.filter(|id| id.len() == 36).ok_or("invalid UUID")?;
                holder.insert(name.clone(), Value::from(id.to_lowercase()));
            }
            "createdAt" | "updatedAt" | "deletedAt" if !member.is_null() => {
                let time = text.filter(|time| time.ends_with('Z')).ok_or("parsing time")?;
                holder.insert(name.clone(), read_text(time));
            }
            "metadata" => {
                holder.insert(name.clone(), member.clone());
            }
            // omitempty
            other if TEXTS.contains(&other) && !member.is_null() => {
                holder.insert(name.clone(), Value::from(text.ok_or("a member is not a text")?));
            }
            // Unknown members are dropped.
            _ => {}
        }
    }
    for time in ["createdAt", "updatedAt"] {
        holder.entry(time).or_insert(Value::from("0001-01-01T00:00:00Z"));
    }
    holder.entry("deletedAt").or_insert(Value::Null);
    let body = ReplayedBody::Json(Value::Object(holder));
    Ok(Replayed { status: None, headers: None, body })
}
