//! The config file and what comes of it: contexts, where each setting comes from, which one wins, passwords that stay
//! where they belong.

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

use crate::support::{Home, LOCK, Server, alone};

/// The config file of the document.
fn example() -> String {
    let document =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/connecting.md")).unwrap();
    let blocks = document.split("```toml\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    blocks.filter(|block| block.contains("[contexts.prod]")).collect::<Vec<_>>().concat()
}

#[test]
fn the_example_of_the_readme_says_what_it_seems_to() {
    let home = Home::with(&example());
    let folder = home.config().parent().unwrap().display().to_string();
    home.write(".config/idemctl/prod.pass", "s3cret\n");
    let listed = home.run(&["context", "list", "-o", "json"]).exits(0).json();
    let names: Vec<_> =
        listed["contexts"].as_array().unwrap().iter().map(|context| &context["name"]).collect();
    assert_eq!(names, ["audit", "prod", "staging"]);
    assert_eq!(listed["contexts"][0]["read_only"], true);
    let table = home.run(&["context", "list"]).exits(0);
    let document =
        fs::read_to_string(concat!(env!("CARGO_MANIFEST_DIR"), "/docs/connecting.md")).unwrap();
    for line in table.text().lines() {
        let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(
            document.lines().any(|there| words(there) == words(line)),
            "not in the document: {line}"
        );
    }
    let prod = |name| home.setting(&[], &["--context", "prod"], name);
    let config = home.config().display().to_string();
    assert_eq!(prod("server").0.unwrap(), "cache.internal:6390");
    assert_eq!(prod("server").1, format!("context prod, {config}:11"));
    assert_eq!(prod("password"), (Some("set".to_owned()), format!("context prod, {config}:13")));
    assert_eq!(prod("tls").0.unwrap(), "true");
    assert_eq!(prod("tls.cacert").0.unwrap(), format!("{folder}/ca.crt"));
    assert!(prod("tls.cacert").1.ends_with(":29"), "{:?}", prod("tls.cacert"));
    assert_eq!(prod("deployment.go-chi.lock_ttl").0.unwrap(), "1m 30s");
    assert_eq!(prod("prefix").0.unwrap(), "pay:");
    assert_eq!(prod("connect_timeout").0.unwrap(), "2s");
    assert_eq!(
        home.setting(&[], &[], "context"),
        (Some("staging".to_owned()), format!("{config}:1"))
    );
}

#[test]
fn flags_come_before_variables_before_the_context_before_defaults() {
    let home = Home::with(
        "default_context = \"a\"\n[contexts.a]\nurl = \"redis://ops:s3cret@a:1/1\"\ntimeout = \"7s\"\n[contexts.b]\nurl = \"redis://b:2\"\n",
    );
    let url = |variables: &[(&str, &str)], words: &[&str]| {
        let (value, origin) = home.setting(variables, words, "server");
        (value.unwrap(), origin)
    };
    let file = home.config().display().to_string();
    let redis_url = ("REDIS_URL", "redis://r:3");
    let own_url = ("IDEMCTL_URL", "redis://i:4");
    assert_eq!(url(&[redis_url], &[]), ("a:1".to_owned(), format!("context a, {file}:3")));
    assert_eq!(url(&[own_url], &[]), ("i:4".to_owned(), "$IDEMCTL_URL".to_owned()));
    assert_eq!(url(&[own_url], &["--context", "b"]).0, "b:2");
    assert_eq!(url(&[("IDEMCTL_CONTEXT", "b")], &[]).0, "b:2");
    assert_eq!(url(&[own_url], &["-u", "redis://f:5"]), ("f:5".to_owned(), "--url".to_owned()));
    assert_eq!(url(&[own_url], &["-h", "h"]), ("h:6379".to_owned(), "--host".to_owned()));
    assert_eq!(home.setting(&[], &[], "timeout").1, format!("context a, {file}:4"));
    assert_eq!(
        home.setting(&[], &["--timeout", "1s"], "timeout"),
        (Some("1s".to_owned()), "--timeout".to_owned())
    );
    assert_eq!(home.setting(&[], &["--context", "b"], "timeout").1, "default");
    // A password: the flag's, a URL's that is nearer than the variable, the variable, the context's.
    let auth = ("REDISCLI_AUTH", "x");
    let password =
        |variables: &[(&str, &str)], words: &[&str]| home.setting(variables, words, "password").1;
    assert_eq!(password(&[auth], &["-a", "y"]), "--pass");
    assert_eq!(password(&[auth], &["-u", "redis://:y@h"]), "--url");
    assert_eq!(password(&[auth], &[]), "$REDISCLI_AUTH");
    assert_eq!(password(&[], &[]), format!("context a, {file}:3"));
    let pass = home.write("pass", "y\n");
    assert_eq!(password(&[auth], &["--pass-file", &pass]), "--pass-file");
    assert_eq!(home.setting(&[], &[], "user").0.unwrap(), "ops");
    assert_eq!(home.setting(&[], &["-h", "h"], "user"), (None, "default".to_owned()));
    let table = home.run(&["config", "show"]).exits(0).text();
    assert!(!table.contains("default_context") && !table.contains("FROM"), "{table}");
    let table = home.run(&["config", "show", "--origin"]).exits(0).text();
    assert!(table.contains("FROM") && table.contains(&format!("{file}:1")), "{table}");
}

#[test]
fn what_the_file_cannot_say_is_named_with_its_line_and_no_password() {
    for (config, line, says) in [
        ("[contexts.a]\nurl = \"redis://a\"\nprotectd = true\n", 3, "unknown field `protectd`"),
        ("[contexts.a]\npassword = 918273645\n", 2, "quotes"),
        ("[contexts.a]\npassword = s3cret\n", 2, ""),
        ("[contexts.a]\npassword = [\"s3cret\"]\n", 2, ""),
        ("[contexts.a]\ntimeout = \"5 parsecs\"\n", 2, "5 parsecs"),
        ("[contexts.a]\nconnect_timeout = \"0s\"\n", 2, "longer than zero"),
        ("[contexts.a]\ncolor = \"pink\"\n", 2, "unknown variant `pink`"),
        ("[contexts.a]\ntls = \"yes\"\n", 2, "true, false or a table"),
        ("[contexts.a.tls]\ncacrt = \"x\"\n", 2, "unknown field `cacrt`"),
        ("[contexts.a.deployment.express]\nlock_ttl = \"x\"\n", 2, "x"),
        ("default_contxt = \"a\"\n", 1, "unknown field"),
    ] {
        let home = Home::with(config);
        for command in [&["list"][..], &["context", "list"], &["config", "show"]] {
            let run = home.run(command).exits(2);
            let place = format!("{}:{line}: ", home.config().display());
            assert!(
                run.stderr.contains(&place) && run.stderr.contains(says),
                "{config}: {}",
                run.all()
            );
            assert!(
                !run.stderr.contains("s3cret") && !run.stderr.contains("918273645"),
                "{}",
                run.all()
            );
        }
    }
    let home = Home::with("[contexts.a]\nurl = \"rediss://a\"\ntls = false\n");
    assert!(home.run(&["--context", "a", "list"]).exits(2).stderr.contains("tls = false"));
    let home = Home::with("[contexts.a]\nurl = \"redis://ops@a\"\n");
    assert!(
        home.run(&["--context", "a", "list"]).exits(2).stderr.contains("a user needs a password")
    );
    let home = Home::with("[contexts.a]\npassword_file = \"missing\"\n");
    assert!(
        home.run(&["--context", "a", "list"])
            .exits(2)
            .stderr
            .contains("idemctl/missing: No such file")
    );
}

/// Rule: a config file of an earlier version is refused as a whole, because a context that is not read protects nothing.
#[test]
fn the_former_name_of_the_table_of_contexts_is_refused() {
    let old = "default_context = \"a\"\n[context.a]\nurl = \"redis://a\"\nprotected = true\n";
    let both = "[contexts.b]\nurl = \"redis://b\"\n[context.a]\nurl = \"redis://a\"\n";
    for (config, line) in
        [(old, 2), (both, 3), ("[context.a.deployment.express]\nprefix = \"x:\"\n", 1)]
    {
        let home = Home::with(config);
        for command in
            [&["list"][..], &["context", "list"], &["context", "set", "c", "-u", "redis://c"]]
        {
            let run = home.run(command).exits(2);
            run.says(format!("{}:{line}: unknown field `context`", home.config().display()));
            run.says("rename each [context.NAME] to [contexts.NAME]");
        }
        assert_eq!(fs::read_to_string(home.config()).unwrap(), config);
    }
}

#[test]
fn choosing_a_context_changes_one_word_of_the_file() {
    let text = "# ours\ndefault_context = \"a\"   # for now\n\n[contexts.b] # second\nurl  =  'redis://b'\n[contexts.a]\nurl = \"redis://a\"\n";
    let home = Home::with(text);
    home.chmod(&home.config(), 0o640);
    let run = home.run(&["context", "use", "b"]).exits(0);
    run.says("The default context is b.");
    let new = text.replace("default_context = \"a\"", "default_context = \"b\"");
    assert_eq!(fs::read_to_string(home.config()).unwrap(), new);
    assert_eq!(fs::metadata(home.config()).unwrap().permissions().mode() & 0o777, 0o640);
    let former = home.config().with_extension("toml.bak");
    assert_eq!(fs::read_to_string(&former).unwrap(), text);
    assert_eq!(fs::metadata(&former).unwrap().permissions().mode() & 0o777, 0o640);
    assert_eq!(
        fs::read_dir(home.config().parent().unwrap()).unwrap().count(),
        2,
        "nothing else is left beside it"
    );
    home.run(&["context", "use", "c"]).exits(2).says("contexts: a, b");
    assert_eq!(fs::read_to_string(home.config()).unwrap(), new);
    let run = home.run_with(&[("IDEMCTL_CONTEXT", "a")], &["context", "use", "b"]).exits(0);
    run.says("IDEMCTL_CONTEXT");
    // A link stays one, and a default that is not there can be mended.
    let home = Home::with("[contexts.a]\nurl = \"redis://a\"\n");
    let real =
        home.write("real.toml", "default_context = \"gone\"\n[contexts.a]\nurl = \"redis://a\"\n");
    fs::remove_file(home.config()).unwrap();
    std::os::unix::fs::symlink(&real, home.config()).unwrap();
    home.run(&["list"]).exits(2);
    assert!(home.run(&["context", "list"]).exits(0).stderr.contains("`gone` does not exist"));
    home.run(&["context", "use", "a"]).exits(0);
    assert!(fs::symlink_metadata(home.config()).unwrap().is_symlink());
    assert!(fs::read_to_string(&real).unwrap().starts_with("default_context = \"a\"\n"));
    let bare = Home::with("[contexts.a]\nurl = \"redis://a\"\n");
    bare.run(&["context", "use", "a"]).exits(0);
    assert_eq!(
        fs::read_to_string(bare.config()).unwrap().lines().next().unwrap(),
        "default_context = \"a\""
    );
    let shown = bare.run(&["context", "show"]).exits(0);
    assert!(
        shown.text().starts_with("a  (used)\n") && shown.text().contains("a:6379/0"),
        "{}",
        shown.all()
    );
    alone(&["context", "list"]).exits(0).says("No contexts");
}

#[test]
fn no_password_is_shown_anywhere() {
    let config = "[contexts.a]\nurl = \"redis://ops:s3cret@127.0.0.1:1/0\"\n[contexts.b]\nurl = \"redis://127.0.0.1:1\"\nuser = \"ops\"\npassword = \"s3cret\"\n[contexts.c]\nurl = \"unix:///nowhere?user=ops&pass=s3cret\"\n[contexts.d]\nurl = \"redis://ops:s3cret@[bad\"\n";
    let home = Home::with(config);
    for context in ["a", "b", "c", "d"] {
        for command in [
            &["list"][..],
            &["inspect", "k"],
            &["force-unlock", "k", "--yes"],
            &["race", "--rounds", "1"],
            &["config", "show", "--origin"],
            &["config", "show", "-o", "json"],
            &["context", "show", context],
            &["context", "show", context, "-o", "jsonl"],
            &["context", "list", "-o", "json"],
            &["-u", "redis://:s3cret@127.0.0.1:1", "list"],
            &["-a", "s3cret", "list"],
        ] {
            let run = home.run(&[&["--context", context], command].concat());
            assert!(!run.all().contains("s3cret"), "{command:?}: {}", run.all());
        }
    }
}

#[test]
fn a_file_with_a_password_that_others_can_read_draws_a_warning() {
    for password in
        ["password = \"s3cret\"", "url = \"redis://:s3cret@a\"", "url = \"unix:///s?pass=s3cret\""]
    {
        let home = Home::with(&format!("[contexts.a]\n{password}\n"));
        for (mode, warns) in [(0o600, false), (0o640, true), (0o644, true)] {
            home.chmod(&home.config(), mode);
            let run = home.run(&["schema", "list"]).exits(0);
            assert_eq!(
                run.stderr.contains("can be read by others: chmod 600"),
                warns,
                "{}",
                run.all()
            );
        }
    }
    let home =
        Home::with("[contexts.a]\nurl = \"redis://a\"\nuser = \"ops\"\npassword_file = \"pass\"\n");
    home.chmod(&home.config(), 0o644);
    assert_eq!(home.run(&["schema", "list"]).exits(0).stderr, "");
    let pass = home.write(".config/idemctl/pass", "s3cret\n");
    home.chmod(Path::new(&pass), 0o644);
    assert!(
        home.run(&["--context", "a", "schema", "list"])
            .exits(0)
            .stderr
            .contains("pass holds a password")
    );
}

/// What a server that says nothing is sent.
fn sent(home: &Home, words: impl Fn(u16) -> Vec<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let hears = std::thread::spawn(move || {
        let mut heard = vec![0; 1024];
        let mut stream = listener.accept().unwrap().0;
        let count = stream.read(&mut heard).unwrap();
        let _ = stream.write_all(b"-ERR no\r\n");
        String::from_utf8_lossy(&heard[..count]).into_owned()
    });
    let words = words(port);
    home.run(&words.iter().map(String::as_str).collect::<Vec<_>>());
    hears.join().unwrap()
}

#[test]
fn a_contexts_password_is_sent_to_its_own_server_only() {
    let home = Home::with(
        "[contexts.a]\nurl = \"redis://127.0.0.1:1\"\nuser = \"ops\"\npassword = \"s3cret\"\n",
    );
    let to = |port: u16, more: &[&str]| -> Vec<String> {
        let words = ["--context", "a", "-p", &port.to_string(), "--timeout", "300ms"];
        words.iter().chain(more).chain(&["inspect", "k"]).map(|word| (*word).to_owned()).collect()
    };
    let heard = sent(&home, |port| to(port, &[]));
    assert!(!heard.contains("s3cret") && !heard.is_empty(), "{heard}");
    let own = Home::with("");
    let heard = sent(&own, |port| {
        let config = format!(
            "[contexts.a]\nurl = \"redis://127.0.0.1:{port}\"\nuser = \"ops\"\npassword = \"s3cret\"\n"
        );
        fs::write(own.config(), config).unwrap();
        ["--context", "a", "--timeout", "300ms", "inspect", "k"].map(str::to_owned).into()
    });
    assert!(heard.contains("s3cret"), "{heard}");
}

#[test]
fn a_password_comes_from_a_file_or_the_first_line_of_stdin() {
    let server = Server::start_with(&["requirepass s3cret"]);
    server.connect_as("s3cret", |connection| {
        redis::cmd("SET")
            .arg("idem:web-1")
            .arg(LOCK)
            .arg("EX")
            .arg(2_000)
            .exec(connection)
            .unwrap();
    });
    let file = server.folder().join("pass");
    fs::write(&file, "s3cret\n").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o600)).unwrap();
    let run =
        server.idemctl(&["--pass-file", &file.display().to_string(), "inspect", "web-1"]).exits(0);
    assert!(!run.stderr.contains("warning"), "{}", run.all());
    let fed = server
        .idemctl_fed(&["--pass-file", "-", "inspect", "-", "-o", "jsonl"], b"s3cret\nweb-1\n")
        .exits(0);
    assert_eq!(fed.json_lines().len(), 1);
    let warned = server.idemctl(&["-a", "s3cret", "inspect", "web-1"]).exits(0);
    assert!(
        warned.stderr.contains("in the process list") && !warned.stderr.contains("s3cret"),
        "{}",
        warned.all()
    );
    let silent =
        server.idemctl(&["-a", "s3cret", "--no-auth-warning", "inspect", "web-1"]).exits(0);
    assert_eq!(silent.stderr, "");
}

#[test]
fn a_setting_without_effect_or_for_an_unknown_schema_is_an_error_with_its_line() {
    for (config, line, says) in [
        (
            "[contexts.a]\n\n[contexts.a.deployment.expres]\nlock_ttl = \"5s\"\n",
            3,
            "there is no schema `expres`",
        ),
        ("[contexts.a]\ndeployment.expres.prefix = \"x:\"\n", 2, "there is no schema `expres`"),
        (
            "[contexts.a]\ndeployment.expres = { prefix = \"x:\" }\n",
            2,
            "there is no schema `expres`",
        ),
        (
            "[contexts.a]\nschema = [\n  \"express\",\n  \"expres\",\n]\n",
            4,
            "there is no schema `expres`",
        ),
        (
            "[contexts.a]\nschema = [\"express\"]\nprefix = \"x:\"\n",
            3,
            "`prefix` is for schemas whose key templates write",
        ),
    ] {
        let home = Home::with(config);
        for command in [
            &["list"][..],
            &["inspect", "k"],
            &["sweep", "--orphaned", "--dry-run"],
            &["config", "show"],
            &["schema", "list"],
            &["race", "--rounds", "1"],
        ] {
            let run = home.run(&[&["--context", "a"], command].concat()).exits(2);
            let place = format!("error: {}:{line}: ", home.config().display());
            assert!(
                run.stderr.contains(&place) && run.stderr.contains(says),
                "{command:?} {config}: {}",
                run.all()
            );
        }
        // What reads no schema goes on, and so does another context.
        home.run(&["--context", "a", "context", "list"]).exits(0);
        home.run(&["--context", "a", "log"]).exits(0);
        home.run(&["config", "show"]).exits(0);
    }
    let home = Home::with("[contexts.a]\nprefix = \"x:\"\nschema = [\"express\", \"go-chi\"]\n");
    home.run(&["--context", "a", "config", "show"]).exits(0);
}
