//! Profiles: built in from `profiles/`, or a file of the operator.

use std::path::Path;

use crate::domain::probe::{ProbeProfile, parse_profile};
use crate::exit::CommandError;
use crate::files;
use crate::render::escape;

/// The built-in profiles, by their names.
const BUILT_IN: [(&str, &str); 4] = [
    ("ietf-07", include_str!("../../../profiles/ietf-07.toml")),
    ("stripe", include_str!("../../../profiles/stripe.toml")),
    ("adyen", include_str!("../../../profiles/adyen.toml")),
    ("square", include_str!("../../../profiles/square.toml")),
];

/// Larger than any profile.
const LARGEST: u64 = 1 << 20;

/// The profile with this name, or in this file.
///
/// # Errors
/// Usage: there is none, or it is not valid.
pub(super) fn load(given: &str) -> Result<ProbeProfile, CommandError> {
    let shown = escape::text(given.as_bytes());
    let wrong = |why: String| {
        let why = escape::text(why.as_bytes());
        CommandError::usage(format!("--profile: {shown}: {why}"))
    };
    for (name, text) in BUILT_IN {
        if name == given {
            return parse_profile(text).map_err(wrong);
        }
    }
    let names: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
    let hint = format!("profiles: {}, or the path of a file", names.join(", "));
    let text = files::read_text(Path::new(given), LARGEST)
        .map_err(|error| wrong(error.to_string()).hint(hint))?;
    parse_profile(&text).map_err(wrong)
}
