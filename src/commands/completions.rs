//! `idemctl completions`.

use anyhow::Result;
use clap::Args as ClapArgs;
use clap_complete::Shell;

use crate::context::Context;
use crate::exit::Exit;

/// Print a shell's completion script
///
/// bash: idemctl completions bash > ~/.local/share/bash-completion/completions/idemctl
///
/// zsh: idemctl completions zsh > a folder of $fpath, as _idemctl
///
/// fish: idemctl completions fish > ~/.config/fish/completions/idemctl.fish
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The shell
    shell: Shell,
}

pub fn run(context: &mut Context, args: Args, mut root: clap::Command) -> Result<Exit> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut root, "idemctl", &mut script);
    context.ui.data(script)?;
    Ok(Exit::Done)
}
