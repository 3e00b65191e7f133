//! A context's name and protection belong to its server's address, whoever names the server.

use crate::support::proxy::{Hook, hooked_at, says};
use crate::support::{FOREVER, Home, LOCK, Runs, Server, free_port, idemctl};

/// A server with a stuck lock.
fn with_lock() -> Server {
    Server::holding(&[("idem:stuck", LOCK, FOREVER)])
}

fn socket(server: &Server) -> String {
    server.socket().display().to_string()
}

/// A home with two servers: `staging`, the default, and `prod`, which is protected.
fn home_of(staging: &Server, prod: &Server) -> Home {
    Home::with(&format!(
        "default_context = \"staging\"\n[contexts.prod]\nurl = \"{}\"\nprotected = true\nschema = [\"express\"]\n[contexts.prod.deployment.express]\nlock_ttl = \"600s\"\n[contexts.staging]\nurl = \"{}\"\nprefix = \"dev:\"\n[contexts.staging.deployment.express]\nlock_ttl = \"5s\"\n",
        prod.url(),
        staging.url(),
    ))
}

/// The context that is chosen.
fn name(home: &Home, words: &[&str]) -> Option<String> {
    home.setting(&[], words, "context").0
}

#[test]
fn protection_follows_the_address_however_the_server_is_named() {
    let (staging, prod) = (with_lock(), with_lock());
    let home = home_of(&staging, &prod);
    let link = home.path().join("link");
    std::os::unix::fs::symlink(prod.socket(), &link).unwrap();
    let unlock = ["force-unlock", "stuck", "--yes"];
    let named = [
        ["-s", &socket(&prod)],
        ["-s", link.to_str().unwrap()],
        ["-u", &prod.url()],
        ["--context", "prod"],
    ];
    for words in named {
        let run = home.run(&[&words[..], &unlock].concat()).exits(2);
        run.says("context `prod` is protected: --yes is not enough");
        home.run(&[&words[..], &unlock, &["--confirm", "staging"]].concat()).exits(2);
    }
    for (variable, config) in [("IDEMCTL_URL", "staging"), ("REDIS_URL", "nowhere")] {
        // REDIS_URL counts where no context names a server.
        let home = if config == "staging" {
            home_of(&staging, &prod)
        } else {
            of_one("prod", &prod, "protected = true")
        };
        home.run_with(&[(variable, &prod.url())], &unlock)
            .exits(2)
            .says("context `prod` is protected");
    }
    assert!(prod.get("idem:stuck").is_some());
    home.run(&[&["-s", &socket(&prod)], &unlock[..], &["--confirm", "prod"]].concat()).exits(0);
    assert!(prod.get("idem:stuck").is_none());
    home.run(&unlock).exits(0);
    assert!(staging.get("idem:stuck").is_none());
}

fn of_one(name: &str, server: &Server, kept: &str) -> Home {
    Home::with(&format!("[contexts.{name}]\nurl = \"{}\"\n{kept}\n", server.url()))
}

#[test]
fn a_read_only_context_keeps_its_address() {
    let server = with_lock();
    let home = of_one("audit", &server, "read_only = true");
    for words in [
        &["-s", &socket(&server)][..],
        &["-u", &server.url()],
        &["-n", "3", "-s", &socket(&server)],
    ] {
        let run =
            home.run(&[words, &["begin", "new", "--schema", "express", "--yes"]].concat()).exits(2);
        run.says("context `audit` is read-only; it allows no changes");
        home.run(&[words, &["list", "--schema", "express"]].concat()).exits(0);
    }
    assert!(server.get("idem:stuck").is_some());
}

#[test]
fn a_server_has_name_and_settings_of_its_own_context_or_of_none() {
    let (staging, prod, other) = (with_lock(), with_lock(), with_lock());
    let home = home_of(&staging, &prod);
    let (at_prod, at_other) = (["-s", &socket(&prod)], ["-s", &socket(&other)]);
    assert_eq!(
        home.setting(&[], &at_prod, "context"),
        (Some("prod".to_owned()), "the server's address".to_owned())
    );
    assert_eq!(home.setting(&[], &at_prod, "schema").0.unwrap(), "express");
    assert_eq!(home.setting(&[], &at_prod, "deployment.express.lock_ttl").0.unwrap(), "10m");
    assert_eq!(home.setting(&[], &at_prod, "prefix").0, None);
    assert!(home.setting(&[], &at_prod, "protected").1.starts_with("context prod, "));
    assert_eq!(home.setting(&[], &[], "prefix").0.unwrap(), "dev:");
    for name in ["context", "schema", "prefix", "deployment.express.lock_ttl", "color"] {
        assert_eq!(home.setting(&[], &at_other, name).0, None, "{name}");
    }
    assert_eq!(home.setting(&[], &at_other, "protected").0.unwrap(), "false");
    home.run(&[&at_other[..], &["force-unlock", "stuck", "--yes"]].concat()).exits(0);
}

#[test]
fn of_several_contexts_at_one_address_the_strictest_protection_holds() {
    let server = with_lock();
    let home = Home::with(&format!(
        "[contexts.dev]\nurl = \"{0}\"\n[contexts.main]\nurl = \"{0}?db=1\"\nprotected = true\n[contexts.old]\nurl = \"{0}?db=2\"\n",
        server.url()
    ));
    for words in
        [&["--context", "dev"][..], &["--context", "old", "-n", "0"], &["-s", &socket(&server)]]
    {
        let run = home.run(&[words, &["force-unlock", "stuck", "--yes"]].concat()).exits(2);
        let says = "has the server of `main`, which is protected: --yes is not enough";
        assert!(run.stderr.contains(says), "{words:?}: {}", run.all());
    }
    assert!(server.get("idem:stuck").is_some());
    assert!(home.setting(&[], &["--context", "dev"], "protected").1.starts_with("context main, "));
    let at = |more: &[&'static str]| name(&home, &[&["-s", &socket(&server)], more].concat());
    assert_eq!(at(&[]).unwrap(), "dev");
    assert_eq!(at(&["-n", "1"]).unwrap(), "main");
    assert_eq!(at(&["-n", "2"]).unwrap(), "old");
    assert_eq!(at(&["-n", "7"]).unwrap(), "dev");
    assert_eq!(at(&["-n", "1", "--context", "old"]).unwrap(), "old");
    home.run(&["--context", "dev", "force-unlock", "stuck", "--yes", "--confirm", "dev"]).exits(0);
}

#[test]
fn another_context_than_the_one_that_was_asked_for_is_said() {
    let (staging, prod, other) = (with_lock(), with_lock(), with_lock());
    let home = home_of(&staging, &prod);
    let list = |variables: &[(&str, &str)], words: &[&str]| {
        home.run_with(variables, &[words, &["list"]].concat()).exits(0).stderr
    };
    let said = list(&[], &["--context", "staging", "-s", &socket(&prod)]);
    assert!(
        said.contains("is the server of context `prod`") && said.contains("not those of `staging`"),
        "{said}"
    );
    let said = list(&[], &["--context", "staging", "-s", &socket(&other)]);
    assert!(said.contains("is not the server of context `staging`"), "{said}");
    let said = list(&[("IDEMCTL_CONTEXT", "staging")], &["-s", &socket(&prod)]);
    assert!(said.contains("is the server of context `prod`"), "{said}");
    for words in [
        &["--context", "prod", "-s", &socket(&prod)][..],
        &["-s", &socket(&other)],
        &["--context", "prod"],
        &[],
    ] {
        assert!(!list(&[], words).contains("server of context"), "{words:?}");
    }
}

#[test]
fn a_context_without_a_server_holds_for_whichever_is_no_other_contexts() {
    let (prod, other) = (with_lock(), with_lock());
    let home = Home::with(&format!(
        "default_context = \"roams\"\n[contexts.roams]\nprotected = true\n[contexts.prod]\nurl = \"{}\"\n",
        prod.url()
    ));
    assert_eq!(name(&home, &["-s", &socket(&other)]).unwrap(), "roams");
    assert_eq!(name(&home, &["-s", &socket(&prod)]).unwrap(), "prod");
    for server in [&prod, &other] {
        let run = home.run(&["-s", &socket(server), "force-unlock", "stuck", "--yes"]).exits(2);
        run.says("protected: --yes is not enough");
        assert!(server.get("idem:stuck").is_some());
    }
}

#[test]
fn a_host_is_one_however_it_is_written_and_a_sentinel_is_no_server() {
    let config = "[contexts.here]\nurl = \"redis://127.0.0.1\"\n[contexts.far]\nurl = \"rediss://Cache.Internal:6390/2\"\n[contexts.pay]\nurl = \"redis-sentinel://a:26379,b:26379/pay\"\n";
    let home = Home::with(config);
    let is = |words: &[&str], wanted: Option<&str>| {
        assert_eq!(name(&home, words).as_deref(), wanted, "{words:?}")
    };
    is(&[], Some("here"));
    is(&["-h", "LOCALHOST", "-p", "6379"], Some("here"));
    is(&["-u", "redis://[::1]:6379/4"], Some("here"));
    is(&["-p", "6380"], None);
    is(&["-h", "cache.internal", "-p", "6390"], Some("far"));
    is(&["-h", "cache.internal"], None);
    is(&["--sentinel", "c:26379,B:26379", "--master-name", "pay"], Some("pay"));
    is(&["--sentinel", "c:26379", "--master-name", "pay"], None);
    is(&["-h", "a", "-p", "26379"], None);
}

/// Rule: a server of this machine is one by whichever number of the loopback, or by its socket.
#[test]
fn a_protected_server_is_known_by_each_of_its_own_doors() {
    let port = free_port();
    let server = Server::start_with(&[&format!("port {port}"), "bind * -::*", "protected-mode no"]);
    server.put("idem:stuck", LOCK);
    let other = with_lock();
    let socket = server.url();
    let at = |host: &str| format!("redis://{host}:{port}");
    for (context, named) in [
        (at("127.0.0.1"), at("127.0.0.2")),
        (at("127.0.0.2"), at("localhost")),
        (at("127.0.0.1"), socket.clone()),
        (socket.clone(), at("127.0.0.1")),
        (socket, at("127.0.0.7")),
    ] {
        for (kept, says) in [
            ("protected = true", "context `prod` is protected: --yes is not enough"),
            ("read_only = true", "context `prod` is read-only; it allows no changes"),
        ] {
            let home = Home::with(&format!("[contexts.prod]\nurl = \"{context}\"\n{kept}\n"));
            for command in
                [&["force-unlock", "stuck", "--yes"][..], &["sweep", "--orphaned", "--yes"]]
            {
                home.run(&[&["-u", &named], command].concat()).exits(2).says(says);
            }
            home.run(&["-u", &named, "race", "--rounds", "1", "--schema", "express"])
                .exits(2)
                .says("context `prod` is");
            home.run(&["-u", &named, "list"]).exits(0);
            home.run(&["-u", &other.url(), "force-unlock", "stuck", "--yes", "--dry-run"]).exits(0);
        }
    }
    assert!(server.get("idem:stuck").is_some());
    let home =
        Home::with(&format!("[contexts.prod]\nurl = \"{}\"\nprotected = true\n", at("127.0.0.1")));
    // Another server of this machine is nobody's.
    home.run(&["-u", &other.url(), "force-unlock", "stuck", "--yes"]).exits(0);
    home.run(&["-u", &at("127.0.0.2"), "force-unlock", "stuck", "--confirm", "prod"]).exits(0);
    assert!(server.get("idem:stuck").is_none());
}

/// Rule: a server of this machine that does not tell its run id may be the protected one. Revert: if `None` of
/// `is_same_server` goes on, both locks go.
#[test]
fn a_server_without_run_id_may_be_the_protected_one() {
    let port = free_port();
    let server = Server::start_with(&[&format!("port {port}"), "bind * -::*", "protected-mode no"]);
    server.put("idem:stuck", LOCK);
    let proxy = hooked_at(port, |request| match says(request, "INFO") {
        true => Hook::Replace(b"$20\r\n# Server\r\nrun_id:0\r\n\r\n".to_vec()),
        false => Hook::Pass,
    });
    let home = of_one("prod", &server, "protected = true");
    let unlock = |port: u16| {
        let port = port.to_string();
        let run = home.run(&["-p", &port, "force-unlock", "stuck", "--yes"]).exits(2);
        run.says("context `prod` is protected");
        assert!(server.get("idem:stuck").is_some());
        run
    };
    unlock(port);
    let says = "the protection of context `prod` applies";
    unlock(proxy).says(says);
    server.send::<()>(&[b"ACL", b"SETUSER", b"default", b"-info"]);
    unlock(port).says(says);
}

#[test]
fn a_relative_socket_is_compared_whole() {
    let server = with_lock();
    let home = of_one("prod", &server, "protected = true");
    let words = ["-s", "./s", "force-unlock", "stuck", "--yes"];
    idemctl(home.path()).current_dir(server.folder()).args(words).run().exits(2);
    assert!(server.get("idem:stuck").is_some());
}

/// Rule: a URL names one database, or is refused: services share it in REDIS_URL, and some write `?db=`.
#[test]
fn a_url_is_never_taken_for_another_database() {
    let port = free_port();
    let server = Server::start_with(&[&format!("port {port}"), "bind 127.0.0.1"]);
    server.set("idem:zero", LOCK, 1_000_000);
    let lists = |url: &str| {
        let run = idemctl(server.folder()).env("REDIS_URL", url).args(["list", "-o", "name"]).run();
        (run.code, run.text())
    };
    let at = |more: &str| format!("redis://127.0.0.1:{port}{more}");
    assert_eq!(lists(&at("")), (0, "express/\"zero\"\n".to_owned()));
    server.send::<i64>(&[b"MOVE", b"idem:zero", b"5"]);
    for five in
        [at("?db=5"), at("/?db=5"), at("/5?db=5"), at("/5"), format!("{}?db=5", server.url())]
    {
        assert_eq!(lists(&five), (0, "express/\"zero\"\n".to_owned()), "{five}");
    }
    for more in ["/0?db=5", "?database=5", "?db=x", "?db=5&db=0", "?ssl=true", "/5?nonsense=1"] {
        assert_eq!(lists(&at(more)), (2, String::new()), "{more}");
    }
    assert_eq!(lists(&format!("{}?database=5", server.url())).0, 2);
    assert_eq!(lists("redis-sentinel://127.0.0.1:1/payments?db=5").0, 2);
}

/// Rule: a command line that idemctl prints does what it says when it is pasted, by whichever address the server is named.
#[test]
fn the_command_line_for_scripts_names_the_context_that_protects_the_server() {
    let port = free_port();
    let server = Server::start_with(&[&format!("port {port}"), "bind 127.0.0.1"]);
    server.put("idem:stuck", LOCK);
    let home = Home::with(&format!(
        "[contexts.prod]\nurl = \"redis://127.0.0.1:{port}\"\nprotected = true\n"
    ));
    let by_socket = ["-s", &socket(&server)];
    let shown =
        home.run(&[&by_socket[..], &["force-unlock", "stuck", "--dry-run"]].concat()).exits(0);
    let (_, line) = shown.stderr.split_once("For scripts: `idemctl ").unwrap();
    let (line, _) = line.split_once('`').unwrap();
    assert!(line.ends_with("--confirm prod"), "{line}");
    let words = shlex::split(line).unwrap();
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    home.run(&words).exits(0);
    assert!(server.get("idem:stuck").is_none());
}
