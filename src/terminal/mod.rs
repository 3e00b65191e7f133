//! The terminal. Only this module prints.

pub mod frame;
mod pager;
mod prompt;
pub mod ui;
