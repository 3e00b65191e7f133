//! Confirmation of a change by the operator, and the file of the backup.

use std::path::PathBuf;

use crate::args::{ChangeArgs, ConfirmArgs};
use crate::context::Context;
use crate::exit::CommandError;
use crate::render::escape;

/// How often a name is asked for. Somebody who types `y` out of habit reads the question the second time.
pub(super) const MOST_ASKED: usize = 3;

impl ConfirmArgs {
    /// Asks for confirmation. In a protected context the context's name has to be typed, or given with `--confirm`; there `--yes` is
    /// not enough.
    ///
    /// # Errors
    /// Refused for safety, or interrupted.
    pub fn confirm(
        &self,
        context: &mut Context,
        question: &str,
        server: &str,
    ) -> Result<(), CommandError> {
        let protected = context
            .settings
            .context_name()
            .filter(|_| context.settings.is_protected())
            .map(str::to_owned);
        match protected {
            Some(name) => self.confirm_name(context, question, server, &[&name]),
            // A script that names its server with --confirm must not go ahead on another one.
            None if self.confirm.is_some() => {
                let name = context.settings.context_name().map(str::to_owned);
                let names: Vec<_> = name.iter().map(String::as_str).chain([server]).collect();
                self.confirm_name(context, question, server, &names)
            }
            None if self.yes => Ok(()),
            None if context.ui.confirm(&format!("{question} ({})", context.place(server)))? => {
                Ok(())
            }
            None => Err(refused()),
        }
    }

    /// Asks for confirmation to change many records: the server's or the context's name has to be typed, or given with `--confirm`.
    /// `--yes` is enough, except in a protected context, where the context's name is needed.
    pub fn confirm_by_name(
        &self,
        context: &mut Context,
        question: &str,
        server: &str,
    ) -> Result<(), CommandError> {
        let name = context.settings.context_name().map(str::to_owned);
        match &name {
            Some(name) if context.settings.is_protected() => {
                self.confirm_name(context, question, server, &[name])
            }
            _ if self.yes && self.confirm.is_none() => Ok(()),
            Some(name) => self.confirm_name(context, question, server, &[name, server]),
            None => self.confirm_name(context, question, server, &[server]),
        }
    }

    /// True if a person is asked, who then sees what is to be changed.
    pub fn asks_somebody(&self, context: &Context) -> bool {
        self.confirm.is_none() && (!self.yes || context.settings.is_protected())
    }

    /// Asks for one of these names, unless `--confirm` gives it.
    fn confirm_name(
        &self,
        context: &mut Context,
        question: &str,
        server: &str,
        names: &[&str],
    ) -> Result<(), CommandError> {
        let name = names[0];
        let wanted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        if let Some(given) = &self.confirm {
            return match names.contains(&given.trim()) {
                true => Ok(()),
                false => Err(refused().hint(format!("--confirm must be {wanted} here"))),
            };
        }
        if !context.ui.is_interactive() {
            return Err(self.cannot_ask(context, name));
        }
        let mut question =
            format!("{question} ({}) Type `{name}` to continue", context.place(server));
        for _ in 0..MOST_ASKED {
            let typed = context.ui.ask_for(&question)?;
            match typed.trim() {
                "" => return Err(refused()),
                typed if names.contains(&typed) => return Ok(()),
                typed => {
                    let typed = escape::text(typed.as_bytes());
                    question = format!(
                        "You typed `{typed}`. Type `{name}` to continue, or press Enter to stop"
                    );
                }
            }
        }
        Err(refused().hint(format!("type {wanted} to continue")))
    }

    /// Why nobody can be asked for a name, and what a script gives in its place.
    fn cannot_ask(&self, context: &Context, name: &str) -> CommandError {
        if !context.settings.is_protected() {
            return CommandError::usage("cannot prompt without a terminal")
                .hint(format!("to continue without a prompt, pass --confirm {name} or --yes"));
        }
        let why = if self.yes {
            "--yes is not enough"
        } else {
            "cannot prompt for its name without a terminal"
        };
        CommandError::usage(format!("{}: {why}", context.settings.protection()))
            .hint(format!("in scripts, add --confirm {name}"))
    }
}

impl ChangeArgs {
    /// The backup's file; `None` where the operator wants no backup.
    pub fn backup_file(
        &self,
        context: &mut Context,
        command: &str,
    ) -> Result<Option<PathBuf>, CommandError> {
        if self.no_backup {
            context.ui.warning("no backup is kept, so removed records cannot be restored");
            return Ok(None);
        }
        if let Some(file) = &self.backup {
            // The log names the file, and is read from other folders.
            return Ok(Some(std::path::absolute(file).unwrap_or_else(|_| file.clone())));
        }
        let time = humantime::format_rfc3339_millis(context.now()).to_string().replace(':', "");
        let name = format!("{time}-{command}-{}.jsonl", std::process::id());
        Ok(Some(context.settings.backup_dir()?.join(name)))
    }
}

fn refused() -> CommandError {
    CommandError::usage("not confirmed; nothing was changed")
}
