//! What TAB offers: the answers of the binary, and of bash itself.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{FOREVER, Home, PENDING, Run, Runs, Server, binary, idemctl};

/// What is offered for the last of these words, as a shell asks: with COMPLETE and the words behind `--`.
fn asked(mut command: Command, words: &[&str]) -> Run {
    let at = words.len().to_string();
    command.env("COMPLETE", "bash").env("_CLAP_COMPLETE_INDEX", at).env("_CLAP_IFS", "\n");
    command.args(["--", "idemctl"]).args(words).run()
}

fn offers(command: Command, words: &[&str]) -> Vec<String> {
    let run = asked(command, words).exits(0);
    assert_eq!(run.stderr, "", "a completion says nothing beside its answer");
    run.text().lines().map(str::to_owned).filter(|line| !line.is_empty()).collect()
}

/// A server with keys, and a config file that names the server.
fn seeded() -> (Server, Home) {
    let server = Server::start();
    server.fill(["order-1", "order-2", "pay-1"].map(|key| (format!("idempotency:{key}"), PENDING)), FOREVER);
    let home = Home::with(&format!("[contexts.prod]\nurl = {:?}\ncolor = \"red\"\n[contexts.parked]\n", server.url()));
    (server, home)
}

#[test]
fn keys_come_from_the_server_that_the_words_before_name() {
    let (server, home) = seeded();
    let url = server.url();
    for before in [&["-u", &url][..], &["--context", "prod"]] {
        let words = [before, &["inspect", "order"]].concat();
        assert_eq!(offers(idemctl(home.path()), &words), ["order-1", "order-2"], "{words:?}");
        let words = [&["purge", "order-1", "p"], before].concat();
        let words: Vec<_> = words.iter().copied().filter(|word| *word != "p").chain(["p"]).collect();
        assert_eq!(offers(idemctl(home.path()), &words), ["pay-1"], "{words:?}");
    }
}

#[test]
fn contexts_schemas_and_codes_are_offered() {
    let (_server, home) = seeded();
    for (words, wanted) in [
        (&["--context", "p"][..], &["parked", "prod"][..]),
        (&["context", "use", "pr"], &["prod"]),
        (&["list", "--schema", "event-d"], &["event-driven"]),
        (&["schema", "show", "refer"], &["reference"]),
        (&["list", "--finding", "no-expiry,wrong"], &["no-expiry,wrong-type"]),
        (&["list", "--state=comp"], &["--state=completed"]),
        (&["simulate", "zombie-rel"], &["zombie-releases"]),
    ] {
        assert_eq!(offers(idemctl(home.path()), words), wanted, "{words:?}");
    }
}

#[test]
fn operations_and_backups_are_offered() {
    let (server, home) = seeded();
    for key in ["order-1", "order-2"] {
        idemctl(home.path()).args(["-u", &server.url(), "force-unlock", key, "--yes"]).run().exits(0);
    }
    let logged = idemctl(home.path()).args(["log", "-o", "json"]).run().exits(0).json();
    let names: Vec<_> = logged["operations"].as_array().unwrap().iter().map(|of| of["op"].as_str().unwrap()).collect();
    let offered = |words: &[&str]| {
        let options = |word: &String| word.starts_with("--");
        offers(idemctl(home.path()), words).into_iter().filter(|word| !options(word)).collect::<Vec<_>>()
    };
    assert_eq!(offered(&["undo", ""]), names);
    assert_eq!(offered(&["log", "show", names[1]]), [names[1]]);
    assert_eq!(offered(&["restore", ""]).len(), 2);
}

#[test]
fn a_completion_neither_asks_nor_waits_nor_complains() {
    let (server, home) = seeded();
    // Accepts, and never says a word.
    let silent = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = silent.local_addr().unwrap().port().to_string();
    let url = server.url();
    for words in [
        &["-p", &port, "inspect", "o"][..],
        &["-p", "1", "inspect", "o"],
        &["--context", "nobody", "inspect", "o"],
        &["-u", &url, "--askpass", "inspect", "o"],
        &["--sandbox", "inspect", "o"],
    ] {
        assert_eq!(offers(idemctl(home.path()), words), [""; 0], "{words:?}");
    }
    // The deadline is 200 ms; the command's own timeout of 5 s would pass without it.
    let began = Instant::now();
    offers(idemctl(home.path()), &["-p", &port, "--timeout", "60s", "--connect-timeout", "60s", "inspect", "o"]);
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// What bash offers for the last of these words, with the script of `idemctl completions bash`; bash itself parts words at `=`.
fn in_bash(home: &Home, words: &[&str]) -> Vec<String> {
    let binary = binary();
    let (last, before) = words.split_last().unwrap();
    let script = format!(
        r#"source <(idemctl completions bash)
        COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9
        _idemctl idemctl '{last}' '{}'
        printf '%s\n' "${{COMPREPLY[@]}}""#,
        words.join(" "),
        words.len() - 1,
        before.last().unwrap(),
    );
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &script]).env_clear().env("HOME", home.path());
    let run = bash.env("PATH", format!("{}:/usr/bin:/bin", binary.parent().unwrap().display())).run().exits(0);
    assert_eq!(run.stderr, "", "{words:?}");
    run.text().lines().map(str::to_owned).collect()
}

#[test]
fn tab_completes_in_bash() {
    let (_server, home) = seeded();
    for (words, wanted) in [
        (&["idemctl", "--context", "prod", "inspect", "pa"][..], "pay-1"),
        (&["idemctl", "list", "--state", "=", "comp"], "completed"),
        (&["idemctl", "list", "--finding", "no-expiry,wrong"], "no-expiry,wrong-type"),
        (&["idemctl", "context", "use", "par"], "parked"),
    ] {
        assert_eq!(in_bash(&home, words), [wanted], "{words:?}");
    }
}
