//! How text looks: its colours, and its width.

use anstyle::{AnsiColor, Style};
use serde::Deserialize;
use strum::IntoStaticStr;

use crate::domain::as_str::as_str;
use crate::domain::diagnosis::Severity;
use crate::domain::schema::State;
use crate::domain::step::Answer;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Color {
    /// On a terminal, unless `NO_COLOR` says otherwise.
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

#[derive(Debug, Clone, Copy)]
pub struct View {
    pub palette: Palette,
    /// Columns to fit; `None` takes lines of any length.
    pub width: Option<usize>,
}

/// The styles of what stands out; without colours all text stays as it is.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    on: bool,
}

impl Palette {
    pub fn new(on: bool) -> Self {
        Self { on }
    }

    pub fn is_on(self) -> bool {
        self.on
    }

    pub fn paint(self, style: Style, text: &str) -> String {
        if self.on && !style.is_plain() {
            format!("{style}{text}{style:#}")
        } else {
            text.to_owned()
        }
    }

    pub fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    pub fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    pub fn state(self, state: State) -> String {
        self.paint(state_style(state), state.as_str())
    }

    pub fn severity(self, severity: Severity) -> String {
        self.paint(severity_style(severity), severity.as_str())
    }

    pub fn answer(self, answer: Answer, text: &str) -> String {
        let color = match answer {
            Answer::Execute | Answer::Replay => AnsiColor::Green,
            Answer::Conflict => AnsiColor::Yellow,
            Answer::Fail => AnsiColor::Red,
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
        State::Unreadable => AnsiColor::Red.on_default(),
    }
}

pub(super) fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Info => AnsiColor::Cyan.on_default(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Error => AnsiColor::Red.on_default().bold(),
    }
}
