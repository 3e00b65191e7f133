//! The facts that `doctor` judges, from one bounded set of commands per server. Every command only
//! reads.

mod deployment_facts;
mod node_facts;
mod refused;
mod sentinel_facts;
mod user_rights;

pub(crate) use self::deployment_facts::read_deployment;
pub(crate) use self::refused::{is_fatal, refused_sample};
