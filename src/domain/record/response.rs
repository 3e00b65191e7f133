//! A stored response, as a replay sends it.

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Response {
    /// The status code, if the schema stores one.
    pub status: Option<i64>,
    /// Header names and values, in stored order; a header with several values occurs several times.
    pub headers: Vec<(String, String)>,
    /// The body's bytes, with base64 decoded.
    pub body: Vec<u8>,
    /// False if the value was read in part, so that the body may be longer.
    pub whole: bool,
}

/// The header that gives the type of a body.
pub(crate) const CONTENT_TYPE: &str = "content-type";

impl Response {
    pub(crate) fn content_type(&self) -> Option<&str> {
        for (name, kind) in &self.headers {
            // HTTP does not distinguish upper and lower case in the names of headers.
            if name.eq_ignore_ascii_case(CONTENT_TYPE) {
                return Some(kind);
            }
        }
        None
    }

    /// True unless a content type says that the body is not JSON.
    pub(crate) fn is_json(&self) -> bool {
        match self.content_type() {
            Some(kind) => kind.to_ascii_lowercase().contains("json"),
            None => true,
        }
    }
}

/// Names of headers that contain credentials. Their values stay hidden by default.
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
