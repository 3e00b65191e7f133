//! `idemctl completions`.

use anyhow::Result;
use clap::Args as ClapArgs;
use clap_complete::Shell;
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

/// The script that runs idemctl at each TAB; `None` for shells that get a static script.
fn dynamic_script(shell: Shell) -> Option<&'static dyn EnvCompleter> {
    match shell {
        Shell::Bash => Some(&Bash),
        Shell::Zsh => Some(&Zsh),
        Shell::Fish => Some(&Fish),
        _ => None,
    }
}

pub fn run(session: &mut Session, args: Args, mut root: clap::Command) -> Result<Exit> {
    let mut script = Vec::new();
    match dynamic_script(args.shell) {
        Some(shell) => {
            shell.write_registration("COMPLETE", "idemctl", "idemctl", "idemctl", &mut script)?
        }
        None => clap_complete::generate(args.shell, &mut root, "idemctl", &mut script),
    }
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
        _ => {}
    }
    session.ui.data(script)?;
    Ok(Exit::Done)
}
