//! Ports of the loopback for one test alone.

use std::net::{TcpListener, UdpSocket};

/// Below the ports that the system gives to whoever asks for any: no connection of another test takes one in between. No port is
/// the bus of another one: a node that has not yet started would find its bus taken.
const PORTS: std::ops::Range<u16> = 10_240..10_240 + BUS;

/// How far from its port a node of a cluster has its bus.
const BUS: u16 = 10_000;

/// A port where nobody listens, at its bus neither. A UDP socket claims the port as long as the test's process lives: no other
/// test gets it.
pub fn free_port() -> u16 {
    loop {
        let port = fastrand::u16(PORTS);
        let Ok(claim) = UdpSocket::bind(("127.0.0.1", port)) else { continue };
        if [port, port + BUS].iter().all(|port| TcpListener::bind(("127.0.0.1", *port)).is_ok()) {
            std::mem::forget(claim);
            return port;
        }
    }
}
