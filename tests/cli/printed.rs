//! Every command line that idemctl prints is safe to paste, and leads to the server that was looked at.

use std::process::Command;

use crate::support::{PENDING, Runs, Server, binary, idemctl, printed};

/// Keys that a shell, or idemctl, would take for something else.
const KEYS: [&str; 9] = [
    "plain",
    "a;touch X;$(touch Y)",
    "it's `touch Z`",
    "-rf",
    "--yes",
    "~",
    "two words",
    "new\nline",
    "express/plain",
];

/// Another server than the one that is looked at, which everything that names no server leads to.
struct Servers {
    looked_at: Server,
    other: Server,
}

impl Servers {
    fn start() -> Self {
        let (looked_at, other) = (Server::start(), Server::start());
        for key in KEYS {
            looked_at.put(&format!("idempotency:{key}"), PENDING);
            looked_at.set(&format!("shop:idem:{key}"), PENDING, 50_000_000);
        }
        looked_at.put("idempotency:odd", "{no JSON");
        looked_at.put("idem:done:d", r#"{"statusCode":200,"body":"x"}"#);
        looked_at.put("idem:started:d", "worker");
        let config = format!(
            "default_context = \"other\"\n[contexts.other]\nurl = \"{}\"\n[contexts.here]\nurl = \"{}\"\n",
            other.url(),
            looked_at.url()
        );
        looked_at.configure(&config);
        Self { looked_at, other }
    }

    fn command(&self, program: impl AsRef<std::ffi::OsStr>) -> Command {
        let mut command = Command::new(program);
        let template = idemctl(self.looked_at.folder());
        command
            .env_clear()
            .envs(template.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command.env("REDIS_URL", self.other.url()).current_dir(self.looked_at.folder());
        let folder = binary().parent().unwrap().display().to_string();
        command.env("PATH", format!("{folder}:/usr/bin:/bin"));
        command
    }
}

fn connections(server: &Server) -> u64 {
    let info: String = server.send(&[b"INFO", b"stats"]);
    let line =
        info.lines().find_map(|line| line.strip_prefix("total_connections_received:")).unwrap();
    line.trim().parse().unwrap()
}

/// Pastes every command line that a run prints; gives how many there were.
fn paste_all(servers: &Servers, named: &[&str], words: &[&str]) -> usize {
    let run = servers.command(binary()).args(named).args(words).run();
    let lines = printed::command_lines(&run);
    for line in &lines {
        let before = [connections(&servers.other), connections(&servers.looked_at)];
        let pasted = servers.command("/bin/sh").args(["-c", &format!("idemctl {line}")]).run();
        let after = [connections(&servers.other), connections(&servers.looked_at)];
        let say = || format!("{named:?} {words:?} printed `idemctl {line}`: {}", pasted.all());
        // Asking for it is a connection, too.
        assert_eq!(after[0] - before[0], 1, "it went to the other server: {}", say());
        let reaches =
            ![" log", " schema ", " help "].iter().any(|alone| format!(" {line}").contains(alone));
        assert!(!reaches || after[1] - before[1] > 1, "it did not go to the server: {}", say());
        assert_ne!(pasted.code, 127, "{}", say());
        for made in ["X", "Y", "Z"] {
            assert!(
                !servers.looked_at.folder().join(made).exists(),
                "a key was run as a command: {}",
                say()
            );
        }
    }
    lines.len()
}

#[test]
fn every_printed_command_line_reaches_the_server_that_was_looked_at() {
    for way in ["-s", "-u", "--context"] {
        // What is pasted may remove what the next way would look at.
        let servers = Servers::start();
        let named = match way {
            "-s" => [way.to_owned(), servers.looked_at.socket().display().to_string()],
            "-u" => [way.to_owned(), servers.looked_at.url()],
            _ => [way.to_owned(), "here".to_owned()],
        };
        let named = &named.each_ref().map(String::as_str)[..];
        let mut printed = 0;
        for key in KEYS.into_iter().chain(["odd", "d"]) {
            printed += paste_all(&servers, named, &["inspect", "--", key]);
            printed += paste_all(&servers, named, &["inspect", "-o", "json", "--", key]);
            printed += paste_all(&servers, named, &["force-unlock", "--dry-run", "--", key]);
            printed += paste_all(&servers, named, &["extend", "--for", "1h", "--yes", "--", key]);
            printed += paste_all(
                &servers,
                named,
                &["release", "--schema", "go-middleware", "--yes", "--", key],
            );
        }
        for words in [
            &["list", "-o", "jsonl"][..],
            &["list", "--finding", "no-expiry", "--sort", "age", "-o", "json"],
            &["detect", "-o", "json"],
            &["undo", "nothing", "--yes"],
            &["log", "show", "nothing"],
            &["sweep", "--orphaned", "--dry-run"],
            &["purge", "--older-than", "1s", "--dry-run"],
            &["schema", "check", "/nowhere"],
        ] {
            printed += paste_all(&servers, named, words);
        }
        assert!(printed >= 30, "{named:?}: {printed} command lines");
    }
}

/// Rule: the page of `detect` prints command lines of its own, without backticks, for people to copy.
#[test]
fn what_detect_prints_leads_to_the_server_that_it_looked_at() {
    let servers = Servers::start();
    let socket = servers.looked_at.socket().display().to_string();
    for named in [&["-s", socket.as_str()], &["--context", "here"]] {
        let run = servers.command(binary()).args(named).arg("detect").run().exits(0);
        let lines: Vec<_> = run
            .text()
            .lines()
            .filter_map(|line| Some(line.split_once("idemctl ")?.1.to_owned()))
            .collect();
        assert!(!lines.is_empty(), "{}", run.all());
        assert!(lines.iter().all(|line| line.starts_with(&named.join(" "))), "{lines:?}");
    }
}

#[test]
fn a_password_is_asked_for_and_never_printed() {
    let server = Server::start_with(&["requirepass s3cret"]);
    let url = format!("{}?pass=s3cret", server.url());
    server.connect_as("s3cret", |connection| {
        redis::cmd("SET").arg("idempotency:k").arg(PENDING).exec(connection).unwrap();
    });
    let socket = server.socket().display().to_string();
    for named in [&["-u", &url][..], &["-s", &socket, "-a", "s3cret"]] {
        let run =
            server.unnamed(&[named, &["--no-auth-warning", "inspect", "k"]].concat()).exits(0);
        assert!(!run.all().contains("s3cret"), "{}", run.all());
        let lines = printed::command_lines(&run);
        assert!(
            !lines.is_empty() && lines.iter().all(|line| line.contains(" --askpass ")),
            "{lines:?}"
        );
    }
}

/// A lock whose name has to be escaped, beside a live lock whose key reads like the escaped name.
#[test]
fn the_advice_on_a_record_names_that_record_alone() {
    for key in [&b"a\nb"[..], b"a\"b", b"a\\b", b"a`b", b"\xff", b"a\tb", "\u{202e}x".as_bytes()] {
        let servers = Servers::start();
        let stuck = [b"idempotency:", key].concat();
        let escaped = key.escape_ascii().to_string().replace('`', "\\x60");
        let look_alike = [b"idempotency:", escaped.as_bytes()].concat();
        let _: () = servers.looked_at.send(&[b"SET", &stuck, PENDING.as_bytes()]);
        let _: () =
            servers.looked_at.send(&[b"SET", &look_alike, PENDING.as_bytes(), b"EX", b"250"]);
        let url = servers.looked_at.url();
        let words = ["-u", &url, "inspect", "--schema", "go-middleware", "-0", "-"];
        let run = servers.command(binary()).args(words).fed(&[key, b"\0"].concat());
        let lines = printed::command_lines(&run);
        let unlock = lines
            .iter()
            .find(|line| line.contains(" force-unlock "))
            .unwrap_or_else(|| panic!("{}", run.all()));
        servers.command("/bin/sh").args(["-c", &format!("idemctl {unlock} --yes")]).run().exits(0);
        let is_there = |redis_key: &[u8]| servers.looked_at.send::<bool>(&[b"EXISTS", redis_key]);
        assert_eq!((is_there(&stuck), is_there(&look_alike)), (false, true), "{unlock}");
    }
}

/// Rule: a printed command reaches the same server, also if a variable named it for one command only. Revert: without
/// the variables in `Invocation::of`, the lines reach the default context.
#[test]
fn a_server_that_a_variable_named_is_named_in_the_lines() {
    let servers = Servers::start();
    let config = servers.looked_at.folder().join(".config/idemctl/config.toml");
    let config = config.display().to_string();
    let url = servers.looked_at.url();
    for (variable, value, option) in [
        ("IDEMCTL_URL", url.as_str(), format!("-u {url} ")),
        ("IDEMCTL_CONTEXT", "here", "--context here ".to_owned()),
    ] {
        for words in [&["inspect", "plain"][..], &["list", "--state", "unreadable"], &["detect"]] {
            let run = servers
                .command(binary())
                .env("IDEMCTL_CONFIG", &config)
                .env(variable, value)
                .args(words)
                .run();
            let lines = printed::command_lines(&run);
            assert!(!lines.is_empty() || words[0] != "inspect", "{}", run.all());
            for line in lines.iter().filter(|line| !printed::needs_no_server(line)) {
                assert!(line.contains(&option), "{variable}: {line}\n{}", run.all());
                assert!(line.contains(&format!("--config {config} ")), "{variable}: {line}");
            }
        }
    }
}

/// Rule: `race`, `simulate` and `explore` ignore the variables that name a server, so their lines name none: a pasted
/// `-u` would put the load on that server. Revert: without `Command::ignores_variables` the line names it.
#[test]
fn a_command_that_ignores_the_variables_names_no_server_in_its_lines() {
    let servers = Servers::start();
    let run = servers
        .command(binary())
        .env("IDEMCTL_URL", servers.looked_at.url())
        .env("IDEMCTL_CONTEXT", "here")
        .current_dir(servers.looked_at.folder())
        .args(["explore", "express", "--workers", "2"])
        .run();
    let text = run.text();
    let lines: Vec<_> = text.lines().filter(|line| line.contains("explore --replay")).collect();
    assert!(!lines.is_empty(), "{}", run.all());
    let folder = servers.looked_at.folder().display().to_string();
    assert!(!lines.iter().any(|line| line.contains(&folder) || line.contains("here")), "{text}");
}

/// Rule: `REDIS_URL` may have been set for one command only, so its server is named where the variable applies.
#[test]
fn a_server_that_redis_url_named_is_named_in_the_lines() {
    let servers = Servers::start();
    let url = servers.looked_at.url();
    // Without a config file, or the default context would name the server.
    servers.looked_at.configure("");
    let run = servers.command(binary()).env("REDIS_URL", &url).args(["inspect", "plain"]).run();
    let line = format!("idemctl -u {url} force-unlock");
    run.shows(&line);
    // A default context has precedence over REDIS_URL, and needs no option.
    servers
        .looked_at
        .configure(&format!("default_context = \"here\"\n[contexts.here]\nurl = \"{url}\"\n"));
    let run = servers.command(binary()).args(["inspect", "plain"]).run();
    run.shows("`idemctl force-unlock");
}
