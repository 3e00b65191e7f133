//! The only code that prints: data to stdout, everything else to stderr.

use std::borrow::Cow;
use std::cell::RefCell;
use std::fmt;
use std::io::{self, IsTerminal as _, PipeReader, Write};
use std::time::Duration;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use indicatif::{HumanFloatCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};
use rustix::fs::FileType;

use super::frame::Frame;
use super::prompt::{Prompt, PromptAnswer};
use crate::domain::command_row::WhenStdoutCloses;
use crate::exit::{CommandError, Unwritten};
use crate::interrupt::Interrupt;
use crate::render::fold::fold;
use crate::render::invocation::Invocation;
use crate::render::style::{Color, NameColor, Palette, View};
use crate::render::{debug, escape, plain};
use crate::store::Trace;
use crate::terminal::frame::ProgressLine;

/// The hint for a run without a terminal that must confirm a change.
const HINT: &str = "to continue without a prompt, pass --yes";

/// The error of a question that nobody can answer.
pub(crate) fn cannot_prompt() -> CommandError {
    CommandError::usage("cannot prompt without a terminal").hint(HINT)
}

/// The hint for a run without a terminal that needs a password.
const PASSWORD_HINT: &str = "pass the password with --pass-file FILE or REDISCLI_AUTH";

/// How many bytes of data are written at once.
const OUT_BUFFER: usize = 64 * 1024;

/// How much is printed besides the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default)]
pub enum Talk {
    /// Warnings and errors.
    Quiet,
    #[default]
    Usual,
    Verbose,
}

/// stdout and stderr, and their properties.
pub struct Ui {
    out: io::BufWriter<io::Stdout>,
    color: Color,
    out_is_terminal: bool,
    /// True if each screen of a watch can overwrite the previous one.
    can_paint: bool,
    colored: bool,
    width: Option<usize>,
    err_is_terminal: bool,
    has_progress: bool,
    /// True when another program reads stdout.
    feeds_a_pipe: bool,
    is_ascii: bool,
    interactive: bool,
    /// The content of a watch's current screen, if screens overwrite each other.
    frame: Option<Frame>,
    has_painted: bool,
    /// The progress line that is shown.
    progress: RefCell<ProgressBar>,
    talk: Talk,
    invocation: Invocation,
    when_stdout_closes: WhenStdoutCloses,
    /// True after the first change: a failing stdout must not stop the changes.
    changes: bool,
    /// Why stdout could not be written, if the run continued.
    unwritten: Option<String>,
}

impl Ui {
    pub fn new(color: Color) -> Self {
        let out = io::stdout();
        let out_is_terminal = out.is_terminal();
        let err_is_terminal = io::stderr().is_terminal();
        let feeds_a_pipe = is_pipe(&out);
        Self {
            colored: choice(color, &out) != ColorChoice::Never,
            width: width_of(&out, out_is_terminal),
            // Data is written unchanged: only `View` adds colours, and other colour sequences are
            // part of the data.
            out: io::BufWriter::with_capacity(OUT_BUFFER, out),
            color,
            out_is_terminal,
            can_paint: out_is_terminal,
            err_is_terminal,
            has_progress: err_is_terminal,
            feeds_a_pipe,
            is_ascii: false,
            interactive: err_is_terminal && io::stdin().is_terminal(),
            frame: None,
            has_painted: false,
            progress: RefCell::new(ProgressBar::hidden()),
            talk: Talk::Usual,
            invocation: Invocation::default(),
            when_stdout_closes: WhenStdoutCloses::EndsQuietly,
            changes: false,
            unwritten: None,
        }
    }

    /// Sets the options that lead to this run's server, for all command lines printed from now on.
    pub fn set_invocation(&mut self, invocation: Invocation) {
        self.invocation = invocation;
    }

    /// The options that all printed command lines have in common.
    pub fn invocation(&self) -> &Invocation {
        &self.invocation
    }

    pub fn invocation_mut(&mut self) -> &mut Invocation {
        &mut self.invocation
    }

    /// Sets what happens when the reader of stdout closes it.
    pub fn when_stdout_closes(&mut self, choice: WhenStdoutCloses) {
        self.when_stdout_closes = choice;
    }

    /// True if the run ends without an error when the reader closes stdout.
    pub fn ends_quietly(&self) -> bool {
        self.when_stdout_closes == WhenStdoutCloses::EndsQuietly && !self.changes
    }

    /// Notes that changes begin. From now on, an error of stdout no longer ends the run.
    pub fn begin_changes(&mut self) {
        self.changes = true;
    }

    /// Why stdout could not be written, for a run that continued.
    pub fn unwritten(&self) -> Option<&str> {
        self.unwritten.as_deref()
    }

    /// Writes to stdout. The first error that does not end the run is kept, and later writes are
    /// skipped.
    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> io::Result<()> {
        if self.unwritten.is_some() {
            return Ok(());
        }
        let Err(error) = write(&mut self.out) else { return Ok(()) };
        let is_unread = error.kind() == io::ErrorKind::BrokenPipe;
        if self.changes || (is_unread && self.when_stdout_closes == WhenStdoutCloses::GoesOn) {
            self.unwritten = Some(error.to_string());
            return Ok(());
        }
        Err(io::Error::new(error.kind(), Unwritten(error)))
    }

    /// The layout of text on stdout. Without a terminal, lines have any length.
    pub fn view(&self) -> View {
        View { palette: Palette::new(self.colored), width: self.width }
    }

    /// The layout of text on stderr, without colours.
    pub fn err_view(&self) -> View {
        let width = width_of(io::stderr(), self.err_is_terminal);
        View { palette: Palette::new(false), width }
    }

    /// True if stdout accepts colours.
    pub fn is_colored(&self) -> bool {
        self.colored
    }

    pub fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// True if a person may read stdout directly. The size is not evidence, because some terminals
    /// do not report one.
    pub fn out_is_terminal(&self) -> bool {
        self.out_is_terminal
    }

    pub fn can_paint(&self) -> bool {
        self.can_paint
    }

    /// Records that stdin carries data. The operator can still answer on the terminal of the
    /// process.
    pub fn stdin_carries_data(&mut self) {
        self.interactive = self.err_is_terminal && Prompt::open().is_ok();
    }

    pub fn err_is_terminal(&self) -> bool {
        self.err_is_terminal
    }

    /// A context's name for prompts and stderr, in the context's colour.
    pub fn colored_name(&self, name: &str, color: Option<NameColor>) -> String {
        let name = escape::text(name.as_bytes());
        let Some(color) = color else { return name };
        if choice(self.color, &io::stderr()) == ColorChoice::Never {
            return name;
        }
        let style = color.ansi().on_default().bold();
        format!("{style}{name}{style:#}")
    }

    /// Sets how much is printed besides the data.
    pub fn talk(&mut self, talk: Talk) {
        self.talk = talk;
        self.has_progress &= talk != Talk::Quiet;
    }

    pub fn is_verbose(&self) -> bool {
        self.talk == Talk::Verbose
    }

    /// Writes data to stdout, no later than the next [`Ui::flush`].
    ///
    /// # Errors
    /// [`Unwritten`], unless the run continues; see [`WhenStdoutCloses`] and [`Ui::begin_changes`].
    pub fn data(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        let bytes = bytes.as_ref();
        if let Some(frame) = &mut self.frame {
            frame.data(bytes);
            return Ok(());
        }
        if self.feeds_a_pipe && self.has_progress {
            // The program that reads the pipe may write to the same terminal as the progress line.
            self.has_progress = false;
            self.end_progress();
        }
        let goes_out = self.out.buffer().len() + bytes.len() > OUT_BUFFER;
        if goes_out {
            self.write_beside_progress(|out| out.write_all(bytes))
        } else {
            self.write(|out| out.write_all(bytes))
        }
    }

    /// Writes to stdout. On a terminal, the progress line is erased first and drawn again below.
    fn write_beside_progress(
        &mut self,
        write: impl FnOnce(&mut dyn Write) -> io::Result<()>,
    ) -> io::Result<()> {
        if !self.out_is_terminal {
            return self.write(write);
        }
        let progress = self.progress.borrow().clone();
        progress.suspend(|| self.write(write))
    }

    /// Writes output to stdout like [`Ui::data`], with characters that the terminal can show.
    /// Command lines in it stay as they are, because it contains keys and values from Redis, which
    /// must be shown unchanged.
    pub fn page(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        let text = self.printable(text.as_ref()).into_owned();
        self.data(text)
    }

    /// The text without control sequences that move the cursor, in ASCII if the terminal needs
    /// that, and with command lines that name this run's server.
    fn readable<'a>(&self, text: &'a str) -> Cow<'a, str> {
        // Command lines are completed first, because the inserted options must be escaped too.
        match self.invocation.complete(text) {
            Cow::Borrowed(text) => self.printable(text),
            Cow::Owned(text) => Cow::Owned(self.printable(&text).into_owned()),
        }
    }

    /// The text without control sequences that move the cursor, in ASCII if the terminal needs
    /// that.
    fn printable<'a>(&self, text: &'a str) -> Cow<'a, str> {
        let text = escape::styled(text);
        if self.is_ascii { Cow::Owned(plain::ascii(&text)) } else { text }
    }

    /// Restricts the output to ASCII, because the terminal shows nothing else.
    pub fn show_ascii(&mut self) {
        self.is_ascii = true;
    }

    /// Collects all further output, data and messages, for [`Ui::end_frame`].
    pub fn begin_frame(&mut self, heading: &str) {
        self.width = width_of(self.out.get_ref(), true);
        self.frame = Some(Frame::new(heading.to_owned(), height_of(self.out.get_ref())));
    }

    /// Clears the characters that Ctrl-C left below the last frame.
    fn leave_frames(&mut self) -> io::Result<()> {
        let clear: &[u8] = if self.has_painted { b"\r\x1b[K" } else { b"" };
        self.write(|out| out.write_all(clear).and_then(|()| out.flush()))
    }

    /// Draws the collected output over the previous frame, in one write. If it is incomplete, the
    /// previous frame remains.
    pub fn end_frame(&mut self, is_whole: bool) -> io::Result<()> {
        let Some(frame) = self.frame.take().filter(|_| is_whole) else {
            return self.leave_frames();
        };
        let height = height_of(self.out.get_ref());
        let painted = frame.paint(self.width.unwrap_or(usize::MAX), height);
        let painted = if self.is_ascii { plain::ascii(&painted) } else { painted };
        // Scroll the earlier content of the terminal away instead of overwriting it.
        let room = if self.has_painted { String::new() } else { "\n".repeat(height) };
        self.has_painted = true;
        self.write(|out| out.write_all((room + &painted).as_bytes()).and_then(|()| out.flush()))
    }

    /// Writes all buffered data; fails as [`Ui::data`] does.
    pub fn flush(&mut self) -> io::Result<()> {
        self.write_beside_progress(|out| out.flush())
    }

    pub fn status(&mut self, sentence: &str) {
        if self.talk > Talk::Quiet {
            self.say("", "", sentence);
        }
    }

    /// Prints a detail that only verbose output includes.
    pub fn detail(&mut self, sentence: &str) {
        if self.talk == Talk::Verbose {
            self.say("", "", sentence);
        }
    }

    /// Prints an explanation of the data that needs no action.
    pub fn note(&mut self, text: &str) {
        if self.talk > Talk::Quiet {
            self.say("\u{1b}[2m", "note: ", text);
        }
    }

    /// Prints a warning, which does not stop the command.
    pub fn warning(&mut self, text: &str) {
        self.say("\u{1b}[1;33m", "warning: ", text);
    }

    pub fn error(&mut self, text: &str) {
        self.say("\u{1b}[1;31m", "error: ", text);
    }

    pub fn hint(&mut self, text: &str) {
        if self.talk == Talk::Quiet {
            return;
        }
        self.say("\u{1b}[1;36m", "hint: ", text);
    }

    fn say(&mut self, style: &str, label: &str, text: &str) {
        let reset = if style.is_empty() { "" } else { "\u{1b}[0m" };
        let width = width_of(io::stderr(), self.err_is_terminal);
        let text = self.readable(text).into_owned();
        for line in fold(&format!("{style}{label}{reset}{text}"), width) {
            if let Some(frame) = &mut self.frame {
                frame.note(line);
                continue;
            }
            let mut painted = AutoStream::new(Vec::new(), choice(self.color, &io::stderr()));
            // Writing to memory cannot fail.
            let _ = writeln!(painted, "{line}");
            let painted = painted.into_inner();
            let _ = self.progress.borrow().suspend(|| io::stderr().write_all(&painted));
        }
    }

    /// Reports each Redis command on stderr from now on. Disables progress and frames, which would
    /// interleave with the reports.
    pub fn trace(&mut self) -> Trace {
        self.can_paint = false;
        self.has_progress = false;
        Trace::new(|told| {
            let text = plain::ascii(&debug::line(told));
            // The error is ignored, because there is no other place to report it.
            let _ = writeln!(io::stderr(), "{text}");
        })
    }

    /// True if progress is shown.
    pub fn shows_progress(&self) -> bool {
        self.has_progress && self.frame.is_none()
    }

    /// A progress line on stderr, which is erased when dropped or cleared. It is hidden without a
    /// terminal.
    pub fn progress(&self, what: &str) -> ProgressLine {
        self.progress_of(what, None)
    }

    /// Like [`Ui::progress`]; with a total, it shows the completed share.
    pub fn progress_of(&self, what: &str, total: Option<u64>) -> ProgressLine {
        if !self.shows_progress() {
            return ProgressLine::hidden();
        }
        // Only one progress line can be shown at a time.
        self.end_progress();
        let bar = ProgressBar::with_draw_target(total, ProgressDrawTarget::stderr_with_hz(10));
        let template = match total {
            Some(_) => {
                "{spinner} {msg} {human_pos} of {human_len} ({percent} %, {rate}/s, {eta} left)"
            }
            None => "{spinner} {msg} {human_pos} ({rate}/s, {elapsed})",
        };
        if let Ok(style) = ProgressStyle::with_template(template) {
            // Indicatif's own rate shows decimals, which are useless at these speeds.
            let style = if self.is_ascii { style.tick_chars("|/-\\ ") } else { style };
            bar.set_style(style.with_key(
                "rate",
                |state: &ProgressState, text: &mut dyn fmt::Write| {
                    // Writing to memory cannot fail.
                    let _ = write!(text, "{}", HumanFloatCount(state.per_sec().round()));
                },
            ));
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        self.progress.replace(bar.clone());
        ProgressLine::new(bar)
    }

    /// Ends the progress line and erases it.
    fn end_progress(&self) {
        self.progress.borrow().finish_and_clear();
    }

    /// Asks for confirmation. Only `y` or `yes` with Enter confirms. Ctrl-C, SIGTERM, SIGQUIT and
    /// SIGHUP end the question at once.
    pub async fn confirm(&mut self, question: &str) -> anyhow::Result<bool> {
        let interrupt = Interrupt::listen()?;
        interrupt.handle_terminate()?;
        Ok(is_yes(&self.prompt_to_confirm(question)?.answer(&interrupt).await?))
    }

    pub fn ask_for(&mut self, question: &str) -> Result<String, CommandError> {
        self.prompt_for(question)?.ask(None)
    }

    /// Asks for a password without showing it.
    pub fn ask_password(&mut self, question: &str) -> Result<String, CommandError> {
        self.prompt(&format!("{question}:"), true, PASSWORD_HINT)?.ask(None)
    }

    /// A question that `y` confirms.
    ///
    /// # Errors
    /// Usage: there is no terminal.
    pub fn prompt_to_confirm(&mut self, question: &str) -> Result<ReadyPrompt, CommandError> {
        self.prompt(&format!("{question} [y/N]"), false, HINT)
    }

    /// A question for a text.
    ///
    /// # Errors
    /// Usage: there is no terminal.
    pub fn prompt_for(&mut self, question: &str) -> Result<ReadyPrompt, CommandError> {
        self.prompt(&format!("{question}:"), false, HINT)
    }

    /// Prepares a question, if there is a terminal.
    ///
    /// # Errors
    /// Usage: there is no terminal.
    fn prompt(
        &mut self,
        question: &str,
        is_secret: bool,
        hint: &'static str,
    ) -> Result<ReadyPrompt, CommandError> {
        // The progress line would be drawn over the question.
        self.end_progress();
        if !self.interactive {
            return Err(CommandError { hint: Some(hint.to_owned()), ..cannot_prompt() });
        }
        if self.unwritten.is_some() {
            let message = "cannot prompt, because stdout is closed and the records could not be \
                shown";
            return Err(CommandError::usage(message).hint(HINT));
        }
        let width = width_of(io::stderr(), self.err_is_terminal);
        let question = fold(&self.readable(question), width).join("\n");
        Ok(ReadyPrompt { question, is_secret, hint })
    }
}

/// True for the answers that confirm.
pub fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

/// A question that is ready to be asked.
pub struct ReadyPrompt {
    question: String,
    is_secret: bool,
    hint: &'static str,
}

impl ReadyPrompt {
    /// Asks, and waits for the answer in a thread of its own. Ctrl-D returns an empty one.
    ///
    /// # Errors
    /// Interrupted: Ctrl-C at the prompt, or a signal, which ends the wait at once. Usage: the
    /// terminal cannot be used.
    pub async fn answer(self, interrupt: &Interrupt) -> Result<String, CommandError> {
        let cannot_ask = |error: &dyn fmt::Display| {
            CommandError::usage(format!("cannot ask: {error}")).hint(self.hint)
        };
        // Dropping the writer stops the thread, which first restores the terminal.
        let (stop, stopper) = io::pipe().map_err(|error| cannot_ask(&error))?;
        let cannot_join = cannot_ask(&"the thread of the prompt ended");
        let mut asking = tokio::task::spawn_blocking(move || self.ask(Some(&stop)));
        let answered = match interrupt.unless_raised(&mut asking).await {
            Some(answered) => answered,
            None => {
                drop(stopper);
                asking.await
            }
        };
        answered.unwrap_or(Err(cannot_join))
    }

    /// As [`ReadyPrompt::answer`]; the wait ends when the other end of `stop` is closed.
    fn ask(self, stop: Option<&PipeReader>) -> Result<String, CommandError> {
        let question = format!("{} ", self.question);
        let answer = Prompt::open()
            .and_then(|mut prompt| prompt.ask(&mut io::stderr(), &question, self.is_secret, stop));
        match answer {
            Ok(PromptAnswer::Line(line)) => Ok(line),
            Ok(PromptAnswer::End) => Ok(String::new()),
            Ok(PromptAnswer::Interrupted) => {
                Err(CommandError::interrupted("interrupted").changed_nothing())
            }
            Err(error) => Err(CommandError::usage(format!("cannot ask: {error}")).hint(self.hint)),
        }
    }
}

/// The width of a terminal in columns; `None` for a pipe, which accepts lines of any length.
fn width_of(stream: impl std::os::fd::AsFd, is_terminal: bool) -> Option<usize> {
    if !is_terminal {
        return None;
    }
    let (width, _) = terminal_size::terminal_size_of(stream)?;
    Some(usize::from(width.0))
}

/// True if another program reads the stream, not a file or a device.
fn is_pipe(stream: impl std::os::fd::AsFd) -> bool {
    let Ok(stat) = rustix::fs::fstat(stream) else { return false };
    matches!(FileType::from_raw_mode(stat.st_mode), FileType::Fifo | FileType::Socket)
}

/// The height of a terminal in lines.
fn height_of(stream: impl std::os::fd::AsFd) -> usize {
    match terminal_size::terminal_size_of(stream) {
        Some((_, height)) => usize::from(height.0),
        // The height of the classic terminal, for one that does not report its size.
        None => 24,
    }
}

fn choice(color: Color, stream: &impl RawStream) -> ColorChoice {
    match color {
        Color::Auto => AutoStream::choice(stream),
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
}
