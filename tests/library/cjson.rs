//! What the services' scripts read with cjson, idemctl reads too, and as the same; what they do not read, it does not.

use idemctl::domain::record::json::Json;
use idemctl::domain::record::json_prefix;
use idemctl::domain::step::reply::StepReply;
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use crate::support::Server;
use crate::support::wire;

/// What cjson makes of a text: nothing, or what stands at `status`.
const SCRIPT: &str = "
local readable, decoded = pcall(cjson.decode, ARGV[1])
if not readable then return 'unreadable' end
if type(decoded) ~= 'table' or decoded.status == nil then return 'nothing' end
local status = decoded.status
if status == cjson.null then return 'null' end
if type(status) == 'number' then return 'number ' .. string.format('%.17g', status) end
if type(status) == 'string' then return 'text ' .. status end
return type(status)";

/// What idemctl makes of the text, in the words of the script.
fn read(text: &[u8]) -> Vec<u8> {
    let Ok(document) = json_prefix::parse(text, true) else { return b"unreadable".to_vec() };
    match document.pointer("/status") {
        None => b"nothing".to_vec(),
        Some(Json::Null) => b"null".to_vec(),
        Some(Json::Bool(_)) => b"boolean".to_vec(),
        Some(Json::Number(number)) => {
            format!("number {}", number.parse::<f64>().unwrap()).into_bytes()
        }
        Some(Json::String(text)) => [b"text ", text.as_bytes()].concat(),
        Some(Json::Bytes(_)) => b"bytes".to_vec(),
        Some(Json::Array(_) | Json::Object(_) | Json::Raw(_)) => b"table".to_vec(),
    }
}

/// The script's words with what idemctl cannot say alike taken out: bytes that are not UTF-8, and numbers that JSON has not.
fn alike(said: &[u8]) -> Vec<u8> {
    match said.strip_prefix(b"number ") {
        None => String::from_utf8_lossy(said).into_owned().into_bytes(),
        Some(number) => {
            let number: f64 =
                String::from_utf8_lossy(number).replace("-nan", "nan").parse().unwrap();
            if number.is_finite() {
                format!("number {number}").into_bytes()
            } else {
                b"null".to_vec()
            }
        }
    }
}

#[track_caller]
fn difference(connection: &mut redis::Connection, text: &[u8]) -> Option<String> {
    let StepReply::Text(said) = wire::eval(connection, SCRIPT, &[""; 0], &[text]) else {
        panic!("no text")
    };
    let (cjson, own) = (alike(&said), alike(&read(text)));
    let words = |said: &[u8]| said.escape_ascii().to_string();
    (cjson != own).then(|| {
        format!(
            "{}: cjson says {}, idemctl {}",
            words(&text[..text.len().min(200)]),
            words(&cjson),
            words(&own)
        )
    })
}

fn status(value: &str) -> Vec<u8> {
    format!("{{\"status\":{value}}}").into_bytes()
}

/// Numbers, and what looks like one, a space between them.
const NUMBERS: &str = r#"
    1 -0 01 -007 +1 ++1 - + .5 -.5 5. 1e5 1e 1e+ 1E-2 1e400 -1e400 0x10 0X1f 0x 0x1p4 0x1p 0x.8 -0x1 NaN nan
    -nan nan(1) nan( NAN(a_1) Infinity -Infinity inf INF infinit -infinity +Inf 1_000 1x 12345678901234567890
    1.0000000000000000001 0b1 1f true True truefalse null nul nullnull None undefined e5 "a""b"
"#;

/// Documents that are odd in other ways, a space between them.
const ODD: &str = r#"
    {"status":"\u0000"} {"status":"\u00"} {"status":"\ud83d\ude00"} {"status":"\ud83d"} {"status":"\ude00"}
    {"status":"\ud83d\u0041"} {"status":"\x"} {"status":1,"status":2} {"status":1,"st\u0061tus":null} {"status":1,}
    {,"status":1} {status:1} {1:2} {"status":1}x {"status":1}{} "a" " [ { ] {"status":'a'} {"status":1/**/}
    {"":1,"status":{}} {"status":"\/\b\f\n\r\t\"\\"}
"#;

/// The same with spaces in them, or bytes that are no text.
const ODDER: &[&[u8]] = &[
    b"{\"status\":1}\0",
    b"{\"status\":1}\0 and more",
    b"{\"status\":1\0}",
    b"{\"status\":\"a\0b\"}",
    b"\0",
    b"{\0",
    b"1\0",
    b"12\0",
    b"\0{}",
    b"{\"status\":\"\x01\t\n\x1f\x7f\"}",
    b"{\"status\":\"\\\n\"}",
    b"{\"status\":\"caf\xe9\"}",
    b"{\"\xff\":1,\"status\":2}",
    b"{\"status\" 1}",
    b" \t\r\n{\"status\":1}\n ",
    b"\x0b{\"status\":1}",
    b"\xef\xbb\xbf{\"status\":1}",
    b"{\"status\":1\xe9}",
    b"",
    b" ",
];

/// Rule: JSON that the service's cjson accepts is readable.
#[test]
fn what_cjson_reads_is_read_as_the_same() {
    let server = Server::start();
    let mut connection = server.connect();
    let mut texts: Vec<Vec<u8>> = NUMBERS.split_whitespace().map(status).collect();
    texts.extend(NUMBERS.split_whitespace().map(|number| number.as_bytes().to_vec()));
    texts.extend(NUMBERS.split_whitespace().map(|number| format!("[{number}]").into_bytes()));
    for depth in [2, 100, 127, 128, 129, 500, 998, 999, 1000, 1001, 1100, 5_000] {
        texts.push(status(&format!("{}{}", "[".repeat(depth), "]".repeat(depth))));
        texts.push(status(&format!("{}1{}", "{\"a\":".repeat(depth), "}".repeat(depth))));
        texts.push([vec![b'['; depth], vec![b']'; depth]].concat());
        texts.push(vec![b'['; depth]);
    }
    texts.extend(ODD.split_whitespace().map(Vec::from));
    texts.extend(ODDER.iter().map(|text| text.to_vec()));
    let differences: Vec<_> =
        texts.iter().filter_map(|text| difference(&mut connection, text)).collect();
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// What JSON, and what is nearly JSON, is put together of, a space between the pieces.
const PIECES: &str = r#"
    { } [ ] , : " "a" "status": "status":1, "c":"x \ \n \u00e9 \ud83d \ude00 0 1 - + 12.5 01 0x 0x1 p2 1e9 e+ . true nul
    null nan (1) inf Infinity {} [] x
"#;

/// JSON, and what is nearly JSON.
fn text() -> impl Strategy<Value = Vec<u8>> {
    let piece = prop::sample::select(
        PIECES.split_whitespace().chain([" ", "\n", "é", "\u{1}", "\0"]).collect::<Vec<_>>(),
    );
    let odd = prop_oneof![9 => piece.prop_map(|text| text.as_bytes().to_vec()), 1 => prop::collection::vec(any::<u8>(), 1..2)];
    let value = prop::collection::vec(odd.clone(), 0..4).prop_map(|pieces| pieces.concat());
    let member = ("(status|a|st\\\\u0061tus)", value)
        .prop_map(|(name, value)| [format!("\"{name}\":").as_bytes(), &value[..]].concat());
    prop_oneof![
        prop::collection::vec(odd, 0..12).prop_map(|pieces| [&b"{"[..], &pieces.concat()].concat()),
        prop::collection::vec(member, 0..4).prop_map(|members| [
            &b"{"[..],
            &members.join(&b','),
            b"}"
        ]
        .concat()),
    ]
}

#[test]
fn what_is_nearly_json_is_read_as_cjson_reads_it() {
    let server = Server::start();
    let config = Config {
        cases: 6_000,
        max_shrink_iters: 200,
        failure_persistence: None,
        ..Config::default()
    };
    let connection = std::cell::RefCell::new(server.connect());
    TestRunner::new(config)
        .run(&text(), |text| {
            let difference = difference(&mut connection.borrow_mut(), &text);
            prop_assert!(difference.is_none(), "{}", difference.unwrap_or_default());
            Ok(())
        })
        .unwrap();
}
