//! What the detectors find and do not find, what chance explains, and that nothing of a secret gets
//! into the facts.

mod harmless;
mod judged;
mod secrecy;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use serde_json::{Value, json};

use super::client_key::weakness;
use super::text_findings;
use super::*;
use crate::domain::doctor::registry::judge;
use crate::domain::doctor::tests::deployment;
use crate::domain::record::TimeLeft::NoExpiry;
use crate::domain::samples::{record, text};

/// A number that no provider publishes for tests.
const CARD: &str = "4532015112830366";
const JWT: &str = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0In0.c2lnbmF0dXJlLW9mLXRoZS10b2tlbg";

/// The facts of records with these bodies and keys.
fn sample_of(records: &[(String, Value)]) -> DataSample {
    let mut collector = DataCollector::default();
    for (key, body) in records {
        let value = json!({"status": "COMPLETED", "statusCode": 201, "headers": {}, "body": body});
        collector.add(&with_key(key, &value.to_string()));
    }
    collector.finish()
}

fn with_key(key: &str, value: &str) -> crate::domain::record::Record {
    let mut record = record("express", &[(text(value), NoExpiry)]);
    record.key = key.as_bytes().to_vec();
    record
}

/// The facts of records with random keys and these bodies.
fn bodies(bodies: &[Value]) -> DataSample {
    let mut records = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        records.push((format!("6f1c2d3e-aaaa-4bbb-8ccc-{index:012x}"), body.clone()));
    }
    sample_of(&records)
}

/// All that the checks of data say of a sample, as text.
fn said(sample: DataSample) -> Vec<(&'static str, String, String)> {
    let mut facts = deployment(Vec::new());
    facts.data = Some(Ok(sample));
    let mut said = Vec::new();
    for statement in judge(&facts, |check| check.needs_data()) {
        let severity = statement.judgement.severity.as_str().to_owned();
        said.push((statement.check.code, severity, statement.judgement.fact));
    }
    said
}

/// The severity and the fact of a check.
#[track_caller]
fn of(code: &str, sample: DataSample) -> (String, String) {
    let all = said(sample);
    let found = all.iter().find(|(is, ..)| *is == code);
    let (_, severity, fact) = found.unwrap_or_else(|| panic!("{code}: {all:?}"));
    (severity.clone(), fact.clone())
}

#[test]
fn a_card_number_is_found_however_it_is_written() {
    let escaped: String = CARD.bytes().map(|digit| format!("%{digit:02X}")).collect();
    let entities: String = CARD.bytes().map(|digit| format!("&#{digit};")).collect();
    let unicode: String = CARD.bytes().map(|digit| format!("\\u{digit:04x}")).collect();
    let within = json!({"card": CARD}).to_string();
    for body in [
        json!(CARD),
        json!({"number": 4_532_015_112_830_366_u64}),
        json!({"number": 4_532_015_112_830_366.0_f64}),
        json!("4532 0151 1283 0366"),
        json!("4532-0151-1283-0366"),
        json!("4532.0151.1283.0366"),
        json!("4532\u{a0}0151\u{a0}1283\u{a0}0366"),
        json!("paid with 4532015112830366, thanks"),
        json!("paid with 4532 0151 1283 0366 12 27"),
        json!("4532 0151 1283 0366 123"),
        json!("card=4532015112830366&exp=1227"),
        json!("card=4532+0151+1283+0366&exp=1227"),
        json!("card=4532%200151%201283%200366"),
        json!(escaped),
        json!(entities),
        json!("4532&nbsp;0151&nbsp;1283&nbsp;0366"),
        json!(within),
        json!(json!(within).to_string()),
        json!(format!("{{broken: {unicode}")),
        json!({"list": [["a", {"b": [CARD]}]]}),
        json!("order_4532015112830366"),
        json!("id,amount,pan,exp\n7,100,4532015112830366,12\n"),
        json!("%B4532015112830366^DOE/JOHN^2512"),
        json!(";4532015112830366=2512"),
        json!("PAN4532015112830366"),
        json!("4532  0151  1283  0366"),
        json!("4532\t0151\t1283\t0366"),
        json!("4532\n0151\r\n1283\n0366"),
        json!("4532/0151/1283/0366"),
        json!({"isBase64Encoded": true, "body": STANDARD.encode(&within)}),
        json!(STANDARD.encode(&within).replace('+', "-").replace('=', "")),
        json!("<b>4532015112830366</b>"),
    ] {
        let (severity, fact) = of("card-numbers", bodies(std::slice::from_ref(&body)));
        assert_ne!(severity, "ok", "{body}: {fact}");
        assert!(fact.contains("1 of 1 record"), "{fact}");
    }
}

#[test]
fn other_numbers_are_no_card_numbers() {
    for body in [
        // The check digit is wrong.
        json!("4532015112830367"),
        // Nobody issues such numbers.
        json!("1532015112830363"),
        json!("453201511283036"),
        // Digits within words and longer numbers.
        json!("a4532015112830366"),
        json!("4532015112830366b"),
        json!("94532015112830366123"),
        json!("0.4532015112830366"),
        json!("Pandora4532015112830366"),
        json!("4532015112830366.5"),
        json!("11aa-4532-0151-1283-0366"),
        json!("4532-0151-1283-0366-11aa"),
        json!("4532 0151-1283 0366"),
        // Times.
        json!(1_764_183_600_000_u64),
        json!(1_764_183_600_000_000_u64),
    ] {
        let (severity, fact) = of("card-numbers", bodies(std::slice::from_ref(&body)));
        assert_eq!(severity, "ok", "{body}: {fact}");
    }
}

#[test]
fn published_test_numbers_count_and_are_named() {
    let (severity, fact) = of("card-numbers", bodies(&[json!({"card": "4242 4242 4242 4242"})]));
    assert_eq!(severity, "error");
    assert!(
        fact.ends_with("at /body/card in groups (1 of 1 record); all are published test numbers"),
        "{fact}"
    );
}

#[test]
fn a_base64_body_and_hash_fields_are_looked_at_as_they_are_decoded() {
    let mut collector = DataCollector::default();
    let body = STANDARD.encode(json!({"card": {"number": CARD}}).to_string());
    let value = json!({"status": "COMPLETED", "code": 200, "headers": {}, "body": body});
    collector.add(&record("go-middleware", &[(text(value.to_string()), NoExpiry)]));
    let (_, fact) = of("card-numbers", collector.finish());
    assert!(
        fact.contains("go-middleware stores card numbers at /body/card/number (1 of 1"),
        "{fact}"
    );
}

/// Rule: identifiers with a right check digit by chance are no finding, and cards among other
/// fields are.
/// Rule: an IBAN among texts of its form is not denied, although chance may explain it.
#[test]
fn ibans_that_chance_explains_are_told() {
    let mut texts = Vec::new();
    for digits in 2..99 {
        texts.push(json!({"account": format!("DE{digits:02}370400440532013000")}));
    }
    let (severity, fact) = of("personal-data", bodies(&texts));
    assert_eq!(severity, "note", "{fact}");
    assert!(fact.contains("1 of 97 different texts of an IBAN's form has valid"), "{fact}");
}

#[test]
fn chance_explains_some_numbers_and_not_all() {
    let mut random = Rng::with_seed(7);
    for first in ["", "4", "51"] {
        let mut orders = Vec::new();
        for _ in 0..200 {
            let rest: String = (first.len()..16).map(|_| random.digit(10)).collect();
            orders.push(json!({"order": format!("{first}{rest}")}));
        }
        let (severity, fact) = of("card-numbers", bodies(&orders));
        assert!(severity == "ok" || severity == "note", "{first}: {fact}");
        assert!(severity == "ok" || fact.contains("unknown"), "{first}: {fact}");
        // One of them, alone in a field named after a card, is worth a look.
        orders.push(json!({"pan": CARD}));
        let all = said(bodies(&orders));
        let is_found = |(code, severity, fact): &(&str, String, String)| {
            *code == "card-numbers"
                && severity == "warning"
                && fact.contains("at /body/pan (1 of 201 records)")
        };
        assert!(all.iter().any(is_found), "{all:?}");
    }
    let cards: Vec<_> = ["4532015112830366", "4916338506082832", "4024007198964305"]
        .map(|card| json!({"pan": card}))
        .into();
    assert_eq!(of("card-numbers", bodies(&cards)).0, "error");
    // The same number in each record is one number.
    let same = vec![json!({"merchant": CARD}); 50];
    assert_eq!(of("card-numbers", bodies(&same)).0, "note");
}

/// A number of a card that occurs once.
fn card(index: u64) -> String {
    let start = format!("4539{:011}", index * 7_919 + 13);
    for last in 0..10 {
        let number = format!("{start}{last}");
        if text_findings::of(&number).is_sensitive() {
            return number;
        }
    }
    unreachable!("one of ten is valid")
}

/// Rule: numbers that no issuer has do not hide those of cards.
#[test]
fn cards_among_other_numbers_are_found() {
    let xml = |index| {
        json!(format!(
            "<o><id>10000000{index:06}</id><ts>17641836{index:05}</ts><phone>490000{index:06}</phone>\
             <ean>1234567{index:06}</ean><pan>{}</pan></o>",
            card(index)
        ))
    };
    let texts: Vec<_> = (0..60).map(xml).collect();
    assert_eq!(of("card-numbers", bodies(&texts)).0, "error");
    let mut random = Rng::with_seed(1);
    let mut arrays = Vec::new();
    for index in 0..60 {
        let mut list: Vec<_> =
            (0..9).map(|_| json!(letters(&mut random, 16, b"0123456789"))).collect();
        list.push(json!(card(index)));
        arrays.push(json!({"numbers": list}));
    }
    assert_eq!(of("card-numbers", bodies(&arrays)).0, "error");
    let mut notes: Vec<_> =
        (0..450).map(|index| json!({"note": format!("order 12345{index:09}")})).collect();
    notes.extend((0..50).map(|index| json!({"note": format!("paid {}", card(index))})));
    assert_eq!(of("card-numbers", bodies(&notes)).0, "error");
}

/// Rule: a few random numbers are no alarm.
#[test]
fn few_random_numbers_are_a_note_at_most() {
    let mut random = Rng::with_seed(2);
    for _ in 0..40 {
        let mut body = serde_json::Map::new();
        for name in ["id", "order", "ref", "batch", "trace", "event"] {
            let first = letters(&mut random, 1, b"456");
            let rest = letters(&mut random, 15, b"0123456789");
            body.insert(name.to_owned(), json!(format!("{first}{rest}")));
        }
        let (severity, fact) = of("card-numbers", bodies(&[Value::Object(body)]));
        assert!(severity == "ok" || severity == "note", "{severity}: {fact}");
    }
}

#[test]
fn verification_codes_are_an_error() {
    let (severity, fact) = of("card-numbers", bodies(&[json!({"card": {"cvv": "123"}})]));
    assert_eq!(severity, "error");
    assert_eq!(fact, "express stores card verification codes at /body/card/cvv (1 of 1 record)");
    assert_eq!(of("card-numbers", bodies(&[json!({"cvc": "pass"})])).0, "ok");
}

#[test]
fn secrets_are_found_and_words_about_them_are_not() {
    let pem = "-----BEGIN RSA PRIVATE KEY-----\nMIIEowIBAAKCAQEA7bq3kJh2mXlV0cQ8Zt1uW5yR\n-----END";
    let basic = format!("Basic {}", STANDARD.encode("user:password"));
    for (body, noun) in [
        (json!({"t": JWT}), "JSON web tokens"),
        (json!(format!("https://a.example/?t={JWT}&x=1")), "JSON web tokens"),
        (json!({"k": pem}), "private keys"),
        (json!("Authorization: Bearer 2YotnFZFEjr1zCsicMWpAA"), "tokens or keys"),
        (json!({"Authorization": "Token abcdef0123456789"}), "tokens or keys"),
        (json!({"headers": [["authorization", basic]]}), "tokens or keys"),
        (json!({"headers": [{"name": "X-Api-Key", "value": "abcdef012345"}]}), "tokens or keys"),
        (json!({"access_token": "2YotnFZFEjr1zCsicMWpAA"}), "tokens or keys"),
        (json!({"accessToken": "2YotnFZFEjr1zCsicMWpAA"}), "tokens or keys"),
        (json!("access_token=2YotnFZFEjr1zCsicMWpAA&token_type=bearer"), "tokens or keys"),
        (json!({"token": "9f86d081884c7d659a2feaa0c55ad015"}), "tokens or keys"),
        (json!({"aws_secret_access_key": "wJalrXUtnFEMI/K7MDENG/bPxRfiCYzzzz1"}), "tokens or keys"),
        (json!({"password": "Hunter2!7"}), "passwords"),
        (json!({"db_password": "correcthorse"}), "passwords"),
        (json!("postgres://app:S3cretPw7@db/x"), "passwords"),
        (json!({"rawHeaders": ["Content-Type", "x", "Set-Cookie", "sid=31d4d96e"]}), "cookies"),
        (
            json!({"rawHeaders": ["Content-Type", "x", "X-Api-Key", "abcdef012345"]}),
            "tokens or keys",
        ),
        (json!("Cookie: session=31d4d96e407a\r\nAccept: x"), "cookies"),
        (json!("Accept: x\r\nX-Api-Key: abcdef012345"), "tokens or keys"),
        (json!("Authorization: Token abcdef012345"), "tokens or keys"),
        (json!({"X-Access-Token": "31d4d96e407aad42c0de"}), "tokens or keys"),
        (json!({"X-CSRF-Token": "31d4d96e407aad42c0de"}), "tokens or keys"),
        (json!({"X-Session-Id": "31d4d96e407aad42c0de"}), "tokens or keys"),
        (json!({"X-Shopify-Access-Token": "31d4d96e407aad42c0de"}), "tokens or keys"),
        (json!({"Ocp-Apim-Subscription-Key": "31d4d96e407aad42c0de"}), "tokens or keys"),
        (
            json!({"isBase64Encoded": true, "body": STANDARD.encode("key sk_live_4eC39HqLyjWDarjtT1zdp7dc")}),
            "Stripe live keys",
        ),
        (json!({"Set-Cookie": ["sid=31d4d96e407aad42; Path=/"]}), "cookies"),
        (json!("HTTP/1.1 200 OK\r\nSet-Cookie: sid=31d4d96e407aad42"), "cookies"),
        (json!("sk_live_4eC39HqLyjWDarjtT1zdp7dc"), "Stripe live keys"),
        (json!("AKIAIOSFODNN7EXAMPLE"), "AWS access keys"),
        (json!("ghp_16C7e42F292c6912E7710c838347Ae178B4a"), "GitHub tokens"),
        (json!("xoxb-17653672481-19874698323-pdFZKVeTuE8sk7oOcHrzqqgy"), "Slack tokens"),
        (json!("AIzaSyD-9tSrke72PouQMnMX-a7eZSW0jkFMBWY"), "Google API keys"),
    ] {
        let (severity, fact) = of("stored-secrets", bodies(std::slice::from_ref(&body)));
        assert!(severity == "error" || severity == "warning", "{body}: {fact}");
        assert!(fact.contains(noun), "{body}: {fact}");
    }
    for body in [
        json!("-----BEGIN PRIVATE KEY----- is missing"),
        json!("the bearer authentication is required"),
        json!({"www-authenticate": "Bearer realm=\"example\""}),
        json!({"authorization": "Bearer ***"}),
        json!({"authorization": "[REDACTED]"}),
        json!({"access_token": "********************"}),
        json!({"set-cookie": "sid=; Max-Age=0"}),
        json!("sk_test_xxxxxxxxxxxxxxxxxxxxxxxx"),
        json!("task_live_4eC39HqLyjWDarjtT1zdp7dc"),
        json!("eyJub3QiOiJhIGhlYWRlciJ9.eyJhIjoxfQ.c2ln"),
        json!("see eyJ for more"),
        json!({"password": "must have 12 characters", "token": "is required since 2024"}),
        json!({"errors": {"password": "required"}, "authorization": "not configured"}),
        json!({"next_page_token": "CAoQAA12345678901234"}),
        json!("https://docs.example/a:b/c@d"),
        json!("AKIAIOSFODNN7EXAMPLELONGER"),
    ] {
        let (severity, fact) = of("stored-secrets", bodies(std::slice::from_ref(&body)));
        assert_eq!(severity, "ok", "{body}: {fact}");
    }
}

#[test]
fn personal_data_is_found_and_what_resembles_it_is_not() {
    for body in [
        json!({"iban": "DE89370400440532013000"}),
        json!({"iban": "DE89 3704 0044 0532 0130 00"}),
        json!("to GB29 NWBK 6016 1331 9268 19 today"),
        json!("nl91abna0417164300"),
        json!("FR1420041010050500013M02606"),
    ] {
        let (severity, fact) = of("personal-data", bodies(std::slice::from_ref(&body)));
        assert_eq!(severity, "warning", "{body}: {fact}");
    }
    for body in [json!("to jane.doe@corp.example, please"), json!("jane%40corp.example")] {
        let (severity, fact) = of("personal-data", bodies(std::slice::from_ref(&body)));
        assert_eq!(severity, "note", "{body}: {fact}");
    }
    for body in [
        json!("DE88370400440532013000"),
        json!("DE8937040044053201300"),
        json!("XDE89370400440532013000"),
        json!("logo@2x.png"),
        json!("npm@10.2.0"),
        json!("postgres://app:secret@db.example/x"),
        json!("@handle and a@b"),
    ] {
        let (severity, fact) = of("personal-data", bodies(std::slice::from_ref(&body)));
        assert_eq!(severity, "ok", "{body}: {fact}");
    }
    let key = sample_of(&[("jane.doe@corp.example".to_owned(), json!(null))]);
    let (severity, fact) = of("personal-data", key);
    assert_eq!(severity, "warning");
    assert!(fact.contains("in the key"), "{fact}");
}

/// Rule: a record counts once at places that look alike, and so does a number.
#[test]
fn masked_places_count_records_and_numbers_once() {
    let body = json!({"Zoë": {"pan": CARD}, "Åsa": {"pan": CARD, "email": "a@b.example"}});
    let sample = bodies(&[body.clone(), body]);
    let (severity, fact) = of("card-numbers", sample.clone());
    assert_eq!(severity, "warning", "one number is no proof: {fact}");
    assert!(fact.contains("at /body/*/pan (2 of 2 records); 1 of 1 different numbers"), "{fact}");
    let (_, fact) = of("personal-data", sample);
    assert_eq!(fact, "express stores e-mail addresses at /body/*/email (2 of 2 records)");
}

/// Rule: a name is shown only if it is surely that of a field, however many records have it.
#[test]
fn a_name_is_a_star_unless_its_words_are_usual() {
    for name in [
        "angela",
        "erika-mustermann",
        "acme-corp",
        "correct-horse",
        "a b",
        "x9f2k4m7",
        "AbCdEfGhIj",
        "4532015112830366",
        "-a",
        "a.b",
    ] {
        let body = json!({"sessions": {name: {"card_number": CARD}}});
        let (_, fact) = of("card-numbers", bodies(&vec![body; 5]));
        assert!(fact.contains("at /body/*/*/card_number"), "{name}: {fact}");
    }
    let body = json!({"paymentMethod": {"card_number": CARD}});
    let (_, fact) = of("card-numbers", bodies(&[body]));
    assert!(fact.contains("at /body/paymentMethod/card_number"), "{fact}");
}

/// Rule: random characters contain almost no addresses.
#[test]
fn random_texts_contain_almost_no_addresses() {
    let mut random = Rng::with_seed(9);
    let mut found = 0;
    for _ in 0..300 {
        let text: String = (0..2_000).map(|_| char::from(random.u8(0x20..0x7f))).collect();
        found += u32::from(tokens::has_email(text.as_bytes()));
    }
    assert!(found <= 5, "{found}");
}

/// Rule: a body that is not decoded is not looked at, and is not in order.
#[test]
fn what_was_not_looked_at_is_counted_and_makes_the_check_unknown() {
    let mut collector = DataCollector::default();
    for index in 0..3 {
        let whole = json!({"status": 1, "response": {"StatusCode": 200, "Header": {}, "Body": ""}});
        let binary = STANDARD.encode([0xff_u8, 0xfe, 0x00, 0x81]);
        let mut value = whole;
        if index > 0 {
            value["response"]["Body"] = json!(binary);
        }
        collector.add(&record("go-chi", &[(text(value.to_string()), NoExpiry)]));
    }
    // From the first one on.
    let mostly = DataSample { whole: 59, not_decoded: 1, ..DataSample::default() };
    assert_eq!(of("card-numbers", mostly).0, "unknown");
    let (severity, fact) = of("card-numbers", collector.finish());
    assert_eq!(severity, "unknown", "{fact}");
    assert!(
        fact.starts_with("no card number and no verification code in 1 of 3 records"),
        "{fact}"
    );
    assert!(fact.ends_with("; 2 not decoded"), "{fact}");
    // What helps depends on the reason.
    for (sample, advice) in [
        (DataSample { unread: 1, ..DataSample::default() }, "~PATTERN"),
        (DataSample { in_part: 1, ..DataSample::default() }, "larger than 1 MiB"),
        (DataSample { not_decoded: 1, ..DataSample::default() }, "cannot decode"),
        (DataSample { left_out: 1, ..DataSample::default() }, "run doctor again"),
        (DataSample { redis_keys: 1, ..DataSample::default() }, "--sample"),
    ] {
        let mut facts = deployment(Vec::new());
        facts.data = Some(Ok(sample));
        let statement = judge(&facts, |check| check.code == "card-numbers").swap_remove(0);
        assert!(statement.remedy().unwrap().contains(advice), "{:?}", statement.remedy());
    }
    // Large base64 that is no text is not decoded, and a hash is nothing to decode.
    let mut random = Rng::with_seed(4);
    let bytes: Vec<u8> = (0..3_000).map(|_| random.u8(..)).collect();
    let large = STANDARD.encode(bytes);
    assert_eq!(of("card-numbers", bodies(&[json!({"image": large})])).0, "unknown");
    let hash = STANDARD.encode([0x81_u8; 64]);
    assert_eq!(of("card-numbers", bodies(&[json!({"hash": hash})])).0, "ok");
    let none = DataSample { redis_keys: 5, ..DataSample::default() };
    assert_eq!(of("stored-secrets", none).0, "unknown");
    assert!(said(DataSample::default()).is_empty(), "an empty server");
}

/// Keys of a schema, judged by a check.
fn keys(code: &str, keys: &[String]) -> (String, String) {
    let records: Vec<_> = keys.iter().map(|key| (key.clone(), json!(null))).collect();
    of(code, sample_of(&records))
}

fn made(count: u32, make: impl Fn(u32) -> String) -> Vec<String> {
    (0..count).map(make).collect()
}

#[test]
fn counters_times_constants_and_short_keys_are_weak() {
    let weak = |made: Vec<String>| keys("guessable-keys", &made);
    assert_eq!(weak(made(30, |number| (number + 42).to_string())).0, "warning");
    assert_eq!(weak(made(30, |number| (1_764_183_600 + number).to_string())).0, "warning");
    assert_eq!(
        weak(made(30, |number| (1_764_183_600_000 + u64::from(number)).to_string())).0,
        "warning"
    );
    assert_eq!(weak(made(30, |number| format!("2026-11-26T10:00:{number:02}Z"))).0, "warning");
    assert_eq!(weak(made(30, |number| format!("k{number}"))).0, "warning");
    for constant in ["undefined", "null", "[object Object]", "{{$uuid}}", "acme:undefined"] {
        let (severity, fact) = weak(vec![constant.to_owned()]);
        assert_eq!(severity, "warning", "{constant}");
        assert!(fact.contains("1 is a constant"), "{fact}");
    }
    // A counter within a tenant, and an order number with a word, are not bare.
    assert_eq!(weak(made(30, |number| format!("acme-inc:{number}"))).0, "note");
    assert_eq!(weak(made(30, |number| format!("7f3a9c:{number}"))).0, "note");
    let within = |number| format!("6f1c2d3e-aaaa-4bbb-8ccc-{:012x}:{number}", number << 4);
    assert_eq!(weak(made(30, within)).0, "ok");
    let (severity, fact) = weak(made(30, |number| format!("order-{:06}", number * 977)));
    assert_eq!(severity, "note");
    assert!(
        fact.ends_with("30 consist of words with numbers of up to 12 digits or times"),
        "{fact}"
    );
    let micros = |number: u32| (1_732_650_000_123_456 + u64::from(number)).to_string();
    assert_eq!(weak(made(30, micros)).0, "warning");
    assert_eq!(weak(made(30, |number| format!("2026-11-{number:02}-7"))).0, "warning");
    assert_eq!(weak(made(30, |number| format!("tenant{number}:create-payment"))).0, "warning");
    assert_eq!(
        weak(made(30, |number| format!("6f1c2d3e-aaaa-4bbb-8ccc-{number:012x}:charge"))).0,
        "ok"
    );
    assert_eq!(
        weak(made(30, |number| format!("charge:6f1c2d3e-aaaa-4bbb-8ccc-{number:012x}"))).0,
        "ok"
    );
    // Some times among other keys.
    let mut some = made(85, |number| format!("6f1c2d3e-aaaa-4bbb-8ccc-{number:012x}"));
    some.extend(made(15, |number| (1_764_183_600_000 + u64::from(number)).to_string()));
    let (severity, fact) = weak(some);
    assert_eq!(
        (severity.as_str(), fact.as_str()),
        ("note", "express: of 100 keys, 15 are bare times or dates")
    );
    let (severity, fact) = weak(made(5, |number| number.to_string()));
    assert_eq!(severity, "unknown");
    assert!(fact.contains("express (5 keys); 20 are needed for each schema"), "{fact}");
    let mut mixed = made(99, |number| format!("6f1c2d3e-aaaa-4bbb-8ccc-{number:012x}"));
    mixed.push("42".to_owned());
    let (severity, fact) = weak(mixed);
    assert_eq!(
        (severity.as_str(), fact.as_str()),
        ("note", "express: of 100 keys, 1 is a bare number of up to 12 digits")
    );
}

#[test]
fn keys_without_a_part_that_most_have_are_a_note() {
    let scoped = |with: u32, without: u32| {
        let mut all = made(with, |number| format!("tenant{}:aaaa-bbbb-{number:06}", number % 7));
        all.extend(made(without, |number| format!("bare-bbbb-cccc-{number:06}")));
        keys("tenant-in-keys", &all)
    };
    assert_eq!(scoped(20, 0).0, "ok");
    assert_eq!(scoped(18, 2).0, "note");
    assert!(scoped(18, 2).1.contains("18 of 20 keys have a part before `:`, and 2 have none"));
    assert_eq!(scoped(15, 5).0, "ok", "75 % is no clear majority");
    assert!(scoped(15, 5).1.starts_with("no first part, such as a tenant, is in most keys"));
    for separator in ['_', '.', '-'] {
        let mut all =
            made(90, |number| format!("acme{separator}{:032x}", u128::from(number) << 90));
        all.extend(made(10, |number| format!("{:032x}", (u128::from(number) << 90) + 1)));
        assert_eq!(keys("tenant-in-keys", &all).0, "note", "{separator}");
    }
    assert_eq!(scoped(10, 2).0, "unknown");
    let mut random = Rng::with_seed(3);
    let base64 = made(200, |_| String::new());
    let base64: Vec<_> = base64
        .iter()
        .map(|_| {
            let bytes: Vec<u8> = (0..96).map(|_| random.u8(..)).collect();
            STANDARD.encode(bytes)
        })
        .collect();
    assert_eq!(keys("tenant-in-keys", &base64).0, "ok");
}

#[test]
fn quoted_keys_beside_bare_ones_are_a_note() {
    let mut all = made(20, |number| format!("aaaa-bbbb-cccc-{number:06}"));
    assert_eq!(keys("quoted-keys", &all).0, "ok");
    all.push("\"dddd-bbbb-cccc-000001\"".to_owned());
    let (severity, fact) = keys("quoted-keys", &all);
    assert_eq!(
        (severity.as_str(), fact.as_str()),
        ("note", "express: 1 of 21 keys has quotation marks")
    );
    assert_eq!(keys("quoted-keys", &all[..5]).0, "unknown");
    for quoted in ["'dddd-bbbb-1'", "\\\"dddd-bbbb-1\\\"", "%22dddd-bbbb-1%22"] {
        all[20] = quoted.to_owned();
        assert_eq!(keys("quoted-keys", &all).0, "note", "{quoted}");
        assert_eq!(other_forms(quoted.as_bytes()), [b"dddd-bbbb-1".to_vec()]);
    }
}

/// Random identifiers of one kind.
type MakeId = fn(&mut Rng) -> String;

const IDS: [(&str, MakeId); 11] = [
    ("UUID v4", |random| uuid(random, '4')),
    ("UUID v7", |random| uuid(random, '7')),
    ("ULID", |random| format!("01J{}", letters(random, 23, b"0123456789ABCDEFGHJKMNPQRSTVWXYZ"))),
    ("KSUID", |random| format!("2{}", letters(random, 26, ALPHANUMERIC))),
    ("Snowflake", |random| {
        random.u64(1_000_000_000_000_000_000..1_999_999_999_999_999_999).to_string()
    }),
    ("milliseconds", |random| random.u64(1_600_000_000_000..1_900_000_000_000).to_string()),
    ("16 digits", |random| letters(random, 16, b"0123456789")),
    ("SHA-256 in hex", |random| letters(random, 64, b"0123456789abcdef")),
    ("128 bits in hex", |random| letters(random, 32, b"0123456789abcdef")),
    ("256 bits in base64", |random| STANDARD.encode(letters(random, 32, ALPHANUMERIC))),
    ("random base64", |random| {
        let bytes: Vec<u8> = (0..24).map(|_| random.u8(..)).collect();
        STANDARD.encode(bytes)
    }),
];

const ALPHANUMERIC: &[u8] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";

fn letters(random: &mut Rng, count: usize, of: &[u8]) -> String {
    (0..count).map(|_| char::from(of[random.usize(..of.len())])).collect()
}

fn uuid(random: &mut Rng, version: char) -> String {
    let hex = letters(random, 31, b"0123456789abcdef");
    let (first, rest) = hex.split_at(12);
    format!(
        "{}-{}-{version}{}-{}-{}",
        &first[..8],
        &first[8..],
        &rest[..3],
        &rest[3..7],
        &rest[7..19]
    )
}

/// Rule: random identifiers are fine as keys and in bodies.
#[test]
fn random_identifiers_raise_no_alarm() {
    for (name, make) in IDS {
        let mut random = Rng::with_seed(11);
        let mut records = Vec::new();
        for _ in 0..500 {
            records.push((make(&mut random), json!({"id": make(&mut random)})));
        }
        for (code, severity, fact) in said(sample_of(&records)) {
            // Times are weak keys, and fine in bodies.
            let is_weak = name == "milliseconds" && code == "guessable-keys";
            // Some are valid by chance, and cards may be among them.
            let may_be_card = name == "16 digits" && code == "card-numbers";
            let expected = match (is_weak, may_be_card) {
                (true, _) => "warning",
                (_, true) => "note",
                _ => "ok",
            };
            assert_eq!(severity, expected, "{name}: {code}: {fact}");
        }
    }
}

/// Rule: the rates are those that docs/doctor.md states, for identifiers taken one by one.
#[test]
fn single_identifiers_look_sensitive_or_weak_as_rarely_as_documented() {
    for (name, make) in IDS {
        let mut random = Rng::with_seed(5);
        let (mut sensitive, mut weak) = (0, 0);
        for _ in 0..10_000 {
            let id = make(&mut random);
            sensitive += u32::from(text_findings::of(&id).is_sensitive());
            weak += u32::from(weakness(id.as_bytes()).is_some());
        }
        // A share of all numbers of 16 digits is a time in microseconds.
        let most_weak = match name {
            "milliseconds" => 10_000,
            "16 digits" => 700,
            _ => 0,
        };
        assert!(weak <= most_weak, "{name}: {weak}");
        let most = if name == "16 digits" { 350 } else { 0 };
        assert!(sensitive <= most, "{name}: {sensitive}");
    }
}
