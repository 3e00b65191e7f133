//! Which records are a schema's own.

mod foreign;
mod own;
