//! `idemctl sandbox`.

use std::ffi::OsString;
use std::io;
use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::process::ExitStatus;

use anyhow::{Context as _, Result};
use clap::Args as ClapArgs;
use rustix::process::{Pid, Signal, kill_process};
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::args::SchemaArgs;
use crate::domain::schema::Schema;
use crate::exit::{CommandError, Exit};
use crate::render::words;
use crate::session::Session;
use crate::sim::seed;

/// Run a command with a temporary local Redis
///
/// Starts the first valkey-server or redis-server in PATH, on a unix socket in a private folder,
/// without files on disk. The server ends with idemctl, even if idemctl is killed.
///
/// COMMAND runs with IDEMCTL_URL and REDIS_URL set to the server, and without IDEMCTL_CONTEXT and
/// REDISCLI_AUTH, which refer to another server. idemctl returns its exit code, or 128 plus the
/// number of the signal that ended it. Without COMMAND, idemctl opens a shell ($SHELL) on a
/// terminal with the same variables; `exit` ends the server. Without a terminal, idemctl prints
/// IDEMCTL_URL=... and waits until Ctrl-C.
///
/// Every other command runs on such a server with --sandbox.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Add N records of each schema in mixed states, with and without findings; always the same
    /// records
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1_000_000))]
    seed: Option<u64>,

    /// Command to run, with its arguments
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<OsString>,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    // The context's schemas describe another server.
    let catalog = session.catalog_without_context(&args.schemas)?;
    let db = session.settings.target().db;
    let url = session.use_sandbox().await?.url(db);
    if let Some(count) = args.seed {
        let (schemas, left_out) = session.sparing(
            catalog.chosen().to_vec(),
            catalog.names_schemas(),
            Schema::unwritten_because,
        )?;
        // Only a detail, because the operator need not do anything about a schema without records.
        for line in &left_out {
            session.ui.detail(line);
        }
        let target = session.settings.target().clone();
        let bar = session
            .ui
            .progress_of("Filling the temporary Redis", Some(count * schemas.len() as u64));
        let entries = seed::entries(&schemas, count, session.now_ms()).inspect(|_| bar.inc(1));
        let written = session.use_sandbox().await?.fill(&target, entries).await?;
        bar.finish_and_clear();
        let schemas = schemas.len() as u64;
        let records = words::counted(count * schemas, "record");
        let schemas = words::counted(schemas, "schema");
        let keys = words::counted(written, "Redis key");
        session
            .ui
            .status(&format!("The temporary Redis contains {records} of {schemas} ({keys})."));
    }
    match args.command.split_first() {
        Some((program, words)) => run_command(&url, program, words).await,
        None if session.ui.is_interactive() && session.ui.out_is_terminal() => {
            open_shell(session, &url).await
        }
        None => stay(session, &url).await,
    }
}

/// Lets the operator work on the server in a shell, until that ends.
async fn open_shell(session: &mut Session, url: &str) -> Result<Exit> {
    let shell = session.settings.environment().shell().unwrap_or("/bin/sh").to_owned();
    let folder = session.use_sandbox().await?.folder().to_owned();
    let (program, words) = shell_command(&shell, &folder, url)?;
    session.ui.status(&format!("A temporary Redis runs at {url}."));
    session.ui.status(
        "Every `idemctl` command in this shell uses it. `exit` stops the shell and the server.",
    );
    // A shell returns the exit code of its last command, which says nothing about the sandbox.
    run_command(url, &program, &words).await?;
    Ok(Exit::Done)
}

/// Runs the command to its end. Ctrl-C reaches the command from the terminal; signals to idemctl
/// alone are passed on.
async fn run_command(url: &str, program: &OsString, words: &[OsString]) -> Result<Exit> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut quit = signal(SignalKind::quit())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let mut hung_up = signal(SignalKind::hangup())?;
    let mut child = Command::new(program)
        .args(words)
        .env("REDIS_URL", url)
        // IDEMCTL_URL wins over the URL of a default context, which would win over REDIS_URL.
        .env("IDEMCTL_URL", url)
        .env_remove("IDEMCTL_CONTEXT")
        .env_remove("REDISCLI_AUTH")
        .spawn()
        .map_err(|error| {
            CommandError::usage(format!("cannot run {}: {error}", program.display()))
        })?;
    let pid = child.id().and_then(|id| i32::try_from(id).ok()).and_then(Pid::from_raw);
    loop {
        let passed_on = tokio::select! {
            status = child.wait() => {
                let status = status.with_context(|| format!("waiting for {}", program.display()))?;
                return Ok(Exit::Command(exit_code(status)));
            }
            // The terminal sends these two to the command as well, which decides what to do.
            _ = interrupted.recv() => None,
            _ = quit.recv() => None,
            _ = terminated.recv() => Some(Signal::TERM),
            _ = hung_up.recv() => Some(Signal::HUP),
        };
        if let (Some(pid), Some(signal)) = (pid, passed_on) {
            // The command may have ended by itself meanwhile.
            let _ = kill_process(pid, signal);
        }
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    let code = match (status.code(), status.signal()) {
        (Some(code), _) => code,
        // The convention of shells.
        (None, Some(signal)) => 128 + signal,
        (None, None) => return u8::MAX,
    };
    u8::try_from(code).unwrap_or(u8::MAX)
}

/// Says where the server is, and keeps it until Ctrl-C or SIGTERM.
async fn stay(session: &mut Session, url: &str) -> Result<Exit> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    // A default context would take precedence over REDIS_URL, and could be a production server.
    session.ui.data(format!("IDEMCTL_URL={url}\n"))?;
    session.ui.flush()?;
    session
        .ui
        .status("A temporary local Redis runs until you press Ctrl-C. In another terminal, run:");
    session.ui.status(&format!("  export IDEMCTL_URL={url}\n  idemctl list"));
    tokio::select! {
        last_words = session.use_sandbox().await?.ended() => {
            Err(CommandError::new(Exit::Unreachable, format!("the temporary Redis has stopped: \
                {last_words}")).into())
        }
        _ = interrupted.recv() => Ok(Exit::Done),
        _ = terminated.recv() => Ok(Exit::Done),
    }
}

/// The text before the shell's prompt.
const MARK: &str = "(idemctl sandbox) ";

/// The program and the arguments of the shell in the environment, with a marked prompt. The files
/// that it needs are written to `folder`, which is deleted with the server.
///
/// The shell reads the operator's own startup files. The variables that name the server are set
/// after them, because such a file may name another server.
///
/// # Errors
/// The files cannot be written.
fn shell_command(shell: &str, folder: &Path, url: &str) -> io::Result<(OsString, Vec<OsString>)> {
    let name = Path::new(shell).file_name().unwrap_or_default().to_string_lossy();
    // A socket's URL has no special characters of a shell, so single quotes are enough.
    let set = format!(
        "export IDEMCTL_URL='{url}' REDIS_URL='{url}'; unset IDEMCTL_CONTEXT REDISCLI_AUTH"
    );
    let arguments: Vec<OsString> = match name.as_ref() {
        "bash" => {
            let file = folder.join("bashrc");
            let text = format!("[ ! -f ~/.bashrc ] || . ~/.bashrc\n{set}\nPS1=\"{MARK}$PS1\"\n");
            std::fs::write(&file, text)?;
            vec!["--rcfile".into(), file.into(), "-i".into()]
        }
        // zsh has no option for another startup file, and reads .zshrc in ZDOTDIR.
        "zsh" => {
            let text = format!(
                "ZDOTDIR=$HOME\n[[ ! -f ~/.zshrc ]] || . ~/.zshrc\n{set}\n\
                PROMPT=\"{MARK}$PROMPT\"\n"
            );
            std::fs::write(folder.join(".zshrc"), text)?;
            let zsh = [
                OsString::from(format!("ZDOTDIR={}", folder.display())),
                shell.into(),
                "-i".into(),
            ];
            return Ok(("env".into(), zsh.into()));
        }
        "fish" => {
            let text = format!(
                "set -gx IDEMCTL_URL '{url}'; set -gx REDIS_URL '{url}'; set -e IDEMCTL_CONTEXT; \
                 set -e REDISCLI_AUTH; \
                 functions -c fish_prompt idemctl_prompt; \
                 function fish_prompt; echo -n '{MARK}'; idemctl_prompt; end"
            );
            vec!["--init-command".into(), text.into(), "-i".into()]
        }
        // A POSIX shell reads the file that ENV names.
        _ => {
            let file = folder.join("shrc");
            std::fs::write(&file, format!("{set}\nPS1='{MARK}$ '\n"))?;
            return Ok((
                "env".into(),
                vec![format!("ENV={}", file.display()).into(), shell.into(), "-i".into()],
            ));
        }
    };
    Ok((shell.into(), arguments))
}
