//! TAB in the shells themselves, on a terminal, with the lines of README that install the completions.

use std::fs;
use std::path::Path;
use std::process::{Command, Stdio};

use crate::support::{DONE, FOREVER, Home, PENDING, Server, binary, terminal};

/// Ctrl-A: the beginning of the line, in each of the shells.
const HOME_KEY: &str = "\u{1}";

/// A shell, how it starts, and what makes it look for completions where README puts them.
struct Shell {
    name: &'static str,
    words: &'static [&'static str],
    /// Where the script goes, and the file that the shell reads first, with what stands there.
    script: &'static str,
    start: (&'static str, &'static str),
}

const SHELLS: &[Shell] = &[
    Shell {
        name: "bash",
        words: &["--noprofile", "-i"],
        script: ".local/share/bash-completion/completions/idemctl",
        // What the package bash-completion does at the first TAB.
        start: (".bashrc", "PS1='$ '; source ~/.local/share/bash-completion/completions/idemctl\n"),
    },
    Shell {
        name: "zsh",
        words: &["-i"],
        script: ".local/share/_idemctl",
        start: (
            ".zshrc",
            "PS1='$ '; fpath=(~/.local/share $fpath); autoload -Uz compinit; compinit -u\n",
        ),
    },
    Shell {
        name: "fish",
        words: &["-i"],
        script: ".config/fish/completions/idemctl.fish",
        start: (".hushlogin", ""),
    },
];

impl Shell {
    fn is_here(&self) -> bool {
        Command::new(self.name)
            .arg("--version")
            .stdout(Stdio::null())
            .status()
            .is_ok_and(|status| status.success())
    }

    /// Puts the completions where README puts them.
    fn install(&self, home: &Home) {
        let script = home.path().join(self.script);
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(script, home.run(&["completions", self.name]).exits(0).stdout).unwrap();
        fs::write(home.path().join(self.start.0), self.start.1).unwrap();
        // Without this folder fish reads every manual page of the machine at its first start, and holds the terminal meanwhile.
        fs::create_dir_all(home.path().join(".local/share/fish/generated_completions")).unwrap();
    }

    fn command(&self, home: &Home) -> Command {
        let mut command = Command::new(self.name);
        let path = format!("{}:/usr/bin:/bin", binary().parent().unwrap().display());
        command.env_clear().env("HOME", home.path()).env("PATH", path).env("LANG", "C.UTF-8");
        command.current_dir(home.path());
        command
    }

    /// Types a line, presses TAB, and has the shell say the line that came of it.
    #[track_caller]
    fn completes(&self, home: &Home, typed: &str, wanted: &str) {
        let mut session = terminal::on_terminal(self.command(home), self.words);
        session.send(&format!("{typed}\t{HOME_KEY}echo :: \r")).unwrap();
        session.flush().unwrap();
        session
            .exp_string(&format!(":: {wanted}"))
            .unwrap_or_else(|error| panic!("{}: {typed:?}: {error}", self.name));
        session.send("exit\r").unwrap();
        session.flush().unwrap();
        terminal::ends(session);
    }
}

/// What stands in the folder of the shells, beside the config file.
fn seeded() -> (Server, Home) {
    let server = Server::holding(&[
        ("idempotency:pay-1", PENDING, FOREVER),
        ("idempotency:order-1", PENDING, FOREVER),
        ("idempotency:acme:1015", PENDING, FOREVER),
        ("idempotency:acme:1016", DONE, FOREVER),
        ("idempotency:1015-of-another", PENDING, FOREVER),
    ]);
    let home =
        Home::with(&format!("[contexts.prod]\nurl = {:?}\n[contexts.parked]\n", server.url()));
    fs::create_dir_all(home.path().join(".local/state/idemctl/backups")).unwrap();
    home.write(".local/state/idemctl/backups/2026-11-22-purge-1.jsonl", "");
    home.write("before.json", "");
    home.write("keys.txt", "");
    (server, home)
}

const LINES: &[(&str, &str)] = &[
    ("context use par", "context use parked"),
    ("list --state comp", "list --state completed"),
    ("list --state=comp", "list --state=completed"),
    ("list --finding no-expiry,fore", "list --finding no-expiry,foreign-schema"),
    ("--context prod inspect pa", "--context prod inspect pay-1"),
    ("insp", "inspect"),
    ("hel", "help"),
    ("help sca", "help scans"),
    ("help schema ado", "help schema adopt"),
    ("schema adopt powertools-p", "schema adopt powertools-python"),
    ("schema show refer", "schema show reference"),
    ("diff bef", "diff before.json"),
    ("inspect --key-file ke", "inspect --key-file keys.txt"),
    ("complete k --body @ke", "complete k --body @keys.txt"),
    ("--cacert ke", "--cacert keys.txt"),
    ("restore 2026", "restore 2026-11-22-purge-1.jsonl"),
    ("restore bef", "restore before.json"),
];

/// Rule: TAB completes in the shells that are here, with contexts, states, codes after a comma, files, and keys from the server.
#[test]
fn tab_completes_in_each_shell() {
    let (_server, home) = seeded();
    for shell in SHELLS.iter().filter(|shell| shell.is_here()) {
        shell.install(&home);
        for (typed, wanted) in LINES {
            shell.completes(&home, &format!("idemctl {typed}"), &format!("idemctl {wanted}"));
        }
    }
}

/// Rule: a key with colons is completed to itself. Revert: without joining its parts, bash makes `acme:1015-of-another`, which is
/// not a key.
#[test]
fn a_key_with_colons_is_completed_in_each_shell() {
    let (_server, home) = seeded();
    for shell in SHELLS.iter().filter(|shell| shell.is_here()) {
        shell.install(&home);
        // zsh takes a colon for the end of a value, and puts a backslash before it that the line does not need.
        let colon = if shell.name == "zsh" { "(:|\\:)" } else { ":" };
        for typed in ["acme:1015", "ac", "acme:"] {
            let (command, rest) =
                if typed == "acme:1015" { ("inspect", "1015") } else { ("force-unlock", "1015") };
            let mut session = terminal::on_terminal(shell.command(&home), shell.words);
            session
                .send(&format!("idemctl --context prod {command} {typed}\t{HOME_KEY}echo :: \r"))
                .unwrap();
            session.flush().unwrap();
            let line = format!(":: idemctl --context prod {command} acme{colon}{rest} ?\r");
            session
                .exp_regex(&line)
                .unwrap_or_else(|error| panic!("{}: {typed:?}: {error}", shell.name));
            session.send("exit\r").unwrap();
            session.flush().unwrap();
            terminal::ends(session);
        }
    }
}

/// Where the package bash-completion puts what loads completions at the first TAB.
const BASH_COMPLETION: &str = "/usr/share/bash-completion/bash_completion";

#[test]
fn the_package_bash_completion_loads_the_script() {
    let (_server, home) = seeded();
    let bash = &SHELLS[0];
    if !bash.is_here() || !Path::new(BASH_COMPLETION).is_file() {
        eprintln!("left out: the package bash-completion is not here");
        return;
    }
    bash.install(&home);
    home.write(".bashrc", &format!("PS1='$ '; source {BASH_COMPLETION}\n"));
    let colons = [("--context prod inspect acme:1015", "--context prod inspect acme:1015")];
    for (typed, wanted) in LINES.iter().chain(&colons) {
        bash.completes(&home, &format!("idemctl {typed}"), &format!("idemctl {wanted}"));
    }
}

/// Clients choose keys, and a shell runs what is on its line.
#[test]
fn tab_never_puts_a_key_on_the_line_that_the_shell_would_read() {
    let (server, home) = seeded();
    for key in ["evil$(touch ran)", "other`touch ran`", "third --yes pay-1", "fourth;touch ran"] {
        server.set(&format!("idempotency:{key}"), PENDING, 600_000);
    }
    for shell in SHELLS.iter().filter(|shell| shell.is_here()) {
        shell.install(&home);
        for begun in ["inspect ev", "force-unlock oth", "force-unlock thi", "purge fou"] {
            let line = format!("idemctl --context prod {begun}");
            shell.completes(&home, &line, &format!("{line}\r\n"));
        }
    }
    assert!(!home.path().join("ran").exists(), "a shell ran what a client put into a key");
}
