//! Which idemctl this is.

/// The version, the commit where the build knew one, and the target.
pub const TEXT: &str = env!("IDEMCTL_VERSION");

/// The day of this version, year first, which the manual pages bear: `CHANGELOG.md` gives the same once the version is released.
pub const RELEASED: &str = "2026-11-24";
