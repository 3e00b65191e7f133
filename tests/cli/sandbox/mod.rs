//! `idemctl sandbox` from the outside.

mod seed;
mod server;
