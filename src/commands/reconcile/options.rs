//! The options of `reconcile`, and its help.

use std::ffi::OsString;
use std::io;
use std::path::{Path, PathBuf};
use std::time::Duration;

use clap::{ArgGroup, Args as ClapArgs};

use crate::args::{
    ChangeArgs, FilterArgs, KeysArgs, Output, ScanArgs, SchemaArgs, parse_duration, parse_ttl,
};
use crate::domain::reconcile::{ProviderAnswer, ProviderRow, parse_rows};
use crate::exit::CommandError;
use crate::files;

/// Ask the provider how operations ended, and complete them
///
/// For locks whose workers crashed between the operation and its result. Asks a program about each
/// lock, shows one table, asks you once, and then performs the service's own `complete` or
/// `release` step on each lock that has not changed since. Without a `release` step it removes the
/// lock, as `force-unlock` does.
///
/// Takes locks without expiry, and locks known to be at least --older-than old, for which the lock
/// TTL of your deployment must be stated. KEYs, --key-file and --from take only the locks of these
/// keys, at most 10,000, and name each that is left. A lock that was renewed, extended or changed
/// may have a live worker and stays as it is. Locks of an unknown age are named and left.
///
/// Before it asks, idemctl extends locks that would end within --hold, so that no retry executes
/// meanwhile, and renews that until the lock is completed or released. With --wait-replicas, a lock
/// whose extension the replicas did not confirm is left. A lock that stays unknown gets the
/// deadline back that this run found, unless this has passed. A lock whose operation is done keeps
/// the time if its response is not stored, also if you do not confirm, because a retry would
/// execute the operation again.
///
/// The program reads one JSON object on stdin and prints one on stdout: {"outcome":"done",
/// "status":201,"headers":{},"body":{}}, {"outcome":"not-done"} or {"outcome":"unknown"}. An exit
/// status other than 0, any other output, and a timeout count as unknown. `not-done` needs a second
/// answer after the confirmation and --confirm-after. contrib/ask/ has example programs.
///
/// Exit status 0 if every lock was completed or released, 3 if one was left, 7 if the outcome of a
/// change is unknown. Without KEYs, locks that are too young or whose owner is alive do not count.
#[derive(Debug, ClapArgs)]
#[command(group = ArgGroup::new("provider").args(["ask", "from"]).required(true))]
pub struct Args {
    /// Program to ask about each lock, as a shell command
    ///
    /// The exit status is that of the shell, so a program in its background may fail unnoticed.
    /// After --ask-timeout the shell is killed with its process group. A process that it moved to
    /// another group or session (setsid) runs on, but idemctl does not wait for it. If a process
    /// still holds the output open when the program has ended, the answer is unknown. Programs also
    /// run on if idemctl itself is killed with SIGKILL. contrib/ask/ and docs/schema/ask.json of
    /// the source describe what it reads and prints.
    #[arg(long, value_name = "CMD")]
    pub(super) ask: Option<OsString>,

    #[command(flatten)]
    pub(super) keys: KeysArgs,

    /// Outcomes that the provider exported, as csv: key,outcome,status,body_file (`-`: stdin)
    ///
    /// Only the locks of its keys, which are idempotency keys, are taken. Only `done` acts, because
    /// a file cannot confirm `not-done` a second time. Body files are below the folder of the
    /// csv file, or below the current folder if that is stdin.
    #[arg(
        long,
        value_name = "FILE",
        conflicts_with_all = ["ask_timeout", "confirm_after", "jobs", "keys", "key_file", "null"]
    )]
    pub(super) from: Option<PathBuf>,

    /// Take locks known to be at least this old
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, allow_hyphen_values = true)]
    pub(super) older_than: Duration,

    /// Also take locks for whose owner CMD exits with 1 (dead), and keep those for which it exits
    /// with 0 (alive)
    ///
    /// CMD is a shell command that gets the owner as $1, as in `sweep`. If it gives no result, the
    /// lock is left and named. A lock of a dead owner is also taken if an operator extended it.
    #[arg(long, value_name = "CMD")]
    pub(super) owner_alive: Option<OsString>,

    /// Time that locks have at least while their operations are unknown
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, default_value = "10m")]
    pub(super) hold: Duration,

    /// Time from the confirmation to the second question about `not-done`
    #[arg(long, value_name = "DURATION", value_parser = parse_duration, default_value = "30s")]
    pub(super) confirm_after: Duration,

    /// Time limit of one question
    #[arg(long, value_name = "DURATION", value_parser = parse_ttl, default_value = "30s")]
    pub(super) ask_timeout: Duration,

    /// Questions at a time
    #[arg(
        long,
        value_name = "N",
        value_parser = clap::value_parser!(u16).range(1..=64),
        default_value_t = 4
    )]
    pub(super) jobs: u16,

    /// Output format
    ///
    /// `json` and `jsonl` both print one object, `jsonl` on one line.
    #[arg(short, long, value_enum, default_value_t)]
    pub(super) output: Output,

    #[command(flatten)]
    pub(super) filter: FilterArgs,

    #[command(flatten)]
    pub(super) scan: ScanArgs,

    #[command(flatten)]
    pub(super) change_args: ChangeArgs,

    #[command(flatten)]
    pub(super) schemas: SchemaArgs,
}

/// The largest csv file, and the largest body. Both are kept in memory, and an answer of a program
/// has the same limit (`MAX_ANSWER`).
const MOST: u64 = 16 << 20;

/// True if the file is stdin.
pub(super) fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Reads the file and all bodies, before anything else is done.
///
/// # Errors
/// Usage: a file cannot be read, or the first line that is wrong.
pub(super) fn read_provided(file: &Path) -> Result<Vec<ProviderRow>, CommandError> {
    let wrong = |why: String| CommandError::usage(format!("--from {}: {why}", file.display()));
    let bytes = if is_stdin(file) {
        files::up_to(io::stdin().lock(), MOST)
    } else {
        files::read_or_receive(file, MOST)
    };
    let bytes = bytes.map_err(|error| wrong(error.to_string()))?;
    let mut rows = parse_rows(&bytes).map_err(wrong)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    for row in &mut rows {
        if let ProviderAnswer::Done(response) = &mut row.answer
            && let Some(name) = &response.body_file
        {
            let read = path_below(folder, name).and_then(|path| files::read(&path, MOST));
            response.body = Some(read.map_err(|error| {
                wrong(format!("line {}: cannot read {name}: {error}", row.line))
            })?);
        }
    }
    Ok(rows)
}

/// The path of a body file. Clients get the body, and the provider wrote the name, so a file outside
/// the folder of the csv file is refused, also behind a symbolic link.
///
/// # Errors
/// The file does not exist, or is outside the folder.
fn path_below(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let folder = folder.join(".").canonicalize()?;
    let path = folder.join(name).canonicalize()?;
    if path.starts_with(&folder) {
        return Ok(path);
    }
    Err(io::Error::other("it is not below the folder of the csv file"))
}
