//! A server of the test's own.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use super::run::{Run, Runs, idemctl};
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
        let folder = tempfile::Builder::new().prefix("idemctl-").tempdir().expect("a folder");
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

    /// The URL that names the socket.
    pub fn url(&self) -> String {
        format!("unix://{}", self.socket().display())
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
        redis::Client::open(self.url())
            .and_then(|client| client.get_connection())
            .expect("a connection")
    }

    /// Does something with a connection that logged in with this password.
    pub fn connect_as(&self, password: &str, work: impl FnOnce(&mut redis::Connection)) {
        let client = redis::Client::open(format!("{}?pass={password}", self.url()));
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

    /// A file in the folder where idemctl keeps backups and the audit log.
    pub fn state(&self, name: &str) -> PathBuf {
        self.folder().join(".local/state/idemctl").join(name)
    }

    /// The folder of the audit log.
    pub fn audit(&self) -> PathBuf {
        super::audit::folder(self.folder())
    }

    /// The details of each operation, the oldest first.
    pub fn details(&self) -> Vec<PathBuf> {
        super::audit::details(&self.audit())
    }

    /// The lines of all details, the oldest first.
    pub fn audited(&self) -> Vec<serde_json::Value> {
        self.idemctl(&["log", "--records", "-o", "jsonl", "--limit", "100000"]).json_lines()
    }

    /// A user with the password `pw`, who may do what these rules say.
    pub fn add_user(&self, name: &str, rules: &str) {
        let words = ["ACL", "SETUSER", name, "on", ">pw"].into_iter().chain(rules.split(' '));
        self.send::<()>(&words.map(str::as_bytes).collect::<Vec<_>>());
    }

    /// A user `reader` with the password `pw`, who may read and run scripts, and change nothing.
    pub fn add_reader(&self) {
        self.add_user("reader", "~* +@read +@connection -@write +eval");
    }

    /// Lets this deployment state TTLs, by schema: `[("express", "lock_ttl = \"30s\"")]`.
    pub fn states(&self, deployments: &[(&str, &str)]) {
        let of = |(schema, what): &(&str, &str)| {
            format!("[contexts.here.deployment.{schema}]\n{what}\n")
        };
        let deployments: Vec<_> = deployments.iter().map(of).collect();
        self.configure(&format!("default_context = \"here\"\n{}", deployments.concat()));
    }

    /// Writes the files of a schema into the operator's schema folder; gives the folder they are in.
    pub fn describe(&self, schema: &str, files: &[(&str, &str)]) -> PathBuf {
        let folder = self.folder().join(".config/idemctl/schemas").join(schema);
        std::fs::create_dir_all(&folder).unwrap();
        for (file, text) in files {
            std::fs::write(folder.join(file), text).unwrap();
        }
        folder
    }

    /// Writes the config file.
    pub fn configure(&self, config: &str) {
        let folder = self.folder().join(".config/idemctl");
        std::fs::create_dir_all(&folder).unwrap();
        std::fs::write(folder.join("config.toml"), config).unwrap();
    }

    /// The binary on this server.
    pub fn idemctl(&self, words: &[&str]) -> Run {
        self.command().args(words).run()
    }

    /// The binary on this server, fed with stdin.
    pub fn idemctl_fed(&self, words: &[&str], stdin: &[u8]) -> Run {
        self.command().args(words).fed(stdin)
    }

    /// The binary in this home, by way of a port.
    pub fn at(&self, port: u16, words: &[&str]) -> Run {
        self.unnamed(&[&["-p", &port.to_string()], patience(words), words].concat())
    }

    /// The binary in this home, by way of a socket.
    pub fn through(&self, socket: &Path, words: &[&str]) -> Run {
        self.unnamed(&[&["-s", &socket.display().to_string()], patience(words), words].concat())
    }

    /// The binary in this home, with no server named but by these words.
    pub fn unnamed(&self, words: &[&str]) -> Run {
        idemctl(self.folder()).args(words).run()
    }

    /// The binary in this home, where the server is a context of this name of which this is said. The context has a config
    /// file of its own: at one address the strictest of a file's contexts holds.
    pub fn in_context(&self, name: &str, says: &str, words: &[&str]) -> Run {
        let file = self.folder().join(name).with_extension("toml").display().to_string();
        std::fs::write(&file, format!("[contexts.{name}]\nurl = \"{}\"\n{says}\n", self.url()))
            .unwrap();
        self.unnamed(&[&["--config", &file, "--context", name], words].concat())
    }

    /// The binary, set up for this server, its home in the private folder.
    pub fn command(&self) -> Command {
        let mut command = idemctl(self.folder());
        command.arg("-s").arg(self.socket());
        command
    }
}

/// The time for a reply, where the words say nothing of it: a proxy is slow, and so is a busy machine.
fn patience(words: &[&str]) -> &'static [&'static str] {
    if words.contains(&"--timeout") { &[] } else { &["--timeout", "20s"] }
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
