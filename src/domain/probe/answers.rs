//! Comparing answers.

use super::message::ProbeAnswer;

/// Headers that belong to the result of an operation.
pub(super) const RESULT_HEADERS: [&str; 3] = ["location", "etag", "content-type"];

/// The headers of a result that the first answer has and the replay lacks or changes, in words.
pub(super) fn changed_headers(first: &ProbeAnswer, replay: &ProbeAnswer) -> Vec<String> {
    let mut changed = Vec::new();
    for name in RESULT_HEADERS {
        let Some(before) = first.header(name) else { continue };
        match replay.header(name) {
            None => changed.push(format!("{name} is missing")),
            Some(after) if !is_same_value(name, before, after) => {
                changed.push(format!("{name} differs"));
            }
            Some(_) => {}
        }
    }
    changed
}

/// Headers of the second answer that the first does not have, without those of a connection.
pub(super) fn added_headers(first: &ProbeAnswer, replay: &ProbeAnswer) -> Vec<String> {
    let of_connection = [
        "date",
        "connection",
        "keep-alive",
        "content-length",
        "transfer-encoding",
        "set-cookie",
        "server",
        "vary",
    ];
    let mut added = Vec::new();
    for (name, _) in &replay.headers {
        let is_known = first.header(name).is_some() || of_connection.contains(&name.as_str());
        if !is_known && !added.contains(name) {
            added.push(name.clone());
        }
    }
    added
}

fn is_same_value(name: &str, one: &[u8], other: &[u8]) -> bool {
    // Media types do not distinguish case, nor white space around their parameters.
    if name == "content-type" {
        let plain = |value: &[u8]| {
            let text = String::from_utf8_lossy(value).to_ascii_lowercase();
            text.split(';').map(|part| part.trim().to_owned()).collect::<Vec<_>>()
        };
        return plain(one) == plain(other);
    }
    one == other
}
