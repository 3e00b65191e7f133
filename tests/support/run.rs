//! The binary with a cleared environment, and what a run of it gave.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::printed;
use super::server::Server;

/// The binary under test: the one that was built with the tests, or the one that `IDEMCTL_TEST_BINARY` names, as a release has it.
pub fn binary() -> PathBuf {
    std::env::var_os("IDEMCTL_TEST_BINARY")
        .map_or_else(|| PathBuf::from(env!("CARGO_BIN_EXE_idemctl")), PathBuf::from)
}

/// The binary with a cleared environment and a home of its own.
pub fn idemctl(home: &Path) -> Command {
    let mut command = Command::new(binary());
    command
        .env_clear()
        .env("HOME", home)
        .env("USER", "tester")
        .env("PATH", "/usr/bin:/bin")
        // `make test` looks there for files and processes that were left behind.
        .env("TMPDIR", std::env::temp_dir())
        .current_dir(home);
    command
}

/// The binary in a home of its own, with no server named.
pub fn alone(words: &[&str]) -> Run {
    idemctl(tempfile::tempdir().expect("a folder").path()).args(words).run()
}

/// Does this with each of them, all at the same time; gives what came of each.
pub fn at_once<T: Send, R: Send>(
    items: impl IntoIterator<Item = T>,
    work: impl Fn(T) -> R + Sync,
) -> Vec<R> {
    let work = &work;
    std::thread::scope(|scope| {
        let started: Vec<_> =
            items.into_iter().map(|item| scope.spawn(move || work(item))).collect();
        started.into_iter().map(|done| done.join().unwrap()).collect()
    })
}

/// Runs a command behind these words of a shell, which bound what it may take.
pub fn bounded(whole: &Command, bounds: &str) -> Run {
    let mut command = Command::new("/bin/sh");
    command.env_clear().envs(whole.get_envs().filter_map(|(name, value)| Some((name, value?))));
    command
        .args(["-c", &format!("{bounds}; exec \"$@\""), "sh"])
        .arg(whole.get_program())
        .args(whole.get_args());
    command.current_dir(whole.get_current_dir().unwrap()).run()
}

/// Sends a process a signal.
#[track_caller]
pub fn signal(pid: u32, signal: Signal) {
    let pid = Pid::from_raw(i32::try_from(pid).expect("a process id")).expect("a process id");
    kill_process(pid, signal).expect("the process is there");
}

/// What a test does with a command.
pub trait Runs {
    /// Starts it with this for its stdin; what it writes waits in pipes.
    fn start_with(&mut self, stdin: Stdio) -> Child;

    /// Starts it with nothing on stdin.
    fn start(&mut self) -> Child {
        self.start_with(Stdio::null())
    }

    /// Runs it with nothing on stdin.
    fn run(&mut self) -> Run;

    /// Runs it with this on stdin.
    fn fed(&mut self, stdin: &[u8]) -> Run;
}

impl Runs for Command {
    fn start_with(&mut self, stdin: Stdio) -> Child {
        self.stdin(stdin)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    fn run(&mut self) -> Run {
        let run = self.start().ends();
        printed::lead_back(self, &run);
        run
    }

    fn fed(&mut self, stdin: &[u8]) -> Run {
        let mut child = self.start_with(Stdio::piped());
        let mut pipe = child.stdin.take().expect("stdin");
        let stdin = stdin.to_vec();
        // In a thread, for a large stdin and a large stdout would wait for each other.
        let feeder = std::thread::spawn(move || {
            let _ = pipe.write_all(&stdin);
        });
        let run = child.ends();
        feeder.join().expect("the feeder ends");
        printed::lead_back(self, &run);
        run
    }
}

/// What a test does with a command that runs.
pub trait Running {
    /// Sends it a signal.
    fn signal(&self, signal: Signal);

    /// Waits for its end.
    fn ends(self) -> Run;
}

impl Running for Child {
    #[track_caller]
    fn signal(&self, to_send: Signal) {
        signal(self.id(), to_send);
    }

    fn ends(self) -> Run {
        Run::from(self.wait_with_output().expect("the program ends"))
    }
}

/// What a run of the binary gave.
pub struct Run {
    /// What it wrote to stdout.
    pub stdout: Vec<u8>,
    /// What it wrote to stderr.
    pub stderr: String,
    /// Its exit code.
    pub code: i32,
}

impl Run {
    /// stdout as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stdout as one JSON document.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout)
            .unwrap_or_else(|error| panic!("{error}: {}", self.all()))
    }

    /// stdout as JSON lines.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        self.text()
            .lines()
            .map(|line| {
                serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"))
            })
            .collect()
    }

    /// stdout, stderr and status as one text, for snapshots and failures.
    pub fn all(&self) -> String {
        format!("status: {}\n--- stdout\n{}--- stderr\n{}", self.code, self.text(), self.stderr)
    }

    /// Asserts that this text is on stderr, showing everything when it is not.
    #[track_caller]
    pub fn says(&self, text: impl AsRef<str>) -> &Self {
        assert!(
            self.stderr.contains(text.as_ref()),
            "no {:?} on stderr: {}",
            text.as_ref(),
            self.all()
        );
        self
    }

    /// Asserts that this text is on stdout, showing everything when it is not.
    #[track_caller]
    pub fn shows(&self, text: impl AsRef<str>) -> &Self {
        assert!(
            self.text().contains(text.as_ref()),
            "no {:?} on stdout: {}",
            text.as_ref(),
            self.all()
        );
        self
    }

    /// Asserts the exit code, showing everything when it is another.
    #[track_caller]
    pub fn exits(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{}", self.all());
        self
    }
}

impl From<Output> for Run {
    fn from(output: Output) -> Self {
        Self {
            stdout: output.stdout,
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
            code: output.status.code().unwrap_or(-1),
        }
    }
}

impl Run {
    /// stdout, stderr and status with what differs from run to run and engine to engine taken out.
    pub fn stable(&self, server: &Server) -> String {
        let text = self.all().replace(&server.folder().display().to_string(), "FOLDER");
        let lines = text.lines().filter(|line| !line.starts_with("  Idle "));
        let lines = lines.map(|line| match line.split_once(" B, ") {
            Some((before, after)) if after.ends_with(" in memory") => format!("{before} B"),
            // A token ends with the moment at which the lock expires.
            _ if line.starts_with("For scripts: ") => {
                line.split('@').next().unwrap_or_default().to_owned()
            }
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
