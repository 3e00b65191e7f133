//! Ways to a server that fail as networks and servers do, whatever is sent: nobody there, nobody answers, slow, cut off.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

pub use super::proxy::{Hook, Talk, fake, hooked, hooked_at, removes, says};
use crate::support::Server;

/// What is done to replies.
pub type Change = Arc<dyn Fn(&mut [u8]) + Send + Sync>;

/// What goes wrong on the way.
#[derive(Clone)]
pub enum Fault {
    /// Whatever is sent, in either direction, comes so much later.
    Delay(Duration),
    /// After so many bytes of requests, of all connections together, the one they came on is cut, once.
    CutRequests(usize),
    /// The same with replies.
    CutReplies(usize),
    /// Connections are cut right before the server hears this word.
    CutAt(&'static str),
    /// Replies are changed.
    Changed(Change),
    /// Requests are changed by the first, replies by the second.
    Translated(Change, Change),
}

/// A port of the loopback that leads to the server, and what goes wrong there. Also how many bytes of requests and
/// replies have passed.
pub fn way(server: &Server, fault: Fault) -> (u16, Arc<[AtomicUsize; 2]>) {
    let passed: Arc<[AtomicUsize; 2]> = Arc::default();
    let (socket, counts) = (server.socket(), Arc::clone(&passed));
    let port = fake(move |client| {
        if let Ok(server) = UnixStream::connect(&socket) {
            join(client, &server, &fault, &counts);
        }
    });
    (port, passed)
}

/// A port that leads to another one, on which the last byte of the `which`th piece of what comes back is another.
pub fn garbled(port: u16, which: usize) -> u16 {
    let pieces = AtomicUsize::new(0);
    let garble = move |piece: &mut [u8]| {
        let is_the_one = pieces.fetch_add(1, Ordering::SeqCst) + 1 == which;
        *piece.last_mut().unwrap() ^= u8::from(is_the_one);
    };
    let fault = Fault::Changed(Arc::new(garble));
    fake(move |client| {
        if let Ok(server) = TcpStream::connect(("127.0.0.1", port)) {
            join(client, &server, &fault, &Default::default());
        }
    })
}

/// Joins both ends, until one of them or a fault ends it.
fn join<S: End>(client: &TcpStream, server: &S, fault: &Fault, passed: &[AtomicUsize; 2])
where
    for<'a> &'a S: Read + Write,
{
    client.set_nodelay(true).unwrap();
    let end = |is_cut: bool, stream: &dyn End| {
        stream.end(if is_cut { Shutdown::Both } else { Shutdown::Write })
    };
    thread::scope(|scope| {
        scope.spawn(|| {
            let is_cut = pass(&mut &*client, &mut &*server, fault, 0, &passed[0]);
            end(is_cut, server);
            if is_cut {
                end(true, client);
            }
        });
        let is_cut = pass(&mut &*server, &mut &*client, fault, 1, &passed[1]);
        end(is_cut, client);
        if is_cut {
            end(true, server);
        }
    });
}

/// What can be ended, in one direction or both.
trait End: Sync {
    fn end(&self, how: Shutdown);
}

impl End for TcpStream {
    fn end(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

impl End for UnixStream {
    fn end(&self, how: Shutdown) {
        let _ = self.shutdown(how);
    }
}

/// Passes on what comes, until the end, or the fault that cuts it: true.
fn pass(
    from: &mut dyn Read,
    to: &mut dyn Write,
    fault: &Fault,
    direction: usize,
    passed: &AtomicUsize,
) -> bool {
    let mut part = [0; 65_536];
    while let Ok(count @ 1..) = from.read(&mut part) {
        let before = passed.fetch_add(count, Ordering::SeqCst);
        let most = match (fault, direction) {
            (Fault::CutRequests(most), 0) | (Fault::CutReplies(most), 1) => *most,
            _ => usize::MAX,
        };
        match fault {
            Fault::Delay(delay) => thread::sleep(*delay),
            Fault::Changed(change) if direction == 1 => change(&mut part[..count]),
            Fault::Translated(requests, replies) => {
                [requests, replies][direction](&mut part[..count])
            }
            _ => {}
        }
        let has =
            |word: &str| part[..count].windows(word.len()).any(|part| part == word.as_bytes());
        let (is_cut, sent) = match fault {
            Fault::CutAt(word) if direction == 0 && has(word) => (true, 0),
            _ if before <= most && most < before + count => (true, most - before),
            _ => (false, count),
        };
        if to.write_all(&part[..sent]).is_err() || is_cut {
            return is_cut;
        }
    }
    false
}

/// A port of the loopback that leads to another one, where connections come from 127.0.0.2: from another host, as some
/// servers see it.
pub fn from_another_host(port: u16) -> u16 {
    fake(move |client| {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let server = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.2:0".parse().unwrap()).unwrap();
            socket.connect(([127, 0, 0, 1], port).into()).await.unwrap().into_std().unwrap()
        });
        server.set_nonblocking(false).unwrap();
        let (mut requests, mut to_server) =
            (client.try_clone().unwrap(), server.try_clone().unwrap());
        let there = thread::spawn(move || std::io::copy(&mut requests, &mut to_server));
        let _ = std::io::copy(&mut &server, client);
        let _ = client.shutdown(Shutdown::Both);
        let _ = there.join();
    })
}

/// A port on which somebody takes connections and never says a word.
pub fn half_open() -> u16 {
    fake(|stream| while let Ok(1..) = stream.read(&mut [0; 4096]) {})
}

/// A port on which connections are neither taken nor refused, while this is held.
pub struct BlackHole {
    /// The port.
    pub port: u16,
    _runtime: tokio::runtime::Runtime,
    _listener: tokio::net::TcpListener,
    _queued: Vec<TcpStream>,
}

impl BlackHole {
    /// A listener that takes nobody, with a full queue.
    pub fn open() -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let listener = runtime.block_on(async {
            let socket = tokio::net::TcpSocket::new_v4().unwrap();
            socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
            socket.listen(1).unwrap()
        });
        let address: SocketAddr = listener.local_addr().unwrap();
        let queue = || TcpStream::connect_timeout(&address, Duration::from_millis(100)).ok();
        let queued = std::iter::from_fn(queue).take(64).collect();
        Self { port: address.port(), _runtime: runtime, _listener: listener, _queued: queued }
    }
}

/// A server that tells another time than it goes by.
pub fn misled(by_ms: i64) -> Fault {
    Fault::Changed(Arc::new(move |reply| skew(reply, (now_ms(), by_ms))))
}

/// A server whose clock differs by so many milliseconds, as far as its replies tell and requests name its time.
pub fn skewed(by_ms: i64) -> Fault {
    Fault::Translated(
        Arc::new(move |request| skew_requests(request, (now_ms() + by_ms, -by_ms))),
        Arc::new(move |reply| skew(reply, (now_ms(), by_ms))),
    )
}

/// Moves every time around a moment by so many milliseconds, as if the server's clock differed.
fn skew(bytes: &mut [u8], (near_ms, by_ms): (i64, i64)) {
    let mut start = 0;
    while start < bytes.len() {
        let digits = bytes[start..].iter().take_while(|byte| byte.is_ascii_digit()).count();
        let unit = match digits {
            10 => 1_000,
            13 => 1,
            _ => 0,
        };
        if unit > 0 {
            let time: i64 =
                std::str::from_utf8(&bytes[start..start + digits]).unwrap().parse().unwrap();
            if (time * unit - near_ms).abs() < 100_000 {
                bytes[start..start + digits]
                    .copy_from_slice((time + by_ms / unit).to_string().as_bytes());
            }
        }
        start += digits.max(1);
    }
}

/// The same of the times in a request that are no part of a value: in JSON a colon stands in front.
fn skew_requests(request: &mut [u8], by: (i64, i64)) {
    for (index, part) in request.split_mut(|byte| *byte == b':').enumerate() {
        let in_value = if index == 0 {
            0
        } else {
            part.iter().take_while(|byte| byte.is_ascii_digit()).count()
        };
        skew(&mut part[in_value..], by);
    }
}

fn now_ms() -> i64 {
    i64::try_from(SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis()).unwrap()
}
