//! The terminal: the only printer.

mod frame;
mod pager;
mod prompt;
pub mod ui;
