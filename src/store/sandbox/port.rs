//! Ports of the loopback that nobody listens on.

use std::io;
use std::net::{Ipv4Addr, TcpListener};

use crate::store::connection::{Address, Target, Writable};

/// How far from its port a cluster's node has its bus.
const BUS: u16 = 10_000;

/// How many ports are tried.
const TRIES: usize = 50;

/// A port that is free just now, and the one of a cluster's bus with it.
///
/// # Errors
/// When the system has none.
pub fn free_port() -> io::Result<u16> {
    let mut last = io::Error::from(io::ErrorKind::AddrInUse);
    for _ in 0..TRIES {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let port = listener.local_addr()?.port();
        let Some(bus) = port.checked_add(BUS) else { continue };
        match TcpListener::bind((Ipv4Addr::LOCALHOST, bus)) {
            Ok(_) => return Ok(port),
            Err(error) => last = error,
        }
    }
    Err(last)
}

/// A server that is not there, though its machine is.
pub fn nowhere(like: &Writable) -> io::Result<Writable> {
    let address = Address::Tcp(Ipv4Addr::LOCALHOST.to_string(), free_port()?);
    Ok(like.instead(Target { address, ..(**like).clone() }))
}
