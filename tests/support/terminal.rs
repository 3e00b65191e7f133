//! A terminal of the test's own, and keys pressed as a person does.

use std::process::Command;

use rexpect::process::WaitStatus;
use rexpect::session::{PtySession, spawn_command};
use rustix::process::Signal;

use super::run::Run;

/// Longer than anything takes, in milliseconds.
const LIMIT: u64 = 60_000;

/// Starts a command on a terminal.
pub fn on_terminal(mut command: Command, words: &[&str]) -> PtySession {
    command.args(words).env("TERM", "xterm");
    spawn_command(command, Some(LIMIT)).unwrap()
}

/// What a command shows on a terminal with so many columns, until it ends.
#[track_caller]
pub fn shown_on(columns: u16, command: &Command, words: &[&str]) -> Run {
    shown_on_screen((columns, 500), command, words)
}

/// What a command shows on a terminal with so many columns and lines, until it ends.
#[track_caller]
pub fn shown_on_screen((columns, rows): (u16, u16), command: &Command, words: &[&str]) -> Run {
    let mut sized = Command::new("/bin/sh");
    sized.env_clear().envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
    let script = format!("stty cols {columns} rows {rows} && exec \"$0\" \"$@\"");
    sized.arg("-c").arg(script).arg(command.get_program()).args(command.get_args());
    if let Some(folder) = command.get_current_dir() {
        sized.current_dir(folder);
    }
    ends(on_terminal(sized, words))
}

/// What stays on the terminal of a run: without colours, and without the progress lines that were erased.
pub fn plain(run: &Run) -> String {
    let text = String::from_utf8_lossy(&run.stdout).replace("\r\n", "\n");
    let text = anstream::adapter::strip_str(&text).to_string();
    let mut plain = String::new();
    for line in text.split_inclusive('\n') {
        // A progress line ends with a carriage return, behind which the next line begins.
        plain.push_str(line.rsplit('\r').next().unwrap_or(line));
    }
    plain
}

/// Waits for a question, and presses keys.
#[track_caller]
pub fn press(session: &mut PtySession, question: &str, keys: &str) {
    session.exp_string(question).unwrap();
    session.send(keys).unwrap();
    session.flush().unwrap();
}

/// Sends the process of a session a signal.
#[track_caller]
pub fn send_signal(session: &mut PtySession, signal: Signal) {
    let signal = rexpect::process::Signal::try_from(signal.as_raw()).unwrap();
    session.process_mut().signal(signal).unwrap();
}

/// Waits for the end: what is shown until then, whichever stream it is written to, and the exit code.
#[track_caller]
pub fn ends(mut session: PtySession) -> Run {
    let shown = session.exp_eof().unwrap();
    let WaitStatus::Exited(_, code) = session.process().wait().unwrap() else {
        panic!("killed: {shown}")
    };
    // Each of these characters stands for one byte.
    let stdout = shown.chars().map(|byte| byte as u8).collect();
    Run { stdout, stderr: String::new(), code }
}

/// Waits for the question, presses keys, and gives what is shown after and the exit code.
#[track_caller]
pub fn answered(mut session: PtySession, question: &str, keys: &str) -> Run {
    press(&mut session, question, keys);
    ends(session)
}
