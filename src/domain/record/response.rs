//! A stored response: what a replay answers.

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The status code, where the schema keeps one.
    pub status: Option<i64>,
    /// Header names and values, in stored order; a header with several values occurs several times.
    pub headers: Vec<(String, String)>,
    /// The body's bytes, with base64 undone.
    pub body: Vec<u8>,
    /// False when the value was read in part, so that the body may be longer than what is here.
    pub whole: bool,
}

/// The header that says what a body is.
pub(crate) const CONTENT_TYPE: &str = "content-type";

impl Response {
    pub(crate) fn content_type(&self) -> Option<&str> {
        let header = self.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case(CONTENT_TYPE));
        header.map(|(_, kind)| kind.as_str())
    }

    /// True unless a content type says that the body is no JSON.
    pub(crate) fn is_json(&self) -> bool {
        self.content_type().is_none_or(|kind| kind.to_ascii_lowercase().contains("json"))
    }
}

/// Header names whose values are credentials and stay hidden unless asked for.
pub(crate) const SECRET_HEADERS: &[&str] = &[
    "authorization",
    "proxy-authorization",
    "cookie",
    "set-cookie",
    "set-cookie2",
    "x-api-key",
    "api-key",
    "x-auth-token",
    "x-amz-security-token",
    "x-csrf-token",
    "x-xsrf-token",
    "authentication-info",
    "www-authenticate",
];

pub(crate) fn is_secret_header(name: &str) -> bool {
    SECRET_HEADERS.iter().any(|secret| name.eq_ignore_ascii_case(secret))
}
