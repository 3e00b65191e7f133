//! `idemctl context set` and `context remove`: the config file says what was asked for, and is otherwise as it was.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::terminal::{answered, on_terminal};
use crate::support::{Home, Runs, alone, at_once, idemctl};

const CONFIG: &str = "# Ours.\ndefault_context = \"prod\" # the one\n\n[contexts.prod]\nurl = \"redis://127.0.0.1:1\" # far\nprotected = true # careful\n\n[contexts.old]\nurl = \"redis://127.0.0.1:2\"\n\n[contexts.old.deployment.express]\nlock_ttl = \"90s\"\n";

fn text(home: &Home) -> String {
    fs::read_to_string(home.config()).unwrap()
}

fn mode(path: &std::path::Path) -> u32 {
    fs::metadata(path).unwrap().permissions().mode() & 0o777
}

#[test]
fn the_first_context_needs_no_file_to_start_from() {
    let folder = tempfile::tempdir().unwrap();
    alone(&["context", "list"])
        .exits(0)
        .says("`idemctl context set NAME -u redis://HOST:PORT/DB` adds one");
    let set = |words: &[&str]| idemctl(folder.path()).args(["context", "set"]).args(words).run();
    let run =
        set(&["prod", "-u", "rediss://cache:6390/0", "--protected", "--schema", "express,go-chi"])
            .exits(0);
    run.says("url = \"rediss://cache:6390/0\"").says("`idemctl context test prod`");
    let file = folder.path().join(".config/idemctl/config.toml");
    let says = "[contexts.prod]\nurl = \"rediss://cache:6390/0\"\nprotected = true\nschema = [\"express\", \"go-chi\"]\n";
    assert_eq!(fs::read_to_string(&file).unwrap(), says);
    assert_eq!(mode(&file), 0o600);
    assert_eq!(
        fs::read_dir(file.parent().unwrap()).unwrap().count(),
        1,
        "there was no former file"
    );
    set(&["prod", "--protected"]).exits(0).says("has these settings already");
}

/// Rule: comments, layout and rights of the file stay, and the former file is kept.
#[test]
fn a_context_changes_and_the_rest_of_the_file_stays() {
    let home = Home::with(CONFIG);
    home.chmod(&home.config(), 0o640);
    let run = home
        .run(&[
            "context",
            "set",
            "prod",
            "-h",
            "cache",
            "-p",
            "7000",
            "-n",
            "2",
            "--protected=false",
            "--confirm",
            "prod",
            "--yes",
        ])
        .exits(0);
    run.says("config.toml.bak");
    let new = CONFIG
        .replace("redis://127.0.0.1:1\"", "redis://cache:7000/2\"")
        .replace("true # c", "false # c");
    assert_eq!(text(&home), new);
    let former = home.config().with_extension("toml.bak");
    assert_eq!((mode(&home.config()), mode(&former)), (0o640, 0o640));
    assert_eq!(fs::read_to_string(former).unwrap(), CONFIG);
}

#[test]
fn what_a_context_can_say_is_what_a_command_then_does() {
    let home = Home::with(CONFIG);
    let pass = home.write("pass", "s3cret\n");
    let words = ["--user", "ops", "--password-file", &pass, "--cacert", "ca.crt"];
    let ttls = [
        "--lock-ttl",
        "express=2m",
        "--result-ttl",
        "express=none",
        "--timeout",
        "9s",
        "--read-only",
    ];
    home.run(&[&["context", "set", "old"], &words[..], &ttls[..]].concat()).exits(0);
    let setting = |name| home.setting(&[], &["--context", "old"], name).0.unwrap_or_default();
    for (name, value) in [
        ("server", "127.0.0.1:2"),
        ("user", "ops"),
        ("password", "set"),
        ("tls", "true"),
        ("timeout", "9s"),
        ("read_only", "true"),
        ("deployment.express.lock_ttl", "2m"),
        ("deployment.express.result_ttl", "none"),
    ] {
        assert_eq!(setting(name), value, "{name}");
    }
    // The file's folder is another one than the command line's.
    assert!(setting("tls.cacert").starts_with('/') && setting("tls.cacert").ends_with("/ca.crt"));
    // `tls = true` gives way to a table, and a table says `true` already.
    let home = Home::with("[contexts.a]\nurl = \"redis://a\"\ntls = true # spoken\n");
    home.run(&["context", "set", "a", "--sni", "b"]).exits(0);
    assert!(text(&home).ends_with("\n[contexts.a.tls]\nsni = \"b\"\n"), "{}", text(&home));
    home.run(&["context", "set", "a", "--tls"]).exits(0).says("has these settings already");
    home.run(&["context", "set", "b", "-s", "/run/redis.sock"]).exits(0);
    assert!(
        text(&home).ends_with("\n[contexts.b]\nurl = \"unix:///run/redis.sock\"\n"),
        "{}",
        text(&home)
    );
}

/// Rule: a config file that is named and does not exist is created, by this command alone.
#[test]
fn the_named_config_file_is_created() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("new.toml").display().to_string();
    let run = |words: &[&str]| idemctl(folder.path()).args(["--config", &file]).args(words).run();
    run(&["context", "list"]).exits(2).says("cannot read the config file");
    run(&["context", "set", "prod", "-u", "redis://h:1/0"])
        .exits(0)
        .says(format!("Added context prod in {file}:"));
    run(&["context", "set", "prod", "-u", "redis://h:2/0", "--yes"])
        .exits(0)
        .says(format!("Changed context prod in {file}:"));
    run(&["context", "list"]).exits(0).shows("h:2/0");
}

/// Rule: no password is written into the file, and none is shown. Revert: without the refusal the file holds `s3cret`.
#[test]
fn a_password_is_refused_and_the_way_to_give_it_is_named() {
    let home = Home::with(CONFIG);
    for words in [
        &["-u", "redis://ops:s3cret@cache"][..],
        &["-u", "unix:///s?pass=s3cret"],
        &["-u", "redis-sentinel://:s3cret@a:1/pay"],
        &["-h", "cache", "-a", "s3cret"],
    ] {
        let run = home.run(&[&["context", "set", "prod"], words].concat()).exits(2);
        run.says("--password-file FILE").says("REDISCLI_AUTH");
        assert!(!run.all().contains("s3cret"), "{}", run.all());
    }
    assert_eq!(text(&home), CONFIG);
}

#[test]
fn what_would_not_do_is_refused_and_nothing_is_written() {
    let home = Home::with(CONFIG);
    for (words, says) in [
        (&["prd", "--protected"][..], "there is no context `prd` yet"),
        (&["prod"], "nothing to write"),
        (&["prod", "--askpass"], "--askpass is for one run"),
        (&["prod", "-u", "http://cache"], "not a Redis URL"),
        (&["prod", "-n", "3"], "name the server, too"),
        (&["prod", "--schema", "expres"], "there is no schema `expres`"),
        (&["prod", "--lock-ttl", "expres=9s"], "there is no schema `expres`"),
        (&["prod", "--lock-ttl", "9s"], "SCHEMA=DURATION"),
        (&["", "-u", "redis://a"], "name"),
    ] {
        home.run(&[&["context", "set"], words].concat()).exits(2).says(says);
        assert_eq!(text(&home), CONFIG, "{words:?}");
    }
    let home = Home::with("[contexts.a]\nurl = \"redis://a\"\npassword_file = \"pass\"\n");
    home.write(".config/idemctl/pass", "s3cret\n");
    let words = ["context", "set", "a", "-h", "b", "-y"];
    home.run(&words).exits(0).says("password_file is unchanged");
}

/// Rule: a name that scripts and colleagues use leads to another server only if somebody says so.
#[test]
fn a_context_gets_another_server_only_after_a_question() {
    let home = Home::with(CONFIG);
    for url in ["redis://127.0.0.1:2", "redis://127.0.0.1:1/3", "redis://other:1"] {
        let run = home.run(&["context", "set", "prod", "-u", url, "--read-only"]).exits(2);
        run.says("context prod would no longer use 127.0.0.1:1/0, but ")
            .says("nothing was written")
            .says("pass --yes");
        assert_eq!(text(&home), CONFIG, "{url}");
    }
    // The same server needs no question, however it is written, and whatever else changes.
    for words in [&["-u", "redis://127.0.0.1:1/0"][..], &["-h", "127.0.0.1", "-p", "1"]] {
        home.run(&[&["context", "set", "prod", "--timeout", "9s"], words].concat()).exits(0);
    }
    home.run(&["context", "set", "new", "-u", "redis://127.0.0.1:3"]).exits(0);
    let before = text(&home);
    let words = ["context", "set", "prod", "-h", "cache", "-p", "7000"];
    let move_it = || on_terminal(idemctl(home.path()), &words);
    answered(move_it(), "Move context prod from 127.0.0.1:1/0 to cache:7000/0?", "n\r")
        .exits(2)
        .shows("not confirmed; nothing was written");
    assert_eq!(text(&home), before);
    answered(move_it(), "[y/N]", "y\r").exits(0);
    assert!(text(&home).contains("redis://cache:7000"), "{}", text(&home));
    home.run(&["context", "set", "prod", "-h", "cache", "-p", "7001", "--yes"]).exits(0);
    // Another run moves it while the question waits.
    let mut session = move_it();
    session.exp_string("[y/N]").unwrap();
    home.run(&["context", "set", "prod", "-h", "third", "-y"]).exits(0);
    answered(session, "", "y\r").exits(2).shows("changed meanwhile");
    assert!(text(&home).contains("redis://third"), "{}", text(&home));
}

#[test]
fn a_context_is_removed_with_all_it_says() {
    let home = Home::with(CONFIG);
    home.run(&["context", "remove", "old"]).exits(2).says("cannot prompt without a terminal");
    home.run(&["context", "remove", "none", "--yes"]).exits(2).says("contexts: old, prod");
    assert_eq!(text(&home), CONFIG);
    let remove = || on_terminal(idemctl(home.path()), &["context", "remove", "old"]);
    answered(remove(), "Remove context old (127.0.0.1:2/0)", "n\r")
        .exits(2)
        .shows("nothing was written");
    answered(remove(), "[y/N]", "y\r").exits(0);
    assert_eq!(text(&home), CONFIG[..CONFIG.find("\n[contexts.old]").unwrap()]);
    let refused = home.run(&["context", "remove", "prod", "--yes"]).exits(2);
    refused.says("prod is the default context").says("--default");
    home.run(&["context", "remove", "prod", "--yes", "--default"]).exits(0).says("config.toml.bak");
    home.run(&["context", "list"]).exits(0).says("No contexts yet");
    home.run(&["config", "show"]).exits(0);
}

/// Rule: what several runs write at the same time is all in the file.
#[test]
fn runs_at_the_same_time_lose_nothing_of_each_other() {
    let home = Home::with("[contexts.prod]\nurl = \"redis://127.0.0.1:1\"\n");
    let all = ["c0", "c1", "c2", "c3", "c4", "c5"];
    let set = |words: &[&str]| home.run(&[&["context", "set"], words].concat()).exits(0);
    at_once(0..=all.len(), |index| match all.get(index) {
        Some(name) => set(&[name, "-u", "redis://127.0.0.1:2"]),
        None => set(&["prod", "--protected"]),
    });
    let text = text(&home);
    assert!(text.contains("protected = true"), "{text}");
    for name in all {
        assert!(text.contains(&format!("[contexts.{name}]")), "{name}: {text}");
    }
}

/// Rule: what a context says is written as a person writes it, and what it cannot say is explained.
#[test]
fn a_window_stays_as_it_was_written_and_a_cluster_needs_no_word() {
    let home = Home::with(CONFIG);
    home.run(&["context", "set", "old", "--retry-window", "3d"]).exits(0).says("\"3d\"");
    home.run(&["context", "set", "old", "--cluster"])
        .exits(2)
        .says("idemctl detects clusters itself");
}
