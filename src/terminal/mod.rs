//! The terminal: the only printer.

mod frame;
mod prompt;
pub mod ui;
