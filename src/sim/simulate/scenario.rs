//! What a scenario is.

use std::fmt;
use std::future::Future;
use std::pin::Pin;

use super::abort::Played;
use super::environment::Environment;
use crate::domain::simulation::Story;

pub(super) type Playing<'a> = Pin<Box<dyn Future<Output = Played> + 'a>>;

/// A story of how idempotency can fail, for any schema.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub story: Story,
    pub(super) play: for<'a, 's> fn(&'a Environment<'s>) -> Playing<'a>,
}

impl fmt::Debug for Scenario {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.story.name)
    }
}
