//! Simulations for people and programs.

mod advice;
mod matrix;
mod report;
mod sequence;
mod simulation_json;

pub use self::report::{ComparedMatrix, Simulation, differences, list, text};
pub use self::simulation_json::{cell, difference, scenario};
