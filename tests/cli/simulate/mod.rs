//! `idemctl simulate`: every scenario ends well for a sound schema and badly for a broken one, so that no verdict comes
//! from a table.

pub mod variant;

mod agreement;
pub mod attempts;
mod command;
mod matrix;
mod server;
mod stable;
mod traces;
mod worlds;
mod zombies;
