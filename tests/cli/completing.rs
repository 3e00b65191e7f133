//! What TAB offers: the answers of the binary, and of bash itself.

use std::process::Command;
use std::time::{Duration, Instant};

use crate::support::{DONE, FOREVER, Home, PENDING, Run, Runs, Server, binary, idemctl};

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
    server.fill(
        ["order-1", "order-2", "pay-1", "acme:1015"]
            .map(|key| (format!("idempotency:{key}"), PENDING)),
        FOREVER,
    );
    let home = Home::with(&format!(
        "[contexts.prod]\nurl = {:?}\ncolor = \"red\"\n[contexts.parked]\n",
        server.url()
    ));
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
        let words: Vec<_> =
            words.iter().copied().filter(|word| *word != "p").chain(["p"]).collect();
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
        (&["list", "--finding", "no-expiry,fore"], &["no-expiry,foreign-schema"]),
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
        idemctl(home.path())
            .args(["-u", &server.url(), "force-unlock", key, "--yes"])
            .run()
            .exits(0);
    }
    let logged = idemctl(home.path()).args(["log", "-o", "json"]).run().exits(0).json();
    let names: Vec<_> = logged["operations"]
        .as_array()
        .unwrap()
        .iter()
        .map(|of| of["op"].as_str().unwrap())
        .collect();
    let offered = |words: &[&str]| {
        let options = |word: &String| word.starts_with("--");
        offers(idemctl(home.path()), words)
            .into_iter()
            .filter(|word| !options(word))
            .collect::<Vec<_>>()
    };
    assert_eq!(offered(&["undo", ""]), names);
    assert_eq!(offered(&["log", "show", names[1]]), [names[1]]);
    let backups = offered(&["restore", "20"]);
    assert_eq!(backups.len(), 2, "{backups:?}");
    // The name alone is enough.
    idemctl(home.path())
        .args(["-u", &server.url(), "restore", &backups[0], "--yes"])
        .run()
        .exits(0);
}

/// Rule: what is typed most often comes first, and options only behind `-`.
#[test]
fn commands_come_before_options_and_by_their_names() {
    let (_server, home) = seeded();
    let first = offers(idemctl(home.path()), &[""]);
    assert_eq!(first[0], "inspect");
    assert!(first.contains(&"help".to_owned()) && !first.contains(&"get".to_owned()), "{first:?}");
    assert!(!first.iter().any(|word| word.starts_with('-')), "{first:?}");
    assert_eq!(offers(idemctl(home.path()), &["ins"]), ["inspect"]);
    assert_eq!(offers(idemctl(home.path()), &["context", "s"]), ["show", "set"]);
    let keys = offers(idemctl(home.path()), &["--context", "prod", "inspect", ""]);
    assert_eq!(keys, ["acme:1015", "order-1", "order-2", "pay-1"]);
    let options = offers(idemctl(home.path()), &["--context", "prod", "inspect", "--"]);
    let at = |option: &str| options.iter().position(|word| word == option);
    assert!(at("--key-file") < at("--host") && at("--host").is_some(), "{options:?}");
    assert!(!options.iter().any(|word| word == "pay-1"), "{options:?}");
}

#[test]
fn only_locks_are_offered_where_a_lock_is_changed() {
    let (server, home) = seeded();
    server.set("idempotency:order-9", DONE, 3_600_000);
    for command in ["force-unlock", "extend", "release", "complete"] {
        let locks = offers(idemctl(home.path()), &["--context", "prod", command, "order"]);
        assert_eq!(locks, ["order-1", "order-2"], "{command}");
    }
    let all = offers(idemctl(home.path()), &["--context", "prod", "purge", "order"]);
    assert_eq!(all, ["order-1", "order-2", "order-9"]);
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
    // The deadline is 500 ms; the command's own timeout of 5 s would pass without it.
    let began = Instant::now();
    offers(
        idemctl(home.path()),
        &["-p", &port, "--timeout", "60s", "--connect-timeout", "60s", "inspect", "o"],
    );
    assert!(began.elapsed() < Duration::from_secs(30), "{:?}", began.elapsed());
}

/// What bash offers for the last of these words, with the script of `idemctl completions bash`; bash itself parts words at `=`.
fn in_bash(home: &Home, words: &[&str]) -> Vec<String> {
    let binary = binary();
    let (last, before) = words.split_last().unwrap();
    let script = format!(
        r#"source <(idemctl completions bash)
        COMP_WORDS=({}); COMP_CWORD={}; COMP_TYPE=9
        COMP_LINE='{}'; COMP_POINT=${{#COMP_LINE}}
        _idemctl idemctl '{last}' '{}'
        printf '%s\n' "${{COMPREPLY[@]}}""#,
        words.join(" "),
        words.len() - 1,
        words.join(" ").replace(" = ", "=").replace(" : ", ":").replace("@ ", "@"),
        before.last().unwrap(),
    );
    let mut bash = Command::new("bash");
    bash.args(["--norc", "-c", &script]).env_clear().env("HOME", home.path());
    let run = bash
        .env("PATH", format!("{}:/usr/bin:/bin", binary.parent().unwrap().display()))
        .run()
        .exits(0);
    assert_eq!(run.stderr, "", "{words:?}");
    run.text().lines().map(str::to_owned).collect()
}

#[test]
fn tab_completes_in_bash() {
    let (_server, home) = seeded();
    for (words, wanted) in [
        (&["idemctl", "--context", "prod", "inspect", "pa"][..], "pay-1"),
        (&["idemctl", "list", "--state", "=", "comp"], "completed"),
        (&["idemctl", "list", "--finding", "no-expiry,fore"], "no-expiry,foreign-schema"),
        (&["idemctl", "context", "use", "par"], "parked"),
        (&["idemctl", "--context", "=", "prod", "inspect", "acme", ":", "10"], "1015"),
        (&["idemctl", "--context", "prod", "inspect", "acme", ":", "10"], "1015"),
        (&["idemctl", "context", "use", "par"], "parked"),
    ] {
        assert_eq!(in_bash(&home, words), [wanted], "{words:?}");
    }
}

/// Rule: TAB never fails, whatever command and option it follows. (`schema check` has a folder under the name of an option
/// that other commands use for names, and reading it as such panicked, in a release build alone.)
#[test]
fn every_command_and_option_is_completed() {
    let home = Home::with("");
    let command = idemctl::cli::command();
    let mut paths = vec![(vec![], &command)];
    let mut count = 0;
    while let Some((path, command)) = paths.pop() {
        offers(idemctl(home.path()), &[&path[..], &[""]].concat());
        for option in command.get_arguments().filter(|option| !option.is_global_set()) {
            let takes_value = option.get_action().takes_values();
            if let Some(long) = option.get_long().filter(|_| takes_value) {
                let option = format!("--{long}");
                offers(idemctl(home.path()), &[&path[..], &[&option, ""]].concat());
                count += 1;
            }
        }
        for inner in command.get_subcommands() {
            paths.push(([&path[..], &[inner.get_name()]].concat(), inner));
        }
    }
    assert!(count > 100, "{count} options");
}

/// Rule: a created result without a hash may be rejected by a service that compares payloads, and
/// `complete` says so before it asks. A service that compares none needs no hash.
#[test]
fn a_created_result_without_a_hash_is_warned_of() {
    let server = Server::start();
    let create = |key: &str, schema: &str, more: &[&str]| {
        let words = ["complete", key, "--schema", schema, "--create", "--body", "1", "--dry-run"];
        server.idemctl(&[&words[..], more].concat()).exits(0)
    };
    let run = create("fn.p#b0c5b121e7cb24f7ce362a75c65bdbe7", "powertools-python", &[]);
    run.says("the record has no hash of a payload, so requests with this key may be");
    let run = create("k", "go-middleware", &["--status", "201"]);
    assert!(!run.stderr.contains("no hash of a payload"), "{}", run.stderr);
}
