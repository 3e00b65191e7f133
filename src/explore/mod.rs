//! The search: every order of the workers' steps and of the faults, breadth first, each step asked of the server once.

mod explore;
mod here;
mod index;
mod perform;
mod places;
mod retrace;
mod rules;
mod schedules;
mod search;
mod state;

pub use self::explore::{Explored, Found, Limits, explore};
pub use self::perform::{Perform, Performed, Question};
pub(crate) use self::retrace::{Traced, retrace};
pub use self::rules::Rules;
