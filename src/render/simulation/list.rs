//! The scenarios there are.

use crate::domain::simulation::Story;
use crate::render::style::Palette;
use crate::render::table;

/// A line for each scenario.
pub fn list(stories: &[Story], width: Option<usize>, palette: Palette) -> String {
    let rows = stories.iter().map(|story| vec![story.name.to_owned(), story.summary.to_owned()]).collect();
    table::grid(palette, width, 0, &["SCENARIO", "STORY"], rows)
}
