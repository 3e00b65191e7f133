//! How things are shown, on every command.

use clap::{Args, ValueEnum};

use crate::render::style::Color;
use crate::terminal::ui::Talk;

/// How things are shown, on every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Display")]
pub(crate) struct DisplayArgs {
    /// When to colour: auto heeds NO_COLOR and whether stdout is a terminal
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    pub(crate) color: ColorArg,

    /// Show data, warnings and errors alone
    #[arg(short, long, global = true, conflicts_with = "verbose")]
    pub(crate) quiet: bool,

    /// Say more: which server, context and schemas, how long it took; of a race also its histograms
    #[arg(short, long, global = true)]
    pub(crate) verbose: bool,

    /// Write tables to the terminal at once, whatever PAGER says
    #[arg(long, global = true)]
    pub(crate) no_pager: bool,

    /// Tell each Redis command on stderr, with the time until its reply; passwords and values are left out
    #[arg(long, global = true)]
    pub(crate) debug: bool,
}

impl DisplayArgs {
    /// How much is said beside the data.
    pub(crate) fn talk(&self) -> Talk {
        match (self.quiet, self.verbose) {
            (true, _) => Talk::Quiet,
            (_, true) => Talk::Verbose,
            _ => Talk::Usual,
        }
    }
}

/// `--color`.
#[derive(Debug, Clone, Copy, Default, ValueEnum)]
pub(crate) enum ColorArg {
    /// On a terminal.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

impl From<ColorArg> for Color {
    fn from(arg: ColorArg) -> Self {
        match arg {
            ColorArg::Auto => Self::Auto,
            ColorArg::Always => Self::Always,
            ColorArg::Never => Self::Never,
        }
    }
}
