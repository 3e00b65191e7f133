//! Which idemctl this is.

/// The version, the commit where the build knew one, and the target.
pub const TEXT: &str = env!("IDEMCTL_VERSION");

/// The day of this version, year first: `CHANGELOG.md` gives the same, and the manual pages bear it.
pub const RELEASED: &str = "2026-11-22";
