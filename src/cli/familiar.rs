//! Words that fingers know from other tools, and where idemctl has what they mean.

use std::ffi::{OsStr, OsString};

/// Commands of other tools that change something: told, never taken for idemctl's own, for what they remove differs.
const ELSEWHERE: [(&str, &str); 14] = [
    ("delete", PURGE),
    ("del", PURGE),
    ("rm", PURGE),
    ("remove", PURGE),
    ("unlink", PURGE),
    ("unlock", UNLOCK),
    ("release-lock", UNLOCK),
    ("cleanup", SWEEP),
    ("clean", SWEEP),
    ("gc", SWEEP),
    ("prune", SWEEP),
    ("renew", EXTEND),
    ("expire", EXTEND),
    ("history", "`idemctl log` shows what was changed, `idemctl undo` takes the last operation back"),
];

const PURGE: &str =
    "`idemctl purge KEY` removes stored results, `idemctl force-unlock KEY` a lock that nobody will release";
const UNLOCK: &str = "`idemctl force-unlock KEY` removes a lock that nobody will release; `idemctl release KEY` releases it as its worker would";
const SWEEP: &str = "`idemctl sweep --orphaned` finds locks that nobody will release, and removes them after two looks";
const EXTEND: &str = "`idemctl extend KEY --for 1h` gives a lock more time";

/// What idemctl has for a command of other tools.
pub(super) fn hint(command: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(word, _)| *word == command).map(|(_, hint)| *hint)
}

/// The same command line in idemctl's words: `version` and a last `-h`, which else is the host without its value.
pub(super) fn in_own_words(mut words: Vec<OsString>) -> Vec<OsString> {
    let first = words.get(1).map(OsString::as_os_str).unwrap_or_default();
    if first == OsStr::new("version") && words.len() == 2 {
        words[1] = "--version".into();
    }
    if words.len() > 1
        && let Some(last) = words.last_mut().filter(|last| *last == "-h")
    {
        *last = "--help".into();
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn help_and_version_are_understood_wherever_they_are_looked_for() {
        for (line, own) in [
            ("idemctl help schema list", "idemctl help schema list"),
            ("idemctl version", "idemctl --version"),
            ("idemctl -h", "idemctl --help"),
            ("idemctl list -h", "idemctl list --help"),
            ("idemctl -h redis list", "idemctl -h redis list"),
            ("idemctl inspect help", "idemctl inspect help"),
            ("idemctl inspect version", "idemctl inspect version"),
            ("idemctl", "idemctl"),
        ] {
            let words = line.split(' ').map(OsString::from).collect();
            assert_eq!(in_own_words(words).join(OsStr::new(" ")), own);
        }
    }
}
