//! The only room that knows Redis: connecting, scanning, reading, changing, and the throw-away server.

pub mod audit;
pub mod backup;
pub mod change;
pub mod cluster;
pub mod connection;
pub mod error;
pub mod read;
mod sandbox;
mod scripts;

pub use self::change::guarded_step::{Guard, Hold};
pub use self::change::restore::{Became, Fate, Return};
pub use self::change::{Action, Change, Outcome, Writer};
pub use self::cluster::client::{Link, connect};
pub use self::connection::client_options::Manners;
pub use self::connection::permit::{Access, Permit, Writable};
pub use self::connection::sentinels::Sentinels;
pub use self::connection::target::{Address, DEFAULT_CONNECT_TIMEOUT, DEFAULT_TIMEOUT, Target};
pub use self::connection::tls::{Tls, TlsOptions};
pub use self::connection::{Packed, Wire, pack};
pub use self::error::{ErrorClass, StoreError};
pub use self::read::look::MOST_WHOLE;
pub use self::read::page_size::Gait;
pub use self::read::reader::{Head, Reader, Seen};
pub use self::read::scan::Walk;
pub use sandbox::{Entry, EntryValue, Sandbox, SandboxError, Setup, free_port, nowhere};
