//! The response that the operator gives, checked against the fields that the schema's results
//! store.

use super::delivery::{changed_number, shown};
use crate::domain::record::{Response, packed};
use crate::domain::schema::{Encoding, HeadersAs, Keeps, Schema};

/// What is wrong with a response whose body does not fit its content type.
pub(crate) const BROKEN_JSON: &str =
    "the content type of the response is JSON, but the body is not valid JSON";

/// The response from the options of `complete`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct ResponseInput {
    pub(crate) status: Option<i64>,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Option<Vec<u8>>,
    pub(crate) error: Option<String>,
}

/// Why the service would not store such a response, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Misfit {
    pub(crate) message: String,
    pub(crate) hint: Option<String>,
    /// True if the service stores no response with this status. What then lets the next request
    /// execute depends on the record.
    pub(crate) is_never_stored: bool,
}

impl ResponseInput {
    /// The response in the form that the schema's service stores: no stored field is missing, and
    /// no given field would be lost.
    ///
    /// # Errors
    /// The first part that does not match.
    pub(crate) fn response(&self, schema: &Schema) -> Result<Response, Misfit> {
        let keeps = schema.write.keeps_of(self.error.is_some());
        self.nothing_is_lost(schema, keeps)?;
        self.nothing_is_missing(schema, keeps)?;
        self.is_ever_stored(schema)?;
        self.has_single_headers(schema)?;
        self.has_ascii_headers()?;
        self.is_without_body()?;
        self.has_right_length(keeps)?;
        let body = self.body.clone().unwrap_or_default();
        let has_text = schema.write.no_body.is_some() && keeps.takes_no_body;
        let is_empty = body.is_empty() && !has_text;
        if keeps.body && schema.bodies_are_json() && (is_empty || self.has_broken_body()) {
            return misfit(
                format!(
                    "every body of {} is JSON, and this one is not, so clients could not read it",
                    schema.name
                ),
                Some("a JSON string needs its quotes: --body '\"text\"'; for nothing, --body null"),
            );
        }
        let response =
            Response { status: self.status, headers: self.headers.clone(), body, whole: true };
        let body = &response.body;
        // Any other body is stored as text, whose digits stay.
        let is_json = schema.bodies_are_json() || (keeps.body_as_json && response.is_json());
        if keeps.body
            && is_json
            && let Some((number, read)) = changed_number(body, schema.write.numbers)
        {
            return misfit(
                format!(
                    "clients of {} would read {read} for the number {number} of the body",
                    schema.name
                ),
                None,
            );
        }
        if keeps.body
            && schema.has_results_in(Encoding::Newtonsoft)
            && let Some(time) = changed_time(body)
        {
            return misfit(
                format!(
                    "clients of {} may get another text for the time {} of the body, because .NET \
                    writes times in its own way",
                    schema.name,
                    shown(time.as_bytes())
                ),
                Some("pass times in UTC, without zeros at their end: 2026-01-31T12:00:00.5Z"),
            );
        }
        if schema.has_results_in(Encoding::Php) {
            self.names_no_class(schema, keeps.body && is_json)?;
        }
        if keeps.body && schema.write.empty_as_null && is_empty_json(body) {
            return misfit(
                format!(
                    "clients of {} would get null instead of this body, which is empty, zero or \
                    false",
                    schema.name
                ),
                None,
            );
        }
        if keeps.text_only && std::str::from_utf8(body).is_err() {
            return misfit(
                format!(
                    "idemctl writes the bodies of {} as text, and this one is not UTF-8",
                    schema.name
                ),
                None,
            );
        }
        Ok(response)
    }

    fn nothing_is_lost(&self, schema: &Schema, keeps: Keeps) -> Result<(), Misfit> {
        let mut loses_header = false;
        for (name, _) in &self.headers {
            let is_kept = keeps.headers || keeps.content_type && is_content_type(name);
            loses_header |= !is_kept;
        }
        let lost = [
            ("status", self.status.is_some() && !keeps.status),
            ("header", loses_header),
            ("body", self.body.is_some() && !keeps.body),
            ("error", self.error.is_some() && !keeps.error),
        ];
        for (part, is_lost) in lost {
            if is_lost {
                return misfit(
                    format!(
                        "{part} would be lost: a result of {} keeps {}",
                        schema.name,
                        kept(keeps)
                    ),
                    Some("omit it"),
                );
            }
        }
        Ok(())
    }

    fn nothing_is_missing(&self, schema: &Schema, keeps: Keeps) -> Result<(), Misfit> {
        // A service that has a text for an empty body also stores responses without a body.
        let needs_body = keeps.body && schema.write.no_body.is_none();
        let (part, hint) = if keeps.status && self.status.is_none() {
            ("status", "--status 201")
        } else if needs_body && self.body.is_none() {
            ("body", "--body @FILE or TEXT")
        } else {
            return Ok(());
        };
        misfit(
            format!("{part} is missing: a result of {} keeps {}", schema.name, kept(keeps)),
            Some(hint),
        )
    }

    /// Checks that no header is repeated, if the service cannot read a list of values.
    fn has_single_headers(&self, schema: &Schema) -> Result<(), Misfit> {
        if schema.write.headers_as == HeadersAs::List {
            return Ok(());
        }
        for (index, (name, _)) in self.headers.iter().enumerate() {
            let before = &self.headers[..index];
            if before.iter().any(|(other, _)| other.eq_ignore_ascii_case(name)) {
                return misfit(
                    format!(
                        "{} stores one text for each header, and {name} is given twice",
                        schema.name
                    ),
                    None,
                );
            }
        }
        Ok(())
    }

    /// Checks that the values of headers are ASCII. HTTP defines no other characters in them (RFC
    /// 9110, section 5.5): Node.js refuses to send some, and sends others as Latin-1.
    fn has_ascii_headers(&self) -> Result<(), Misfit> {
        for (name, value) in &self.headers {
            if !value.is_ascii() {
                return misfit(
                    format!("the value of {name} has characters that are not ASCII"),
                    None,
                );
            }
        }
        Ok(())
    }

    /// Checks that a response to which HTTP gives no body has none (RFC 9110, sections 15.3.5 and
    /// 15.4.5). JSON has `null` for it.
    fn is_without_body(&self) -> Result<(), Misfit> {
        let body = self.body.as_deref().unwrap_or_default().trim_ascii();
        match self.status {
            Some(status @ (204 | 304)) if !body.is_empty() && body != b"null" => misfit(
                format!("a response with status {status} has no body, so clients would get none"),
                None,
            ),
            _ => Ok(()),
        }
    }

    /// Checks that a `Content-Length` is the length of the body, because clients would read a cut
    /// body, or wait for the rest of it. A service that encodes JSON again may change the length.
    fn has_right_length(&self, keeps: Keeps) -> Result<(), Misfit> {
        let Some(body) = &self.body else { return Ok(()) };
        let is_encoded_again = keeps.body_as_json && !self.has_broken_body() && !body.is_empty();
        for (name, value) in &self.headers {
            let is_right = value.trim().parse() == Ok(body.len()) && !is_encoded_again;
            if name.eq_ignore_ascii_case("content-length") && !is_right {
                return misfit(
                    format!("{name} may not be the length of the body that clients get"),
                    Some("omit it"),
                );
            }
        }
        Ok(())
    }

    /// Checks that neither a header nor a member of the body would be stored as the class of a PHP
    /// object. Whoever chose the response could otherwise choose the class, too.
    fn names_no_class(&self, schema: &Schema, has_json: bool) -> Result<(), Misfit> {
        let class = packed::PHP_CLASS;
        let body = self.body.as_deref().unwrap_or_default();
        let body = serde_json::from_slice::<serde_json::Value>(body).ok();
        let place = if self.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case(class)) {
            "a header"
        } else if has_json && body.is_some_and(|body| has_member(&body, class)) {
            "a member of the body"
        } else {
            return Ok(());
        };
        misfit(
            format!(
                "{place} has the name `{class}`, and idemctl would store it in the values of {} \
                as the class of a PHP object",
                schema.name
            ),
            Some("omit it"),
        )
    }

    fn is_ever_stored(&self, schema: &Schema) -> Result<(), Misfit> {
        let Some(status) = self.status else { return Ok(()) };
        let Some(stores) = &schema.service.stores else { return Ok(()) };
        if stores.contains(status) {
            return Ok(());
        }
        let message = format!(
            "{} stores only the statuses {}, so no retry ever gets a stored {status}",
            schema.name,
            stores.as_text().replace('-', " to ").replace(',', ", ")
        );
        Err(Misfit { message, hint: None, is_never_stored: true })
    }

    /// True if a content type declares JSON, but the body is not valid JSON.
    pub(crate) fn is_broken_json(&self) -> bool {
        for (name, value) in &self.headers {
            if is_content_type(name) && value.to_ascii_lowercase().contains("json") {
                return self.has_broken_body();
            }
        }
        false
    }

    /// True if a body begins as JSON does but is not valid JSON, and no content type is given.
    pub(crate) fn looks_like_broken_json(&self) -> bool {
        if self.headers.iter().any(|(name, _)| is_content_type(name)) {
            return false;
        }
        let body = self.body.as_deref().unwrap_or_default();
        body.trim_ascii_start().starts_with(b"{") && self.has_broken_body()
    }

    /// True if there is a body that is not valid JSON.
    fn has_broken_body(&self) -> bool {
        let body = self.body.as_deref().unwrap_or_default();
        // A response with a content type may have no body.
        !body.is_empty() && serde_json::from_slice::<serde::de::IgnoredAny>(body).is_err()
    }
}

/// The first time of a body that Newtonsoft.Json changes. A body that is not JSON is one text.
fn changed_time(body: &[u8]) -> Option<String> {
    let value = match serde_json::from_slice(body) {
        Ok(value) => value,
        Err(_) => serde_json::Value::from(std::str::from_utf8(body).ok()?),
    };
    packed::changed_time(&value).map(str::to_owned)
}

/// True if an object in the document, however deep, has such a member.
fn has_member(document: &serde_json::Value, name: &str) -> bool {
    match document {
        serde_json::Value::Array(items) => items.iter().any(|item| has_member(item, name)),
        serde_json::Value::Object(members) => {
            members.iter().any(|(member, value)| member == name || has_member(value, name))
        }
        _ => false,
    }
}

/// True for the JSON values that Python takes for false, except null.
fn is_empty_json(body: &[u8]) -> bool {
    match serde_json::from_slice::<serde_json::Value>(body) {
        Ok(serde_json::Value::Object(members)) => members.is_empty(),
        Ok(serde_json::Value::Array(items)) => items.is_empty(),
        Ok(serde_json::Value::String(text)) => text.is_empty(),
        Ok(serde_json::Value::Number(number)) => number.as_f64() == Some(0.0),
        Ok(serde_json::Value::Bool(is_true)) => !is_true,
        Ok(serde_json::Value::Null) | Err(_) => false,
    }
}

/// True for the header that some services keep although they keep no other.
fn is_content_type(name: &str) -> bool {
    name.eq_ignore_ascii_case("content-type")
}

fn misfit<T>(message: String, hint: Option<&str>) -> Result<T, Misfit> {
    Err(Misfit { message, hint: hint.map(str::to_owned), is_never_stored: false })
}

/// The fields that results store, in words.
fn kept(keeps: Keeps) -> String {
    let mut parts = Vec::new();
    for (part, is_kept) in [
        ("status", keeps.status),
        ("headers", keeps.headers),
        // The headers include the content type.
        ("content type", keeps.content_type && !keeps.headers),
        ("body", keeps.body),
        ("error", keeps.error),
    ] {
        if is_kept {
            parts.push(part);
        }
    }
    match parts.split_last() {
        None => "nothing of a response, only that the operation is done".to_owned(),
        Some((last, [])) => format!("only the {last}"),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}

/// Parses the HTTP status of a result.
pub(crate) fn status(text: &str) -> Result<i64, String> {
    match text.parse() {
        Ok(status @ 200..=599) => Ok(status),
        _ => Err("the status must be from 200 to 599".to_owned()),
    }
}

/// Parses `Name: value`, as in HTTP.
pub(crate) fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) =
        text.split_once(':').ok_or("write it as 'Content-Type: application/json'")?;
    let is_name =
        name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte));
    if name.is_empty() || !is_name {
        return Err(format!(
            "{name:?} is not a header name; write it as 'Content-Type: application/json'"
        ));
    }
    let value = value.trim_matches([' ', '\t']);
    if value.chars().any(|character| character.is_control() && character != '\t') {
        return Err(format!("the value of {name} contains control characters"));
    }
    Ok((name.to_owned(), value.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::samples::schema;

    fn given(status: Option<i64>, headers: &[(&str, &str)], body: Option<&[u8]>) -> ResponseInput {
        let headers =
            headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        ResponseInput { status, headers, body: body.map(<[u8]>::to_vec), error: None }
    }

    fn wrong(name: &str, given: &ResponseInput) -> String {
        given.response(&schema(name)).expect_err("a misfit").message
    }

    const JSON: &[(&str, &str)] = &[("content-type", "application/json")];

    #[test]
    fn what_would_be_lost_is_refused_by_name() {
        let all = given(Some(201), JSON, Some(b"{}"));
        let failed =
            ResponseInput { error: Some("declined".into()), ..given(Some(201), &[], Some(b"")) };
        for (name, given, says) in [
            (
                "go-middleware-v1",
                &all,
                "status would be lost: a result of go-middleware-v1 keeps nothing",
            ),
            ("event-driven", &all, "header would be lost"),
            ("event-driven", &all, "status, body and error"),
            ("event-consumer", &given(None, JSON, None), "keeps only the body"),
            ("express", &failed, "error would be lost"),
        ] {
            assert!(wrong(name, given).contains(says), "{name}: {}", wrong(name, given));
        }
        assert!(failed.response(&schema("event-driven")).is_ok());
    }

    #[test]
    fn what_is_kept_has_to_be_given() {
        assert!(wrong("go-chi", &given(None, &[], Some(b""))).contains("status is missing"));
        assert!(wrong("go-chi", &given(Some(200), &[], None)).contains("body is missing"));
        assert!(given(None, &[], None).response(&schema("go-middleware-v1")).is_ok());
        assert!(
            given(None, &[], None).response(&schema("event-consumer")).is_ok(),
            "it has a marker for no body"
        );
        assert!(given(Some(204), &[], Some(b"")).response(&schema("go-chi")).is_ok());
    }

    #[test]
    fn a_status_that_the_service_never_stores_is_refused() {
        let failed = |name, status| given(Some(status), &[], Some(b"")).response(&schema(name));
        for (name, stored, refused) in
            [("express", 299, 302), ("go-middleware", 399, 400), ("go-chi", 422, 500)]
        {
            assert!(failed(name, stored).is_ok() && failed(name, refused).is_err(), "{name}");
        }
        assert!(failed("event-driven", 500).is_ok(), "it says of no status that it is not stored");
    }

    #[test]
    fn text_is_utf8_and_bytes_are_anything() {
        let binary = |name| given(Some(201), &[], Some(b"\xff")).response(&schema(name)).is_ok();
        assert!(
            binary("go-chi")
                && binary("reference")
                && !binary("express")
                && !binary("event-driven")
        );
    }

    #[test]
    fn headers_are_as_http_has_them() {
        let is = |name: &str, value: &str| Ok((name.to_owned(), value.to_owned()));
        assert_eq!(header("Content-Type:  a/b; c=\"d\" "), is("Content-Type", "a/b; c=\"d\""));
        assert_eq!(header("X-Empty:"), is("X-Empty", ""));
        assert_eq!(header("Location: https://a:1/b"), is("Location", "https://a:1/b"));
        for bad in [
            "",
            "no colon",
            ": value",
            "two words: x",
            "a\n: x",
            "a: x\r\nb: y",
            "a: \u{1b}[31m",
            "é: x",
        ] {
            assert!(header(bad).is_err(), "{bad:?}");
        }
    }

    #[test]
    fn a_body_that_breaks_its_content_types_word_is_noticed() {
        assert!(given(None, JSON, Some(b"{id:7}")).is_broken_json());
        assert!(
            !given(None, JSON, Some(b"{}")).is_broken_json()
                && !given(None, JSON, Some(b"")).is_broken_json()
        );
        assert!(!given(None, &[], Some(b"{id:7}")).is_broken_json());
        assert!(given(None, &[], Some(b" {id:7}")).looks_like_broken_json());
        assert!(!given(None, &[], Some(b"id:7")).looks_like_broken_json());
        assert!(!given(None, &[], Some(b"{}")).looks_like_broken_json());
    }
}
