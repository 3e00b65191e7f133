//! A progress line that is erased when its owner is dropped.

use std::ops::Deref;

use indicatif::ProgressBar;

/// A progress line on stderr. It is erased when this is dropped, however the work ended: a line that stays would cover a question
/// or a sentence that is printed later.
pub struct ProgressLine(ProgressBar);

impl ProgressLine {
    /// A line that is never shown.
    pub fn hidden() -> Self {
        Self(ProgressBar::hidden())
    }

    pub(super) fn new(bar: ProgressBar) -> Self {
        Self(bar)
    }
}

impl Deref for ProgressLine {
    type Target = ProgressBar;

    fn deref(&self) -> &ProgressBar {
        &self.0
    }
}

impl Drop for ProgressLine {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
