//! The throw-away server: private, empty, and gone with the process, however that ends.

mod fill;
mod program;
mod server;

pub use fill::{Entry, EntryValue};
pub use server::{Sandbox, SandboxError};
