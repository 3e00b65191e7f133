//! The terminal: the only printer.

mod frame;
mod pager;
pub mod progress_line;
mod prompt;
pub mod ui;
