//! The values that a service writes: the table `[write]`.

use serde::Deserialize;
use strum::IntoStaticStr;

use super::value_template::{self, Placeholder, Template};
use crate::domain::as_str::as_str;

/// The templates of the values that a service writes.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WriteFormat {
    /// `None` if the schema does not describe how a lock is written.
    #[serde(default, deserialize_with = "value_template::optional_value")]
    pub(crate) lock_value: Option<Template>,
    /// `None` if the schema does not describe how a result is written.
    #[serde(default, deserialize_with = "value_template::optional_value")]
    pub(crate) result_value: Option<Template>,
    /// The result of a failed operation; `None` if the service stores no errors.
    #[serde(default, deserialize_with = "value_template::optional_value")]
    pub failed_value: Option<Template>,
    /// The response as the complete step sends it and a replay returns it, if it is only part of
    /// the result.
    #[serde(default, deserialize_with = "value_template::response")]
    pub(crate) response: Option<Template>,
    /// The text that the service writes instead of an empty body.
    pub(crate) no_body: Option<String>,
    #[serde(default)]
    pub(crate) header_names: HeaderNames,
    #[serde(default)]
    pub(crate) headers_as: HeadersAs,
    /// True if a replay brings null instead of a JSON body that Python takes for false.
    #[serde(default)]
    pub(crate) empty_as_null: bool,
    /// The numbers that bodies stored as JSON can have.
    #[serde(default)]
    pub(crate) numbers: Numbers,
    /// True if the service writes `<`, `>` and `&` as `\u003c` and so on, as Go's JSON encoder
    /// does.
    #[serde(default)]
    pub(crate) escape_html: bool,
    /// A description of the fingerprint, for people who have to pass one because the lock does not
    /// contain it.
    pub(crate) fingerprint_is: Option<String>,
    /// The data of the request that the service's locks hold and that idemctl does not know, for
    /// people. `lock_value` is then only an example, which no request matches.
    pub(crate) lock_needs: Option<String>,
    /// What the lock's Redis key holds beside the lock, for people. Removing the lock would remove
    /// this, too, so no command removes the lock alone.
    pub(crate) lock_holds: Option<String>,
    /// JSON pointers to base64 texts that represent bytes, for encodings that distinguish bytes
    /// from text.
    #[serde(default)]
    pub(crate) bytes_at: Vec<String>,
}

/// How the names of headers are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum HeaderNames {
    /// As the handler wrote the names.
    #[default]
    AsGiven,
    /// As Go's `net/http` does: `Content-Type`.
    Canonical,
    /// As Node.js does: `content-type`.
    Lower,
}

as_str!(HeaderNames);

/// How many values a header of a stored response can have.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum HeadersAs {
    /// A header that occurs more than once has a list of values.
    #[default]
    List,
    /// Each header has one text, and the service cannot read a list.
    One,
}

as_str!(HeadersAs);

/// Which numbers of a body that is stored as JSON come back unchanged.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize, IntoStaticStr)]
#[serde(rename_all = "kebab-case")]
#[strum(serialize_all = "kebab-case")]
pub(crate) enum Numbers {
    /// All.
    #[default]
    Decimal,
    /// Those that a double has, as in JavaScript.
    Double,
    /// All integers; of other numbers those that a double has, as in Python.
    DoubleFraction,
}

as_str!(Numbers);

/// What a schema's results store of a response.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keeps {
    pub status: bool,
    pub headers: bool,
    /// The content type, but no other header.
    pub(crate) content_type: bool,
    pub body: bool,
    /// The body is stored only as text: bytes that are not UTF-8 would be lost.
    pub(crate) text_only: bool,
    /// The body is stored as a JSON value, in the form of the service's encoder.
    pub(crate) body_as_json: bool,
    /// A response without a body is stored as `no_body`, if the schema has that text.
    pub(crate) takes_no_body: bool,
    pub(crate) error: bool,
}

impl WriteFormat {
    /// What the results store of a response, according to their templates.
    pub fn keeps(&self) -> Keeps {
        self.kept_by([&self.result_value, &self.failed_value, &self.response])
    }

    /// What a result stores of a response, or a stored failure if the service has a format for it.
    pub(crate) fn keeps_of(&self, is_failed: bool) -> Keeps {
        let value = if is_failed && self.failed_value.is_some() {
            &self.failed_value
        } else {
            &self.result_value
        };
        let has_response = match value {
            Some(value) => value.has(&[Placeholder::Response]),
            None => true,
        };
        let response = if has_response { &self.response } else { &None };
        self.kept_by([value, response, &None])
    }

    fn kept_by(&self, templates: [&Option<Template>; 3]) -> Keeps {
        let have = |placeholders: &[Placeholder]| {
            templates.into_iter().flatten().any(|template| template.has(placeholders))
        };
        let bytes = have(&[Placeholder::Body, Placeholder::BodyBase64, Placeholder::BodyHex]);
        let text = have(&[Placeholder::BodyJson, Placeholder::BodyText]);
        Keeps {
            status: have(&[Placeholder::Status]),
            headers: have(&[Placeholder::Headers, Placeholder::HeaderLists]),
            content_type: have(&[Placeholder::ContentType]),
            body: bytes || text,
            // A result that also has the bytes loses nothing.
            text_only: text && !bytes,
            body_as_json: have(&[Placeholder::BodyJson]),
            takes_no_body: have(&[Placeholder::Body, Placeholder::BodyJson]),
            error: self.failed_value.is_some(),
        }
    }

    /// True if a lock contains the time at which it was acquired or expires.
    pub(crate) fn keeps_time(&self) -> bool {
        self.lock_value.as_ref().is_some_and(Template::has_time)
    }

    /// True if a result that idemctl writes contains the time at which it was stored or expires.
    pub(crate) fn dates_results(&self) -> bool {
        self.result_value.as_ref().is_some_and(Template::has_time)
    }

    /// The templates that the schema has, each with its name.
    pub(super) fn values(&self) -> impl Iterator<Item = (&'static str, &Template)> {
        let values = [
            ("lock_value", &self.lock_value),
            ("result_value", &self.result_value),
            ("failed_value", &self.failed_value),
        ];
        values.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?)))
    }

    /// True if a lock or a result contains the hash of the request's payload.
    pub fn keeps_fingerprint(&self) -> bool {
        let values = [&self.lock_value, &self.result_value];
        values.into_iter().flatten().any(|value| value.has(&[Placeholder::Fingerprint]))
    }
}
