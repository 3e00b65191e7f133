//! The only room that knows Redis: connecting, scanning, reading, changing, and the throw-away server.

pub mod audit;
pub mod backup;
mod batch;
mod connect;
mod error;
mod guarded;
mod link;
mod nodes;
mod pace;
mod pages;
mod read;
mod reply;
mod resp;
mod restore;
mod sandbox;
mod save;
mod scan;
mod scripts;
mod slots;
mod stream;
mod target;
mod walk;
mod wire;
mod write;

pub use error::{ErrorClass, StoreError};
pub use guarded::{Guard, Hold};
pub use link::{Link, connect};
pub use read::{Head, Reader, Seen};
pub use restore::Fate;
pub use sandbox::{Entry, EntryValue, Sandbox, SandboxError, Setup, free_port, nowhere};
pub use target::{Address, Target};
pub use walk::Walk;
pub use wire::{Packed, Wire, pack};
pub use write::{Action, Change, Outcome, Writer};
