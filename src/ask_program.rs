//! Runs a program of the operator, such as that of `--ask`, which finds out how an operation ended,
//! or that of `--owner-alive`.

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::os::unix::process::ExitStatusExt as _;
use std::pin::pin;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::process::{Child, ChildStdin, Command};
use tokio::time::timeout;

use crate::domain::reconcile::{ProviderAnswer, parse_answer};
use crate::render::escape;

/// How long idemctl waits for the rest of the output after the program has ended. A process that it
/// left running may keep the output open. What the program itself wrote is in the pipe by then, so
/// reading it takes no longer.
const REST_OF_OUTPUT: Duration = Duration::from_millis(500);

/// The most bytes of an answer: as much as a request with a large body. Answers are kept in memory,
/// and several programs may run at the same time.
const MAX_ANSWER: usize = 16 << 20;

/// How many bytes of stderr are kept; only the first line is shown.
const MAX_STDERR: usize = 256;

/// The most characters of the reason that an answer gives.
const MAX_REASON: usize = 256;

/// A program that is asked something, as a command of the shell.
#[derive(Debug, Clone)]
pub(crate) struct AskProgram {
    /// The option that names the program, such as `--ask`, for messages.
    pub(crate) option: &'static str,
    pub(crate) command: OsString,
    /// The time limit of one question.
    pub(crate) patience: Duration,
}

/// What a program gets about a lock whose owner may be alive.
pub(crate) struct AskedLock {
    /// The owner, as `$1`.
    pub(crate) owner: OsString,
    /// Variables of its environment. `None` removes one that idemctl inherited.
    pub(crate) variables: [(&'static str, Option<OsString>); 6],
}

/// How a program ended, and what it wrote.
pub(crate) struct ProgramEnd {
    pub(crate) status: ExitStatus,
    answer: Result<Vec<u8>, NoAnswer>,
    /// The beginning of its stderr.
    said: Vec<u8>,
}

impl ProgramEnd {
    /// The exit status in words, what it is `of`, and the first line that the program wrote to
    /// stderr.
    pub(crate) fn words(&self, of: &str) -> String {
        let status = match (self.status.code(), self.status.signal()) {
            (Some(code), _) => format!("exit status {code}"),
            (None, Some(signal)) => format!("killed by signal {signal}"),
            (None, None) => "no exit status".to_owned(),
        };
        format!("{status}{of}{}", first_line(&self.said))
    }
}

impl AskProgram {
    /// Asks one question: a JSON object on stdin, and one on stdout. Whatever goes wrong, the
    /// answer is unknown, with the reason.
    pub(crate) async fn ask(&self, question: Vec<u8>) -> ProviderAnswer {
        let answer = match self.output(&question).await {
            Ok((answer, said)) => parse_answer(&answer)
                .map_err(|why| format!("{}{}", escape::text(why.as_bytes()), first_line(&said))),
            Err(why) => Err(why),
        };
        match answer {
            Ok(ProviderAnswer::Unknown(why)) => ProviderAnswer::Unknown(bounded(&why)),
            Ok(answer) => answer,
            Err(why) => ProviderAnswer::Unknown(why),
        }
    }

    /// Runs the program with this on stdin. Returns its stdout, and the beginning of its stderr.
    ///
    /// # Errors
    /// It cannot run, takes too long, writes too much, or fails.
    pub(crate) async fn output(&self, question: &[u8]) -> Result<(Vec<u8>, Vec<u8>), String> {
        let ended = self.run(None, question).await.map_err(|error| match error.kind() {
            ErrorKind::TimedOut => error.to_string(),
            _ => format!("{} cannot run: {error}", self.option),
        })?;
        let why = match ended.answer {
            Ok(answer) if ended.status.success() => return Ok((answer, ended.said)),
            Ok(_) => ended.words(""),
            Err(NoAnswer::TooLong) => format!("its answer is longer than {} MiB", MAX_ANSWER >> 20),
            Err(NoAnswer::StillOpen) => {
                "it ended, but a process that it started keeps its output open".to_owned()
            }
        };
        Err(why)
    }

    /// Runs the program with this on stdin, and about a lock, if there is one.
    ///
    /// # Errors
    /// It cannot be started, or does not end in time (`TimedOut`).
    pub(crate) async fn run(
        &self,
        lock: Option<&AskedLock>,
        question: &[u8],
    ) -> io::Result<ProgramEnd> {
        let mut child = self.start(lock)?;
        // Until the program has ended in order, whatever ends this kills it and all it started.
        let mut group = ProcessGroup::of(&child);
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (child.stdin.take(), child.stdout.take(), child.stderr.take())
        else {
            return Err(io::Error::other("it has no input or output"));
        };
        let mut answer = Vec::new();
        let mut said = Vec::new();
        let ended = {
            let mut exchange = pin!(async {
                tokio::try_join!(
                    feed(stdin, question),
                    read_answer(stdout, &mut answer),
                    keep_beginning(stderr, &mut said)
                )
            });
            timeout(self.patience, async {
                tokio::select! {
                    exchanged = &mut exchange => (exchanged.map(drop), child.wait().await),
                    status = child.wait() => {
                        match timeout(REST_OF_OUTPUT, &mut exchange).await {
                            Ok(exchanged) => (exchanged.map(drop), status),
                            Err(_) => (Err(NoAnswer::StillOpen), status),
                        }
                    }
                }
            })
            .await
        };
        let Ok((exchanged, status)) = ended else {
            let patience = humantime::format_duration(self.patience);
            let why = format!("no answer within {patience}{}", first_line(&said));
            return Err(io::Error::new(ErrorKind::TimedOut, why));
        };
        // Of a program that is asked about an owner, only the exit status counts, so that it may
        // leave a process running, such as a connection that the next one uses.
        if exchanged.is_ok() || lock.is_some() {
            group.ended();
        }
        Ok(ProgramEnd { status: status?, answer: exchanged.map(|()| answer), said })
    }

    fn start(&self, lock: Option<&AskedLock>) -> io::Result<Child> {
        let mut shell = Command::new("/bin/sh");
        shell.arg("-c").arg(&self.command);
        if let Some(lock) = lock {
            shell.arg("idemctl").arg(&lock.owner);
            for (name, value) in &lock.variables {
                match value {
                    Some(value) => shell.env(name, value),
                    None => shell.env_remove(name),
                };
            }
        }
        shell.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        // In a process group of its own, so that everything it starts can be killed with it, and
        // Ctrl-C reaches idemctl alone.
        shell.process_group(0).spawn()
    }
}

/// Why a program that ended gave no answer.
enum NoAnswer {
    TooLong,
    StillOpen,
}

/// Writes the question. A program may answer without reading it, so errors do not matter.
async fn feed(mut stdin: ChildStdin, question: &[u8]) -> Result<(), NoAnswer> {
    let _ = stdin.write_all(question).await;
    let _ = stdin.shutdown().await;
    Ok(())
}

async fn read_answer(
    mut stdout: impl AsyncRead + Unpin,
    kept: &mut Vec<u8>,
) -> Result<(), NoAnswer> {
    let mut chunk = [0; 8192];
    loop {
        match stdout.read(&mut chunk).await {
            Ok(read @ 1..) => {
                if kept.len() + read > MAX_ANSWER {
                    return Err(NoAnswer::TooLong);
                }
                kept.extend_from_slice(&chunk[..read]);
            }
            _ => return Ok(()),
        }
    }
}

/// Reads stderr to its end and keeps the beginning.
async fn keep_beginning(
    mut stderr: impl AsyncRead + Unpin,
    kept: &mut Vec<u8>,
) -> Result<(), NoAnswer> {
    let mut chunk = [0; 1024];
    loop {
        match stderr.read(&mut chunk).await {
            Ok(read @ 1..) => {
                let room = MAX_STDERR.saturating_sub(kept.len());
                kept.extend_from_slice(&chunk[..read.min(room)]);
            }
            _ => return Ok(()),
        }
    }
}

/// The first line that the program wrote to stderr, after a colon.
fn first_line(said: &[u8]) -> String {
    let line = said.split(|byte| *byte == b'\n').find(|line| !line.is_empty()).unwrap_or_default();
    if line.is_empty() { String::new() } else { format!(": {}", escape::text(line)) }
}

/// The beginning of a reason, escaped.
fn bounded(why: &str) -> String {
    let mut short: String = why.chars().take(MAX_REASON).collect();
    if short.len() < why.len() {
        short.push('…');
    }
    escape::text(short.as_bytes())
}

/// The processes of a program, which are killed when this is dropped.
struct ProcessGroup(Option<Pid>);

impl ProcessGroup {
    fn of(child: &Child) -> Self {
        Self(child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw))
    }

    /// The program ended in order, and its number may soon be that of another one.
    fn ended(&mut self) {
        self.0 = None;
    }
}

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.0 {
            let _ = kill_process_group(id, Signal::KILL);
        }
    }
}
