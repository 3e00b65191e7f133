//! The binary with a cleared environment, and what a run of it gave.

use std::io::Write as _;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use super::server::Server;

/// The binary with a cleared environment and a home of its own.
pub fn idemctl(home: &Path) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_idemctl"));
    command.env_clear().env("HOME", home).env("USER", "tester").env("PATH", "/usr/bin:/bin").current_dir(home);
    command
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
    /// Runs a command with this stdin.
    pub fn of(mut command: Command, stdin: &[u8]) -> Self {
        let mut child = command
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut pipe = child.stdin.take().expect("stdin");
        let stdin = stdin.to_vec();
        // In a thread, for a large stdin and a large stdout would wait for each other.
        let feeder = std::thread::spawn(move || {
            let _ = pipe.write_all(&stdin);
        });
        let output = child.wait_with_output().expect("the binary ends");
        feeder.join().expect("the feeder ends");
        Self::from(output)
    }

    /// stdout as text.
    pub fn text(&self) -> String {
        String::from_utf8_lossy(&self.stdout).into_owned()
    }

    /// stdout as one JSON document.
    pub fn json(&self) -> serde_json::Value {
        serde_json::from_slice(&self.stdout).unwrap_or_else(|error| panic!("{error}: {}", self.all()))
    }

    /// stdout as JSON lines.
    pub fn json_lines(&self) -> Vec<serde_json::Value> {
        self.text()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
            .collect()
    }

    /// stdout, stderr and status as one text, for snapshots and failures.
    pub fn all(&self) -> String {
        format!("status: {}\n--- stdout\n{}--- stderr\n{}", self.code, self.text(), self.stderr)
    }

    /// Asserts that this text is on stderr, showing everything when it is not.
    #[track_caller]
    pub fn says(&self, text: impl AsRef<str>) -> &Self {
        assert!(self.stderr.contains(text.as_ref()), "no {:?} on stderr: {}", text.as_ref(), self.all());
        self
    }

    /// Asserts that this text is on stdout, showing everything when it is not.
    #[track_caller]
    pub fn shows(&self, text: impl AsRef<str>) -> &Self {
        assert!(self.text().contains(text.as_ref()), "no {:?} on stdout: {}", text.as_ref(), self.all());
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
            Some((before, after)) if after.ends_with(" of memory") => format!("{before} B"),
            _ if line.starts_with("For scripts: --expect ") => line.split('@').next().unwrap_or_default().to_owned(),
            _ => line.to_owned(),
        });
        lines.collect::<Vec<_>>().join("\n")
    }
}
