//! A service behind TLS, and which certificates are accepted.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::stage::{PAYMENT, Stage};
use crate::support::Home;
use crate::support::certificates::Authority;

/// Passes connections with TLS on to this URL's service. Returns the URL with TLS.
fn terminate_tls(url: &str, authority: &Authority) -> String {
    terminate_tls_after(url, authority, |_| true, &Arc::default())
}

/// The same, if `admits` says so of a connection with this number. `whole` gets the time at which each
/// request was whole.
fn terminate_tls_after(
    url: &str,
    authority: &Authority,
    admits: fn(usize) -> bool,
    whole: &Arc<Mutex<Vec<Instant>>>,
) -> String {
    let whole = Arc::clone(whole);
    let pair = authority.sign("service", &["localhost", "127.0.0.1"]);
    let cert = CertificateDer::from_pem_file(&pair.cert).unwrap();
    let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![cert], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let Ok(stream) = stream else { return };
            let (config, service) = (Arc::clone(&config), service.clone());
            let whole = Arc::clone(&whole);
            thread::spawn(move || {
                if admits(number) {
                    pass_on(stream, config, &service, &whole);
                }
            });
        }
    });
    format!("https://127.0.0.1:{port}/payments")
}

/// Passes on one request and its answer.
fn pass_on(
    stream: TcpStream,
    config: Arc<ServerConfig>,
    service: &str,
    whole: &Mutex<Vec<Instant>>,
) -> Option<()> {
    let mut client = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
    let mut to = TcpStream::connect(service).ok()?;
    let mut request = Vec::new();
    while !is_whole(&request) {
        let mut part = [0; 4096];
        let count = client.read(&mut part).ok().filter(|count| *count > 0)?;
        request.extend(&part[..count]);
    }
    whole.lock().unwrap().push(Instant::now());
    let text = String::from_utf8_lossy(&request).into_owned();
    let text = text.replacen("\r\n", "\r\nConnection: close\r\n", 1);
    to.write_all(text.as_bytes()).ok()?;
    let mut answer = Vec::new();
    to.read_to_end(&mut answer).ok()?;
    client.write_all(&answer).ok()?;
    client.conn.send_close_notify();
    client.flush().ok()
}

/// True if the head and the body of a request were read.
fn is_whole(request: &[u8]) -> bool {
    let text = String::from_utf8_lossy(request).to_ascii_lowercase();
    let Some((head, body)) = text.split_once("\r\n\r\n") else { return false };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
    body.len() >= length.map_or(0, |length| length.parse().unwrap())
}

#[test]
fn a_certificate_is_verified_unless_told_otherwise() {
    let stage = Stage::new("express", None);
    let home = Home::with("");
    let authority = Authority::new(&home.path().join("ca"));
    let url = terminate_tls(&stage.service.url("/payments"), &authority);
    let ca = authority.ca();
    let words = ["probe", &url, "-d", PAYMENT, "--only", "concurrent-answers", "--rounds", "1"];
    home.run(&words).exits(5).says("TLS: ");
    assert_eq!(stage.service.effects(), 0);
    for trust in [&["--http-cacert", &ca][..], &["--http-insecure"]] {
        home.run(&[&words[..], trust].concat()).exits(0).shows("pass");
    }
    let dry = [&words[..], &["--dry-run", "--http-cacert", &ca]].concat();
    home.run(&dry).exits(0).shows(format!("curl -i --cacert '{ca}' -X POST '{url}'"));
    let dry = [&words[..], &["--dry-run", "--http-insecure"]].concat();
    home.run(&dry).exits(0).shows("curl -i -k -X POST");
}

/// How many connections come before those of the check, and which one is the last of the check.
const FIRST: usize = 5;
const LAST: usize = FIRST + 4;

/// How long the last connection takes.
const SLOW: Duration = Duration::from_millis(700);

/// Probes with five simultaneous requests. Returns when each request was whole.
fn sent_together(admits: fn(usize) -> bool) -> Vec<Instant> {
    let stage = Stage::new("express", None);
    let home = Home::with("");
    let authority = Authority::new(&home.path().join("ca"));
    let whole = Arc::default();
    let url = terminate_tls_after(&stage.service.url("/payments"), &authority, admits, &whole);
    let words = ["--only", "concurrent-answers", "--rounds", "1", "--concurrency", "5"];
    let limits = ["--http-insecure", "--request-timeout", "2s"];
    let run = home.run(&[&["probe", &url, "-d", PAYMENT][..], &words, &limits].concat());
    assert!(run.code == 0 || run.code == 3, "{}", run.all());
    let times = whole.lock().unwrap().clone();
    assert!(times.len() > FIRST, "{}", run.all());
    times
}

/// Rule: no request is sent to its end before all connections are ready.
/// Revert: without the gate, four requests are whole while the fifth one still connects.
#[test]
fn simultaneous_requests_wait_for_the_slowest_connection() {
    let times = sent_together(|number| {
        if number == LAST {
            thread::sleep(SLOW);
        }
        true
    });
    assert!(times[FIRST] - times[FIRST - 1] >= SLOW, "{times:?}");
}

/// Rule: a connection that fails does not hold back the others.
/// Revert: if the gate waits for it, the others are not sent at all.
#[test]
fn a_connection_that_fails_holds_back_no_other() {
    let times = sent_together(|number| number != LAST);
    assert!(times.len() >= LAST, "{times:?}");
}
