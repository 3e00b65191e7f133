//! A way to the server on which one request meets with something: its reply is lost, or somebody is faster.

use std::io::{Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Server;

/// What happens when the word comes.
#[derive(Clone)]
enum Then {
    /// The connection breaks: once the server has done what was sent, or before it hears of it.
    Break { delivers: bool },
    /// Something else is done first.
    Act(Arc<dyn Fn() + Send + Sync>),
}

/// A socket whose first connection that sends `word` breaks then: once the server has done what was sent (`delivers`),
/// or before it hears of it.
pub fn breaks_at(server: &Server, word: &'static str, delivers: bool) -> PathBuf {
    listen(server, word, Then::Break { delivers })
}

/// A socket on which `act` is done right before the server hears the first `word`.
pub fn acts_at(server: &Server, word: &'static str, act: impl Fn() + Send + Sync + 'static) -> PathBuf {
    listen(server, word, Then::Act(Arc::new(act)))
}

fn listen(server: &Server, word: &'static str, then: Then) -> PathBuf {
    let socket = server.folder().join("proxy");
    let listener = UnixListener::bind(&socket).unwrap();
    let (to, came) = (server.socket(), Arc::new(AtomicBool::new(false)));
    thread::spawn(move || {
        for client in listener.incoming() {
            let server = UnixStream::connect(&to).unwrap();
            let (then, came) = (then.clone(), Arc::clone(&came));
            thread::spawn(move || pass(client.unwrap(), server, word, &then, &came));
        }
    });
    socket
}

fn pass(mut client: UnixStream, mut server: UnixStream, word: &str, then: &Then, came: &AtomicBool) {
    client.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    loop {
        let Some(sent) = all_there_is(&mut client) else { return };
        let comes = sent.windows(word.len()).any(|part| part == word.as_bytes()) && !came.swap(true, Ordering::SeqCst);
        match then {
            Then::Break { delivers: false } if comes => return,
            Then::Act(act) if comes => act(),
            _ => {}
        }
        let _ = server.write_all(&sent);
        let Some(reply) = all_there_is(&mut server) else { return };
        if comes && matches!(then, Then::Break { .. }) {
            return;
        }
        let _ = client.write_all(&reply);
    }
}

/// What came until nothing more comes; `None` at the end.
fn all_there_is(stream: &mut UnixStream) -> Option<Vec<u8>> {
    let mut all = Vec::new();
    let mut part = [0; 65_536];
    loop {
        match stream.read(&mut part) {
            Ok(0) => return None,
            Ok(count) => all.extend_from_slice(&part[..count]),
            Err(_) => return Some(all),
        }
    }
}
