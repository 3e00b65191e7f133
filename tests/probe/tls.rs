//! A service behind TLS, and which certificates are accepted.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::thread;

use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};

use crate::stage::{PAYMENT, Stage};
use crate::support::Home;
use crate::support::certificates::Authority;

/// Passes connections with TLS on to this URL's service. Returns the URL with TLS.
fn terminate_tls(url: &str, authority: &Authority) -> String {
    let pair = authority.sign("service", &["localhost", "127.0.0.1"]);
    let cert = CertificateDer::from_pem_file(&pair.cert).unwrap();
    let key = PrivateKeyDer::from_pem_file(&pair.key).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let config = Arc::new(config.with_single_cert(vec![cert], key).unwrap());
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let service = url.trim_start_matches("http://").split('/').next().unwrap().to_owned();
    thread::spawn(move || {
        for stream in listener.incoming() {
            let Ok(stream) = stream else { return };
            let (config, service) = (Arc::clone(&config), service.clone());
            thread::spawn(move || pass_on(stream, config, &service));
        }
    });
    format!("https://127.0.0.1:{port}/payments")
}

/// Passes on one request and its answer.
fn pass_on(stream: TcpStream, config: Arc<ServerConfig>, service: &str) -> Option<()> {
    let mut client = StreamOwned::new(ServerConnection::new(config).ok()?, stream);
    let mut to = TcpStream::connect(service).ok()?;
    let mut request = Vec::new();
    while !is_whole(&request) {
        let mut part = [0; 4096];
        let count = client.read(&mut part).ok().filter(|count| *count > 0)?;
        request.extend(&part[..count]);
    }
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
