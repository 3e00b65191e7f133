//! Backups: written and synced before a change, read again for a restore.

pub(crate) mod beside;
pub(crate) mod checksum;
pub(crate) mod closing;
pub(crate) mod damage;
pub(crate) mod dumps;
pub(crate) mod entry;
pub(crate) mod folder;
pub(crate) mod line;
pub(crate) mod maker;
pub(crate) mod parse;
pub(crate) mod payload;
pub(crate) mod provenance;
pub(crate) mod reader;
pub(crate) mod saved;
pub(crate) mod writer;

pub use closing::Closing;
pub(crate) use damage::Damage;
pub use entry::BackupEntry;
pub(crate) use maker::Maker;
pub use parse::{Held, HeldKey};
pub(crate) use reader::BackupError;
pub use reader::BackupReader;
pub use saved::{About, Saved};
pub use writer::Backup;
