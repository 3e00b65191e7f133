//! The colours and the width of text.

use anstyle::{AnsiColor, Style};
use serde::Deserialize;
use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::diagnosis::Severity;
use crate::domain::schema::State;
use crate::domain::step::Answer;

/// When text has colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` is set.
    Auto,
    Always,
    Never,
}

/// The colour of a context's name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize, IntoStaticStr)]
#[serde(rename_all = "lowercase")]
#[strum(serialize_all = "lowercase")]
pub enum NameColor {
    Red,
    Green,
    Yellow,
    Blue,
    Magenta,
    Cyan,
}

as_str!(NameColor);

impl NameColor {
    /// The colour of the terminal.
    pub fn ansi(self) -> AnsiColor {
        match self {
            Self::Red => AnsiColor::Red,
            Self::Green => AnsiColor::Green,
            Self::Yellow => AnsiColor::Yellow,
            Self::Blue => AnsiColor::Blue,
            Self::Magenta => AnsiColor::Magenta,
            Self::Cyan => AnsiColor::Cyan,
        }
    }
}

/// The view for which text is written.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub palette: Palette,
    /// The columns that lines must fit; `None` allows lines of any length.
    pub width: Option<usize>,
}

/// The styles of emphasised text; without colours all text stays unchanged.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    on: bool,
}

impl Palette {
    /// A palette with or without colours.
    pub fn new(on: bool) -> Self {
        Self { on }
    }

    /// True if text has colours.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// Text in a style, if there are colours.
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.on && !style.is_plain() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    /// Bold text, if there are colours.
    pub fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// Dimmed text, if there are colours.
    pub fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// The word for a state, in its colour.
    pub fn state(self, state: State) -> String {
        self.paint(state_style(state), state.as_str())
    }

    /// The word for a severity, in its colour.
    pub fn severity(self, severity: Severity) -> String {
        self.paint(severity_style(severity), severity.as_str())
    }

    /// A text in the colour of a predicted answer.
    pub fn answer(self, answer: Answer, text: &str) -> String {
        let color = match answer {
            Answer::Execute | Answer::Replay => AnsiColor::Green,
            Answer::Conflict => AnsiColor::Yellow,
            Answer::Fail => AnsiColor::Red,
            // No colour, because green or red would look like a prediction.
            Answer::Unknown => return text.to_owned(),
        };
        self.paint(color.on_default().bold(), text)
    }
}

fn state_style(state: State) -> Style {
    match state {
        State::Absent => Style::new().dimmed(),
        State::InProgress => AnsiColor::Yellow.on_default(),
        State::Completed => AnsiColor::Green.on_default(),
        State::Failed => AnsiColor::Red.on_default(),
        State::Released => Style::new().dimmed(),
        State::Unreadable => AnsiColor::Red.on_default(),
    }
}

/// The style of a severity.
pub(super) fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Info => AnsiColor::Cyan.on_default(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Error => AnsiColor::Red.on_default().bold(),
    }
}
