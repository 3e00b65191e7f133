//! What a worker's client requests, what its handler responds, and why playing may end early.

use crate::domain::record::Response;
use crate::domain::schema::{PayloadUse, Schema};
use crate::domain::step::StepInputs;
use crate::store::StoreError;

/// The result of playing a part of a schedule.
pub(crate) type Played<T = ()> = Result<T, Aborted>;

/// Why playing a schedule ended early.
#[derive(Debug)]
pub(crate) enum Aborted {
    /// The schedule cannot be played with this schema, for this reason.
    NotApplicable(String),
    /// The machine was too slow: a lock may have expired too early.
    Late,
    Store(StoreError),
}

impl From<StoreError> for Aborted {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

/// The operation that a client requests. Requests with the same payload ask for the same operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ClientRequest {
    pub(super) operation: &'static str,
    /// The hash of the payload.
    pub(crate) fingerprint: &'static str,
}

/// The request of most clients.
pub(crate) const PAYMENT: ClientRequest =
    ClientRequest { operation: "payment of 10", fingerprint: "sha256-of-10" };

/// A request for another operation, from a client that uses the same key.
pub(crate) const OTHER_PAYMENT: ClientRequest =
    ClientRequest { operation: "payment of 99", fingerprint: "sha256-of-99" };

/// A request for an operation that no worker requests. `has_other_payload` is true if a worker
/// requests [`OTHER_PAYMENT`].
pub(crate) fn unused_payment(has_other_payload: bool) -> ClientRequest {
    if has_other_payload {
        return ClientRequest { operation: "payment of 7", fingerprint: "sha256-of-7" };
    }
    OTHER_PAYMENT
}

/// The owner ID of a worker of an exploration. IDs differ only in the middle, so that a comparison of
/// their beginnings or ends is found, and are always the same, so that equal states have equal bytes.
pub(crate) fn owner_of(worker: u8) -> String {
    format!("00000000-0000-4000-8{worker:03}-000000000000")
}

/// The data of a worker's request, and its response so far.
pub(crate) struct Job {
    owner: String,
    pub(super) client_request: ClientRequest,
    /// The text that is sent, in seconds.
    pub(super) lock_ttl: String,
    pub(super) response: Response,
    error: Option<String>,
}

impl Job {
    /// A job without a response. `lock_ttl` is the text that is sent, in seconds.
    pub(crate) fn new(owner: &str, client_request: ClientRequest, lock_ttl: String) -> Self {
        let response = Response::default();
        Self { owner: owner.to_owned(), client_request, lock_ttl, response, error: None }
    }

    /// The handler succeeds, and the operation has its effect.
    pub(crate) fn succeed(&mut self, schema: &Schema, by: &str) {
        let made = format!("\"{}\"", self.client_request.operation);
        self.respond_with(201, schema, &made, by);
    }

    /// The handler succeeds, but the operation has no effect.
    pub(super) fn succeed_without_effect(&mut self, schema: &Schema, by: &str) {
        self.respond_with(200, schema, "null", by);
    }

    fn respond_with(&mut self, status: i64, schema: &Schema, made: &str, by: &str) {
        let body = match schema.service.sample_body_of(by) {
            Some(sample) => sample,
            None => format!(r#"{{"made":{made},"by":"{by}"}}"#),
        };
        self.respond(status, body);
    }

    /// The handler fails without effect.
    pub(crate) fn fail(&mut self) {
        self.error = Some("provider unavailable".to_owned());
        self.respond(500, String::new());
    }

    fn respond(&mut self, status: i64, body: String) {
        let headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
        self.response =
            Response { status: Some(status), headers, body: body.into_bytes(), whole: true };
    }

    /// The job as a request of this schema's service. `now_ms` is in milliseconds since the epoch.
    pub(crate) fn request<'a>(
        &'a self,
        schema: &'a Schema,
        key: &'a [u8],
        now_ms: u64,
    ) -> StepInputs<'a> {
        // The fingerprint may be that of something that another payload does not change.
        let is_ignored = schema.service.payload == Some(PayloadUse::Ignored);
        let fingerprint = if is_ignored { PAYMENT } else { self.client_request }.fingerprint;
        StepInputs {
            fingerprint,
            error: self.error.as_deref(),
            now_ms,
            lock_ttl: Some(&self.lock_ttl),
            ..StepInputs::new(schema, key, &self.owner, &self.response)
        }
    }
}
