//! Backups: written and synced before a change, read again for a restore.

pub(crate) mod beside;
pub(crate) mod checksum;
pub(crate) mod damage;
pub(crate) mod line;
pub(crate) mod parse;
pub(crate) mod provenance;
pub(crate) mod reader;
pub(crate) mod save;
pub mod writer;
