//! Runs each recipe of README exactly as written, on a server with matching records, and checks its effect.

use std::fs;
use std::path::Path;
use std::process::Command;

use rexpect::session::PtySession;

use crate::support::terminal::{ends, on_terminal, press};
use crate::support::{Run, Runs, Server, binary, program};

const HOUR: u64 = 3_600_000;
const LOCK: &str = r#"{"status":"IN_PROGRESS"}"#;

/// A recipe: the words in bold that name it, and its commands.
struct Recipe {
    name: String,
    commands: Vec<String>,
}

fn readme() -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap()
}

fn recipes() -> Vec<Recipe> {
    let text = readme();
    let (_, chapter) = text.split_once("\n## Recipes\n").unwrap();
    let (chapter, _) = chapter.split_once("\n## ").unwrap();
    let mut recipes: Vec<Recipe> = Vec::new();
    let mut is_code = false;
    for line in chapter.lines() {
        if line.starts_with("```") {
            is_code = !is_code;
        } else if is_code {
            // In a cron line, five fields precede the command.
            let command = line.trim_start_matches("*/5 * * * *").trim();
            recipes.last_mut().unwrap().commands.push(command.to_owned());
        } else if let Some(name) = line.strip_prefix("**").and_then(|line| line.split_once(".**")) {
            recipes.push(Recipe { name: name.0.to_owned(), commands: Vec::new() });
        }
    }
    recipes
}

fn commands(name: &str) -> Vec<String> {
    let recipe = recipes().into_iter().find(|recipe| recipe.name == name);
    recipe.unwrap_or_else(|| panic!("README has no recipe {name:?}")).commands
}

/// A result that express stores.
fn stored(status: u16) -> String {
    format!(r#"{{"status":"COMPLETED","statusCode":{status},"headers":{{}},"body":""}}"#)
}

/// A shell in the server's folder, in which `idemctl` is the binary and the server is the default, as README sets it up.
fn shell(server: &Server, line: &str) -> Command {
    let bin = server.folder().join("bin");
    fs::create_dir_all(&bin).unwrap();
    let programs = [binary(), program()].map(|file| file.parent().unwrap().display().to_string());
    let path = format!("{}:{}:/usr/bin:/bin", bin.display(), programs.join(":"));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", line])
        .env_clear()
        .env("PATH", path)
        .env("HOME", server.folder())
        .env("USER", "ana");
    shell.current_dir(server.folder());
    shell
}

/// The server's own address is the default.
fn typed(server: &Server, line: &str) -> Run {
    shell(server, line).env("IDEMCTL_URL", server.url()).run()
}

fn on_a_terminal(server: &Server, line: &str) -> PtySession {
    let mut shell = shell(server, line);
    shell.env("IDEMCTL_URL", server.url());
    on_terminal(shell, &[])
}

/// The context that README's lines name, protected as README says.
fn add_prod(server: &Server) {
    let line = format!("idemctl context set prod -u {} --protected", server.url());
    shell(server, &line).run().exits(0);
}

#[test]
fn each_recipe_has_a_test_of_its_effect() {
    let names: Vec<_> = recipes().into_iter().map(|recipe| recipe.name).collect();
    let source = include_str!("recipes.rs");
    for name in &names {
        assert!(
            source.contains(&format!("commands(\"{name}\")")),
            "no test runs the recipe {name:?}"
        );
    }
    assert!(names.len() >= 6, "{names:?}");
}

#[test]
fn stuck_locks_go_and_live_ones_stay() {
    let server = Server::holding(&[("idem:live", LOCK, 20_000), ("idem:done", &stored(201), HOUR)]);
    add_prod(&server);
    server.put("idem:stuck-1", LOCK);
    server.put("idem:stuck-2", LOCK);
    // In place of the system's log.
    let logger = server.folder().join("bin/logger");
    fs::create_dir_all(logger.parent().unwrap()).unwrap();
    fs::write(&logger, "#!/bin/sh\ncat >>syslog\n").unwrap();
    fs::set_permissions(&logger, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    let [line] = &commands("Stuck locks, every five minutes")[..] else { panic!() };
    for _ in 0..2 {
        shell(&server, line).run().exits(0);
        assert_eq!(server.keys(), ["idem:done", "idem:live"]);
    }
    let log = fs::read_to_string(server.folder().join("syslog")).unwrap();
    assert!(log.contains("2 of 2") && log.contains("no stuck locks"), "{log}");
}

#[test]
fn monitoring_sees_a_stuck_lock() {
    let server = Server::holding(&[("idem:done", &stored(201), HOUR)]);
    add_prod(&server);
    let [check, prometheus] = &commands("Monitoring")[..] else { panic!() };
    let prometheus = prometheus.replace("/var/lib/node_exporter/", "");
    assert_ne!(&prometheus, &commands("Monitoring")[1]);
    for (stuck, code) in [(0, 0), (1, 1), (10, 2)] {
        for number in 0..stuck {
            server.put(&format!("idem:stuck-{number}"), LOCK);
        }
        shell(&server, check).run().exits(code).shows(format!("orphaned={stuck}"));
        shell(&server, &prometheus).run().exits(0);
        let metrics = fs::read_to_string(server.folder().join("idemctl.prom")).unwrap();
        assert!(
            metrics.lines().any(|line| line.starts_with("idemctl_up{") && line.ends_with(" 1")),
            "{metrics}"
        );
        let found = metrics.lines().find(|line| line.contains("code=\"no-expiry\""));
        assert!(found.is_none_or(|line| line.ends_with(&format!(" {stuck}"))), "{metrics}");
        assert!(found.is_some() || stuck == 0, "{metrics}");
    }
}

#[test]
fn a_list_of_keys_is_unlocked_and_nothing_else() {
    let server =
        Server::holding(&[("idem:a", LOCK, HOUR), ("idem:b", LOCK, HOUR), ("idem:c", LOCK, HOUR)]);
    fs::write(server.folder().join("keys.txt"), "a\nb\nnever-seen\n").unwrap();
    let [line] = &commands("Exactly these keys")[..] else { panic!() };
    let mut session = on_a_terminal(&server, line);
    press(&mut session, "[y/N]", "y\r");
    let run = ends(session).exits(3);
    assert_eq!(server.keys(), ["idem:c"]);
    assert!(run.text().contains("Unlocked 2 locks"), "{}", run.all());
}

#[test]
fn a_purge_removes_the_wrong_responses_of_the_last_hour_and_undo_would_bring_them_back() {
    let failed = || r#"{"statusCode":503,"body":"upstream"}"#.to_owned();
    let left = 24 * HOUR;
    let server = Server::holding(&[
        ("idem:result:wrong", &failed(), left - HOUR / 2),
        ("idem:result:older", &failed(), left - 2 * HOUR),
        ("idem:result:right", &r#"{"statusCode":201,"body":"{}"}"#.to_owned(), left - HOUR / 2),
    ]);
    let [purge, undo] = &commands("A purge, and back again")[..] else { panic!() };
    let mut session = on_a_terminal(&server, purge);
    press(&mut session, "to continue", &format!("{}/0\r", server.socket().display()));
    ends(session).exits(0);
    assert_eq!(server.keys(), ["idem:result:older", "idem:result:right"]);
    typed(&server, undo).exits(0).says("1");
    assert_eq!(server.keys(), ["idem:result:older", "idem:result:right"], "a dry run");
    typed(&server, &undo.replace("--dry-run", "--yes")).exits(0);
    assert_eq!(server.keys(), ["idem:result:older", "idem:result:right", "idem:result:wrong"]);
    assert_eq!(server.get("idem:result:wrong").unwrap(), failed().as_bytes());
}

/// The row of the table: `list` and `purge` with the same options print the command line with the TTL.
#[test]
fn the_words_of_a_list_lead_to_the_purge_of_what_it_showed() {
    let left = 24 * HOUR;
    let server = Server::holding(&[
        ("idem:wrong", &stored(503), left - HOUR / 2),
        ("idem:older", &stored(503), left - 2 * HOUR),
        ("idem:right", &stored(201), left - HOUR / 2),
    ]);
    let words = "--status 5xx --since 1h";
    let row = format!(
        "| a release stored wrong responses | `idemctl list {words}`, then `idemctl purge`"
    );
    assert!(readme().contains(&row), "{row}");
    let stated = |run: Run| {
        let all = run.all();
        let printed = all
            .lines()
            .find(|line| line.contains("if your service sets 1d: "))
            .unwrap_or_else(|| panic!("{all}"));
        let (_, printed) = printed.split_once("idemctl ").unwrap();
        let (printed, _) = printed.split_once(['`', '#']).unwrap_or((printed, ""));
        format!("idemctl {printed}")
    };
    let list = typed(&server, &format!("idemctl list {words} -o name")).exits(3);
    assert_eq!(list.text(), "", "nothing proves an age");
    let list = typed(&server, &stated(list)).exits(0);
    assert_eq!(list.text(), "express/\"wrong\"\n");
    let refused = typed(&server, &format!("idemctl purge {words} --yes")).exits(3);
    assert_eq!(server.keys().len(), 3);
    typed(&server, &stated(refused)).exits(0);
    assert_eq!(server.keys(), ["idem:older", "idem:right"]);
}

#[test]
fn a_payment_is_completed_by_hand_and_its_retry_gets_the_response() {
    let server = Server::start();
    server.set("idem:started:order-10008", "worker-7", HOUR);
    fs::write(server.folder().join("charge.json"), r#"{"charged":10}"#).unwrap();
    let [line] = &commands("Complete by hand")[..] else { panic!() };
    let mut session = on_a_terminal(&server, line);
    press(&mut session, "to continue (worker-7):", "worker-7\r");
    press(&mut session, "[y/N]", "y\r");
    ends(session).exits(0);
    let run = typed(&server, "idemctl inspect order-10008 -o json").exits(0);
    let record = &run.json()["records"][0];
    assert_eq!(record["state"], "completed");
    assert_eq!(record["response"]["status"], 201);
    assert_eq!(record["next_request"]["answer"], "replay");
}

#[test]
fn a_schema_of_ones_own_is_checked_and_its_violations_are_held() {
    let server = Server::start();
    let [check, accept, explore] = &commands("Your own schema")[..] else { panic!() };
    typed(&server, "idemctl schema new payments --from express").exits(0);
    fs::create_dir_all(server.folder().join("lua")).unwrap();
    fs::rename(
        server.folder().join(".config/idemctl/schemas/payments"),
        server.folder().join("lua/payments"),
    )
    .unwrap();
    typed(&server, check).exits(0);
    // The scripts of express have bugs.
    typed(&server, accept).exits(1);
    typed(&server, explore).exits(0);
    // Somebody accepted less than what the scripts do.
    let file = server.folder().join("accepted.json");
    let accepted = fs::read_to_string(&file).unwrap();
    fs::write(&file, accepted.replacen("\"owner-only\"", "\"true-replay\"", 1)).unwrap();
    typed(&server, explore).exits(1);
}
