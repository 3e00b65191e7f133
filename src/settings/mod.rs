//! Settings: flags before `IDEMCTL_*` variables before the context of the config file before defaults. The environment is
//! read here and nowhere else.

mod address;
mod belonging;
mod config;
mod edit;
mod effective;
mod environment;
mod file;
mod login;
mod origin;
mod password;
mod server;
mod shown;
mod stated;
mod tls;
mod url;

pub use crate::domain::secret::Secret;
pub use config::{ContextConfig, NameColor};
pub use edit::use_context;
pub use effective::Settings;
pub use environment::Environment;
pub use file::ConfigFile;
pub use origin::{Origin, Sourced};
pub use shown::Row;
