//! Ways to a server on which somebody sees whatever is sent, and says what becomes of it.

use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Server;

/// After so long without another byte, what came is a request, or a reply.
const QUIET: Duration = Duration::from_millis(20);

/// What is said, in the way of a server.
pub type Talk = fn(&mut dyn Write) -> std::io::Result<()>;

/// What is done with a request on its way.
pub enum Hook {
    /// It is passed on, and so is its reply.
    Pass,
    /// It is passed on, and once its reply is there, something else is done before that is passed on.
    Then(Box<dyn FnOnce() + Send>),
    /// It is passed on, and the connection is cut in place of its reply.
    Lose,
    /// The connection is cut before anybody hears of it.
    Cut,
    /// It gets this reply, and nobody hears of it.
    Answer(Vec<u8>),
    /// It is talked to like this, and nobody hears of it.
    Talk(Talk),
    /// It is passed on, and gets this reply in place of its own.
    Replace(Vec<u8>),
    /// It is passed on, and gets its reply twice.
    Twice,
    /// It is passed on, and its reply is changed.
    Edit(fn(&mut Vec<u8>)),
}

/// A port of the loopback that leads to the server; the hook sees whatever is sent at a time, and says what becomes of it.
/// It lives as long as the test's process: what is to end with the test it holds weakly.
pub fn hooked(server: &Server, hook: impl Fn(&[u8]) -> Hook + Send + Sync + 'static) -> u16 {
    let socket = server.socket();
    fake(move |client| {
        if let Ok(server) = UnixStream::connect(&socket) {
            server.set_read_timeout(Some(QUIET)).unwrap();
            client.set_nodelay(true).unwrap();
            client.set_read_timeout(Some(QUIET)).unwrap();
            talk(client, server, &hook);
        }
    })
}

/// The same to a port.
pub fn hooked_at(port: u16, hook: impl Fn(&[u8]) -> Hook + Send + Sync + 'static) -> u16 {
    fake(move |client| {
        if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
            server.set_read_timeout(Some(QUIET)).unwrap();
            client.set_nodelay(true).unwrap();
            client.set_read_timeout(Some(QUIET)).unwrap();
            talk(client, server, &hook);
        }
    })
}

/// A socket that leads to the server, hooked as a port is.
pub fn hooked_socket(
    server: &Server,
    hook: impl Fn(&[u8]) -> Hook + Send + Sync + 'static,
) -> PathBuf {
    let (socket, to, hook) = (server.folder().join("proxy"), server.socket(), Arc::new(hook));
    let listener = UnixListener::bind(&socket).unwrap();
    thread::spawn(move || {
        for client in listener.incoming() {
            let (mut client, server, hook) =
                (client.unwrap(), UnixStream::connect(&to).unwrap(), Arc::clone(&hook));
            client.set_read_timeout(Some(QUIET)).unwrap();
            server.set_read_timeout(Some(QUIET)).unwrap();
            thread::spawn(move || talk(&mut client, server, &*hook));
        }
    });
    socket
}

/// A socket whose first connection that sends `word` breaks then: once the server has done what was sent (`delivers`),
/// or before it hears of it.
pub fn breaks_at(server: &Server, word: &'static str, delivers: bool) -> PathBuf {
    let came = AtomicBool::new(false);
    hooked_socket(server, move |sent| {
        match says(sent, word) && !came.swap(true, Ordering::SeqCst) {
            true if delivers => Hook::Lose,
            true => Hook::Cut,
            false => Hook::Pass,
        }
    })
}

/// A socket on which `act` is done right before the server hears the first `word`.
pub fn acts_at(
    server: &Server,
    word: &'static str,
    act: impl Fn() + Send + Sync + 'static,
) -> PathBuf {
    let came = AtomicBool::new(false);
    hooked_socket(server, move |sent| {
        if says(sent, word) && !came.swap(true, Ordering::SeqCst) {
            act();
        }
        Hook::Pass
    })
}

/// A socket on which somebody else sends this command right before the server hears the first `word`.
pub fn sends_at(server: &Server, word: &'static str, command: &[&str]) -> PathBuf {
    let (url, command) =
        (server.url(), command.iter().map(|word| (*word).to_owned()).collect::<Vec<_>>());
    acts_at(server, word, move || {
        let mut other =
            redis::Client::open(url.as_str()).and_then(|client| client.get_connection()).unwrap();
        redis::cmd(&command[0]).arg(&command[1..]).exec(&mut other).unwrap();
    })
}

fn talk(
    client: &mut (impl Read + Write),
    mut server: impl Read + Write,
    hook: &impl Fn(&[u8]) -> Hook,
) {
    while let Some(sent) = all_there_is(client) {
        if sent.is_empty() {
            // A reply that a busy server sent in two parts.
            let Some(rest) = all_there_is(&mut server) else { return };
            let _ = client.write_all(&rest);
            continue;
        }
        let hook = hook(&sent);
        match hook {
            Hook::Cut => return,
            Hook::Answer(reply) => {
                let _ = client.write_all(&reply);
                continue;
            }
            Hook::Talk(talk) => {
                let _ = talk(client);
                continue;
            }
            _ => {}
        }
        let _ = server.write_all(&sent);
        let mut reply = Vec::new();
        while reply.is_empty() {
            let Some(more) = all_there_is(&mut server) else { return };
            reply = more;
            if reply.is_empty() {
                // What came was a part of the request, of a busy client: there is no reply before the rest has come.
                let Some(rest) = all_there_is(client) else { return };
                let _ = server.write_all(&rest);
            }
        }
        match hook {
            Hook::Lose => return,
            Hook::Then(act) => act(),
            Hook::Replace(other) => reply = other,
            Hook::Twice => reply.extend_from_within(..),
            Hook::Edit(edit) => edit(&mut reply),
            _ => {}
        }
        let _ = client.write_all(&reply);
    }
}

/// What comes until nothing more does; `None` at the end.
fn all_there_is(stream: &mut impl Read) -> Option<Vec<u8>> {
    let (mut all, mut part) = (Vec::new(), [0; 65_536]);
    loop {
        match stream.read(&mut part) {
            Ok(0) => return None,
            Ok(count) => all.extend_from_slice(&part[..count]),
            Err(_) => return Some(all),
        }
    }
}

/// True when this word is in a request.
pub fn says(request: &[u8], word: &str) -> bool {
    request.windows(word.len()).any(|part| part == word.as_bytes())
}

/// True when the script that compares and removes is in a request. A look may be a script as well: where the server tells no
/// deadlines, or the look before took long.
pub fn removes(request: &[u8]) -> bool {
    says(request, "EVALSHA") && says(request, "UNLINK")
}

/// A port on which somebody talks as `talk` does, with each connection.
pub fn fake(talk: impl Fn(&mut TcpStream) + Send + Sync + 'static) -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port();
    let talk = Arc::new(talk);
    thread::spawn(move || {
        for stream in listener.incoming() {
            let talk = Arc::clone(&talk);
            thread::spawn(move || talk(&mut stream.unwrap()));
        }
    });
    port
}
