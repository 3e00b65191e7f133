//! How a value is decoded: the codecs around it, the encoding of what they hold, and the fields that are decoded in turn.

use std::borrow::Cow;

use serde::Deserialize;
use strum::{EnumString, IntoStaticStr};

use crate::domain::as_str::as_str;

/// What the bytes of a value are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr, EnumString)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Encoding {
    Text,
    Json,
    Msgpack,
    /// Python's, told by its first bytes and shown as bytes. To read a pickle is to run what it says.
    Pickle,
    /// The text that PHP's `serialize` writes. An object's class stands in it as the field `__class`.
    Php,
    /// JSON in which Newtonsoft.Json for .NET names types, which are left out.
    Newtonsoft,
    /// Ruby's, told by its first bytes.
    Marshal,
    /// No string but a hash, whose fields are the first step of pointers.
    #[serde(skip_deserializing)]
    Hash,
    /// No string but a set: that it is there is all that is told.
    #[serde(skip_deserializing)]
    Set,
    #[serde(skip_deserializing)]
    Zset,
    #[serde(skip_deserializing)]
    List,
}

as_str!(Encoding);

impl Encoding {
    /// True when pointers lead to fields of it.
    pub(crate) fn has_fields(self) -> bool {
        matches!(self, Self::Json | Self::Msgpack | Self::Php | Self::Newtonsoft | Self::Hash)
    }

    /// True when idemctl writes such a value of the JSON that the value stands for.
    fn is_written(self) -> bool {
        matches!(
            self,
            Self::Text | Self::Json | Self::Msgpack | Self::Php | Self::Newtonsoft | Self::Hash
        )
    }

    /// Redis's name of the type of a value that is no string.
    pub(crate) fn other_type(self) -> Option<&'static str> {
        matches!(self, Self::Hash | Self::Set | Self::Zset | Self::List).then(|| self.as_str())
    }

    /// True when nothing but its first bytes is looked at: what is in it is shown as bytes, and never decoded.
    pub(crate) fn is_shown_only(self) -> bool {
        matches!(self, Self::Pickle | Self::Marshal)
    }
}

/// The type of a Redis key, if a value format names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ValueType {
    String,
    Hash,
    Set,
    Zset,
    List,
}

impl ValueType {
    /// What a value of the type is, where that is no string.
    pub(super) fn encoding(self) -> Option<Encoding> {
        match self {
            Self::String => None,
            Self::Hash => Some(Encoding::Hash),
            Self::Set => Some(Encoding::Set),
            Self::Zset => Some(Encoding::Zset),
            Self::List => Some(Encoding::List),
        }
    }
}

/// What a service puts around a value before it stores the value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Codec {
    Gzip,
    Zlib,
    Hex,
    Base64,
    /// A text in front of what follows, such as a version.
    Prefix(String),
    /// A text behind.
    Suffix(String),
}

/// Separates the name of `prefix` and `suffix` from their text.
const TEXT_FOLLOWS: char = '=';

impl Codec {
    /// Reads the word of `schema.toml`; `None` for any other word.
    fn from_word(word: &str) -> Option<Self> {
        match word.split_once(TEXT_FOLLOWS) {
            Some(("prefix", text)) if !text.is_empty() => Some(Self::Prefix(text.to_owned())),
            Some(("suffix", text)) if !text.is_empty() => Some(Self::Suffix(text.to_owned())),
            _ => [Self::Gzip, Self::Zlib, Self::Hex, Self::Base64]
                .into_iter()
                .find(|codec| codec.word() == word),
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

    /// True if the first bytes may tell nothing of what the codec holds.
    pub(crate) fn compresses(&self) -> bool {
        matches!(self, Self::Gzip | Self::Zlib)
    }
}

/// The codecs to undo, in this order, and what comes out.
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
    /// Reads such a list as `["base64", "gzip", "json"]`.
    ///
    /// # Errors
    /// The index of the word that is wrong, and why.
    pub(super) fn parse(words: &[String]) -> Result<Self, (usize, String)> {
        let Some((last, before)) = words.split_last() else {
            return Err((0, "`decode` names no step".to_owned()));
        };
        let mut codecs = Vec::with_capacity(words.len());
        for (index, word) in before.iter().enumerate() {
            codecs.push(Codec::from_word(word).ok_or_else(|| (index, unknown(word)))?);
        }
        let encoding =
            last.parse().ok().filter(|encoding: &Encoding| encoding.other_type().is_none());
        if let Some(encoding) = encoding {
            return Ok(Self { codecs, encoding });
        }
        codecs.push(Codec::from_word(last).ok_or_else(|| (before.len(), unknown(last)))?);
        Ok(Self { codecs, encoding: Encoding::Text })
    }

    /// The steps as `schema.toml` lists them.
    pub(crate) fn words(&self) -> Vec<Cow<'static, str>> {
        self.codecs.iter().map(Codec::word).chain([self.encoding.as_str().into()]).collect()
    }
}

fn unknown(word: &str) -> String {
    removed(word).unwrap_or_else(|| {
        format!(
            "`{word}` is no step of `decode` here: gzip, zlib, hex, base64, prefix=TEXT, suffix=TEXT, and at the end json, msgpack, text, pickle, php, newtonsoft or marshal"
        )
    })
}

/// What to say of a word that older versions read; `None` for any other word.
pub(super) fn removed(word: &str) -> Option<String> {
    let name = match word {
        "brotli" => "brotli",
        "cbor" => "CBOR",
        _ => return None,
    };
    Some(format!(
        "{name} was removed in idemctl 0.3.0: mark the values `opaque = true`, or let the service store gzip or zlib, and msgpack or json"
    ))
}

/// How a value is decoded before its fields are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Decoding {
    pub(crate) value: Decoder,
    /// Pointers to fields that are decoded in turn, outer ones first. A pointer goes on into what comes out.
    pub(crate) inside: Vec<(String, Decoder)>,
}

impl Decoding {
    /// True if a value is stored as the very text that `[write]` has.
    pub(crate) fn is_as_stored(&self) -> bool {
        let is_text = matches!(self.value.encoding, Encoding::Text | Encoding::Json);
        is_text && self.value.codecs.is_empty() && self.inside.is_empty()
    }

    /// True if idemctl can write such values from the text that `[write]` has.
    pub(crate) fn is_written(&self) -> bool {
        self.value.encoding.is_written()
            && self.inside.iter().all(|(_, decoder)| decoder.encoding.is_written())
    }

    /// True if the first bytes of a value may tell nothing of what is in it.
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
    fn codecs_come_first_and_what_they_wrap_last() {
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
    fn what_older_versions_read_is_named() {
        for (words, at) in [(["brotli", "json"], 0), (["gzip", "cbor"], 1), (["gzip", "brotli"], 1)]
        {
            let (index, why) = parse(&words).unwrap_err();
            assert!(index == at && why.contains("was removed in idemctl 0.3.0"), "{why}");
        }
    }
}
