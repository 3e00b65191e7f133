//! Servers of our own on unix sockets, gone with the run; and the records in them.

use std::io;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::resp::{Connection, pack};

/// A throw-away server.
pub struct Server {
    child: Child,
    folder: PathBuf,
}

impl Server {
    /// Starts one without persistence, on this port of the loopback where it is not 0, with more options.
    pub fn start(program: &str, port: u16, options: &[&str]) -> io::Result<Self> {
        let folder =
            std::env::temp_dir().join(format!("idemctl-bench.{}.{port}", std::process::id()));
        std::fs::create_dir_all(&folder)?;
        let mut command = Command::new(program);
        command.args([
            "--bind",
            "127.0.0.1",
            "--port",
            &port.to_string(),
            "--save",
            "",
            "--appendonly",
            "no",
        ]);
        command
            .arg("--unixsocket")
            .arg(folder.join("socket"))
            .arg("--dir")
            .arg(&folder)
            .args(options);
        let child =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn()?;
        let server = Self { child, folder };
        for _ in 0..200 {
            if Connection::open(&server.socket()).is_ok() {
                return Ok(server);
            }
            std::thread::sleep(Duration::from_millis(25));
        }
        Err(io::Error::other("the server does not come up"))
    }

    pub fn socket(&self) -> PathBuf {
        self.folder.join("socket")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// Bytes of a stored result.
const RESULT_BYTES: usize = 512;

/// The Redis key of a record by its place among those that are written.
fn key(index: usize) -> String {
    let scattered = (index as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    format!("idempotency:{:08x}-{:04x}-4000-8000-{index:012x}", scattered >> 32, scattered & 0xffff)
}

/// The Redis key of a result.
pub fn first_result() -> String {
    key(1)
}

/// How long the locks of a seed live.
#[derive(Clone, Copy)]
pub enum Lives {
    /// As long as the locks of a service.
    Minutes,
    /// Longer than a run of many minutes.
    Days,
}

/// Writes `records` of go-middleware, one in ten a lock, and as many unrelated keys. A node of a cluster takes those that
/// are its own.
pub fn seed(socket: &Path, records: usize, locks: Lives) -> io::Result<()> {
    let lock_ttl = match locks {
        Lives::Minutes => 250_000,
        Lives::Days => 86_000_000,
    };
    let mut connection = Connection::open(socket)?;
    let start = r#"{"status":"COMPLETED","code":201,"headers":{"Content-Type":["application/json"]},"body":""#;
    // Base64 has four letters for three bytes.
    let body_bytes = (RESULT_BYTES - start.len() - 2) / 4 * 3;
    let mut out = Vec::new();
    for page in 0..records.div_ceil(1_000) {
        let range = page * 1_000..records.min((page + 1) * 1_000);
        for index in range.clone() {
            let key = key(index);
            let body = format!(r#"{{"id":"{index:012}","note":""#);
            let body = format!("{body}{}\"}}", "A".repeat(body_bytes - body.len() - 2));
            let result = format!("{start}{}\"}}", base64(body.as_bytes()));
            let (value, ttl) = if index % 10 == 0 {
                (r#"{"status":"PENDING"}"#, lock_ttl)
            } else {
                (&*result, 86_000_000)
            };
            let ttl = (ttl - index % 50_000).to_string();
            pack(&mut out, &[b"SET", key.as_bytes(), value.as_bytes(), b"PX", ttl.as_bytes()]);
            pack(&mut out, &[b"SET", format!("session:{index}").as_bytes(), &[b'x'; 32]]);
        }
        connection.send(&out)?;
        out.clear();
        for _ in 0..range.len() * 2 {
            match connection.item() {
                Err(refusal) if !refusal.to_string().starts_with("MOVED") => return Err(refusal),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Base64 of bytes whose number is a multiple of three.
fn base64(bytes: &[u8]) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len() / 3 * 4);
    for three in bytes.chunks_exact(3) {
        let bits = u32::from(three[0]) << 16 | u32::from(three[1]) << 8 | u32::from(three[2]);
        for shift in [18, 12, 6, 0] {
            text.push(char::from(LETTERS[(bits >> shift & 63) as usize]));
        }
    }
    text
}

/// Writes `records` finished jobs of bullmq-job, whose jobs live for a day.
pub fn seed_hashes(socket: &Path, records: usize) -> io::Result<()> {
    let mut connection = Connection::open(socket)?;
    let now = std::time::SystemTime::now()
        .duration_since(std::time::UNIX_EPOCH)
        .unwrap_or_default()
        .as_millis()
        .to_string();
    let data = format!(r#"{{"note":"{}"}}"#, "A".repeat(60));
    let mut out = Vec::new();
    for page in 0..records.div_ceil(1_000) {
        let range = page * 1_000..records.min((page + 1) * 1_000);
        for index in range.clone() {
            let key = format!("bull:orders:{index:032x}");
            let result = format!(r#"{{"status":"ok","id":{index}}}"#);
            let fields = [
                ("name", "order"),
                ("data", &data),
                ("opts", r#"{"attempts":0}"#),
                ("timestamp", &now),
                ("processedOn", &now),
                ("finishedOn", &now),
                ("returnvalue", &result),
            ];
            let words = fields.iter().flat_map(|(name, value)| [name.as_bytes(), value.as_bytes()]);
            pack(
                &mut out,
                &[&b"HSET"[..], key.as_bytes()].into_iter().chain(words).collect::<Vec<_>>(),
            );
            pack(&mut out, &[b"EXPIRE", key.as_bytes(), b"86400"]);
        }
        connection.send(&out)?;
        out.clear();
        for _ in 0..range.len() * 2 {
            connection.item()?;
        }
    }
    Ok(())
}
