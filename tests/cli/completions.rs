//! `idemctl completions` and `idemctl man` from the outside.

use std::process::{Command, Stdio};

use crate::support::alone;

/// Every subcommand, as `--help` names them.
fn subcommands() -> Vec<String> {
    let help = alone(&["--help"]).exits(0).text();
    let list = help.split("\n\n").find(|part| part.starts_with("Look")).unwrap();
    let names = list.lines().map(|line| line[8..].split_whitespace().next().unwrap().to_owned());
    names.collect()
}

#[test]
fn the_scripts_are_sound_where_the_shell_is_there_to_say() {
    for shell in ["bash", "zsh", "fish"] {
        let script = alone(&["completions", shell]).exits(0);
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), &script.stdout).unwrap();
        let checked =
            Command::new(shell).arg("-n").arg(file.path()).stderr(Stdio::inherit()).status();
        assert!(checked.is_err() || checked.is_ok_and(|status| status.success()), "{shell}");
    }
}

#[test]
fn an_unknown_shell_is_a_usage_error() {
    alone(&["completions", "cmd"]).exits(2).says("bash, fish, zsh");
}

#[test]
fn there_is_a_page_for_each_command() {
    let folder = tempfile::tempdir().unwrap();
    let new = folder.path().join("new");
    let run = alone(&["man", new.to_str().unwrap()]).exits(0);
    assert_eq!(run.text(), "");
    let below = new.join("man1");
    for command in subcommands() {
        let page = std::fs::read_to_string(below.join(format!("idemctl-{command}.1"))).unwrap();
        assert!(page.contains(".SH NAME") && page.contains(".SH \"SEE ALSO\""), "{command}");
    }
    for nested in ["list", "show", "check"] {
        assert!(below.join(format!("idemctl-schema-{nested}.1")).is_file(), "{nested}");
    }
}

/// Rule: `man` finds the pages of each section below the folder.
#[test]
fn man_finds_the_pages_of_each_section() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().to_str().unwrap();
    alone(&["man", path]).exits(0).says(format!("`man -M {path} idemctl` shows the first"));
    for (section, name, says) in [
        ("1", "idemctl", "EXIT STATUS"),
        ("1", "idemctl-context-set", "--protected"),
        ("5", "idemctl-schema", "schema.toml"),
        ("5", "idemctl-config", "contexts"),
        ("7", "idemctl-findings", "no-expiry"),
        ("7", "idemctl-json", "JSON"),
    ] {
        assert!(
            folder.path().join(format!("man{section}/{name}.{section}")).is_file(),
            "{name}({section})"
        );
        let mut man = Command::new("man");
        man.args(["-M", path, section, name])
            .env("MANPAGER", "cat")
            .env("MANWIDTH", "100")
            .env("LC_ALL", "C.UTF-8");
        let Ok(shown) = man.stderr(Stdio::null()).output() else {
            eprintln!("left out: man is not here");
            continue;
        };
        let text = String::from_utf8_lossy(&shown.stdout);
        assert!(shown.status.success() && text.contains(says), "man {section} {name}: {text}");
    }
}

#[test]
fn a_folder_that_cannot_be_made_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    alone(&["man", &format!("{}/x", file.path().display())])
        .exits(2)
        .says("cannot make the folder");
}

/// Rule: a page is never written through a link that somebody left in the folder.
#[test]
fn a_page_is_not_written_through_a_link() {
    let folder = tempfile::tempdir().unwrap();
    let (below, victim) = (folder.path().join("man1"), folder.path().join("victim"));
    std::fs::create_dir(&below).unwrap();
    std::fs::write(&victim, "precious").unwrap();
    std::os::unix::fs::symlink(&victim, below.join("idemctl.1")).unwrap();
    let run = alone(&["man", folder.path().to_str().unwrap()]).exits(2);
    run.says("idemctl.1").says("it is a link, not a regular file");
    assert_eq!(std::fs::read_to_string(&victim).unwrap(), "precious");
    // A page that is a regular file gives way.
    std::fs::remove_file(below.join("idemctl.1")).unwrap();
    std::fs::write(below.join("idemctl.1"), "old").unwrap();
    alone(&["man", folder.path().to_str().unwrap()]).exits(0);
    assert_ne!(std::fs::read_to_string(below.join("idemctl.1")).unwrap(), "old");
    // The folder of a section is no link either.
    let elsewhere = folder.path().join("elsewhere");
    std::fs::rename(&below, &elsewhere).unwrap();
    std::fs::write(elsewhere.join("idemctl.1"), "precious").unwrap();
    std::os::unix::fs::symlink(&elsewhere, &below).unwrap();
    alone(&["man", folder.path().to_str().unwrap()])
        .exits(2)
        .says("man1")
        .says("it is a link, not a folder");
    assert_eq!(std::fs::read_to_string(elsewhere.join("idemctl.1")).unwrap(), "precious");
}

/// Rule: what a usage error names of the command line is escaped.
#[test]
fn a_usage_error_escapes_arguments() {
    const HOSTILE: &str = "\x1b]0;title\x07\nhint: run it";
    for words in [
        &[HOSTILE][..],
        &["help", HOSTILE],
        &["list", "--limit", HOSTILE],
        &["list", "--output", HOSTILE],
        &["list", "--older-than", HOSTILE],
        &["list", "--columns", HOSTILE],
        &["list", &format!("--{HOSTILE}")],
        &["man", "folder", HOSTILE],
        &["completions", HOSTILE],
    ] {
        let run = alone(words).exits(2);
        assert!(!run.stderr.contains(['\x1b', '\x07']), "{words:?}: {:?}", run.stderr);
        assert!(
            !run.stderr.lines().any(|line| line.starts_with("hint: run it")),
            "{words:?}: {:?}",
            run.stderr
        );
    }
}
