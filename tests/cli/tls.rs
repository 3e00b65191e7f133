//! TLS, with real servers and certificates made here: every command, both versions, clients that show a certificate, and
//! what is said when something is wrong. Where the engine under test is built without TLS the tests say so and pass.

use std::fs;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::support::certificates::{Authority, Pair};
use crate::support::{LOCK, PENDING, Run, Runs, Server, fault, free_port, idemctl};

const DONE: &str = r#"{"status":"COMPLETED","statusCode":201,"headers":{},"body":""}"#;

/// The names of the server's certificate, where nothing else is said.
const NAMES: &[&str] = &["localhost", "127.0.0.1", "::1"];

/// A server that speaks TLS, beside its unix socket.
struct Secure {
    server: Server,
    authority: Authority,
    port: u16,
    _folder: tempfile::TempDir,
}

impl Secure {
    /// One with a good certificate.
    fn start(config: &[&str]) -> Option<Self> {
        Self::start_as(config, |authority| authority.sign("server", NAMES))
    }

    fn start_as(config: &[&str], certificate: impl Fn(&Authority) -> Pair) -> Option<Self> {
        let folder = tempfile::tempdir().unwrap();
        let authority = Authority::new(folder.path());
        let Pair { cert, key } = certificate(&authority);
        for _ in 0..3 {
            let port = free_port();
            let ca = authority.ca();
            let own = format!(
                "tls-port {port}\ntls-cert-file {cert}\ntls-key-file {key}\ntls-ca-cert-file {ca}"
            );
            let asks_clients = config.iter().any(|line| line.starts_with("tls-auth-clients"));
            let more = if asks_clients { &[][..] } else { &["tls-auth-clients no"] };
            if let Some(server) = Server::try_start_with(&[&[own.as_str()], more, config].concat())
            {
                return Some(Self { server, authority, port, _folder: folder });
            }
        }
        eprintln!("skipped: the engine under test speaks no TLS");
        None
    }

    /// The binary on the TLS port, trusting the issuer.
    fn run(&self, words: &[&str]) -> Run {
        let (port, ca) = (self.port.to_string(), self.authority.ca());
        self.plain(&[&["-p", &port, "--tls", "--cacert", &ca][..], words].concat())
    }

    /// The binary, with nothing said of the server.
    fn plain(&self, words: &[&str]) -> Run {
        self.server.unnamed(words)
    }

    fn set(&self, key: &str, value: &str) {
        self.server.set(key, value, 900_000);
    }
}

#[test]
fn every_command_speaks_tls_1_2_and_1_3() {
    for protocol in ["tls-protocols TLSv1.2", "tls-protocols TLSv1.3"] {
        let Some(secure) = Secure::start(&[protocol]) else { return };
        secure.set("idem:web-1", LOCK);
        let shown = secure.run(&["inspect", "web-1", "-o", "json"]).exits(0);
        assert_eq!(shown.json()["records"][0]["state"], "in-progress", "{}", shown.all());
        secure.run(&["force-unlock", "web-1", "--yes"]).exits(0);
        let step = |command, more: &[&str]| {
            secure
                .run(&[&[command, "web-2", "--schema", "express", "--yes"][..], more].concat())
                .exits(0);
        };
        step("begin", &[]);
        step("complete", &["--status", "201", "--body", "ok"]);
        secure.set("idem:web-3", LOCK);
        secure.run(&["release", "web-3", "--schema", "express", "--yes"]).exits(0);
        secure.server.put("idem:web-4", LOCK);
        secure.run(&["sweep", "--orphaned", "--grace", "0s", "--yes"]).exits(0);
        assert!(secure.server.get("idem:web-4").is_none());
        let backup = secure.server.folder().join("backup.jsonl").display().to_string();
        secure.run(&["purge", "--all", "--yes", "--backup", &backup]).exits(0);
        assert!(secure.server.get("idem:web-2").is_none());
        secure.run(&["restore", &backup, "--yes"]).exits(0);
        assert!(secure.server.get("idem:web-2").is_some());
        let raced = secure
            .run(&["race", "--schema", "express", "--strategy", "schema", "--rounds", "3"])
            .exits(0);
        raced.shows("no violation in ");
        secure.run(&["simulate", "first-then-retry", "--schema", "express"]).exits(0);
    }
}

#[test]
fn many_records_stream_through_tls() {
    let Some(secure) = Secure::start(&[]) else { return };
    let body = DONE.replace(r#""body":"""#, &format!(r#""body":"{}""#, "x".repeat(700)));
    secure.server.fill((0..20_000).map(|index| (format!("idem:web-{index}"), &body)), 20_000_000);
    assert_eq!(secure.run(&["list", "-o", "jsonl"]).exits(0).json_lines().len(), 20_000);
    secure.run(&["purge", "--all", "--yes", "--no-backup"]).exits(0).says("20000 of 20000");
}

#[test]
fn a_url_and_a_context_say_tls_as_flags_do() {
    let Some(secure) = Secure::start(&["requirepass s3cret"]) else { return };
    let (port, ca) = (secure.port, secure.authority.ca());
    let url = format!("rediss://:s3cret@127.0.0.1:{port}/2");
    let by_url = secure.plain(&["-u", &url, "--cacert", &ca, "inspect", "k"]).exits(1);
    assert!(
        by_url.stderr.contains("process list") && !by_url.stderr.contains("s3cret"),
        "{}",
        by_url.all()
    );
    secure
        .plain(&[
            "-u",
            &format!("redis://:s3cret@localhost:{port}"),
            "--tls",
            "--cacert",
            &ca,
            "list",
        ])
        .exits(0);
    let file = secure.server.folder().join("config.toml");
    // Beside the file, and by the short form of the home: paths are the file's.
    fs::copy(&ca, secure.server.folder().join("ca.crt")).unwrap();
    for cacert in ["ca.crt", "~/ca.crt"] {
        let text = format!(
            "[contexts.prod]\nurl = \"redis://127.0.0.1:{port}\"\npassword = \"s3cret\"\ntls = {{ cacert = \"{cacert}\" }}\n"
        );
        fs::write(&file, text).unwrap();
        secure
            .plain(&["--config", &file.display().to_string(), "--context", "prod", "list"])
            .exits(0);
    }
    secure
        .plain(&["-u", &format!("{url}#insecure"), "inspect", "k"])
        .exits(1)
        .says("certificate is not checked");
}

#[test]
fn a_client_shows_its_certificate_where_one_is_wanted() {
    for (clients, bare) in [("yes", 4), ("optional", 0)] {
        for protocol in ["tls-protocols TLSv1.2", "tls-protocols TLSv1.3"] {
            let Some(secure) = Secure::start(&[&format!("tls-auth-clients {clients}"), protocol])
            else {
                return;
            };
            let with = |pair: &Pair, words: &[&str]| {
                secure.run(&[&["--cert", &pair.cert, "--key", &pair.key][..], words].concat())
            };
            let own = secure.authority.sign("client", &["ops"]);
            let other = tempfile::tempdir().unwrap();
            let unknown = Authority::new(other.path()).sign("client", &["ops"]);
            secure.set("idem:web-1", LOCK);
            for words in [
                &["list"][..],
                &["inspect", "web-1"],
                &[
                    "race",
                    "--rounds",
                    "2",
                    "--concurrency",
                    "3",
                    "--schema",
                    "express",
                    "--strategy",
                    "schema",
                ],
                &["release", "web-1", "--schema", "express", "--yes", "--dry-run"],
            ] {
                with(&own, words).exits(0);
                let run = secure.run(words).exits(bare);
                assert_eq!(
                    run.stderr.contains("requires a client certificate"),
                    bare == 4,
                    "{}",
                    run.all()
                );
                with(&unknown, words).exits(4).says("--cert FILE --key FILE");
            }
            let mixed = secure.run(&["--cert", &own.cert, "--key", &unknown.key, "list"]).exits(2);
            mixed.says("the key is not the certificate's");
        }
    }
}

#[test]
fn certificates_that_are_not_to_be_trusted_are_spoken_of_in_words() {
    let Some(secure) = Secure::start_as(&[], |authority| authority.sign_expired("server", NAMES))
    else {
        return;
    };
    let run = secure.run(&["list"]).exits(5);
    run.says("expired on 2021-02-03");
    let Some(secure) =
        Secure::start_as(&[], |authority| authority.sign("server", &["a.example", "10.0.0.1"]))
    else {
        return;
    };
    let run = secure.run(&["list"]).exits(5);
    run.says("is not for 127.0.0.1 but for a.example, 10.0.0.1");
    secure.run(&["--sni", "a.example", "list"]).exits(0);
    secure.run(&["--sni", "b.example", "list"]).exits(5);
    let Some(secure) = Secure::start_as(&[], |authority| authority.sign("server", &[])) else {
        return;
    };
    secure.run(&["list"]).exits(5).says("but for no name");
    let port = secure.port.to_string();
    secure.plain(&["-p", &port, "--tls", "list"]).exits(5).says("issuer").says("--cacert");
    for command in [&["list"][..], &["inspect", "k"], &["race", "--rounds", "1"]] {
        let run = secure.plain(&[&["-p", &port, "--tls", "--insecure"], command].concat());
        assert!(run.code < 2 && run.stderr.contains("certificate is not checked"), "{}", run.all());
    }
}

#[test]
fn tls_on_one_side_only_is_told() {
    let port = free_port();
    let Some(secure) = Secure::start(&[&format!("port {port}")]) else { return };
    let (plain, tls) = (port.to_string(), secure.port.to_string());
    for command in [
        &["list"][..],
        &["inspect", "k"],
        &["race", "--rounds", "1"],
        &["force-unlock", "k", "--yes"],
    ] {
        secure
            .plain(&[&["-p", &tls], command].concat())
            .exits(5)
            .says("accepts only TLS connections")
            .says("hint: pass --tls");
        let ca = secure.authority.ca();
        let began = Instant::now();
        let words = ["-p", &plain, "--tls", "--cacert", &ca, "--connect-timeout", "300ms"];
        secure
            .plain(&[&words, command].concat())
            .exits(5)
            .says("does not use TLS")
            .says("omit --tls");
        assert!(began.elapsed() < Duration::from_secs(60));
    }
}

#[test]
fn issuers_come_from_a_file_a_folder_or_the_system() {
    let Some(secure) = Secure::start(&[]) else { return };
    let (port, ca) = (secure.port.to_string(), secure.authority.ca());
    let with = |variable: &str, words: &[&str]| {
        idemctl(secure.server.folder())
            .env("SSL_CERT_FILE", variable)
            .args([&["-p", &port, "--tls"], words].concat())
            .arg("list")
            .run()
    };
    with("/nowhere", &["--cacert", &ca]).exits(0);
    with(&ca, &[]).exits(0);
    let bad = with("/nowhere", &[]);
    assert!(bad.code == 2 || bad.code == 5, "{}", bad.all());
    let folder = secure.server.folder().join("issuers");
    fs::create_dir(&folder).unwrap();
    let dir = folder.display().to_string();
    with("/nowhere", &["--cacertdir", &dir]).exits(2).says("holds no certificate");
    fs::copy(&ca, folder.join("ours.pem")).unwrap();
    fs::write(folder.join("README"), "not one").unwrap();
    with("/nowhere", &["--cacertdir", &dir]).exits(0);
}

#[test]
fn what_tls_cannot_be_made_of_is_a_usage_error() {
    let folder = tempfile::tempdir().unwrap();
    let Pair { cert, key } = Authority::new(folder.path()).sign("client", &["ops"]);
    let locked = folder.path().join("locked.key").display().to_string();
    fs::write(
        &locked,
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
    )
    .unwrap();
    fs::set_permissions(&locked, std::os::unix::fs::PermissionsExt::from_mode(0o600)).unwrap();
    // Somebody has to be there before TLS is spoken: its backlog is enough.
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    for (words, says) in [
        (&["--cacert", &cert][..], "--cacert is for TLS"),
        (&["--insecure"], "--insecure is for TLS"),
        (&["-s", "/s", "--tls"], "unix socket"),
        (&["--tls", "--cert", &cert], "--cert needs --key"),
        (&["--tls", "--key", &key], "--key needs --cert"),
        (&["-p", &port, "--tls", "--cacert", "/nowhere"], "/nowhere: No such file"),
        (&["-p", &port, "--tls", "--cacert", &key], "holds no certificate"),
        (
            &["-p", &port, "--tls", "--cacert", &cert, "--cert", &cert, "--key", &cert],
            "holds no private key",
        ),
        (
            &["-p", &port, "--tls", "--cacert", &cert, "--cert", &cert, "--key", &locked],
            "the key is encrypted",
        ),
        (
            &["-p", &port, "--tls", "--cacert", &cert, "--sni", "a b"],
            "neither a host name nor an IP address",
        ),
    ] {
        let run = idemctl(folder.path())
            .args(words)
            .args(["--connect-timeout", "300ms", "list"])
            .run()
            .exits(2);
        assert!(run.stderr.contains(says), "{words:?}: {}", run.all());
    }
    fs::set_permissions(&key, std::os::unix::fs::PermissionsExt::from_mode(0o644)).unwrap();
    idemctl(folder.path())
        .args(["-p", "1", "--tls", "--insecure", "--cert", &cert, "--key", &key, "list"])
        .run()
        .exits(5)
        .says("private key and can be read by others: chmod 600");
}

#[test]
fn a_step_whose_reply_tls_cannot_read_is_read_back_and_keeps_its_backup() {
    let Some(secure) = Secure::start(&[]) else { return };
    let ca = secure.authority.ca();
    let (mut made, mut not_made) = (0, 0);
    for which in 6..30 {
        secure.set("idempotency:stuck", PENDING);
        let port = fault::garbled(secure.port, which).to_string();
        let backup = format!("b{which}");
        let step = [
            "complete",
            "stuck",
            "--schema",
            "go-middleware",
            "--yes",
            "--status",
            "201",
            "--body",
            "paid",
        ];
        let at = ["-p", &port, "--tls", "--cacert", &ca, "--backup", &backup];
        let run = secure.plain(&[&step[..], &at].concat());
        let stored =
            secure.server.get("idempotency:stuck").unwrap().starts_with(br#"{"status":"COMPLETED"#);
        match run.code {
            0 | 3 | 7 => {
                made += 1;
                assert!(stored, "{which}: {}", run.all());
                assert!(secure.server.folder().join(&backup).exists(), "{which}: {}", run.all());
            }
            _ => {
                not_made += 1;
                assert!(!stored, "{which}: {}", run.all());
            }
        }
    }
    assert!(made > 0 && not_made > 0, "{made}, {not_made}");
}

#[test]
fn ipv6_and_names_are_checked_against_the_certificate() {
    if TcpListener::bind("[::1]:0").is_err() {
        eprintln!("skipped: no IPv6 here");
        return;
    }
    let Some(secure) = Secure::start(&["bind 127.0.0.1 ::1"]) else { return };
    let (port, ca) = (secure.port.to_string(), secure.authority.ca());
    secure.plain(&["-h", "::1", "-p", &port, "--tls", "--cacert", &ca, "list"]).exits(0);
    secure.plain(&["-u", &format!("rediss://[::1]:{port}"), "--cacert", &ca, "list"]).exits(0);
    secure.plain(&["-h", "localhost", "-p", &port, "--tls", "--cacert", &ca, "list"]).exits(0);
}

/// Rule: a server that is reached elsewhere has to be the one that was named.
#[test]
fn a_certificate_is_for_the_announced_name_and_not_for_the_place_where_the_server_is_reached() {
    for (names, code) in [(&["cache.internal"][..], 0), (NAMES, 5)] {
        let Some(secure) = Secure::start_as(&[], |authority| authority.sign("server", names))
        else {
            return;
        };
        secure.server.configure(&format!(
            "[contexts.far]\nurl = \"rediss://cache.internal:6390\"\ntls = {{ cacert = {:?} }}\n\
             address_map = {{ \"cache.internal:6390\" = \"127.0.0.1:{}\" }}\n",
            secure.authority.ca(),
            secure.port
        ));
        let run = secure.plain(&["--context", "far", "list"]).exits(code);
        if code == 5 {
            run.says("is not for cache.internal but for");
        }
    }
}
