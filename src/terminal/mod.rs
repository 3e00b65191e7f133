//! The terminal: the only printer.

mod prompt;
pub mod ui;
