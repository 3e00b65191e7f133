//! What a sample of the records shows of sensitive data and of the clients' keys: counts and masked
//! places. Nothing here can hold a value, a part of one, or a key.

use std::collections::BTreeSet;

use super::client_key::KeyCounts;
use super::masked_pointer::MaskedPointer;
use super::sensitive::SensitiveKind;

/// The records in a sample that were looked at, and what was found in them.
#[derive(Debug, Clone, Default)]
pub(crate) struct DataSample {
    /// The Redis keys in the sample, those of other programs included.
    pub(crate) redis_keys: u64,
    /// How many Redis keys exist; `None` if no server says it.
    pub(crate) there: Option<u64>,
    /// True if the sample has all Redis keys.
    pub(crate) is_all: bool,
    /// Records that were looked at as a whole.
    pub(crate) whole: u64,
    /// Records that are too large to be read as a whole.
    pub(crate) in_part: u64,
    /// Records with a value or a body that idemctl does not decode.
    pub(crate) not_decoded: u64,
    /// Records that could not be read.
    pub(crate) unread: u64,
    /// Records that were not read because the run had read its most bytes.
    pub(crate) left_out: u64,
    /// The members of Redis keys that were looked at, for each schema with such records.
    pub(crate) members: Vec<MemberCounts>,
    /// The schemas whose members the Redis user may not read.
    pub(crate) unread_members: BTreeSet<String>,
    /// The schemas under whose templates keys were looked for.
    pub(crate) templates: u64,
    /// By the name of the schema.
    pub(crate) schemas: Vec<SchemaData>,
}

/// The members of one Redis key that were looked at. Each is a record.
#[derive(Debug, Clone)]
pub(crate) struct MemberCounts {
    pub(crate) schema: String,
    pub(crate) looked_at: u64,
    pub(crate) there: u64,
    pub(crate) are_all: bool,
}

/// What was found in the records of one schema.
#[derive(Debug, Clone)]
pub(crate) struct SchemaData {
    pub(crate) schema: String,
    /// The template of the schema's first Redis key, from its file.
    pub(crate) template: String,
    /// Records that were looked at, as a whole or in part.
    pub(crate) records: u64,
    pub(crate) found: Vec<FoundData>,
    pub(crate) numbers: Vec<NumberCounts>,
    pub(crate) keys: KeyCounts,
}

/// Where something is in a record.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum DataPlace {
    /// In the idempotency key.
    Key,
    At(MaskedPointer),
}

/// What is certain without counting: a kind of data in some records, at one place.
#[derive(Debug, Clone)]
pub(crate) struct FoundData {
    pub(crate) kind: SensitiveKind,
    pub(crate) place: DataPlace,
    pub(crate) records: u64,
}

/// The numbers at one place, each counted once. Some of them have right check digits by chance.
#[derive(Debug, Clone)]
pub(crate) struct NumberCounts {
    /// A card number or an IBAN.
    pub(crate) kind: SensitiveKind,
    pub(crate) place: DataPlace,
    /// True for numbers in the groups in which cards show them.
    pub(crate) is_grouped: bool,
    /// Different numbers of about this length.
    pub(crate) numbers: u64,
    /// Those with the prefix and length of an issuer, or the structure of a country.
    pub(crate) fitting: u64,
    /// Those of the fitting ones with the right check digits.
    pub(crate) valid: u64,
    /// Those of the valid ones that payment providers publish for tests.
    pub(crate) test_numbers: u64,
    /// Records that have a valid one there.
    pub(crate) records: u64,
}

impl DataSample {
    /// Records that belong to a known schema.
    pub(crate) fn records(&self) -> u64 {
        self.whole + self.not_whole()
    }

    /// True if something of the known schemas was not looked at.
    pub(crate) fn has_gaps(&self) -> bool {
        self.not_whole() > 0 || !self.unread_members.is_empty()
    }

    /// True if the sample has all Redis keys, and all members of those that have records as
    /// members.
    pub(crate) fn has_all_records(&self) -> bool {
        self.is_all && self.members.iter().all(|members| members.are_all)
    }

    /// Records that were not looked at as a whole.
    pub(crate) fn not_whole(&self) -> u64 {
        self.in_part + self.not_decoded + self.unread + self.left_out
    }
}
