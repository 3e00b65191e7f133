//! Moments: what records were there at one time, compared with another time.

mod difference;
mod known;
mod list_scope;
mod print;
mod sighting;
mod summary;

pub(crate) use difference::{Counts, How, What, how_it_went};
pub(crate) use known::Known;
pub(crate) use list_scope::ListScope;
pub(crate) use print::KeyPrint;
pub(crate) use sighting::Sighting;
pub(crate) use summary::Summary;
