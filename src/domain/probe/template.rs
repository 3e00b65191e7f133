//! The request that the operator gave, and where its key belongs.

use serde_json::Value;
use url::Url;

use super::message::{ProbeRequest, ServiceTrust};
use crate::domain::schema::closed_fields::unescaped;

/// What `{{key}}` in a URL, a header or a body is replaced by.
pub(crate) const KEY_MARK: &str = "{{key}}";

/// Where the service expects the key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum KeyPlace {
    /// A header, by its name.
    Header(String),
    /// A member of a JSON body, by its JSON pointer.
    Field(String),
    /// A parameter in the query of the URL.
    Parameter(String),
    /// Only where `{{key}}` is in the request.
    Mark,
}

/// How a key in a header is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum KeyForm {
    /// A String of RFC 8941, in quotation marks.
    Quoted,
    Bare,
}

/// The request of the operator, without a key.
#[derive(Debug, Clone)]
pub(crate) struct RequestTemplate {
    pub(crate) method: String,
    /// With `{{key}}` as it was given.
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, Vec<u8>)>,
    pub(crate) body: Vec<u8>,
    pub(crate) place: KeyPlace,
    pub(crate) form: KeyForm,
    /// The name of the header that names the caller, which is then never shown.
    pub(crate) caller_header: Option<String>,
    pub(crate) trust: ServiceTrust,
}

impl RequestTemplate {
    /// The request with this key, in the template's form.
    ///
    /// # Errors
    /// The key has no place in this request.
    pub(crate) fn with_key(&self, key: &str) -> Result<ProbeRequest, String> {
        let written = match (&self.place, self.form) {
            (KeyPlace::Header(_), KeyForm::Quoted) => format!("\"{key}\""),
            _ => key.to_owned(),
        };
        let request = self.with_text(key, Some(&written))?;
        Ok(ProbeRequest { key: Some(key.to_owned()), ..request })
    }

    /// The request without a key in its place. `key` still replaces each `{{key}}`.
    ///
    /// # Errors
    /// The key has no place in this request.
    pub(super) fn without_key(&self, key: &str) -> Result<ProbeRequest, String> {
        self.with_text(key, None)
    }

    /// The request with this text in place of the key, or with nothing there.
    fn with_text(&self, key: &str, text: Option<&str>) -> Result<ProbeRequest, String> {
        let mut request = self.marked(key);
        match &self.place {
            KeyPlace::Header(name) => {
                request.headers.retain(|(known, _)| !known.eq_ignore_ascii_case(name));
                if let Some(text) = text {
                    request.headers.push((name.clone(), text.as_bytes().to_vec()));
                }
            }
            KeyPlace::Field(pointer) => {
                request.body = with_member(&request.body, pointer, text)?;
            }
            KeyPlace::Parameter(name) => {
                request.url = with_parameter(&request.url, name, text)?;
            }
            KeyPlace::Mark => {
                if request.url == self.url
                    && request.headers == self.headers
                    && request.body == self.body
                {
                    return Err("the request has no {{key}}, so its key has no place".to_owned());
                }
            }
        }
        Ok(request)
    }

    /// The request with each `{{key}}` replaced.
    fn marked(&self, key: &str) -> ProbeRequest {
        let mut headers = Vec::with_capacity(self.headers.len());
        for (name, value) in &self.headers {
            headers.push((name.clone(), replaced(value, key)));
        }
        ProbeRequest {
            method: self.method.clone(),
            url: self.url.replace(KEY_MARK, key),
            headers,
            caller_header: self.caller_header.clone(),
            trust: self.trust.clone(),
            body: replaced(&self.body, key),
            key: None,
        }
    }
}

/// The bytes with each `{{key}}` replaced.
fn replaced(bytes: &[u8], key: &str) -> Vec<u8> {
    let mark = KEY_MARK.as_bytes();
    let mut replaced = Vec::with_capacity(bytes.len());
    let mut rest = bytes;
    while !rest.is_empty() {
        if let Some(after) = rest.strip_prefix(mark) {
            replaced.extend_from_slice(key.as_bytes());
            rest = after;
        } else {
            replaced.push(rest[0]);
            rest = &rest[1..];
        }
    }
    replaced
}

/// The JSON body with this text at the pointer, or without that member.
fn with_member(body: &[u8], pointer: &str, text: Option<&str>) -> Result<Vec<u8>, String> {
    let not_json = || format!("the body is not JSON, so it has no member {pointer} for the key");
    let no_member = || format!("the body has no object for the member {pointer}");
    let mut document: Value = serde_json::from_slice(body).map_err(|_| not_json())?;
    let (parent, name) = pointer.rsplit_once('/').ok_or_else(no_member)?;
    let name = unescaped(name).into_owned();
    let object =
        document.pointer_mut(parent).and_then(Value::as_object_mut).ok_or_else(no_member)?;
    match text {
        Some(text) => drop(object.insert(name, Value::String(text.to_owned()))),
        None => drop(object.shift_remove(&name)),
    }
    serde_json::to_vec(&document).map_err(|_| not_json())
}

/// The URL with this parameter in its query, or without it.
fn with_parameter(url: &str, name: &str, text: Option<&str>) -> Result<String, String> {
    let mut url = Url::parse(url).map_err(|why| format!("URL: {why}"))?;
    let mut others = Vec::new();
    for (known, value) in url.query_pairs() {
        if known != name {
            others.push((known.into_owned(), value.into_owned()));
        }
    }
    url.set_query(None);
    if !others.is_empty() || text.is_some() {
        let mut query = url.query_pairs_mut();
        query.extend_pairs(&others);
        if let Some(text) = text {
            query.append_pair(name, text);
        }
    }
    Ok(url.into())
}
