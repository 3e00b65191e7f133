//! Choosing the samples of a draft: some of each format, however rare the format is.

use std::collections::BTreeMap;

use crate::domain::record::{Content, Expiry, SeenKey};

/// Bytes at the beginning of a value that tell formats apart.
const BEGINNING: usize = 32;

/// At most `most` of these keys: of each format as many as of any other, as far as there are some.
///
/// Two values have one format if they begin alike (digits aside) or have the same fields, and either both expire or neither.
pub(crate) fn representatives(samples: Vec<SeenKey>, most: usize) -> Vec<SeenKey> {
    let mut formats: BTreeMap<(bool, Vec<Vec<u8>>), Vec<SeenKey>> = BTreeMap::new();
    for sample in samples {
        let expires = sample.expiry != Expiry::Never;
        formats.entry((expires, signature(&sample.content))).or_default().push(sample);
    }
    let mut chosen = Vec::with_capacity(most);
    while chosen.len() < most {
        let before = chosen.len();
        for samples in formats.values_mut() {
            if chosen.len() < most {
                chosen.extend(samples.pop());
            }
        }
        if chosen.len() == before {
            break;
        }
    }
    chosen
}

fn signature(content: &Content) -> Vec<Vec<u8>> {
    match content {
        Content::Hash(hash) => {
            let mut names: Vec<_> = hash.fields.iter().map(|field| field.name.clone()).collect();
            names.sort_unstable();
            names
        }
        Content::Text { head, .. } => {
            let beginning = head.iter().take(BEGINNING);
            vec![beginning.map(|byte| if byte.is_ascii_digit() { b'0' } else { *byte }).collect()]
        }
        Content::Absent | Content::Other(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::record::Deadline;

    fn sample(key: &str, text: &str, expiry: Expiry) -> SeenKey {
        SeenKey::new(
            key.as_bytes(),
            Content::text(text.as_bytes().to_vec()),
            expiry,
            Deadline::Unknown,
        )
    }

    #[test]
    fn each_format_is_represented_however_rare() {
        let expires = Expiry::In(1_000);
        let mut samples: Vec<_> =
            (0..100).map(|n| sample(&format!("done-{n}"), "{\"s\":\"done\"}", expires)).collect();
        samples.push(sample("held", "{\"s\":\"held\"}", expires));
        samples.push(sample("stuck", "{\"s\":\"held\"}", Expiry::Never));
        let chosen = representatives(samples.clone(), 10);
        assert_eq!(chosen.len(), 10);
        for key in ["held", "stuck"] {
            assert!(chosen.iter().any(|sample| sample.redis_key == key.as_bytes()), "{key}");
        }
        assert_eq!(representatives(samples, 1_000).len(), 102);
    }
}
