//! A way to the server that takes time: a TCP proxy that holds every byte back.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::time::{Duration, Instant};

/// Listens on a port of its own for good; each direction takes `delay`.
pub fn start(socket: &Path, delay: Duration) -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    let socket: PathBuf = socket.to_owned();
    std::thread::spawn(move || {
        for client in listener.incoming().flatten() {
            let _ = connect(client, &socket, delay);
        }
    });
    Ok(port)
}

fn connect(client: TcpStream, socket: &Path, delay: Duration) -> io::Result<()> {
    client.set_nodelay(true)?;
    let server = UnixStream::connect(socket)?;
    let (client_end, server_end) = (client.try_clone()?, server.try_clone()?);
    hold_back(client.try_clone()?, server.try_clone()?, delay, move || {
        drop(server_end.shutdown(Shutdown::Both))
    });
    hold_back(server, client, delay, move || drop(client_end.shutdown(Shutdown::Both)));
    Ok(())
}

fn hold_back(
    mut from: impl Read + Send + 'static,
    mut to: impl Write + Send + 'static,
    delay: Duration,
    close: impl FnOnce() + Send + 'static,
) {
    let (sender, receiver) = mpsc::channel::<(Instant, Vec<u8>)>();
    std::thread::spawn(move || {
        let mut buffer = vec![0; 64 * 1024];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if sender.send((Instant::now() + delay, buffer[..count].to_vec())).is_err() {
                break;
            }
        }
    });
    std::thread::spawn(move || {
        for (due, bytes) in receiver {
            std::thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        close();
    });
}
