//! How a value is decoded: its codecs, the encoding of the decoded bytes, and the fields that are
//! decoded in turn.

use std::borrow::Cow;

use serde::Deserialize;
use strum::{EnumString, IntoStaticStr};

use crate::domain::as_str::as_str;

/// The encoding of a value after its codecs are undone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr, EnumString)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Encoding {
    Text,
    Json,
    Msgpack,
    /// Python's pickle, recognised by its first bytes and shown as bytes. Reading a pickle would
    /// execute the code in it.
    Pickle,
    /// The output of PHP's `serialize`. An object's class is the field `__class`.
    Php,
    /// JSON in which Newtonsoft.Json for .NET names types. idemctl removes the type names.
    Newtonsoft,
    /// Ruby's Marshal format, recognised by its first bytes.
    Marshal,
    /// A Redis hash, not a string. The first step of a JSON pointer names a hash field.
    #[serde(skip_deserializing)]
    Hash,
    /// A Redis set, not a string. idemctl reads only whether it exists.
    #[serde(skip_deserializing)]
    Set,
    #[serde(skip_deserializing)]
    Zset,
    #[serde(skip_deserializing)]
    List,
}

as_str!(Encoding);

impl Encoding {
    /// True if JSON pointers can lead to fields of such a value.
    pub(crate) fn has_fields(self) -> bool {
        matches!(self, Self::Json | Self::Msgpack | Self::Php | Self::Newtonsoft | Self::Hash)
    }

    /// True if these bytes begin as a value with fields does in this encoding. Such a value may be a
    /// damaged one if it does not decode; any other is of another program.
    pub(crate) fn begins_so(self, bytes: &[u8]) -> bool {
        match self {
            Self::Json | Self::Newtonsoft => {
                let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
                matches!(first, Some(b'{' | b'['))
            }
            // Arrays and maps: fixarray, fixmap, and those of 16 and 32 bits.
            Self::Msgpack => matches!(bytes.first(), Some(0x80..=0x9f | 0xdc..=0xdf)),
            // Arrays and objects.
            Self::Php => bytes.starts_with(b"a:") || bytes.starts_with(b"O:"),
            Self::Text
            | Self::Pickle
            | Self::Marshal
            | Self::Hash
            | Self::Set
            | Self::Zset
            | Self::List => false,
        }
    }

    /// The usual name of the encoding.
    pub(crate) fn language(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Json => "JSON",
            Self::Msgpack => "MessagePack",
            Self::Pickle => "Python pickle",
            Self::Php => "PHP serialize",
            Self::Newtonsoft => "JSON of Newtonsoft.Json",
            Self::Marshal => "Ruby Marshal",
            Self::Zset => "sorted set",
            Self::Hash | Self::Set | Self::List => self.as_str(),
        }
    }

    /// True if idemctl can encode such a value from JSON.
    fn is_written(self) -> bool {
        matches!(
            self,
            Self::Text | Self::Json | Self::Msgpack | Self::Php | Self::Newtonsoft | Self::Hash
        )
    }

    /// The Redis name of the type; `None` for a string.
    pub(crate) fn other_type(self) -> Option<&'static str> {
        match self {
            Self::Hash | Self::Set | Self::Zset | Self::List => Some(self.as_str()),
            _ => None,
        }
    }

    /// True if idemctl checks only the first bytes. It shows the value as bytes and never decodes
    /// it.
    pub(crate) fn is_shown_only(self) -> bool {
        matches!(self, Self::Pickle | Self::Marshal)
    }
}

/// A codec that a service applies to a value before it stores the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Zlib,
    Hex,
    Base64,
    /// A text before the value, such as a version.
    Prefix(String),
    /// A text after the value.
    Suffix(String),
}

/// Separates the names `prefix` and `suffix` from their text.
const TEXT_FOLLOWS: char = '=';

impl Codec {
    /// Parses a word of `schema.toml`; `None` if it is not a codec.
    fn from_word(word: &str) -> Option<Self> {
        // Only the first `=` separates: the text itself may contain more. A prefix or suffix
        // without a text would change nothing.
        if let Some((name, text)) = word.split_once(TEXT_FOLLOWS)
            && !text.is_empty()
        {
            return match name {
                "prefix" => Some(Self::Prefix(text.to_owned())),
                "suffix" => Some(Self::Suffix(text.to_owned())),
                _ => None,
            };
        }
        match word {
            "gzip" => Some(Self::Gzip),
            "zlib" => Some(Self::Zlib),
            "hex" => Some(Self::Hex),
            "base64" => Some(Self::Base64),
            _ => None,
        }
    }

    /// The codec as `schema.toml` names it.
    pub(crate) fn word(&self) -> Cow<'static, str> {
        Cow::Borrowed(match self {
            Self::Gzip => "gzip",
            Self::Zlib => "zlib",
            Self::Hex => "hex",
            Self::Base64 => "base64",
            Self::Prefix(text) => return Cow::Owned(format!("prefix{TEXT_FOLLOWS}{text}")),
            Self::Suffix(text) => return Cow::Owned(format!("suffix{TEXT_FOLLOWS}{text}")),
        })
    }

    /// True if the first bytes may not show what the codec contains.
    pub(crate) fn compresses(&self) -> bool {
        matches!(self, Self::Gzip | Self::Zlib)
    }
}

/// The codecs to undo, in this order, and the encoding of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoder {
    pub(crate) codecs: Vec<Codec>,
    pub(crate) encoding: Encoding,
}

impl From<Encoding> for Decoder {
    fn from(encoding: Encoding) -> Self {
        Self { codecs: Vec::new(), encoding }
    }
}

impl Decoder {
    /// Parses a list such as `["base64", "gzip", "json"]`.
    ///
    /// # Errors
    /// The index of the wrong word, and the reason.
    pub(super) fn parse(words: &[String]) -> Result<Self, (usize, String)> {
        let Some((last, before)) = words.split_last() else {
            return Err((0, "`decode` is empty".to_owned()));
        };
        let mut codecs = Vec::with_capacity(words.len());
        for (index, word) in before.iter().enumerate() {
            let Some(codec) = Codec::from_word(word) else { return Err((index, unknown(word))) };
            codecs.push(codec);
        }
        // A hash, a set or a list is a type of Redis key, not the encoding of a string.
        if let Ok(encoding) = last.parse::<Encoding>()
            && encoding.other_type().is_none()
        {
            return Ok(Self { codecs, encoding });
        }
        // A list that ends with a codec contains text.
        let Some(codec) = Codec::from_word(last) else {
            return Err((before.len(), unknown(last)));
        };
        codecs.push(codec);
        Ok(Self { codecs, encoding: Encoding::Text })
    }

    /// The steps of the decoder as `schema.toml` lists them.
    pub(crate) fn words(&self) -> Vec<Cow<'static, str>> {
        self.codecs.iter().map(Codec::word).chain([self.encoding.as_str().into()]).collect()
    }
}

fn unknown(word: &str) -> String {
    if let Some(why) = not_decoded(word) {
        return why;
    }
    format!(
        "`{word}` is not a step of `decode` here; write gzip, zlib, hex, base64, prefix=TEXT or \
        suffix=TEXT, and as the last one json, msgpack, text, pickle, php, newtonsoft or marshal"
    )
}

/// The message for an encoding that idemctl leaves out on purpose, or that only older versions
/// read; `None` for any other word.
pub(super) fn not_decoded(word: &str) -> Option<String> {
    let name = match word {
        "brotli" => "brotli",
        "cbor" => "CBOR",
        "postcard" | "protobuf" => {
            return Some(format!(
                "idemctl does not decode {word}, whose bytes do not name their fields; mark the \
                values `opaque = true`, which describes only their state"
            ));
        }
        _ => return None,
    };
    Some(format!(
        "{name} was removed in idemctl 0.3.0; mark the values `opaque = true`, or let the service \
        store gzip or zlib, and msgpack or json"
    ))
}

/// How a value is decoded before idemctl reads its fields.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoding {
    pub(crate) value: Decoder,
    /// JSON pointers to fields that are decoded in turn, outer fields first. A later pointer may
    /// lead into a decoded field.
    pub(crate) inside: Vec<(String, Decoder)>,
}

impl Decoding {
    /// True if the stored value is exactly the text that `[write]` produces.
    pub(crate) fn is_as_stored(&self) -> bool {
        let is_text = matches!(self.value.encoding, Encoding::Text | Encoding::Json);
        is_text && self.value.codecs.is_empty() && self.inside.is_empty()
    }

    /// True if idemctl can encode such values from the text that `[write]` produces.
    pub(crate) fn is_written(&self) -> bool {
        self.value.encoding.is_written()
            && self.inside.iter().all(|(_, decoder)| decoder.encoding.is_written())
    }

    /// True if the first bytes of a value may not show what the value contains.
    pub(crate) fn compresses(&self) -> bool {
        let decoders = self.inside.iter().map(|(_, decoder)| decoder).chain([&self.value]);
        decoders.flat_map(|decoder| &decoder.codecs).any(Codec::compresses)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(words: &[&str]) -> Result<Vec<Cow<'static, str>>, (usize, String)> {
        let words: Vec<_> = words.iter().map(|word| (*word).to_owned()).collect();
        Decoder::parse(&words).map(|decoder| decoder.words())
    }

    #[test]
    fn codecs_come_first_and_the_encoding_last() {
        assert_eq!(parse(&["base64", "gzip", "json"]).unwrap(), ["base64", "gzip", "json"]);
        assert_eq!(parse(&["hex"]).unwrap(), ["hex", "text"]);
        assert_eq!(parse(&["msgpack"]).unwrap(), ["msgpack"]);
        let wrapped = ["prefix=v=1", "suffix=:1", "zlib", "msgpack"];
        assert_eq!(parse(&wrapped).unwrap(), wrapped);
        for (words, at) in [
            (&[][..], 0),
            (&["json", "gzip"], 0),
            (&["gzip", "lz4"], 1),
            (&["gzip", "lz4", "json"], 1),
            (&["hash"], 0),
            (&["suffix="], 0),
        ] {
            assert_eq!(parse(words).unwrap_err().0, at, "{words:?}");
        }
    }

    #[test]
    fn the_error_names_a_removed_encoding() {
        for (words, at) in [(["brotli", "json"], 0), (["gzip", "cbor"], 1), (["gzip", "brotli"], 1)]
        {
            let (index, why) = parse(&words).unwrap_err();
            assert!(index == at && why.contains("was removed in idemctl 0.3.0"), "{why}");
        }
    }
}
