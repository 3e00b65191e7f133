//! `idemctl completions`.

use anyhow::Result;
use clap::{Args as ClapArgs, ValueEnum};
use clap_complete::env::{Bash, EnvCompleter, Fish, Zsh};

use crate::exit::Exit;
use crate::session::Session;

/// The last line of the script for zsh, as clap_complete writes that script.
const ZSH_REGISTERS: &[u8] = b"compdef _clap_dynamic_completer_idemctl idemctl\n";

/// Print the completion script for a shell
///
/// In bash, zsh and fish, TAB completes contexts, schemas, backups, files, and keys from the
/// server.
///
/// bash: idemctl completions bash > ~/.local/share/bash-completion/completions/idemctl; the package
/// bash-completion loads the file, or `source` it in ~/.bashrc
///
/// zsh: idemctl completions zsh > a folder of $fpath, as _idemctl
///
/// fish: idemctl completions fish > ~/.config/fish/completions/idemctl.fish
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Name of the shell
    shell: Shell,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Shell {
    Bash,
    Fish,
    Zsh,
}

pub fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let completer: &dyn EnvCompleter = match args.shell {
        Shell::Bash => &Bash,
        Shell::Fish => &Fish,
        Shell::Zsh => &Zsh,
    };
    let mut script = Vec::new();
    completer.write_registration("COMPLETE", "idemctl", "idemctl", "idemctl", &mut script)?;
    match args.shell {
        // bash splits words at colons, which are in most keys, and clap_complete's script does not
        // join the parts.
        Shell::Bash => script.extend_from_slice(include_bytes!("completions/joined_words.bash")),
        Shell::Zsh => {
            // zsh loads the file at the first TAB. This line only registers the function, so that
            // TAB would offer nothing.
            if script.ends_with(ZSH_REGISTERS) {
                script.truncate(script.len() - ZSH_REGISTERS.len());
            }
            script.extend_from_slice(include_bytes!("completions/first_tab.zsh"));
        }
        Shell::Fish => {}
    }
    session.ui.data(script)?;
    Ok(Exit::Done)
}
