//! The payment service itself, asked without idemctl: what `probe` finds there is the service's.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::thread;

use crate::stage::{PAYMENT, Stage};
use crate::support::at_once;
use crate::support::probe_service::{CONTRACTS, Variant};

/// An answer: the status, the head, and the body.
struct Answered {
    status: u16,
    head: String,
    body: String,
}

/// Sends a request on a connection of its own.
fn send(stage: &Stage, headers: &str, body: &str) -> Answered {
    let url = stage.service.url("/payments");
    let address = url.strip_prefix("http://").unwrap().strip_suffix("/payments").unwrap();
    let mut stream = TcpStream::connect(address).unwrap();
    let length = body.len();
    write!(
        stream,
        "POST /payments HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n{headers}\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let (head, body) = text.split_once("\r\n\r\n").unwrap();
    let status = head.split(' ').nth(1).unwrap().parse().unwrap();
    Answered { status, head: head.to_owned(), body: body.to_owned() }
}

fn pay(stage: &Stage, key: &str, body: &str) -> Answered {
    send(stage, &format!("Idempotency-Key: {key}\r\n"), body)
}

#[test]
fn a_correct_service_keeps_its_promises() {
    for contract in &CONTRACTS {
        let stage = Stage::new(contract.schema, None);
        let answers = at_once(0..10, |_| pay(&stage, "k1", PAYMENT));
        let paid: Vec<_> = answers.iter().filter(|answer| answer.status == 201).collect();
        assert_eq!((paid.len(), stage.service.effects()), (1, 1), "{}", contract.schema);
        let is_conflict = |answer: &&Answered| answer.head.contains("Retry-After: 1");
        assert_eq!(answers.iter().filter(is_conflict).count(), 9, "{}", contract.schema);

        let replay = pay(&stage, "\"k1\"", PAYMENT);
        assert_eq!((replay.status, &replay.body), (201, &paid[0].body), "{}", contract.schema);
        let location = format!("/payments/{}", &paid[0].body[7..43]);
        for answer in [paid[0], &replay] {
            assert!(answer.head.contains(&location), "{}: {}", contract.schema, answer.head);
        }

        let other = PAYMENT.replace("500", "501");
        let refused = [
            pay(&stage, "k1", &other),
            send(&stage, "Idempotency-Key: k1\r\nAuthorization: two\r\n", PAYMENT),
            send(&stage, "", PAYMENT),
            pay(&stage, "k2", "{}"),
            pay(&stage, "a b", PAYMENT),
        ];
        let statuses = refused.map(|answer| answer.status);
        assert_eq!(statuses, [422, 422, 400, 400, 400], "{}", contract.schema);
        assert_eq!(pay(&stage, "k2", &other).status, 201, "{}", contract.schema);
        assert_eq!(stage.service.effects(), 2, "{}", contract.schema);
    }
}

#[test]
fn a_service_without_a_lock_pays_twice() {
    let stage = Stage::new("express", Some(Variant::NoLock));
    thread::scope(|scope| {
        for _ in 0..2 {
            scope.spawn(|| assert_eq!(pay(&stage, "k1", PAYMENT).status, 201));
        }
    });
    assert_eq!(stage.service.effects(), 2);
}
