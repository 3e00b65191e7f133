//! The schemas of this run: compiled in, of a folder of the user, with what the deployment states; and their check.

pub(crate) mod check;
mod faults;
mod load;

pub(crate) use load::LoadError;
pub use load::{Deployment, Loaded, load};
