//! The terminal: the only printer.

pub mod ui;
