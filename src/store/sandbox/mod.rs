//! The throw-away server: private, empty, and gone with the process, however that ends.

mod fill;
mod server;

pub use fill::{EntryValue, SandboxKey};
pub use server::{Sandbox, SandboxError, Setup};
pub use server::{free_port, nowhere};
