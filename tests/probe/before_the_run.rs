//! Options that cannot work end a run before its first request, which may be a payment.

use crate::outside::{FixedService, created};
use crate::stage::PAYMENT;
use crate::support::{Home, Run, Server};

fn probe(words: &[&str]) -> Run {
    Home::with("").run(&[&["probe"], words].concat())
}

#[test]
fn effects_without_a_number_send_nothing() {
    let service = FixedService::start(|_| created("{}"));
    let missing = FixedService::start(|_| {
        "HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 0\r\n\r\n".to_owned()
    });
    let counting = FixedService::start(|_| created(r#"{"count":7}"#));
    for (effects, message) in [
        (&[missing.url.as_str()][..], "--effects answered 404"),
        (&[counting.url.as_str(), "--effects-at", "/total"], "--effects"),
        (&["http://127.0.0.1:1/"], "--effects"),
    ] {
        let words = [&[&service.url, "-d", PAYMENT, "--effects"], effects].concat();
        probe(&words).exits(2).says(message).says("nothing was sent");
    }
    assert_eq!(service.connections(), 0);
}

#[test]
fn a_report_that_cannot_be_written_sends_nothing() {
    let service = FixedService::start(|_| created("{}"));
    let words = [&service.url, "-d", PAYMENT, "--junit", "/none/report.xml"];
    probe(&words).exits(2).says("--junit: cannot write /none/report.xml");
    assert_eq!(service.connections(), 0);
}

/// The check leaves an earlier report as it is.
#[test]
fn a_report_is_kept_if_nothing_was_sent() {
    let home = Home::with("");
    let file = home.path().join("report.xml");
    std::fs::write(&file, "earlier").unwrap();
    let words = ["probe", "http://127.0.0.1:1/", "-d", PAYMENT, "--effects", "false", "--junit"];
    home.run(&[&words[..], &[file.to_str().unwrap()]].concat()).exits(2);
    assert_eq!(std::fs::read_to_string(&file).unwrap(), "earlier");
    assert_eq!(
        std::fs::read_dir(home.path())
            .unwrap()
            .filter(|entry| {
                entry.as_ref().unwrap().file_name().to_string_lossy().starts_with(".tmp")
            })
            .count(),
        0
    );
}

#[test]
fn a_server_that_is_not_redis_gets_no_request() {
    let service = FixedService::start(|_| created("{}"));
    let other = FixedService::start(|_| created("{}"));
    let port = other.url.rsplit(':').next().unwrap().strip_suffix("/payments").unwrap();
    let words = [&service.url, "-d", PAYMENT, "--schema", "express", "-p", port, "--timeout", "2s"];
    let run = probe(&words);
    // A server may answer what it does not understand, or wait for more of it.
    assert!(run.code != 0 && run.stderr.contains(&format!("127.0.0.1:{port}")), "{}", run.all());
    assert_eq!(service.connections(), 0);
}

#[test]
fn a_first_answer_names_the_option_that_helps() {
    for (status, hint) in [
        ("404 Not Found", "--dry-run prints the request"),
        ("401 Unauthorized", "its credentials"),
        ("422 Unprocessable Content", "--uuid-keys"),
    ] {
        let service = FixedService::start(move |_| {
            format!("HTTP/1.1 {status}\r\nConnection: close\r\nContent-Length: 0\r\n\r\n")
        });
        probe(&[&service.url, "-d", PAYMENT]).exits(3).says(hint);
    }
}

/// Rule: who names a check wants its answer, also if the profile only reports it.
#[test]
fn a_named_check_without_a_result_makes_exit_3() {
    let server = Server::start();
    let service = FixedService::start(|number| created(&format!("{{\"id\":\"pay-{number}\"}}")));
    let words = ["probe", &service.url, "-d", PAYMENT, "--schema", "express"];
    let only = ["--only", "record-lock,record-stored"];
    let run = server.idemctl(&[&words[..], &only].concat()).exits(3);
    run.says("0 failed, 2 inconclusive, 0 reported, 0 not applicable");
}
