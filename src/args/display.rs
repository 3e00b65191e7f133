//! How things are shown, on every command.

use clap::{Args, ValueEnum};

use crate::render::style::Color;

/// How things are shown, on every command.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Display")]
pub(crate) struct DisplayArgs {
    /// When to colour: auto heeds NO_COLOR and whether stdout is a terminal
    #[arg(long, global = true, value_name = "WHEN", value_enum, default_value_t = ColorArg::Auto)]
    pub(crate) color: ColorArg,

    /// Tell each Redis command on stderr, with the time until its reply; passwords and values are left out
    #[arg(long, global = true)]
    pub(crate) debug: bool,
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
