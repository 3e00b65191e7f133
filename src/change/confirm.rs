//! The operator's leave to change, and the file of the backup.

use std::path::PathBuf;

use crate::args::{ChangeArgs, ConfirmArgs};
use crate::context::Context;
use crate::exit::Stop;

impl ConfirmArgs {
    /// Asks for leave. In a protected context the context's name has to be typed, or given with `--confirm`; there `--yes` is
    /// not enough.
    ///
    /// # Errors
    /// Refused for safety, or interrupted.
    pub fn confirm(&self, context: &mut Context, question: &str, server: &str) -> Result<(), Stop> {
        let protected = context.settings.context_name().filter(|_| context.settings.is_protected()).map(str::to_owned);
        match protected {
            Some(name) => self.confirm_name(context, question, server, &[&name]),
            // A script that names its server with --confirm must not go ahead on another one.
            None if self.confirm.is_some() => {
                let name = context.settings.context_name().map(str::to_owned);
                let names: Vec<_> = name.iter().map(String::as_str).chain([server]).collect();
                self.confirm_name(context, question, server, &names)
            }
            None if self.yes => Ok(()),
            None if context.ui.confirm(&format!("{question} ({})", context.place(server)))? => Ok(()),
            None => Err(refused()),
        }
    }

    /// Asks for leave to change many records: the server's or the context's name has to be typed, or given with `--confirm`.
    /// `--yes` is enough, except in a protected context, where the context's name is needed.
    pub fn confirm_by_name(&self, context: &mut Context, question: &str, server: &str) -> Result<(), Stop> {
        let name = context.settings.context_name().map(str::to_owned);
        match &name {
            Some(name) if context.settings.is_protected() => self.confirm_name(context, question, server, &[name]),
            _ if self.yes && self.confirm.is_none() => Ok(()),
            Some(name) => self.confirm_name(context, question, server, &[name, server]),
            None => self.confirm_name(context, question, server, &[server]),
        }
    }

    pub fn asks_somebody(&self, context: &Context) -> bool {
        self.confirm.is_none() && (!self.yes || context.settings.is_protected())
    }

    /// Asks for one of these names, unless `--confirm` gives it.
    fn confirm_name(&self, context: &mut Context, question: &str, server: &str, names: &[&str]) -> Result<(), Stop> {
        let name = names[0];
        let typed = match &self.confirm {
            Some(given) => given.clone(),
            None if context.ui.is_interactive() => {
                context.ui.ask_for(&format!("{question} ({}) Type `{name}` to go ahead", context.place(server)))?
            }
            None if context.settings.is_protected() => {
                return Err(Stop::usage(format!("{}: --yes is not enough", context.settings.protection()))
                    .hint(format!("a script says --confirm {name}")));
            }
            None => {
                return Err(Stop::usage("there is no terminal to ask on")
                    .hint(format!("--confirm {name} or --yes goes ahead without asking")));
            }
        };
        if names.contains(&typed.trim()) {
            return Ok(());
        }
        let wanted = names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ");
        Err(refused().hint(format!("this is {wanted}")))
    }
}

impl ChangeArgs {
    /// The backup's file; `None` where the operator wants no backup.
    pub fn backup_file(&self, context: &mut Context, command: &str) -> Result<Option<PathBuf>, Stop> {
        if self.no_backup {
            context.ui.warning("no backup is kept: what is removed cannot be restored");
            return Ok(None);
        }
        if let Some(file) = &self.backup {
            // The log names the file, and is read from other folders.
            return Ok(Some(std::path::absolute(file).unwrap_or_else(|_| file.clone())));
        }
        let time = humantime::format_rfc3339_millis(context.now()).to_string().replace(':', "");
        let name = format!("{time}-{command}-{}.jsonl", std::process::id());
        Ok(Some(context.settings.state_dir()?.join("backups").join(name)))
    }
}

fn refused() -> Stop {
    Stop::usage("not confirmed; nothing was changed")
}
