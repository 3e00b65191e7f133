//! A way to the server that loses one reply.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on says so by panicking")]

use std::io::{Read, Write as _};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use crate::support::Server;

/// A socket whose first connection that sends `word` breaks then: once the server has done what was sent (`delivers`),
/// or before it hears of it.
pub fn breaks_at(server: &Server, word: &'static str, delivers: bool) -> PathBuf {
    let socket = server.folder().join("proxy");
    let listener = UnixListener::bind(&socket).unwrap();
    let (to, broke) = (server.socket(), Arc::new(AtomicBool::new(false)));
    thread::spawn(move || {
        for client in listener.incoming() {
            let server = UnixStream::connect(&to).unwrap();
            let broke = Arc::clone(&broke);
            thread::spawn(move || pass(client.unwrap(), server, word, delivers, &broke));
        }
    });
    socket
}

fn pass(mut client: UnixStream, mut server: UnixStream, word: &str, delivers: bool, broke: &AtomicBool) {
    client.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    server.set_read_timeout(Some(Duration::from_millis(30))).unwrap();
    loop {
        let Some(sent) = all_there_is(&mut client) else { return };
        let breaks =
            sent.windows(word.len()).any(|part| part == word.as_bytes()) && !broke.swap(true, Ordering::SeqCst);
        if breaks && !delivers {
            return;
        }
        let _ = server.write_all(&sent);
        let Some(reply) = all_there_is(&mut server) else { return };
        if breaks {
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
