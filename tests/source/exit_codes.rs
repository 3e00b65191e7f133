//! Exit codes, variables: the manual has them all.

use std::collections::BTreeSet;

use crate::support::alone;
use idemctl::exit::Exit;

fn manual() -> String {
    let folder = tempfile::tempdir().unwrap();
    alone(&["man", folder.path().to_str().unwrap()]).exits(0);
    std::fs::read_to_string(folder.path().join("man1/idemctl.1")).unwrap()
}

#[test]
fn the_manual_has_every_exit_code_with_its_meaning() {
    let manual = manual();
    for (exit, meaning) in Exit::ALL {
        let entry = format!(".TP\n\\fB{}\\fR\n{}\n", exit.code(), meaning.replace('-', "\\-"));
        assert!(manual.contains(&entry), "{entry}");
    }
}

#[test]
fn no_two_meanings_share_a_code() {
    let codes: BTreeSet<_> = Exit::ALL.iter().map(|(exit, _)| exit.code()).collect();
    assert_eq!(codes.len(), Exit::ALL.len());
    assert_eq!(codes, BTreeSet::from([0, 1, 2, 3, 4, 5, 6, 7, 8, 70, 130]));
}

#[test]
fn the_manual_has_every_variable_of_idemctls_own() {
    let settings = std::fs::read_to_string(concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/src/settings/environment.rs"
    ))
    .unwrap();
    let manual = manual();
    let mut found = 0;
    for word in settings.split(|c: char| !(c.is_ascii_uppercase() || c == '_')) {
        let own = word.starts_with("IDEMCTL_") && !word.ends_with('_');
        if own || word == "REDIS_URL" || word == "REDISCLI_AUTH" {
            found += 1;
            assert!(manual.contains(&format!("\\fB{word}\\fR")), "{word}");
        }
    }
    assert!(found >= 6, "environment.rs names the variables");
}

#[test]
fn asking_for_help_is_no_error_and_not_knowing_how_is_one() {
    for (words, code) in
        [(&["--help"][..], 0), (&["--version"], 0), (&[], 2), (&["no-such-command"], 2)]
    {
        alone(words).exits(code);
    }
}
