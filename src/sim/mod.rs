//! Workers that play a service against the real server.

pub mod seed;
