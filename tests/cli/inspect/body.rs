//! The body of a stored response, written as the client would get it.

use std::os::unix::fs::{PermissionsExt as _, symlink};

use super::record::{COMPLETED, TWO_HOURS};
use crate::support::terminal::{ends, on_terminal};
use crate::support::{FOREVER, Running as _, Runs as _, Server};

#[test]
fn a_body_is_written_as_the_client_would_get_it() {
    let server = Server::holding(&[("idempotency:order-1", COMPLETED, TWO_HOURS)]);
    let run = server.idemctl(&["inspect", "order-1", "--body", "-"]).exits(0);
    assert_eq!(run.stdout, br#"{"id":"order-1","total":12345678901234567890123}"#);
    server.idemctl(&["inspect", "order-1", "--body", "out.json"]).exits(0);
    assert_eq!(std::fs::read(server.folder().join("out.json")).unwrap(), run.stdout);
}

#[test]
fn a_body_is_its_owners_and_takes_the_place_of_nothing() {
    let server = Server::holding(&[("idempotency:order-1", COMPLETED, TWO_HOURS)]);
    let out = server.folder().join("out");
    let write = |words: &[&str]| {
        server.idemctl(&[&["inspect", "order-1", "--body", "out"], words].concat())
    };
    write(&[]).exits(0);
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
    std::fs::write(&out, "kept").unwrap();
    let run = write(&[]).exits(2);
    assert!(
        run.stderr.contains("out exists already") && run.stderr.contains("--force"),
        "{}",
        run.stderr
    );
    assert_eq!(std::fs::read(&out).unwrap(), b"kept");
    std::fs::set_permissions(&out, std::fs::Permissions::from_mode(0o644)).unwrap();
    write(&["--force"]).exits(0);
    assert!(std::fs::read(&out).unwrap().starts_with(b"{\"id\""));
    assert_eq!(std::fs::metadata(&out).unwrap().permissions().mode() & 0o777, 0o600);
}

#[test]
fn a_body_is_not_written_through_a_link() {
    let server = Server::holding(&[("idempotency:order-1", COMPLETED, TWO_HOURS)]);
    let in_folder = |name: &str| server.folder().join(name);
    std::fs::write(in_folder("kept"), "kept").unwrap();
    symlink(in_folder("kept"), in_folder("link")).unwrap();
    symlink(in_folder("nowhere"), in_folder("loose")).unwrap();
    for link in ["link", "loose"] {
        server.idemctl(&["inspect", "order-1", "--body", link]).exits(2);
        server.idemctl(&["inspect", "order-1", "--body", link, "--force"]).exits(0);
        assert!(
            std::fs::symlink_metadata(in_folder(link)).unwrap().is_file(),
            "{link} was replaced"
        );
    }
    assert_eq!(std::fs::read(in_folder("kept")).unwrap(), b"kept");
    assert!(!in_folder("nowhere").exists());
    for no_file in ["/dev/null", "."] {
        server.idemctl(&["inspect", "order-1", "--body", no_file, "--force"]).exits(2);
    }
    server.idemctl(&["inspect", "order-1", "--force"]).exits(2);
}

#[test]
fn a_body_goes_through_a_pipe_byte_for_byte() {
    let body = b"\x1b[31mred\x1b[0m \xff\x00 \xc2\x9b31m";
    let server = Server::holding(&[("idem:done:order-1", body, FOREVER)]);
    let run = server.idemctl(&["inspect", "order-1", "--body", "-"]).exits(0);
    assert_eq!(run.stdout, body);
}

/// Rule: a body goes out as it is, but for a terminal, where it moves no cursor and sets no colour.
#[test]
fn a_body_on_a_terminal_is_escaped() {
    let value = r#"{"status":"COMPLETED","statusCode":200,"headers":{},"body":"\u001b]0;pwn\u0007red\nline"}"#;
    let server = Server::holding(&[("idem:s", value, TWO_HOURS)]);
    let words = ["inspect", "s", "--schema", "express", "--body", "-"];
    let piped = server.idemctl(&words).exits(0);
    assert_eq!(piped.stdout, b"\x1b]0;pwn\x07red\nline");
    let shown = ends(on_terminal(server.command(), &words)).exits(0);
    assert_eq!(shown.text().replace("\r\n", "\n"), "\\x1b]0;pwn\\x07red\nline\n");
}

#[test]
fn command_lines_in_stored_text_are_shown_as_they_are() {
    // The server is named by an option, which messages repeat in the commands that they print.
    let body = "run `idemctl sweep --orphaned` or `idemctl purge KEY`";
    let value =
        format!(r#"{{"status":"COMPLETED","statusCode":200,"headers":{{}},"body":"{body}"}}"#);
    let server = Server::holding(&[("idem:k", value, 60_000)]);
    for options in [&[][..], &["--raw"]] {
        let words = [&["inspect", "k", "--schema", "express"], options].concat();
        // Not by `run`, which expects the server in every command line that is printed.
        let shown = server.command().args(&words).start().ends().exits(0);
        assert!(shown.text().contains(body), "{}", shown.text());
    }
}
