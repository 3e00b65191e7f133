//! What a worker works on, and what it has of it so far.

use super::story::Operation;
use crate::domain::record::Response;
use crate::domain::schema::Schema;
use crate::domain::step::Request;

pub(crate) struct Job {
    owner: String,
    pub(super) operation: Operation,
    /// As it is sent, in seconds.
    pub(super) lock_ttl: String,
    response: Response,
    error: Option<String>,
}

impl Job {
    pub(crate) fn new(owner: &str, operation: Operation, lock_ttl: String) -> Self {
        Self { owner: owner.to_owned(), operation, lock_ttl, response: Response::default(), error: None }
    }

    /// The operation has its effect.
    pub(crate) fn makes(&mut self, by: &str) {
        self.answers(201, format!(r#"{{"made":"{}","by":"{by}"}}"#, self.operation.what));
    }

    /// What is asked for never comes about.
    pub(super) fn makes_nothing(&mut self, by: &str) {
        self.answers(200, format!(r#"{{"made":null,"by":"{by}"}}"#));
    }

    /// The handler fails without effect.
    pub(crate) fn fails(&mut self) {
        self.error = Some("provider unavailable".to_owned());
        self.answers(500, String::new());
    }

    fn answers(&mut self, status: i64, body: String) {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        self.response = Response { status: Some(status), headers, body: body.into_bytes(), whole: true };
    }

    pub(crate) fn request<'a>(&'a self, schema: &'a Schema, key: &'a [u8], now_ms: u64) -> Request<'a> {
        Request {
            fingerprint: self.operation.fingerprint,
            error: self.error.as_deref(),
            now_ms,
            lock_ttl: Some(&self.lock_ttl),
            ..Request::new(schema, key, &self.owner, &self.response)
        }
    }
}
