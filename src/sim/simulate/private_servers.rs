//! Private servers for scenarios that a shared one must not be put through.

use std::path::PathBuf;

use uuid::Uuid;

use super::abort::Abort;
use crate::store::{Sandbox, SandboxError, Setup, Target, Writable, free_port};

/// How often a server is started, should its port be taken between choosing the port and starting.
const TRIES: usize = 3;

#[derive(Debug, Clone)]
pub struct Servers {
    /// The folders in which a server program is looked for.
    pub path: Vec<PathBuf>,
    /// The folder in which each server gets a folder of its own.
    pub temp_dir: PathBuf,
    /// The target whose options connections to private servers take over.
    pub like: Target,
}

/// A private server, gone when dropped.
pub(super) struct PrivateServer {
    pub(super) target: Writable,
    pub(super) port: Option<u16>,
    _sandbox: Sandbox,
}

impl Servers {
    /// Starts a private server with these lines of configuration.
    pub(super) async fn start(&self, config: &[&str]) -> Result<PrivateServer, Abort> {
        let config = config.iter().map(|line| (*line).to_owned()).collect();
        self.run(Setup { config, ..Setup::default() }).await.map_err(no_server)
    }

    /// Starts one with a port, so that other servers reach it, and a password, so that nobody else does.
    pub(super) async fn start_with_port(&self, config: &[&str], password: &str) -> Result<PrivateServer, Abort> {
        let config: Vec<_> = config.iter().map(|line| (*line).to_owned()).collect();
        let mut last = None;
        for _ in 0..TRIES {
            let port = free_port().map_err(|why| Abort::NotApplicable(format!("no port is free: {why}")))?;
            let setup = Setup { port: Some(port), password: Some(password.to_owned()), config: config.clone() };
            match self.run(setup).await {
                Ok(server) => return Ok(server),
                Err(error @ SandboxError::NotServing { .. }) => last = Some(error),
                Err(error) => return Err(no_server(error)),
            }
        }
        Err(last.map_or_else(|| Abort::NotApplicable("no port is free".to_owned()), no_server))
    }

    async fn run(&self, setup: Setup) -> Result<PrivateServer, SandboxError> {
        let sandbox = Sandbox::start_as(&self.path, &self.temp_dir, &setup).await?;
        Ok(PrivateServer { target: sandbox.first_database(&self.like), port: setup.port, _sandbox: sandbox })
    }
}

pub(super) fn password() -> String {
    Uuid::new_v4().simple().to_string()
}

fn no_server(error: SandboxError) -> Abort {
    Abort::NotApplicable(format!("it takes a private server: {error}"))
}
