//! What records and keys contain: sensitive data, and keys that clients share by accident. Values
//! are looked at here and never leave: the facts are counts and masked pointers.

mod card_number;
mod chance;
mod client_key;
mod collector;
mod data_sample;
mod iban;
mod masked_pointer;
mod named;
mod provider_keys;
mod sensitive;
mod separators;
#[cfg(test)]
mod tests;
mod text_findings;
mod tokens;
mod walk;

pub(crate) use self::chance::{NumberVerdict, verdict};
pub(crate) use self::client_key::{WeakKey, other_forms};
pub(crate) use self::collector::DataCollector;
pub(crate) use self::data_sample::{DataPlace, DataSample, MemberCounts, SchemaData};
pub(crate) use self::sensitive::SensitiveKind;
