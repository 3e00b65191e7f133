//! The only module that talks to Redis: connecting, scanning, reading, changing, and the temporary
//! local Redis.

pub(crate) mod audit;
pub mod backup;
pub(crate) mod change;
pub(crate) mod cluster;
pub(crate) mod connection;
pub(crate) mod doctor;
pub(crate) mod error;
pub mod read;
mod sandbox;
mod scripts;

pub use self::change::guarded_step::{GuardedOutcome, StepLock};
pub use self::change::restore::{KeyResult, RestoreOutcome, Return};
pub(crate) use self::change::set_words;
pub use self::change::{Change, KeyAction, Outcome, PriorValue, Writer};
pub use self::cluster::client::{Client, connect};
pub use self::connection::credentials::{Credentials, LogIn};
pub use self::connection::permit::Access;
pub(crate) use self::connection::permit::{Permit, Writable};
pub(crate) use self::connection::sentinels::{Sentinels, host_and_port};
pub use self::connection::target::{Address, NO_URL, Target};
pub(crate) use self::connection::target::{DEFAULT_CONNECT_TIMEOUT, DEFAULT_TIMEOUT};
pub(crate) use self::connection::tls::{Tls, TlsOptions};
pub use self::connection::trace::Trace;
pub(crate) use self::connection::{Connection, Packed, pack};
pub(crate) use self::error::{ErrorClass, StoreError};
pub(crate) use self::read::for_change::{MAX_FURTHER, MAX_WHOLE};
pub use self::read::key_query::ReadLimit;
pub use self::read::keyspace_scan::{KeyspaceScan, RecordDecoder};
pub(crate) use self::read::page_size::ScanOptions;
pub(crate) use self::read::reader::{ReadResult, RecordReader};
pub use self::read::sampler::Sampler;
pub(crate) use sandbox::{EntryValue, SandboxError, Setup, free_port};
pub use sandbox::{Sandbox, SandboxKey};
