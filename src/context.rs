//! What a command gets: settings, the printer, the clock, and the way to the server.

use std::time::SystemTime;

use anyhow::Result;

use crate::args::SchemaArgs;
use crate::domain::catalog::Catalog;
use crate::exit::{self, Exit, Stop};
use crate::schemas;
use crate::settings::Settings;
use crate::store::{self, Link, Reader, Sandbox, SandboxError, Writer};
use crate::ui::Ui;

/// What a command gets.
pub struct Context {
    /// What flags, variables and config file come to.
    pub settings: Settings,
    /// The printer.
    pub ui: Ui,
    sandbox: Option<Sandbox>,
}

impl Context {
    /// Puts it together.
    pub fn new(settings: Settings, ui: Ui) -> Self {
        Self { settings, ui, sandbox: None }
    }

    /// The schemas idemctl knows, and the ones to work on.
    ///
    /// # Errors
    /// Usage: an unknown name, a schema that cannot be read, a prefix that no chosen schema takes.
    pub fn catalog(&self, args: &SchemaArgs) -> Result<Catalog> {
        let folder = self.settings.schema_dir(args.folder.schema_dir.as_deref());
        let mut wrong = None;
        let all = schemas::load(folder.as_deref(), |name| {
            self.settings.deployment(name, args).unwrap_or_else(|stop| {
                wrong = Some(stop);
                schemas::Deployment::default()
            })
        })
        .map_err(|error| Stop::usage(format!("schema {error}")))?;
        if let Some(stop) = wrong {
            return Err(stop.into());
        }
        let known = all.iter().map(|schema| schema.name.clone()).collect::<Vec<_>>().join(", ");
        let catalog = Catalog::new(all, &self.settings.schema_names(args))
            .map_err(|name| Stop::usage(format!("there is no schema `{name}`")).hint(format!("schemas: {known}")))?;
        if args.prefix.is_some() && !catalog.chosen().iter().any(|schema| schema.takes_prefix) {
            return Err(Stop::usage("--prefix: none of the chosen schemas takes a prefix").into());
        }
        Ok(catalog)
    }

    /// Connects, to read.
    ///
    /// # Errors
    /// As [`store::connect`].
    pub async fn reader(&mut self) -> Result<Reader> {
        Ok(self.link().await?.reader())
    }

    /// Connects, to change. The only way to a writer: a read-only context has none.
    ///
    /// # Errors
    /// Refused for safety in a read-only context; else as [`store::connect`].
    pub async fn writer(&mut self) -> Result<Writer> {
        if self.settings.wants_sandbox() {
            self.use_sandbox().await?;
        }
        if self.settings.is_read_only() {
            let name = self.settings.context_name().unwrap_or_default();
            return Err(Stop::usage(format!("context `{name}` is read-only: nothing may be changed through it")).into());
        }
        Ok(self.link().await?.writer())
    }

    /// Connects.
    ///
    /// # Errors
    /// As [`store::connect`]; without a server program where a throw-away server is wanted.
    pub async fn link(&mut self) -> Result<Link> {
        if self.settings.wants_sandbox() {
            self.use_sandbox().await?;
        }
        self.connect().await
    }

    async fn connect(&mut self) -> Result<Link> {
        if self.settings.asks_password() && self.settings.target().password.is_none() {
            let password = self.ui.ask_password(&format!("Password for {}", self.settings.target()))?;
            self.settings.set_password(password);
        }
        Ok(store::connect(self.settings.target()).await?)
    }

    /// Connects; to a throw-away server where no server is named and none answers at the default address.
    ///
    /// # Errors
    /// As [`Context::link`].
    pub async fn link_or_sandbox(&mut self) -> Result<Link> {
        if self.sandbox.is_some() || self.settings.wants_sandbox() || self.settings.names_a_server() {
            return self.link().await;
        }
        match self.connect().await {
            Err(error) if exit::of(&error) == Exit::Unreachable => {
                self.ui.status(&format!("No server at {}: using a private throw-away one.", self.settings.target()));
                self.use_sandbox().await?;
                self.connect().await
            }
            link => link,
        }
    }

    /// Works on a throw-away server from here on; starts it the first time.
    ///
    /// # Errors
    /// Unreachable: no server program, or one that does not come up.
    pub async fn use_sandbox(&mut self) -> Result<&mut Sandbox> {
        let sandbox = match self.sandbox.take() {
            Some(sandbox) => sandbox,
            None => {
                let environment = self.settings.environment();
                let sandbox = Sandbox::start(&environment.path(), &environment.temp_dir()).await.map_err(no_sandbox)?;
                self.settings.set_target(sandbox.target(self.settings.target()));
                sandbox
            }
        };
        Ok(self.sandbox.insert(sandbox))
    }

    /// The local time, for file names and the audit log; never for what Redis says of time.
    pub fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// The same in milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        let since = self.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// This machine's name.
    pub fn host(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }
}

/// Runs what can be given up at any moment, until the operator interrupts.
///
/// # Errors
/// Interrupted; else as the work itself.
pub async fn interruptible<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => Err(Stop::interrupted("interrupted").into()),
    }
}

fn no_sandbox(error: SandboxError) -> Stop {
    let stop = Stop::new(Exit::Unreachable, error.to_string());
    match error.hint() {
        Some(hint) => stop.hint(hint),
        None => stop,
    }
}
