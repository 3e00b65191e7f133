//! What of an answer and of a record is shown, without credentials.

use crate::domain::probe::{
    CheckedService, ProbeBody, ProbeExchange, ProbeStepResult, StoredRecord, is_masked_header,
};
use crate::render::escape;

/// What is shown in place of a credential.
const MASKED: &str = "***";

/// The most bytes of a body that are shown.
const MAX_BODY: usize = 160;

/// The beginning of an answer's body, escaped. If the request has a credential, only the length and
/// the hash.
pub(crate) fn shown_body(exchange: &ProbeExchange) -> String {
    let Some(answer) = exchange.answer() else { return String::new() };
    let body = &answer.body;
    if exchange.request.has_credentials() {
        return body.in_words();
    }
    let shown = escape::text(&body.beginning[..body.beginning.len().min(MAX_BODY)]);
    if body.length > MAX_BODY { format!("{shown}… ({} bytes)", body.length) } else { shown }
}

/// A value of an answer's header. If the request has a credential, only its length and hash.
pub(super) fn shown_header(exchange: &ProbeExchange, name: &str, value: &[u8]) -> String {
    if is_masked_header(name) {
        MASKED.to_owned()
    } else if exchange.request.has_credentials() {
        ProbeBody::new(value).in_words()
    } else {
        String::from_utf8_lossy(value).into_owned()
    }
}

/// The widest spread of the simultaneous requests of a check, in microseconds.
pub(super) fn spread(results: &[ProbeStepResult]) -> Option<u64> {
    results.iter().filter_map(|result| result.spread_us).max()
}

/// The record that was read after the step that shows what a check found.
pub(super) fn record_of(checked: &CheckedService) -> Option<&StoredRecord> {
    let (step, _) = checked.judgement.shown.last()?;
    checked.results.get(*step)?.record.as_ref()?.as_ref().ok()
}
