//! Backups, which are written and synced before a change, and read for a restore.

pub(crate) mod dumps;
pub(crate) mod entry;
pub(crate) mod folder;
pub(crate) mod integrity;
pub(crate) mod line;
pub(crate) mod parse;
pub(crate) mod payload;
pub(crate) mod provenance;
pub(crate) mod reader;
mod whole_record;
pub(crate) mod writer;

pub(crate) use entry::Maker;
pub use entry::{BackupEntry, RecordLabel, Saved};
pub use integrity::Closing;
pub(crate) use integrity::Damage;
pub use parse::{Held, HeldKey};
pub(crate) use reader::BackupError;
pub use reader::BackupReader;
pub use writer::Backup;
