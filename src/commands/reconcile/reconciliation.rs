//! A run: hold the locks, ask, plan, confirm, act, and give back what was not needed.

use std::pin::pin;

use anyhow::Result;
use futures_util::stream::{self, StreamExt as _};
use tokio::time::{Instant, sleep_until};

use super::lock::{Fate, ReconciledLock};
use super::options::Args;
use crate::args::ConfirmArgs;
use crate::ask_program::AskProgram;
use crate::change::Journal;
use crate::domain::reconcile::ProviderAnswer;
use crate::exit::CommandError;
use crate::interrupt::Interrupt;
use crate::render::words;
use crate::session::Session;
use crate::sim::RehearsalServer;
use crate::store::{RecordReader, StoreError, Writer};

/// What a run needs to change locks.
pub(super) struct Changes {
    pub(super) writer: Writer,
    pub(super) journal: Journal,
}

/// The locks of a run, and what it takes to reconcile them.
pub(super) struct Reconciliation<'a> {
    pub(super) session: &'a mut Session,
    pub(super) confirm_args: &'a ConfirmArgs,
    pub(super) args: &'a Args,
    pub(super) locks: Vec<ReconciledLock>,
    pub(super) reader: RecordReader,
    /// `None` for a dry run.
    pub(super) changes: Option<Changes>,
    pub(super) interrupt: Interrupt,
    /// The temporary local Redis on which completions are tried, or why it cannot be started;
    /// `None` if none was needed yet.
    pub(super) rehearsals: Option<Result<RehearsalServer, String>>,
    /// When the hold was renewed last.
    pub(super) held_at: Instant,
    /// When the locks are checked next for changes.
    pub(super) next_check: Instant,
    /// True while a question waits for its answer.
    pub(super) is_asking: bool,
    /// False once replicas did not have an extension in time: the other locks of this pass are then
    /// extended at once, because they may end while each waits for its replicas.
    pub(super) waits_for_replicas: bool,
    /// How many locks and keys are not reconciled.
    pub(super) left_out: usize,
    /// Why nothing more must be changed: the backup or the log cannot be written.
    pub(super) trouble: Option<anyhow::Error>,
    /// True once such an error ended the run.
    pub(super) must_stop: bool,
    /// Why replicas did not have a step in time.
    pub(super) behind: Option<StoreError>,
    /// Errors in a row to reach the server.
    pub(super) unreachable: u32,
    /// The last error because of which a step was not tried.
    pub(super) not_reached: Option<StoreError>,
}

impl Reconciliation<'_> {
    /// Asks about all locks that are open.
    pub(super) async fn ask_first(&mut self) {
        let mut open = Vec::new();
        for (index, lock) in self.locks.iter().enumerate() {
            if lock.fate == Fate::Open {
                open.push(index);
            }
        }
        self.ask(open, 1).await;
    }

    /// Asks a second time about the locks that are to be released, and releases each at once if
    /// the answer is the same.
    pub(super) async fn ask_again(&mut self, confirmed_at: Instant) {
        let mut open = Vec::new();
        for (index, lock) in self.locks.iter().enumerate() {
            if lock.fate == Fate::ToRelease {
                open.push(index);
            }
        }
        if open.is_empty() {
            return;
        }
        let seconds = self.args.confirm_after.as_secs();
        self.session.ui.status(&format!(
            "Asking a second time about {} in {seconds} s ...",
            words::counted(open.len() as u64, "lock")
        ));
        if !self.wait_until(confirmed_at + self.args.confirm_after).await {
            return;
        }
        // Another server may have become the master meanwhile.
        self.reconnect().await;
        // A lock that could no longer be held is not asked about.
        open.retain(|index| self.locks[*index].fate == Fate::ToRelease);
        self.ask(open, 2).await;
    }

    /// Waits, and holds the locks meanwhile. False after Ctrl-C, or if nothing more must be
    /// changed.
    async fn wait_until(&mut self, end: Instant) -> bool {
        while Instant::now() < end {
            let next = end.min(self.next_tick());
            if self.interrupt.unless_raised(sleep_until(next)).await.is_none() {
                return false;
            }
            self.keep_held().await;
            if self.trouble.is_some() {
                return false;
            }
        }
        true
    }

    /// Asks about locks, several at a time, and holds all locks meanwhile. An answer to a second
    /// question is acted on at once.
    async fn ask(&mut self, indexes: Vec<usize>, attempt: u32) {
        let Some(command) = self.args.ask.clone() else { return };
        let program = AskProgram { option: "--ask", command, patience: self.args.ask_timeout };
        let mut questions = Vec::with_capacity(indexes.len());
        for index in indexes {
            let mut question = self.locks[index].question.clone();
            question["attempt"] = attempt.into();
            let mut text = question.to_string().into_bytes();
            text.push(b'\n');
            questions.push((index, text));
        }
        let program = &program;
        let mut answers = stream::iter(questions)
            .map(|(index, question)| async move { (index, program.ask(question).await) })
            .buffer_unordered(usize::from(self.args.jobs));
        let interrupt = self.interrupt.clone();
        loop {
            let tick = sleep_until(self.next_tick());
            let next = async {
                tokio::select! {
                    answer = answers.next() => Some(answer),
                    () = tick => None,
                }
            };
            // Ctrl-C drops the questions that are open, and their programs with them.
            match interrupt.unless_raised(next).await {
                None => return,
                Some(None) => self.keep_held().await,
                Some(Some(None)) => return,
                Some(Some(Some((index, answer)))) => self.take_answer(index, answer, attempt).await,
            }
            if self.trouble.is_some() {
                return;
            }
        }
    }

    async fn take_answer(&mut self, index: usize, answer: ProviderAnswer, attempt: u32) {
        let lock = &mut self.locks[index];
        if attempt == 1 {
            lock.answer = Some(answer);
            return;
        }
        // The hold may have failed while the program ran.
        if lock.fate != Fate::ToRelease {
            return;
        }
        match &answer {
            ProviderAnswer::NotDone => self.release(index).await,
            ProviderAnswer::Done(_) => {
                lock.fate = Fate::Left(
                    "contradictory answers: first not done, then done; nothing was changed"
                        .to_owned(),
                );
                lock.answer = Some(answer);
            }
            ProviderAnswer::Unknown(why) => {
                lock.fate =
                    Fate::Left(format!("not done, but the second answer is unknown: {why}"));
                lock.answer = Some(answer);
            }
        }
    }

    /// Asks the operator, and holds the locks until the answer comes.
    ///
    /// # Errors
    /// Not confirmed, or interrupted.
    pub(super) async fn confirm(
        &mut self,
        question: &str,
        server: &str,
    ) -> Result<(), CommandError> {
        let Some(mut dialog) = self.confirm_args.dialog(self.session, question, server, false)?
        else {
            return Ok(());
        };
        loop {
            let prompt = dialog.prompt(self.session)?;
            let interrupt = self.interrupt.clone();
            self.is_asking = true;
            let typed = self.while_held(prompt.answer(&interrupt)).await;
            self.is_asking = false;
            if dialog.takes(&typed?)? {
                return Ok(());
            }
        }
    }

    /// Does something else, and holds the locks meanwhile.
    pub(super) async fn while_held<T>(&mut self, work: impl Future<Output = T>) -> T {
        let mut work = pin!(work);
        loop {
            let tick = sleep_until(self.next_tick());
            tokio::select! {
                done = &mut work => return done,
                () = tick => self.keep_held().await,
            }
        }
    }

    /// Reads from whichever server is the master now. Without success the old connection stays.
    pub(super) async fn find_master(&mut self) {
        if let Ok(reader) = self.session.connect_reader().await {
            self.reader = reader;
        }
    }

    /// Connects anew, because a connection may be broken. Without success the old connections stay.
    pub(super) async fn reconnect(&mut self) {
        self.find_master().await;
        if let Some(changes) = &mut self.changes
            && let Ok(writer) = self.session.connect_writer(self.confirm_args).await
        {
            changes.writer = writer;
        }
    }

    /// Passes unless Ctrl-C came, or nothing more must be changed.
    pub(super) fn may_go_on(&self) -> bool {
        self.trouble.is_none() && !self.interrupt.is_raised()
    }

    /// Why the run ended early, if it did.
    pub(super) fn ended(&mut self) -> Result<()> {
        if let Some(trouble) = self.trouble.take() {
            self.must_stop = true;
            return Err(trouble);
        }
        if self.interrupt.is_raised() {
            return Err(CommandError::interrupted("interrupted").into());
        }
        Ok(())
    }
}
