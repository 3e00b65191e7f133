//! Colours: what stands out, and nothing when colours are off.

use anstyle::{AnsiColor, Style};

use crate::domain::diagnosis::Severity;
use crate::domain::schema::State;
use crate::domain::step::next_request::Answer;

/// Colours, or none.
#[derive(Debug, Clone, Copy)]
pub struct Palette {
    on: bool,
}

impl Palette {
    /// With colours or without.
    pub fn new(on: bool) -> Self {
        Self { on }
    }

    /// True with colours.
    pub fn is_on(self) -> bool {
        self.on
    }

    /// Text in a style.
    pub fn paint(self, style: Style, text: &str) -> String {
        if self.on { format!("{style}{text}{style:#}") } else { text.to_owned() }
    }

    /// A heading.
    pub fn bold(self, text: &str) -> String {
        self.paint(Style::new().bold(), text)
    }

    /// A label.
    pub fn dim(self, text: &str) -> String {
        self.paint(Style::new().dimmed(), text)
    }

    /// A state's word.
    pub fn state(self, state: State) -> String {
        self.paint(state_style(state), state.as_str())
    }

    /// A severity's word.
    pub fn severity(self, severity: Severity) -> String {
        self.paint(severity_style(severity), severity.as_str())
    }

    /// The answer of the next request.
    pub fn answer(self, answer: Answer, text: &str) -> String {
        let color = match answer {
            Answer::Execute | Answer::Replay => AnsiColor::Green,
            Answer::Conflict => AnsiColor::Yellow,
            Answer::Fail => AnsiColor::Red,
        };
        self.paint(color.on_default().bold(), text)
    }
}

/// How a state looks.
pub fn state_style(state: State) -> Style {
    match state {
        State::Absent => Style::new().dimmed(),
        State::InProgress => AnsiColor::Yellow.on_default(),
        State::Completed => AnsiColor::Green.on_default(),
        State::Unreadable => AnsiColor::Red.on_default(),
    }
}

/// How a severity looks.
pub fn severity_style(severity: Severity) -> Style {
    match severity {
        Severity::Info => AnsiColor::Cyan.on_default(),
        Severity::Warning => AnsiColor::Yellow.on_default(),
        Severity::Error => AnsiColor::Red.on_default().bold(),
    }
}
