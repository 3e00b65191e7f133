//! The only printer: data to stdout, everything else to stderr.

use std::borrow::Cow;
use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use indicatif::{HumanFloatCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::frame::Frame;
use super::prompt::{Answer, Prompt};
use crate::exit::Stop;
use crate::render::fold::fold;
use crate::render::style::{Color, NameColor, Palette, View};
use crate::render::{debug, escape, plain};
use crate::store::Trace;

/// Bytes of data that go out in one write.
const OUT_BUFFER: usize = 64 * 1024;

/// stdout and stderr, and what is known of them.
pub struct Ui {
    out: io::BufWriter<io::Stdout>,
    color: Color,
    out_is_terminal: bool,
    /// True when the looks of a watch can be painted over each other.
    can_paint: bool,
    colored: bool,
    width: Option<usize>,
    err_is_terminal: bool,
    has_progress: bool,
    is_ascii: bool,
    interactive: bool,
    /// What the look of a watch showed so far, where looks are painted over each other.
    frame: Option<Frame>,
    has_painted: bool,
}

impl Ui {
    pub fn new(color: Color) -> Self {
        let out = io::stdout();
        let out_is_terminal = out.is_terminal();
        let err_is_terminal = io::stderr().is_terminal();
        Self {
            colored: choice(color, &out) != ColorChoice::Never,
            width: width_of(&out, out_is_terminal),
            // Data goes out as it is: only `View` colours data, and what else looks like a colour is data.
            out: io::BufWriter::with_capacity(OUT_BUFFER, out),
            color,
            out_is_terminal,
            can_paint: out_is_terminal,
            err_is_terminal,
            has_progress: err_is_terminal,
            is_ascii: false,
            interactive: err_is_terminal && io::stdin().is_terminal(),
            frame: None,
            has_painted: false,
        }
    }

    /// How text for people is laid out on stdout. Where stdout is no terminal, lines are of any length.
    pub fn view(&self) -> View {
        View { palette: Palette::new(self.colored), width: self.width }
    }

    /// True where stdout takes colours.
    pub fn is_colored(&self) -> bool {
        self.colored
    }

    pub fn is_interactive(&self) -> bool {
        self.interactive
    }

    /// True when a person may read stdout as it is. A terminal need not tell its size, so the size tells nothing of this.
    pub fn out_is_terminal(&self) -> bool {
        self.out_is_terminal
    }

    pub fn can_paint(&self) -> bool {
        self.can_paint
    }

    /// Heeds that stdin carries data: somebody can still be asked on the terminal of the process.
    pub fn stdin_carries_data(&mut self) {
        self.interactive = self.err_is_terminal && Prompt::open().is_ok();
    }

    pub fn err_is_terminal(&self) -> bool {
        self.err_is_terminal
    }

    /// A context's name as it stands in prompts and on stderr.
    pub fn colored_name(&self, name: &str, color: Option<NameColor>) -> String {
        let name = escape::text(name.as_bytes());
        let color = color.filter(|_| choice(self.color, &io::stderr()) != ColorChoice::Never);
        match color {
            Some(color) => {
                let style = color.ansi().on_default().bold();
                format!("{style}{name}{style:#}")
            }
            None => name,
        }
    }

    /// Writes data to stdout, with the next [`Ui::flush`] at the latest. A closed pipe is an error, too.
    pub fn data(&mut self, bytes: impl AsRef<[u8]>) -> io::Result<()> {
        match &mut self.frame {
            Some(frame) => {
                frame.data(bytes.as_ref());
                Ok(())
            }
            None => self.out.write_all(bytes.as_ref()),
        }
    }

    /// Writes text for people to stdout, as [`Ui::data`] does, with signs that the terminal can show.
    pub fn page(&mut self, text: impl AsRef<str>) -> io::Result<()> {
        let text = self.readable(text.as_ref());
        self.data(text.as_bytes())
    }

    /// The text, in ASCII where nothing else can be shown.
    fn readable<'a>(&self, text: &'a str) -> Cow<'a, str> {
        if self.is_ascii { Cow::Owned(plain::ascii(text)) } else { Cow::Borrowed(text) }
    }

    /// Heeds that the terminal shows nothing but ASCII.
    pub fn show_ascii(&mut self) {
        self.is_ascii = true;
    }

    /// Collects what is shown from here on, data and sentences, for [`Ui::end_frame`].
    pub fn begin_frame(&mut self, heading: &str) {
        self.width = width_of(self.out.get_ref(), true);
        self.frame = Some(Frame::new(heading.to_owned(), height_of(self.out.get_ref())));
    }

    /// Clears what the terminal made of Ctrl-C below the last frame.
    fn leave_frames(&mut self) -> io::Result<()> {
        if self.has_painted {
            self.out.write_all(b"\r\x1b[K")?;
        }
        self.out.flush()
    }

    /// Paints what was collected over the frame before, in one write; without `is_whole` that frame stays.
    pub fn end_frame(&mut self, is_whole: bool) -> io::Result<()> {
        let Some(frame) = self.frame.take().filter(|_| is_whole) else { return self.leave_frames() };
        let height = height_of(self.out.get_ref());
        let painted = frame.paint(self.width.unwrap_or(usize::MAX), height);
        let painted = self.readable(&painted);
        // What stood on the terminal before the first frame scrolls away and is kept.
        let room = if self.has_painted { String::new() } else { "\n".repeat(height) };
        self.has_painted = true;
        self.out.write_all((room + &painted).as_bytes())?;
        self.out.flush()
    }

    /// Sends the data written so far. A closed pipe is an error, too.
    pub fn flush(&mut self) -> io::Result<()> {
        self.out.flush()
    }

    pub fn status(&mut self, sentence: &str) {
        self.say("", "", sentence);
    }

    /// Says what deserves attention and stops nothing.
    pub fn warning(&mut self, text: &str) {
        self.say("\u{1b}[1;33m", "warning: ", text);
    }

    pub fn error(&mut self, text: &str) {
        self.say("\u{1b}[1;31m", "error: ", text);
    }

    pub fn hint(&mut self, text: &str) {
        self.say("\u{1b}[1;36m", "hint: ", text);
    }

    fn say(&mut self, style: &str, label: &str, text: &str) {
        let reset = if style.is_empty() { "" } else { "\u{1b}[0m" };
        let mut err = AutoStream::new(io::stderr(), choice(self.color, &io::stderr()));
        let width = width_of(io::stderr(), self.err_is_terminal);
        // Where stderr is gone, nobody is left to be told.
        let text = self.readable(text);
        for line in fold(&format!("{style}{label}{reset}{text}"), width) {
            if let Some(frame) = &mut self.frame {
                frame.note(line);
                continue;
            }
            let _ = writeln!(err, "{line}");
        }
    }

    /// Tells of each Redis command on stderr from here on; progress and frames would stand between.
    pub fn trace(&mut self) -> Trace {
        self.can_paint = false;
        self.has_progress = false;
        Trace::new(|told| {
            let text = plain::ascii(&debug::line(told));
            // Where stderr is gone, nobody is left to be told.
            let _ = writeln!(io::stderr(), "{text}");
        })
    }

    /// A progress line on stderr, which goes when it is dropped or cleared; without a terminal there is none.
    pub fn progress(&self, what: &str) -> ProgressBar {
        if !self.has_progress || self.frame.is_some() {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {human_pos} ({rate}/s, {elapsed})") {
            // Indicatif's own rate has decimals, which nobody reads at these speeds.
            let style = if self.is_ascii { style.tick_chars("|/-\\ ") } else { style };
            bar.set_style(style.with_key("rate", |state: &ProgressState, text: &mut dyn fmt::Write| {
                // Writing to memory cannot fail.
                let _ = write!(text, "{}", HumanFloatCount(state.per_sec().round()));
            }));
        }
        bar.set_message(what.to_owned());
        bar.enable_steady_tick(Duration::from_millis(100));
        bar
    }

    /// Asks yes or no: only `y` or `yes` with Enter is yes.
    pub fn confirm(&mut self, question: &str) -> Result<bool, Stop> {
        let answer = self.asked(&format!("{question} [y/N]"), false)?;
        Ok(["y", "yes"].contains(&answer.trim().to_lowercase().as_str()))
    }

    pub fn ask_for(&mut self, question: &str) -> Result<String, Stop> {
        self.asked(&format!("{question}:"), false)
    }

    /// Asks for a password, which is not shown.
    pub fn ask_password(&mut self, question: &str) -> Result<String, Stop> {
        self.asked(&format!("{question}:"), true)
    }

    /// Asks, where somebody can be asked; Ctrl-D answers nothing.
    ///
    /// # Errors
    /// Usage: there is no terminal. Interrupted: Ctrl-C at the prompt.
    fn asked(&mut self, question: &str, is_secret: bool) -> Result<String, Stop> {
        if !self.interactive {
            return Err(Stop::usage("there is no terminal to ask on").hint("--yes goes ahead without asking"));
        }
        let question = fold(&self.readable(question), width_of(io::stderr(), self.err_is_terminal)).join("\n");
        match Prompt::open().and_then(|mut prompt| prompt.ask(&mut io::stderr(), &format!("{question} "), is_secret)) {
            Ok(Answer::Line(line)) => Ok(line),
            Ok(Answer::End) => Ok(String::new()),
            Ok(Answer::Interrupted) => Err(Stop::interrupted("interrupted, nothing was changed")),
            Err(error) => Err(Stop::usage(format!("cannot ask: {error}")).hint("--yes goes ahead without asking")),
        }
    }
}

/// The columns of a terminal; a pipe takes lines of any length.
fn width_of(stream: impl std::os::fd::AsFd, is_terminal: bool) -> Option<usize> {
    let size = is_terminal.then(|| terminal_size::terminal_size_of(stream)).flatten();
    size.map(|(width, _)| usize::from(width.0))
}

/// The lines of a terminal.
fn height_of(stream: impl std::os::fd::AsFd) -> usize {
    terminal_size::terminal_size_of(stream).map_or(24, |(_, height)| usize::from(height.0))
}

fn choice(color: Color, stream: &impl RawStream) -> ColorChoice {
    match color {
        Color::Auto => AutoStream::choice(stream),
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
}
