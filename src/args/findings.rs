//! Codes of findings as the values of an option.

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::domain::diagnosis::FindingCode;

/// Reads these codes of findings.
pub(crate) fn finding_codes(codes: &[FindingCode]) -> impl TypedValueParser<Value = FindingCode> {
    PossibleValuesParser::new(codes.iter().map(FindingCode::as_str))
        .try_map(|code| code.parse::<FindingCode>())
}
