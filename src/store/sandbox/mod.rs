//! The temporary local Redis: private and empty. It is removed when the process ends, even if it is
//! killed.

mod fill;
mod server;

pub use fill::{EntryValue, SandboxKey};
pub use server::{Sandbox, SandboxError, Setup, free_port};
