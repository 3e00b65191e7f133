//! The terminal. Only this module prints.

pub mod frame;
mod prompt;
pub mod ui;
