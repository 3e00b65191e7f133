//! Messages about a KEY that names more than one record.

use super::escape;
use super::invocation::word;
use crate::domain::record::RecordName;

/// Why idemctl changes nothing for such a KEY, with the names of the records.
pub fn ambiguous(key: &[u8], names: &[RecordName]) -> String {
    format!("{} is ambiguous: it names {}", escape::text(key), choices(key, names))
}

/// The names of the records, quoted so that the operator can paste them into a shell instead of the
/// KEY.
pub fn choices(key: &[u8], names: &[RecordName]) -> String {
    let names: Vec<_> = names.iter().map(|name| word(&name.instead_of(key))).collect();
    names.join(" and ")
}

/// The hint after such a message.
pub const HINT: &str =
    "pass one of these names exactly as shown; lines that are read with -0 are always names";
