//! Settings. Flags take precedence over `IDEMCTL_*` variables, those over the context of the config
//! file, and that over defaults. Only this module reads the environment.

mod address;
mod adoption;
mod config;
mod edit;
mod effective;
mod environment;
mod file;
mod invocation;
mod login;
mod origin;
mod password;
mod password_command;
mod resolved;
mod server;
mod server_context;
mod shown;
mod stated;
mod tls_settings;
mod url;
mod writing;

pub(crate) use crate::domain::secret::Secret;
pub(crate) use adoption::{Adoption, adopt};
pub(crate) use config::ContextConfig;
pub(crate) use edit::use_context;
pub(crate) use effective::Settings;
pub(crate) use environment::Environment;
pub(crate) use writing::{
    NOTHING_TO_WRITE, ServerChange, not_confirmed, previous, remove_context, server_change,
    set_context,
};
