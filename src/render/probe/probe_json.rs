//! Checks as JSON.

use serde_json::{Value, json};

use super::curl::{commands_of_check, url};
use super::shown_answer::{record_of, shown_body, shown_header, spread};
use crate::domain::probe::{
    CheckedService, ProbeDifference, ProbeExchange, ProbeTask, StoredRecord, StoredTime,
};

/// A check with what it found, as JSON.
pub(crate) fn check_json(task: &ProbeTask, checked: &CheckedService) -> Value {
    let clause = checked.clause.as_ref();
    let mut exchanges = Vec::new();
    for exchange in checked.shown() {
        exchanges.push(exchange_json(exchange));
    }
    let curl = match checked.is_failed() {
        true => commands_of_check(task, checked.check),
        false => Vec::new(),
    };
    json!({
        "id": checked.check.id,
        "group": checked.check.group.as_str(),
        "title": checked.check.title,
        "verdict": checked.judgement.verdict.as_str(),
        "judged": clause.is_some(),
        "holds": checked.holds,
        "clause": clause.map(|clause| &clause.clause),
        "rule": clause.map(|clause| &clause.rule),
        "message": checked.judgement.message,
        "spread_us": spread(&checked.results),
        "exchanges": exchanges,
        "record": record_of(checked).map(record_json),
        "stored": checked.results.iter().find_map(|result| result.stored).map(stored_json),
        "curl": curl,
    })
}

/// A difference from the accepted results, as JSON.
pub(crate) fn difference(difference: &ProbeDifference) -> Value {
    json!({ "id": difference.id, "new": difference.is_new })
}

fn exchange_json(exchange: &ProbeExchange) -> Value {
    let request = &exchange.request;
    let answer = exchange.answer();
    json!({
        "method": request.method,
        "url": url(request),
        "key": request.key,
        "sent_us": exchange.sent_us,
        "answered_us": exchange.answered_us,
        "status": answer.map(|answer| answer.status),
        "headers": answer.map(|answer| headers(exchange, &answer.headers)),
        "body": answer.map(|_| shown_body(exchange)),
        "error": if answer.is_some() { None } else { Some(exchange.in_words()) },
    })
}

fn headers(exchange: &ProbeExchange, headers: &[(String, Vec<u8>)]) -> Vec<Value> {
    let mut shown = Vec::new();
    for (name, value) in headers {
        shown.push(json!([name, shown_header(exchange, name, value)]));
    }
    shown
}

fn stored_json(stored: StoredTime) -> Value {
    json!({ "after_us": stored.after_us, "before_us": stored.before_us })
}

fn record_json(record: &StoredRecord) -> Value {
    let mut redis_keys = Vec::new();
    for key in &record.redis_keys {
        redis_keys.push(crate::render::escape::key(key));
    }
    json!({
        "schema": record.schema,
        "state": record.state,
        "ttl_ms": record.ttl_ms,
        "never_expires": record.never_expires,
        "owner": record.owner,
        "status": record.status,
        "redis_keys": redis_keys,
    })
}
