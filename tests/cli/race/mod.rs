//! `idemctl race`, against a real server.

mod server;
mod verdict;
mod void;
