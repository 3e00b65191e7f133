//! A sample value: what stands in it, and how it is opened.

use serde_json::{Map, Value};

use super::unwrap::open;
use crate::domain::record::{Content, Expiry, Hash, SeenKey};
use crate::domain::schema::{Decoder, Decoding, Encoding};

/// A value, and how long its Redis key stays.
#[derive(Debug, Clone)]
pub(super) struct SampleValue {
    pub(super) text: String,
    /// What comes out of the value; `None` where it is text.
    pub(super) document: Option<Value>,
    pub(super) decoding: Decoding,
    pub(super) expiry: Expiry,
}

impl SampleValue {
    pub(super) fn of(key: &SeenKey) -> Self {
        let (text, document, decoding) = match &key.content {
            Content::Hash(hash) => {
                let (decoding, document) = of_hash(hash);
                (String::new(), Some(document), decoding)
            }
            Content::Text { head, .. } => match open(head) {
                Some((decoder, document)) => (String::new(), Some(document), plain(decoder)),
                None => {
                    (String::from_utf8_lossy(head).into_owned(), None, plain(Encoding::Text.into()))
                }
            },
            Content::Absent | Content::Other(_) => {
                (String::new(), None, plain(Encoding::Text.into()))
            }
        };
        Self { text, document, decoding, expiry: key.expiry }
    }

    pub(super) fn fields(&self) -> Option<&Map<String, Value>> {
        self.document.as_ref()?.as_object()
    }
}

fn plain(value: Decoder) -> Decoding {
    Decoding { value, inside: Vec::new() }
}

/// The fields of a hash, those that hold more opened.
fn of_hash(hash: &Hash) -> (Decoding, Value) {
    let (mut inside, mut members) = (Vec::new(), Map::new());
    for field in &hash.fields {
        let name = String::from_utf8_lossy(&field.name).into_owned();
        let value = match open(&field.head) {
            Some((decoder, document)) => {
                inside.push((format!("/{}", super::fields::step(&name)), decoder));
                document
            }
            None => text_or_number(&String::from_utf8_lossy(&field.head)),
        };
        members.insert(name, value);
    }
    (Decoding { value: Encoding::Hash.into(), inside }, Value::Object(members))
}

/// A hash has no numbers: what is written as one is meant as one.
fn text_or_number(text: &str) -> Value {
    let number = serde_json::from_str(text).ok().filter(Value::is_number);
    number.unwrap_or_else(|| Value::from(text))
}
