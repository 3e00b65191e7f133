//! idemctl on a service whose master Sentinels know.

use std::sync::Arc;
use std::time::Duration;

use crate::support::certificates::{Authority, Pair};
use crate::support::fault::{self, Hook};
use crate::support::sentinel::{self, Watched};
use crate::support::{self, PENDING, Run, Runs, Server, until};

const DONE: &str = r#"{"status":"COMPLETED","code":200,"headers":{},"body":""}"#;

fn idemctl(watched: &Watched, words: &[&str]) -> Run {
    watched.server(0).unnamed(&[&["-u", &watched.url()], words].concat())
}

fn fill(server: &Server, count: usize) {
    let mut connection = server.connect();
    support::fill(
        &mut connection,
        (0..count).map(|number| (format!("idempotency:k{number}"), DONE)),
        80_000_000,
    );
    // A replica that is behind would lose them, whatever idemctl does.
    assert_eq!(redis::cmd("WAIT").arg(1).arg(10_000).query::<usize>(&mut connection).unwrap(), 1);
}

#[test]
fn the_master_is_found_and_found_again_after_a_failover() {
    let watched = Watched::start(2);
    watched.server(0).set("idempotency:a", PENDING, 60_000);
    idemctl(&watched, &["inspect", "a"]).exits(0);
    idemctl(&watched, &["force-unlock", "a", "--yes"]).exits(0);
    assert_eq!(watched.server(0).get("idempotency:a"), None);
    watched.fail_over();
    watched.server(1).set("idempotency:b", PENDING, 60_000);
    let run = idemctl(&watched, &["list", "-o", "jsonl"]).exits(0);
    assert_eq!(run.json_lines().len(), 1, "{}", run.all());
    idemctl(
        &watched,
        &["complete", "b", "--schema", "go-middleware", "--status", "200", "--body", "", "--yes"],
    )
    .exits(0);
    assert!(
        watched.server(1).get("idempotency:b").unwrap().starts_with(b"{\"status\":\"COMPLETED")
    );
}

/// Rule: a service's master is one, named by itself or by its Sentinels, before and after a failover.
#[test]
fn what_a_context_keeps_is_kept_at_the_master_and_through_the_sentinels() {
    let watched = Watched::start(2);
    let config = watched.server(0).folder().join("prod.toml");
    let by_sentinels = watched.url();
    for index in [0, 1] {
        let master = format!("redis://127.0.0.1:{}", watched.port(index));
        watched.server(index).set("idempotency:a", PENDING, 600_000);
        // A Sentinel listens on its master a moment after it began.
        until("the Sentinels listen", || {
            let listeners = watched.server(index).send::<redis::Value>(&[
                b"PUBSUB",
                b"NUMSUB",
                b"__sentinel__:hello",
            ]);
            !format!("{listeners:?}").contains("int(0)")
        });
        for (context, named) in [(&by_sentinels, &master), (&master, &by_sentinels)] {
            for (kept, says) in
                [("protected", "--yes is not enough"), ("read_only", "it allows no changes")]
            {
                std::fs::write(
                    &config,
                    format!("[contexts.prod]\nurl = \"{context}\"\n{kept} = true\n"),
                )
                .unwrap();
                let words = [
                    "--config",
                    config.to_str().unwrap(),
                    "-u",
                    named,
                    "force-unlock",
                    "a",
                    "--yes",
                ];
                let run = watched.server(0).unnamed(&words).exits(2);
                run.says("context `prod` is").says(says);
            }
        }
        assert!(watched.server(index).get("idempotency:a").is_some());
        if index == 0 {
            watched.fail_over();
        }
    }
}

#[test]
fn sentinels_and_service_are_named_by_options_too() {
    let watched = Watched::start(1);
    watched.server(0).set("idempotency:a", PENDING, 60_000);
    let url = watched.url();
    let (sentinels, service) =
        url.strip_prefix("redis-sentinel://").unwrap().split_once('/').unwrap();
    let run = |words: &[&str]| {
        // The options come before the variables.
        support::idemctl(watched.server(0).folder())
            .env("IDEMCTL_URL", "redis://127.0.0.1:1")
            .args(words)
            .run()
    };
    let named = ["--sentinel", sentinels, "--master-name", service];
    assert_eq!(
        run(&[&named[..], &["list", "-o", "jsonl"]].concat()).exits(0).json_lines().len(),
        1
    );
    run(&["--sentinel", sentinels, "list"]).exits(2);
    run(&["--master-name", service, "list"]).exits(2);
    run(&[&named[..], &["-p", "6379", "list"]].concat()).exits(2);
}

/// Lines of a Sentinel that lets in an operator who may ask for the master, and an administrator.
const CLOSED: [&str; 3] = [
    "user default off",
    "user admin on >admin ~* &* +@all",
    "user ops on >s3cret -@all +auth +client|setname +sentinel|get-master-addr-by-name",
];

#[test]
fn sentinels_have_a_log_in_of_their_own() {
    let watched = Watched::start_as(1, &[], &CLOSED).unwrap();
    let home = watched.server(0).folder();
    watched.server(0).set("idempotency:a", PENDING, 60_000);
    let file = |name: &str, text: &str, mode| {
        let path = home.join(name);
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(mode))
            .unwrap();
        path.display().to_string()
    };
    let (right, wrong) = (file("right", "s3cret\n", 0o600), file("wrong", "secret\n", 0o600));
    for words in [&[][..], &["--sentinel-user", "ops", "--sentinel-pass-file", &wrong]] {
        let run = idemctl(&watched, &[words, &["list"]].concat()).exits(4);
        run.says("the Sentinel at 127.0.0.1:").says("hint: Sentinels have their own login");
    }
    let named = ["--sentinel-user", "ops", "--sentinel-pass-file", &right];
    idemctl(&watched, &[&named[..], &["force-unlock", "a", "--yes"]].concat()).exits(0);
    assert_eq!(watched.server(0).get("idempotency:a"), None);
    support::idemctl(home)
        .env("IDEMCTL_SENTINEL_AUTH", "s3cret")
        .args(["-u", &watched.url(), "--sentinel-user", "ops", "list"])
        .run()
        .exits(0);

    let config = file(
        "config.toml",
        &format!(
            "[contexts.prod]\nurl = \"{}\"\n[contexts.prod.sentinel]\nuser = \"ops\"\npassword = \"s3cret\"\n",
            watched.url()
        ),
        0o644,
    );
    let of_context = |words: &[&str]| {
        support::idemctl(home).args(["--config", &config, "--context", "prod"]).args(words).run()
    };
    of_context(&["list"]).exits(0).says("holds a password and can be read by others");
    let shown = of_context(&["config", "show", "--origin"]).exits(0);
    shown.shows("sentinel.user").shows("config.toml:4");
    assert!(
        shown.text().contains("sentinel.password") && !shown.all().contains("s3cret"),
        "{}",
        shown.all()
    );

    assert!(
        idemctl(&watched, &["--sentinel-user", "ops", "list"])
            .exits(2)
            .stderr
            .contains("needs a password")
    );
    watched
        .server(0)
        .idemctl(&["--sentinel-pass-file", &right, "list"])
        .exits(2)
        .says("none are named");
}

#[test]
fn servers_and_sentinels_speak_tls_through_a_failover() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new(folder.path());
    let Pair { cert, key } = authority.sign("server", &["127.0.0.1"]);
    let ca = authority.ca();
    let tls = [
        format!("tls-cert-file {cert}"),
        format!("tls-key-file {key}"),
        format!("tls-ca-cert-file {ca}"),
        "tls-auth-clients no".to_owned(),
        "tls-replication yes".to_owned(),
    ];
    let Some(watched) = Watched::start_as(1, &tls, &[]) else {
        eprintln!("skipped: the engine under test speaks no TLS");
        return;
    };
    fill(watched.server(0), 10);
    let url = watched.url().replace("redis-", "rediss-");
    let run = |words: &[&str]| watched.server(0).unnamed(&[&["-u", &url], words].concat());
    run(&["list"]).exits(5).says("cannot establish TLS with Redis at 127.0.0.1:");
    assert_eq!(run(&["--cacert", &ca, "list", "-o", "jsonl"]).exits(0).json_lines().len(), 10);
    idemctl(&watched, &["list"]).exits(5).says("accepts only TLS connections");
    watched.fail_over();
    run(&["--cacert", &ca, "purge", "--all", "--yes", "--schema", "go-middleware"]).exits(0);
    assert_eq!(watched.server(1).send::<usize>(&[b"DBSIZE"]), 0);
}

#[test]
fn what_was_done_is_told_also_when_nobody_can_say_who_the_master_is() {
    let watched = Arc::new(Watched::start(1));
    for key in ["a", "b"] {
        watched.server(0).set(&format!("idempotency:{key}"), PENDING, 60_000);
    }
    // The Sentinel is cut off as soon as the lock is gone.
    let there = Arc::downgrade(&watched);
    let way = fault::hooked_at(watched.sentinel_port(0), move |_| match there.upgrade() {
        Some(there) if there.server(0).get("idempotency:a").is_some() => Hook::Pass,
        _ => Hook::Cut,
    });
    let url = format!("redis-sentinel://127.0.0.1:{way}/{}", sentinel::SERVICE);
    let run = watched
        .server(0)
        .unnamed(&["-u", &url, "force-unlock", "a", "--yes", "--backup", "b"])
        .exits(3);
    run.says("Unlocked a; backup: ").says("idemctl cannot tell whether it is still the master");
    assert_eq!(watched.server(0).get("idempotency:a"), None);
}

#[test]
fn a_failover_in_the_middle_of_a_purge_loses_nothing() {
    let watched = Watched::start(1);
    fill(watched.server(0), 6_000);
    std::thread::scope(|scope| {
        let purge = scope.spawn(|| {
            let words = [
                "purge",
                "--schema",
                "go-middleware",
                "--all",
                "--yes",
                "--rate",
                "3000/s",
                "--backup",
                "b",
            ];
            idemctl(&watched, &words)
        });
        std::thread::sleep(Duration::from_millis(500));
        watched.fail_over();
        let run = purge.join().unwrap();
        // What went to the old master before anybody knew may have come back, and it says so.
        if run.code != 0 {
            assert_eq!(run.code, 3, "{}", run.all());
            run.says("happened in between");
        }
        // On a busy machine Sentinels may take their time to agree, and a run meets the failover once more.
        for backup in ["c", "d", "e"] {
            let again =
                ["purge", "--schema", "go-middleware", "--all", "--yes", "--backup", backup];
            let run = idemctl(&watched, &again);
            if run.code == 0 {
                break;
            }
            assert!(run.code == 3 && run.stderr.contains("happened in between"), "{}", run.all());
        }
        assert_eq!(watched.server(1).send::<usize>(&[b"DBSIZE"]), 0, "{}", run.all());
        // What is gone is in the backups.
        for backup in ["b", "c", "d", "e"]
            .iter()
            .filter(|backup| watched.server(0).folder().join(backup).exists())
        {
            // Some may be there already, from the other one.
            let back = idemctl(&watched, &["restore", backup, "--yes", "-o", "jsonl"]);
            assert!([0, 3].contains(&back.code), "{}", back.all());
        }
        assert_eq!(watched.server(1).send::<usize>(&[b"DBSIZE"]), 6_000, "{}", run.all());
    });
}

#[test]
fn a_service_that_nobody_knows_and_sentinels_that_are_gone_are_unreachable() {
    let watched = Watched::start(1);
    let url = watched.url().replace(sentinel::SERVICE, "orders");
    let run = |url: &str| watched.server(0).unnamed(&["-u", url, "inspect", "a"]).exits(5);
    assert!(run(&url).stderr.contains("it knows no service `orders`"));
    assert!(run("redis-sentinel://127.0.0.1:1/payments").stderr.contains("127.0.0.1:1"));
    assert!(
        watched
            .server(0)
            .unnamed(&["-u", "redis-sentinel://127.0.0.1:26379", "inspect", "a"])
            .exits(2)
            .stderr
            .contains("/SERVICE")
    );
}

#[test]
fn changes_wait_for_replicas_and_say_when_those_have_not_got_them() {
    let watched = Watched::start(1);
    for key in ["a", "b", "c", "d"] {
        watched.server(0).set(&format!("idempotency:{key}"), PENDING, 60_000);
    }
    idemctl(&watched, &["force-unlock", "a", "--yes", "--wait-replicas", "1"]).exits(0);
    let complete =
        ["complete", "b", "--schema", "go-middleware", "--status", "200", "--body", "", "--yes"];
    idemctl(&watched, &[&complete[..], &["--wait-replicas", "1"]].concat()).exits(0);
    let wants_two = ["--wait-replicas", "2", "--wait-timeout", "100ms"];
    let run =
        idemctl(&watched, &[&["force-unlock", "c", "--yes"], &wants_two[..]].concat()).exits(3);
    run.says("only 1 of 2 replicas");
    assert_eq!(watched.server(0).get("idempotency:c"), None, "it was done");
    let complete =
        ["complete", "d", "--schema", "go-middleware", "--status", "200", "--body", "", "--yes"];
    idemctl(&watched, &[&complete[..], &wants_two[..]].concat())
        .exits(3)
        .says("only 1 of 2 replicas");
    let purge = ["purge", "--schema", "go-middleware", "--all", "--yes", "--no-backup"];
    idemctl(&watched, &[&purge[..], &wants_two[..]].concat()).exits(3);
    idemctl(&watched, &[&purge[..], &["--wait-replicas", "1", "--wait-timeout", "9s"]].concat())
        .exits(2);
}

#[test]
fn a_list_is_read_from_a_replica_where_asked_to_and_no_change_is() {
    let watched = Watched::start(1);
    fill(watched.server(0), 500);
    let gets = |index: usize| watched.server(index).calls("scan") > 0;
    let run = idemctl(&watched, &["list", "--read-from", "replica", "-o", "jsonl"]).exits(0);
    assert_eq!((run.json_lines().len(), gets(0), gets(1)), (500, false, true));
    idemctl(&watched, &["sweep", "--orphaned", "--dry-run", "--read-from", "replica"]).exits(0);
    assert!(!gets(0));
    idemctl(&watched, &["sweep", "--orphaned", "--yes", "--read-from", "replica"]).exits(2);
    // Without a replica the master answers.
    let alone = Server::start();
    alone.set("idempotency:a", DONE, 60_000);
    let run = alone.idemctl(&["list", "--read-from", "replica", "-o", "jsonl"]).exits(0);
    assert_eq!(run.json_lines().len(), 1);
}

/// Rule: Sentinels that take connections and never answer are waited for once each.
#[test]
fn sentinels_that_never_answer_are_given_up() {
    let ports = [fault::half_open(), fault::half_open(), fault::half_open()];
    let hosts = ports.map(|port| format!("127.0.0.1:{port}")).join(",");
    let url = format!("redis-sentinel://{hosts}/pay");
    let began = std::time::Instant::now();
    support::alone(&["-u", &url, "--timeout", "1s", "--connect-timeout", "1s", "list"])
        .exits(5)
        .says("did not answer");
    assert!(began.elapsed() < Duration::from_secs(20), "{:?}", began.elapsed());
}
