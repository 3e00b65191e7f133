//! `idemctl inspect` from the outside: the binary against a real server.

mod body;
mod explain;
mod find;
mod record;
