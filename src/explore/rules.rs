//! What is explored, and where.

use std::rc::Rc;

use super::state::State;
use crate::domain::exploration::{Assumptions, Budget, Point, Program};

#[derive(Debug, Clone)]
pub struct Rules {
    pub program: Rc<Program>,
    pub workers: u8,
    /// How often each fault may happen.
    pub most: Budget,
    pub assumptions: Assumptions,
    /// Workers of one service begin in order, for it is all the same which of them is called the first.
    pub in_order: bool,
}

impl Rules {
    /// Where each worker stands in the beginning. With two services there is a beginning for each number of workers of the
    /// first.
    pub fn beginnings(&self) -> Vec<Vec<u8>> {
        let workers = usize::from(self.workers);
        match self.program.starts[..] {
            [first, second] => (1..workers)
                .map(|of_first| (0..workers).map(|worker| if worker < of_first { first } else { second }).collect())
                .collect(),
            ref starts => vec![vec![starts[0]; workers]],
        }
    }

    pub(super) fn point(&self, state: &State, worker: u8) -> Point {
        self.program.points[usize::from(state.points[usize::from(worker)])]
    }

    pub(super) fn points(&self, state: &State) -> impl Iterator<Item = Point> {
        (0..self.workers).map(|worker| self.point(state, worker))
    }

    pub(super) fn may_begin(&self, state: &State, worker: u8) -> bool {
        let worker = usize::from(worker);
        !self.in_order || worker == 0 || state.points[worker - 1] != state.points[worker]
    }
}
