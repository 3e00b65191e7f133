//! Confirmation of a change by the operator, and the file of the backup.

use std::path::PathBuf;

use anyhow::Result;

use crate::args::{ChangeArgs, ConfirmArgs, PruneArgs};
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::render::escape;
use crate::session::Session;
use crate::terminal::ui::cannot_prompt;
use crate::terminal::ui::{ReadyPrompt, is_yes};

/// How often a name is asked for. Somebody who types `y` out of habit reads the question the second
/// time.
pub(super) const MAX_ASKED: usize = 3;

impl PruneArgs {
    /// Asks whether `what` is to be deleted. False for a dry run.
    ///
    /// # Errors
    /// Not confirmed.
    pub async fn confirm(&self, session: &mut Session, what: &str) -> Result<bool> {
        if self.dry_run {
            let would = format!("dry run: nothing was deleted; {what} would be deleted");
            session.ui.status(&would);
            return Ok(false);
        }
        if !self.yes
            && !session
                .ui
                .confirm(&format!("Delete {what}? Undo and restore then cannot use them."))
                .await?
        {
            return Err(CommandError::usage("not confirmed; nothing was deleted").into());
        }
        Ok(true)
    }
}

impl ConfirmArgs {
    /// Asks for confirmation. In a protected context the context's name has to be typed, or given
    /// with `--confirm`; there `--yes` is not enough.
    ///
    /// Ctrl-C, SIGTERM, SIGQUIT and SIGHUP end the question at once, and the terminal is restored.
    ///
    /// # Errors
    /// Refused for safety, or interrupted.
    pub async fn confirm(
        &self,
        session: &mut Session,
        question: &str,
        server: &str,
        interrupt: &Interrupt,
    ) -> Result<()> {
        match self.dialog(session, question, server, false)? {
            Some(dialog) => dialog.run(session, interrupt).await,
            None => Ok(()),
        }
    }

    /// Asks for confirmation to change many records: the server's or the context's name has to be
    /// typed, or given with `--confirm`. `--yes` is enough, except in a protected context, where
    /// the context's name is needed. Signals end the question as in [`ConfirmArgs::confirm`].
    ///
    /// # Errors
    /// Refused for safety, or interrupted.
    pub async fn confirm_by_name(
        &self,
        session: &mut Session,
        question: &str,
        server: &str,
        interrupt: &Interrupt,
    ) -> Result<()> {
        match self.dialog(session, question, server, true)? {
            Some(dialog) => dialog.run(session, interrupt).await,
            None => Ok(()),
        }
    }

    /// The questions of [`ConfirmArgs::confirm`], or with `by_name` those of
    /// [`ConfirmArgs::confirm_by_name`], for a command that does something while it waits for the
    /// answer. `None` if the options confirm already.
    ///
    /// # Errors
    /// Refused for safety.
    pub fn dialog(
        &self,
        session: &Session,
        question: &str,
        server: &str,
        by_name: bool,
    ) -> Result<Option<ConfirmDialog>, CommandError> {
        let question = format!("{question} ({})", session.server_label(server));
        let context = session.settings.context_name();
        // A script that names its server with --confirm must not go ahead on another one.
        let names = match (context, &self.confirm) {
            (Some(name), _) if session.settings.is_protected() => vec![name],
            (_, None) if self.yes => return Ok(None),
            (_, None) if !by_name => {
                return Ok(Some(ConfirmDialog { names: Vec::new(), question, asked: 0 }));
            }
            (Some(name), _) => vec![name, server],
            (None, _) => vec![server],
        };
        if let Some(given) = &self.confirm {
            return match names.contains(&given.trim()) {
                true => Ok(None),
                false => Err(refused().hint(format!("--confirm must be {} here", wanted(&names)))),
            };
        }
        let name = names[0];
        if !session.ui.is_interactive() {
            return Err(self.cannot_ask(session, name));
        }
        let question = format!("{question} Type `{name}` to continue");
        let names = names.iter().map(|name| (*name).to_owned()).collect();
        Ok(Some(ConfirmDialog { names, question, asked: 0 }))
    }

    /// Passes if [`ConfirmArgs::confirm`] can be answered, for a command that does something before
    /// it asks.
    ///
    /// # Errors
    /// Usage: there is no terminal to ask on, or --confirm names something else.
    pub fn check_answerable(&self, session: &Session, server: &str) -> Result<(), CommandError> {
        match self.dialog(session, "", server, false)? {
            Some(_) if !session.ui.is_interactive() => Err(cannot_prompt()),
            _ => Ok(()),
        }
    }

    /// True if a person is asked, and so sees what will be changed.
    pub fn asks_somebody(&self, session: &Session) -> bool {
        self.confirm.is_none() && (!self.yes || session.settings.is_protected())
    }

    /// The error for a name that cannot be asked for, with what a script passes instead.
    fn cannot_ask(&self, session: &Session, name: &str) -> CommandError {
        if !session.settings.is_protected() {
            return CommandError {
                hint: Some(format!("pass --confirm {name} or --yes")),
                ..cannot_prompt()
            };
        }
        let why = if self.yes { "--yes is not enough" } else { "cannot prompt" };
        CommandError::usage(format!("{}: {why}", session.settings.protection()))
            .hint(format!("pass --confirm {name}"))
    }
}

/// The questions that an operator answers before a change.
pub struct ConfirmDialog {
    /// The names of which one has to be typed; empty if `y` is enough.
    names: Vec<String>,
    question: String,
    asked: usize,
}

impl ConfirmDialog {
    /// Asks until the operator confirms.
    ///
    /// # Errors
    /// Not confirmed, interrupted, or no terminal to ask on.
    async fn run(mut self, session: &mut Session, interrupt: &Interrupt) -> Result<()> {
        interrupt.handle_terminate()?;
        loop {
            let typed = self.prompt(session)?.answer(interrupt).await?;
            if self.takes(&typed)? {
                return Ok(());
            }
        }
    }

    /// The next question.
    ///
    /// # Errors
    /// There is no terminal to ask on.
    pub fn prompt(&mut self, session: &mut Session) -> Result<ReadyPrompt, CommandError> {
        self.asked += 1;
        if self.names.is_empty() {
            session.ui.prompt_to_confirm(&self.question)
        } else {
            session.ui.prompt_for(&self.question)
        }
    }

    /// True if the answer confirms; false if the next question is to be asked.
    ///
    /// # Errors
    /// Not confirmed.
    pub fn takes(&mut self, typed: &str) -> Result<bool, CommandError> {
        let typed = typed.trim();
        if self.names.is_empty() {
            return if is_yes(typed) { Ok(true) } else { Err(refused()) };
        }
        if typed.is_empty() {
            return Err(refused());
        }
        if self.names.iter().any(|name| name == typed) {
            return Ok(true);
        }
        let names: Vec<_> = self.names.iter().map(String::as_str).collect();
        if self.asked >= MAX_ASKED {
            return Err(refused().hint(format!("type {} to continue", wanted(&names))));
        }
        let typed = escape::text(typed.as_bytes());
        self.question = format!(
            "You typed `{typed}`. Type `{}` to continue, or press Enter to stop",
            self.names[0]
        );
        Ok(false)
    }
}

/// Names of which one is wanted, for people.
fn wanted(names: &[&str]) -> String {
    names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
}

impl ChangeArgs {
    /// The backup's file; `None` where the operator wants no backup.
    pub fn backup_file(
        &self,
        session: &mut Session,
        command: &str,
    ) -> Result<Option<PathBuf>, CommandError> {
        if self.no_backup {
            session.ui.warning("no backup is kept, so removed records cannot be restored");
            return Ok(None);
        }
        if let Some(file) = &self.backup {
            // The log names the file, and is read from other folders.
            return Ok(Some(std::path::absolute(file).unwrap_or_else(|_| file.clone())));
        }
        let time = humantime::format_rfc3339_millis(session.now()).to_string().replace(':', "");
        let name = format!("{time}-{command}-{}.jsonl", std::process::id());
        Ok(Some(session.settings.backup_dir()?.join(name)))
    }
}

fn refused() -> CommandError {
    CommandError::usage("not confirmed").changed_nothing()
}
