//! The scenarios there are.

use crate::domain::simulation::Story;
use crate::render::grid;
use crate::render::style::Palette;

/// A line for each scenario.
pub fn list(stories: &[Story], width: Option<usize>, palette: Palette) -> String {
    let rows = stories.iter().map(|story| vec![story.name.to_owned(), story.summary.to_owned()]).collect();
    grid::grid(palette, width, 0, &["SCENARIO", "STORY"], rows)
}
