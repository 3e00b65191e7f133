//! Nothing of a secret gets into the facts, and nothing in a value stops or slows the checks.

use proptest::prelude::*;

use super::*;

/// Secrets of each kind, as text.
fn secret() -> impl Strategy<Value = String> {
    let alphanumeric = "[A-Za-z0-9]{24,40}";
    prop_oneof![
        Just(CARD.to_owned()),
        Just("4111 1111 1111 1111".to_owned()),
        Just("DE89370400440532013000".to_owned()),
        Just(JWT.to_owned()),
        "[a-z]{8,12}@[a-z]{8}\\.(com|net)".prop_map(|text| text),
        alphanumeric.prop_map(|text| format!("sk_live_{text}")),
        alphanumeric.prop_map(|text| format!("Bearer {text}")),
        alphanumeric.prop_map(|text| format!("sid={text}; Path=/")),
        alphanumeric.prop_map(|text| text),
        "[0-9]{12,19}".prop_map(|text| text),
    ]
}

proptest! {
    /// Rule: no part of a secret of six characters or more is in the facts or in what is said of
    /// them, wherever the secret is: a value, a name, a header, the key.
    #[test]
    fn nothing_of_a_secret_gets_out(secret in secret(), as_key in any::<bool>()) {
        let plain = json!({
            "card": secret, "list": [secret], "set-cookie": secret, "authorization": secret,
        });
        let body = json!({
            secret.clone(): plain, "text": json!({secret.clone(): secret}).to_string(),
            "pairs": [[secret, secret]], "long": format!("see {secret} and {secret}"),
        });
        let key = if as_key { secret.clone() } else { "some-key-of-a-client".to_owned() };
        // A name in many records is one of a field, unless it is no identifier.
        let sample = sample_of(&[(key.clone(), body.clone()), (format!("{key}2"), body)]);
        let mut shown = format!("{sample:?}");
        shown.push_str(&format!("{:?}", said(sample)));
        let letters: Vec<char> = secret.chars().collect();
        for part in letters.windows(6) {
            let part: String = part.iter().collect();
            // Some words are also those of idemctl.
            let is_common = ["Bearer", "sk_liv", "k_live", "_live_", "; Path", " Path="].contains(&part.as_str());
            prop_assert!(is_common || !shown.contains(&part), "{part}: {shown}");
        }
    }

    #[test]
    fn nothing_makes_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let mut collector = DataCollector::default();
        collector.add(&record("express", &[(text(&bytes), NoExpiry)]));
        collector.add(&record("event-consumer", &[(text("1"), NoExpiry), (text(&bytes), NoExpiry)]));
        collector.finish();
        text_findings::of(&String::from_utf8_lossy(&bytes));
    }
}

/// Rule: the time is proportional to the length.
#[test]
fn long_and_hostile_texts_are_looked_at_in_a_bounded_time() {
    let started = std::time::Instant::now();
    for unit in [
        "eyJ.",
        "access_token=",
        "4111 ",
        "4111-",
        "a@",
        "%25",
        "[",
        "-----BEGIN PRIVATE KEY",
        "DE89 3704 ",
        "\\u0034",
        "{\"a\":",
        "Basic ",
        "sk_live_",
    ] {
        let text = unit.repeat((1 << 18) / unit.len());
        let value = json!({"status": "COMPLETED", "statusCode": 201, "headers": {}, "body": text});
        let mut collector = DataCollector::default();
        collector.add(&with_key("k", &value.to_string()));
        collector.finish();
    }
    assert!(started.elapsed().as_secs() < 120, "{:?}", started.elapsed());
}
