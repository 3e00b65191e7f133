//! Simulations for people and programs.

mod advice;
mod list;
mod matrix;
mod report;
mod sequence;
mod simulation_json;

pub use self::simulation_json::{document, lines};
pub use list::list;
pub use report::{Shown, compared, text};
