//! Locks whose operations ended with an unknown outcome: which ones are reconciled, and what the
//! provider says about each.

mod eligible;
mod provider_answer;
mod provider_file;

pub(crate) use self::eligible::{Eligibility, eligibility, reconcilable};
pub(crate) use self::provider_answer::{DoneResponse, ProviderAnswer, parse_answer};
pub(crate) use self::provider_file::{ProviderRow, parse_rows};
