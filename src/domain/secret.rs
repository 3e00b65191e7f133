//! A password that never appears in output.

use std::fmt;

use serde::de::{self, Visitor};

/// A password. Its debug output is `***`; only [`Secret::reveal`] returns the text.
#[derive(Clone, PartialEq, Eq)]
pub(crate) struct Secret(String);

impl Secret {
    /// The password itself, only for use in the connection.
    pub(crate) fn reveal(&self) -> &str {
        &self.0
    }
}

impl From<String> for Secret {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl From<&str> for Secret {
    fn from(text: &str) -> Self {
        Self(text.to_owned())
    }
}

impl fmt::Debug for Secret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("***")
    }
}

impl<'de> serde::Deserialize<'de> for Secret {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Text)
    }
}

/// Accepts text. Its errors never contain the input, because the input may be a password.
struct Text;

impl Visitor<'_> for Text {
    type Value = Secret;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a password in quotes")
    }

    fn visit_str<E: de::Error>(self, text: &str) -> Result<Secret, E> {
        Ok(Secret::from(text))
    }

    // serde's default error would print the number, which may be a password without quotes.
    fn visit_i64<E: de::Error>(self, _: i64) -> Result<Secret, E> {
        Err(E::custom("a password stands in quotes"))
    }

    fn visit_f64<E: de::Error>(self, _: f64) -> Result<Secret, E> {
        self.visit_i64(0)
    }
}
