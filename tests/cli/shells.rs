//! TAB in the shells themselves, on a terminal, with the lines of README that install the completions.

use std::fs;
use std::process::{Command, Stdio};

use crate::support::{FOREVER, Home, PENDING, Server, binary, terminal};

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
        start: (".zshrc", "PS1='$ '; fpath=(~/.local/share $fpath); autoload -Uz compinit; compinit -u\n"),
    },
    Shell { name: "fish", words: &["-i"], script: ".config/fish/completions/idemctl.fish", start: (".hushlogin", "") },
];

impl Shell {
    fn is_here(&self) -> bool {
        Command::new(self.name).arg("--version").stdout(Stdio::null()).status().is_ok_and(|status| status.success())
    }

    /// Types a line, presses TAB, and has the shell say the line that came of it.
    #[track_caller]
    fn completes(&self, home: &Home, typed: &str, wanted: &str) {
        let mut command = Command::new(self.name);
        let path = format!("{}:/usr/bin:/bin", binary().parent().unwrap().display());
        command.env_clear().env("HOME", home.path()).env("PATH", path).env("LANG", "C.UTF-8");
        let mut session = terminal::on_terminal(command, self.words);
        session.send(&format!("{typed}\t{HOME_KEY}echo :: \r")).unwrap();
        session.flush().unwrap();
        session.exp_string(&format!(":: {wanted}")).unwrap_or_else(|error| panic!("{}: {typed:?}: {error}", self.name));
        session.send("exit\r").unwrap();
        session.flush().unwrap();
        terminal::ends(session);
    }
}

/// Rule: TAB completes in the shells that are here, with contexts, states, codes after a comma, and keys from the server.
#[test]
fn tab_completes_in_each_shell() {
    let server = Server::holding(&[("idempotency:pay-1", PENDING, FOREVER), ("idempotency:order-1", PENDING, FOREVER)]);
    for shell in SHELLS.iter().filter(|shell| shell.is_here()) {
        let home = Home::with(&format!("[contexts.prod]\nurl = {:?}\n[contexts.parked]\n", server.url()));
        let script = home.path().join(shell.script);
        fs::create_dir_all(script.parent().unwrap()).unwrap();
        fs::write(script, server.idemctl(&["completions", shell.name]).exits(0).stdout).unwrap();
        fs::write(home.path().join(shell.start.0), shell.start.1).unwrap();
        for (typed, wanted) in [
            ("idemctl context use par", "idemctl context use parked"),
            ("idemctl list --state comp", "idemctl list --state completed"),
            ("idemctl list --state=comp", "idemctl list --state=completed"),
            ("idemctl list --finding no-expiry,wrong", "idemctl list --finding no-expiry,wrong-type"),
            ("idemctl --context prod inspect pa", "idemctl --context prod inspect pay-1"),
        ] {
            shell.completes(&home, typed, wanted);
        }
    }
}
