//! Domain values to text: no Redis, no clap, no terminal.

pub mod escape;
