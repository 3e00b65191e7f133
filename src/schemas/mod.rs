//! The schemas of a run, built in or from the operator's folder, with the deployment's settings;
//! and their checks.

mod all_schemas;
mod built_in;
pub(crate) mod check;
mod faults;
mod load;
mod new_folder;

pub(crate) use all_schemas::AllSchemas;
pub(crate) use built_in::libraries;
pub use load::{Deployment, Loaded, load, load_with};
pub(crate) use load::{LoadError, files_of, one, shipped};
pub(crate) use new_folder::{Files, refuse_name, write_new};
