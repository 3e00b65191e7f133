//! The version of idemctl.

use std::path::PathBuf;

use crate::render::escape;

/// The version, the commit if the build knew it, and the target.
pub const TEXT: &str = env!("IDEMCTL_VERSION");

/// The release date as year-month-day, for the manual pages. `CHANGELOG.md` has the same date once
/// the version is released.
pub const RELEASED: &str = "2026-11-24";

/// The servers that the tests run on, as in the table of `docs/reliability.md`.
pub const TESTED_WITH: &str = "Redis 6.2.14, Redis 7.0.15, Redis 8.2.3, Valkey 9.1.2";

/// What `--version --verbose` prints after the version, one line per fact. A bug report begins with
/// it, so it has everything about the build that may explain a difference.
pub(crate) fn details(state_folder: Option<PathBuf>) -> String {
    let mut features = vec!["TLS"];
    if cfg!(target_feature = "crt-static") {
        features.push("static");
    }
    if cfg!(debug_assertions) {
        features.push("debug assertions");
    }
    let state_folder = state_folder.map_or_else(
        || "unknown, HOME is not set".to_owned(),
        |folder| escape::text(folder.as_os_str().as_encoded_bytes()),
    );
    let mut lines = String::new();
    for (name, value) in [
        ("commit", env!("IDEMCTL_BUILT_FROM")),
        ("target", env!("IDEMCTL_TARGET")),
        ("features", &features.join(", ")),
        ("tested with", TESTED_WITH),
        ("state folder", &state_folder),
    ] {
        lines.push_str(&format!("{name:<14}{value}\n"));
    }
    lines
}
