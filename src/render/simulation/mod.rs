//! Simulations for people and programs.

mod advice;
mod json;
mod list;
mod matrix;
mod report;
mod sequence;

pub use json::{document, lines};
pub use list::list;
pub use report::{Shown, compared, text};
