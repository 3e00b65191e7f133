//! The version of idemctl.

/// The version, the commit if the build knew it, and the target.
pub const TEXT: &str = env!("IDEMCTL_VERSION");

/// The release date as year-month-day, for the manual pages. `CHANGELOG.md` has the same date once
/// the version is released.
pub const RELEASED: &str = "2026-11-24";
