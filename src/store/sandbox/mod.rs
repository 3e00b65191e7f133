//! The throw-away server: private, empty, and gone with the process, however that ends.

mod fill;
mod port;
mod program;
mod server;

pub use fill::{EntryValue, SandboxKey};
pub use port::{free_port, nowhere};
pub use server::{Sandbox, SandboxError, Setup};
