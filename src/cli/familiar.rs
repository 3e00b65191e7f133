//! Commands and options of other tools, and their equivalents in idemctl.

use std::ffi::{OsStr, OsString};

use clap::error::{ContextKind, ContextValue};

use crate::domain::removed::{self, RemovedKind};

/// Commands of other tools. idemctl answers them with a hint and never runs them, because its own
/// commands read or remove something different.
const ELSEWHERE: [(&str, &str); 29] = [
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
    ("history", "`idemctl log` lists the changes, `idemctl undo` undoes the last operation"),
    ("redo", "`idemctl undo` after an undo reverts that undo"),
    ("keys", LIST),
    ("scan", LIST),
    ("show", INSPECT),
    ("describe", INSPECT),
    ("ttl", INSPECT),
    ("pttl", INSPECT),
    (
        "exists",
        "`idemctl inspect KEY` shows the key's records; its exit status is 1 if there is none",
    ),
    ("type", INSPECT),
    ("ping", TEST),
    ("info", "`idemctl context test` shows the server, `idemctl stats` its records"),
    ("top", WATCH),
    ("tail", WATCH),
    ("watch", WATCH),
    ("monitor", WATCH),
];

const PURGE: &str = "`idemctl purge KEY` removes stored results, `idemctl force-unlock KEY` a lock \
    whose worker is dead";
const UNLOCK: &str = "`idemctl force-unlock KEY` removes a lock whose worker is dead; `idemctl \
    release KEY` releases it with the service's own step";
const SWEEP: &str = "`idemctl sweep --orphaned` finds locks that no worker will release, and \
    removes them after two checks";
const EXTEND: &str = "`idemctl extend KEY --for 1h` gives a lock more time";
const LIST: &str = "`idemctl list` lists the records; `--match 'order-*'` selects some of them";
const INSPECT: &str =
    "`idemctl inspect KEY` shows a key's records, their TTL, and what the next request gets";
const TEST: &str =
    "`idemctl context test` connects, and shows the server's properties and the user's rights";
const WATCH: &str = "`idemctl list --watch` and `idemctl inspect KEY --watch` repeat every second";

/// The hint for a command of another tool, or of an earlier version.
pub(super) fn hint(command: &str) -> Option<String> {
    for (word, hint) in ELSEWHERE {
        if word == command {
            return Some(hint.to_owned());
        }
    }
    Some(removed::find(RemovedKind::Command, command)?.hint())
}

/// The same command line in idemctl's own words. It replaces `version`, and a final `-h`, which
/// would otherwise be the host option without a value.
pub(super) fn in_own_words(mut words: Vec<OsString>) -> Vec<OsString> {
    let first = words.get(1).map(OsString::as_os_str).unwrap_or_default();
    if first == OsStr::new("version") && words.len() == 2 {
        words[1] = "--version".into();
    }
    if words.len() > 1
        && let Some(last) = words.last_mut()
        && *last == "-h"
    {
        *last = "--help".into();
    }
    words
}

/// Keeps only those suggestions of clap that correct a typing error.
pub(super) fn keep_slips(error: &mut clap::Error) {
    // A suggested replacement for a key is never meant.
    error.remove(ContextKind::Suggested);
    for (wrong, suggested) in [
        (ContextKind::InvalidArg, ContextKind::SuggestedArg),
        (ContextKind::InvalidSubcommand, ContextKind::SuggestedSubcommand),
    ] {
        let Some(ContextValue::String(typed)) = error.get(wrong).cloned() else { continue };
        match error.remove(suggested) {
            Some(ContextValue::String(one)) if is_slip(&typed, &one) => {
                drop(error.insert(suggested, ContextValue::String(one)))
            }
            Some(ContextValue::Strings(mut several)) => {
                several.retain(|suggestion| is_slip(&typed, suggestion));
                if !several.is_empty() {
                    error.insert(suggested, ContextValue::Strings(several));
                }
            }
            _ => {}
        }
    }
}

/// True if the first word of the suggestion differs from the typed word by a typing error. Other
/// similar words include opposites of the word.
fn is_slip(typed: &str, suggestion: &str) -> bool {
    let suggested = suggestion.split_whitespace().next().unwrap_or_default();
    let typed: Vec<char> = typed.chars().collect();
    let suggested: Vec<char> = suggested.chars().collect();
    // The Levenshtein distance, computed row by row.
    let mut row: Vec<usize> = (0..=suggested.len()).collect();
    for (above, typed) in typed.iter().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], above + 1);
        for (column, suggested) in suggested.iter().enumerate() {
            let replaced = diagonal + usize::from(typed != suggested);
            diagonal = row[column + 1];
            row[column + 1] = replaced.min(diagonal + 1).min(row[column] + 1);
        }
    }
    // Two edits, because two swapped letters count as two.
    row[suggested.len()] <= 2
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a tip never names an option or a command with another effect than the intended one.
    #[test]
    fn only_a_slip_of_the_fingers_is_mended() {
        for (typed, suggested) in
            [("--older-then", "--older-than"), ("insepct", "inspect"), ("--sort", "--sorts")]
        {
            assert!(is_slip(typed, suggested), "{typed}");
        }
        for (typed, suggested) in [
            ("--newer-than", "--older-than"),
            ("--ttl-above", "--ttl-below"),
            ("--key-file", "--key"),
            ("--no-backup", "--backup"),
            ("delete", "release"),
            ("delete", "complete"),
        ] {
            assert!(!is_slip(typed, suggested), "{typed}");
        }
    }

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
