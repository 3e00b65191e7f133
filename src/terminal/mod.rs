//! The terminal: the only printer.

pub mod frame;
mod pager;
mod prompt;
pub mod ui;
