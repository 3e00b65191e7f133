//! Help and manual pages show the options of a group where the group is explained, and not at every command.

use clap::Command;

/// The command with the options under these headings hidden.
pub(crate) fn without(command: Command, headings: &[&str]) -> Command {
    command.mut_args(|option| {
        let hide = option.get_help_heading().is_some_and(|heading| headings.contains(&heading));
        if hide { option.hide(true) } else { option }
    })
}
