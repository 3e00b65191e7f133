//! Operations that could have been: idempotency keys, workers, responses.

use fastrand::Rng;

use crate::domain::record::Response;

const CUSTOMERS: [&str; 6] = ["acme", "globex", "initech", "umbrella", "hooli", "müller & söhne"];
const CURRENCIES: [&str; 4] = ["EUR", "USD", "GBP", "CHF"];
const TOPICS: [&str; 3] = ["orders.created", "payments.captured", "invoices.sent"];

/// An idempotency key as clients make them; `number` keeps it apart from all others.
pub(super) fn key(rng: &mut Rng, number: u64, is_message: bool) -> String {
    if is_message {
        return format!("{}-{}-{}", TOPICS[rng.usize(..TOPICS.len())], rng.u8(..12), 48_000 + number);
    }
    match rng.u8(..3) {
        0 => format!("order-{}", 10_000 + number),
        1 => format!("pay_{:08x}{:06x}", rng.u32(..), number),
        _ => uuid(rng),
    }
}

pub(super) fn uuid(rng: &mut Rng) -> String {
    let mut bytes = [0; 16];
    rng.fill(&mut bytes);
    uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
}

/// The response of an operation: a JSON body, and headers with a credential now and then.
pub(super) fn response(rng: &mut Rng, key: &str, number: u64) -> Response {
    let status = [200, 201, 201, 202][rng.usize(..4)];
    let mut headers = vec![("Content-Type".to_owned(), "application/json".to_owned())];
    match number % 5 {
        0 => headers.push(("Location".to_owned(), format!("/v1/orders/{}", 10_000 + number))),
        1 => headers.push(("Set-Cookie".to_owned(), format!("session={:016x}; HttpOnly; Secure", rng.u64(..)))),
        2 => headers.push(("Authorization".to_owned(), format!("Bearer {:016x}{:016x}", rng.u64(..), rng.u64(..)))),
        3 => headers.push(("X-Request-Id".to_owned(), uuid(rng))),
        _ => {}
    }
    let body = serde_json::json!({
        "id": key,
        "customer": CUSTOMERS[rng.usize(..CUSTOMERS.len())],
        "amount": rng.u32(100..250_000),
        "currency": CURRENCIES[rng.usize(..CURRENCIES.len())],
        "status": if status == 202 { "accepted" } else { "done" },
    });
    Response { status: Some(status), headers, body: body.to_string().into_bytes(), whole: true }
}
