//! A server of the test's own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use super::run::{Run, idemctl};
use super::wait::until;

/// A server that lives as long as the test: a unix socket in a private folder, nothing on disk, no port.
pub struct Server {
    child: Child,
    folder: tempfile::TempDir,
}

impl Server {
    /// Starts the server program under test: `IDEMCTL_TEST_SERVER`, or the first of `redis-server`, `valkey-server`
    /// in PATH or in `.engines`.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// The same with more lines of configuration.
    pub fn start_with(config: &[&str]) -> Self {
        Self::try_start_with(config).expect("the server program takes this configuration")
    }

    /// The same, or nothing where the program ends at once: it does not know a line of the configuration.
    pub fn try_start_with(config: &[&str]) -> Option<Self> {
        let folder = tempfile::Builder::new().prefix("idemctl-").tempdir_in("/tmp").expect("a folder");
        let socket = folder.path().join("s");
        let mut child = Command::new(program())
            .arg("-")
            .current_dir(folder.path())
            .stdin(Stdio::piped())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("the server program starts");
        let mut stdin = child.stdin.take().expect("stdin");
        write!(
            stdin,
            "port 0\nunixsocket {}\nsave \"\"\nappendonly no\ndir {}\n{}\n",
            socket.display(),
            folder.path().display(),
            config.join("\n")
        )
        .expect("config");
        drop(stdin);
        let mut server = Self { child, folder };
        let mut is_gone = false;
        until("the server comes up or is gone", || {
            is_gone = server.child.try_wait().expect("the server program is asked for").is_some();
            is_gone || std::os::unix::net::UnixStream::connect(&socket).is_ok()
        });
        (!is_gone).then_some(server)
    }

    /// The socket's path.
    pub fn socket(&self) -> PathBuf {
        self.folder.path().join("s")
    }

    /// The private folder, also the home of the binary under test.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// The server's process id.
    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    /// Kills the server, as a crash would.
    pub fn kill(&mut self) {
        self.child.kill().expect("the server is killed");
        self.child.wait().expect("the server is gone");
    }

    /// A connection for plain commands.
    pub fn connect(&self) -> redis::Connection {
        redis::Client::open(format!("unix://{}", self.socket().display()))
            .and_then(|client| client.get_connection())
            .expect("a connection")
    }

    /// Does something with a connection that logged in with this password.
    pub fn connect_as(&self, password: &str, work: impl FnOnce(&mut redis::Connection)) {
        let client = redis::Client::open(format!("unix://{}?pass={password}", self.socket().display()));
        work(&mut client.and_then(|client| client.get_connection()).expect("a connection"));
    }

    /// Sends one plain command, words as they stand.
    pub fn send<T: redis::FromRedisValue>(&self, words: &[&[u8]]) -> T {
        let mut command = redis::Cmd::new();
        for word in words {
            command.arg(*word);
        }
        command.query(&mut self.connect()).expect("a reply")
    }

    /// `SET key value PX ttl`.
    pub fn set(&self, key: &str, value: impl AsRef<[u8]>, ttl_ms: u64) {
        self.send::<()>(&[b"SET", key.as_bytes(), value.as_ref(), b"PX", ttl_ms.to_string().as_bytes()]);
    }

    /// A user `reader` with the password `pw`, who may read and run scripts, and change nothing.
    pub fn add_reader(&self) {
        let rules = ["ACL", "SETUSER", "reader", "on", ">pw", "~*", "+@read", "+@connection", "-@write", "+eval"];
        self.send::<()>(&rules.map(str::as_bytes));
    }

    /// `GET key`.
    pub fn get(&self, key: &str) -> Option<Vec<u8>> {
        self.send(&[b"GET", key.as_bytes()])
    }

    /// Asserts that every key ends by itself within this time; gives how many keys there are.
    #[track_caller]
    pub fn keys_live_at_most(&self, most: Duration) -> usize {
        let keys: Vec<Vec<u8>> = self.send(&[b"KEYS", b"*"]);
        for key in &keys {
            let left: i64 = self.send(&[b"PTTL", key]);
            // One that ended just now has -2.
            let ends = left == -2 || (left >= 0 && left.unsigned_abs() <= most.as_millis() as u64);
            assert!(ends, "{} lives for {left} ms", String::from_utf8_lossy(key));
        }
        keys.len()
    }

    /// Lets this deployment state TTLs, by schema: `[("express", "lock_ttl = \"30s\"")]`.
    pub fn states(&self, deployments: &[(&str, &str)]) {
        let folder = self.folder().join(".config/idemctl");
        std::fs::create_dir_all(&folder).unwrap();
        let of = |(schema, what): &(&str, &str)| format!("[contexts.here.deployment.{schema}]\n{what}\n");
        let deployments: Vec<_> = deployments.iter().map(of).collect();
        let config = format!("default_context = \"here\"\n{}", deployments.concat());
        std::fs::write(folder.join("config.toml"), config).unwrap();
    }

    /// The binary on this server.
    pub fn idemctl(&self, words: &[&str]) -> Run {
        let mut command = self.command();
        command.args(words);
        Run::of(command, &[])
    }

    /// The binary on this server, fed with stdin.
    pub fn idemctl_fed(&self, words: &[&str], stdin: &[u8]) -> Run {
        let mut command = self.command();
        command.args(words);
        Run::of(command, stdin)
    }

    /// The binary, set up for this server, its home in the private folder.
    pub fn command(&self) -> Command {
        let mut command = idemctl(self.folder());
        command.arg("-s").arg(self.socket());
        command
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The server program under test.
pub fn program() -> PathBuf {
    if let Some(program) = std::env::var_os("IDEMCTL_TEST_SERVER") {
        return PathBuf::from(program);
    }
    let path = std::env::var_os("PATH").unwrap_or_default();
    let engines = ["redis-system", "valkey-9", "redis-8", "redis-6.2"]
        .map(|engine| Path::new(env!("CARGO_MANIFEST_DIR")).join(".engines").join(engine));
    std::env::split_paths(&path)
        .chain(engines)
        .flat_map(|folder| ["redis-server", "valkey-server"].map(|name| folder.join(name)))
        .find(|program| program.is_file())
        .expect("no server program: `make test` gets one")
}
