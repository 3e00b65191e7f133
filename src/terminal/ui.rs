//! The only printer: data to stdout, everything else to stderr.

use std::fmt;
use std::io::{self, IsTerminal as _, Write};
use std::time::Duration;

use anstream::stream::RawStream;
use anstream::{AutoStream, ColorChoice};
use indicatif::{HumanFloatCount, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle};

use super::prompt::{Answer, Prompt};
use crate::exit::Stop;
use crate::render::escape;
use crate::render::fold::fold;
use crate::render::style::{Color, NameColor, Palette, View};

/// Bytes of data that go out in one write.
const OUT_BUFFER: usize = 64 * 1024;

/// stdout and stderr, and what is known of them.
pub struct Ui {
    out: io::BufWriter<io::Stdout>,
    color: Color,
    colored: bool,
    width: Option<usize>,
    err_is_terminal: bool,
    interactive: bool,
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
            err_is_terminal,
            interactive: err_is_terminal && io::stdin().is_terminal(),
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
        self.out.write_all(bytes.as_ref())
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
        for line in fold(&format!("{style}{label}{reset}{text}"), width) {
            let _ = writeln!(err, "{line}");
        }
    }

    /// A progress line on stderr, which goes when it is dropped or cleared; without a terminal there is none.
    pub fn progress(&self, what: &str) -> ProgressBar {
        if !self.err_is_terminal {
            return ProgressBar::hidden();
        }
        let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr_with_hz(10));
        if let Ok(style) = ProgressStyle::with_template("{spinner} {msg} {human_pos} ({rate}/s, {elapsed})") {
            // Indicatif's own rate has decimals, which nobody reads at these speeds.
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
        let question = fold(question, width_of(io::stderr(), self.err_is_terminal)).join("\n");
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

fn choice(color: Color, stream: &impl RawStream) -> ColorChoice {
    match color {
        Color::Auto => AutoStream::choice(stream),
        Color::Always => ColorChoice::Always,
        Color::Never => ColorChoice::Never,
    }
}
