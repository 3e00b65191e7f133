//! What every command receives: settings, the printer, the clock, and access to the server.

mod catalogs;
pub mod key_list;
pub(crate) mod operations;

use std::io;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use anyhow::Result;
use serde::Serialize;
use serde_json::{Map, Value};

use crate::args::{ConfirmArgs, Output};
use crate::domain::change::provenance::Provenance;
use crate::domain::record::Record;
use crate::exit::{CommandError, Exit};
use crate::render::document;
use crate::render::style::View;
use crate::settings::{Secret, Settings};
use crate::store::{
    self, Access, Client, Permit, RecordReader, Sandbox, SandboxError, StoreError, Target,
    Writable, Writer,
};
use crate::terminal::ui::Ui;

/// The hint for a command that puts load on its server.
pub(crate) const USE_SANDBOX: &str = "pass --sandbox to use a temporary local Redis";

/// How long to wait for replicas if the operator sets no limit. It must be shorter than the reply
/// timeout (5 s by default), because the reply to WAIT may come only at the end of this time.
const WAIT: Duration = Duration::from_secs(1);

/// One run of idemctl. Every command receives it. Not to be confused with a context, which is a
/// server of the config file: `settings` has the one that this run uses, if any.
pub struct Session {
    pub settings: Settings,
    pub ui: Ui,
    sandbox: Option<Sandbox>,
    has_shown_server: bool,
    /// True after the warning about schemas that are left out.
    warned: bool,
    /// Why the audit command did not get a change that was made without it.
    pub(crate) not_audited: Arc<OnceLock<String>>,
    /// True after idemctl has checked which contexts protect the server.
    knows_guards: bool,
    /// True after the note that scripts are not allowed.
    told_of_scripts: bool,
}

impl Session {
    pub fn new(settings: Settings, ui: Ui) -> Self {
        Self {
            settings,
            ui,
            sandbox: None,
            has_shown_server: false,
            warned: false,
            not_audited: Arc::default(),
            knows_guards: false,
            told_of_scripts: false,
        }
    }

    /// Shows values in the requested format: the output of `text`, one JSON document with the
    /// values under `name`, or one JSON object per line.
    pub fn show<T: Serialize>(
        &mut self,
        output: Output,
        name: &str,
        values: &[T],
        text: impl FnOnce(View) -> String,
    ) -> io::Result<()> {
        self.show_with(output, name, values, &Map::new(), text)
    }

    /// Like [`Session::show`]; the JSON document also has the fields of `document_fields`, which
    /// apply to all values.
    pub fn show_with<T: Serialize>(
        &mut self,
        output: Output,
        name: &str,
        values: &[T],
        document_fields: &Map<String, Value>,
        text: impl FnOnce(View) -> String,
    ) -> io::Result<()> {
        let view = self.ui.view();
        match output {
            Output::Text => self.ui.page(text(view))?,
            Output::Json => self.ui.data(document::document(name, values, document_fields))?,
            Output::Jsonl => {
                for value in values {
                    self.ui.data(document::line(value))?;
                }
            }
        }
        self.ui.flush()
    }

    /// Completes the advice on records' findings with the record's name and the options that lead
    /// to this server.
    pub fn fill_in_advice<'a>(&self, records: impl IntoIterator<Item = &'a mut Record>) {
        for record in records {
            self.ui.invocation().fill_in_advice(record);
        }
    }

    /// Connects for reading.
    ///
    /// # Errors
    /// The errors of [`Self::connect`].
    pub async fn connect_reader(&mut self) -> Result<RecordReader> {
        Ok(self.connect().await?.reader())
    }

    /// Connects for changes.
    ///
    /// # Errors
    /// Refused for safety if the context does not permit changes; else the errors of
    /// [`store::connect`].
    pub async fn connect_writer(&mut self, args: &ConfirmArgs) -> Result<Writer> {
        if self.settings.wants_sandbox() {
            self.use_sandbox().await?;
        }
        // A refusal needs no server, so it comes before the connection.
        self.permit()?;
        let mut replicas = None;
        if let Some(count) = args.wait_replicas {
            let wait = args.wait_timeout.unwrap_or(WAIT);
            if wait >= self.settings.target().timeout {
                return Err(CommandError::usage(
                    "--wait-timeout must be shorter than --timeout, because the reply comes only \
                     after it",
                )
                .into());
            }
            replicas = Some((count, wait));
        }
        let client = self.connect().await?;
        if !client.require_not_replica().await? {
            let server = client.name();
            self.ui.warning(&format!(
                "idemctl cannot tell whether {server} is a replica, whose changes do not reach its \
                master; to check, the user needs +hello or +role"
            ));
        }
        self.apply_guards(&client).await?;
        // Asked again, because a guard may have made the server read-only.
        let mut writer = client.writer(&self.permit()?).waiting_for(replicas);
        if !writer.try_scripts().await? && !self.told_of_scripts {
            self.told_of_scripts = true;
            self.ui.note(&format!(
                "scripts are not allowed at {}, so idemctl changes each record in its own \
                transaction, which is slower",
                writer.name()
            ));
        }
        Ok(writer)
    }

    /// Checks whether a protected or read-only context names this server by another address. If so,
    /// the protection of that context applies here. Another server is contacted only if it may be
    /// this one.
    async fn apply_guards(&mut self, client: &Client) -> Result<()> {
        // A temporary local Redis belongs to no context, and one check per run is enough.
        if self.is_on_sandbox() || self.knows_guards {
            return Ok(());
        }
        let guards = self.settings.other_guards();
        // Without such contexts, a command needs no further round trip.
        if guards.is_empty() {
            return Ok(());
        }
        let addresses = client.addresses().await?;
        let own = client.provenance().await?;
        for guard in guards {
            let is_at = guard.is_at(&addresses);
            if is_at == Some(true) {
                self.settings.apply_guard(&guard);
                continue;
            }
            // Only a server that Sentinels watch can be the master that they name.
            let may_be_this = if guard.has_sentinels() {
                client.may_be_watched().await
            } else {
                is_at.is_none() || guard.may_be_beside(&client.target().address)
            };
            if !may_be_this {
                continue;
            }
            // If the answer is unknown, changes are refused: neither a busy server nor a failing
            // name server may disable a context's protection.
            let why = match provenance_at(&guard.target).await {
                Ok(its) => match its.is_same_server(&own) {
                    Some(true) => {
                        self.settings.apply_guard(&guard);
                        continue;
                    }
                    Some(false) => continue,
                    None => "a server does not report its run id",
                },
                Err(StoreError::TimedOut { .. }) => "that server did not answer in time",
                Err(_) if is_at.is_none() => "a host name could not be resolved",
                Err(_) => continue,
            };
            let name = guard.context();
            let server = client.name();
            self.ui.warning(&format!(
                "the protection of context `{name}` applies, because idemctl cannot tell whether \
                {server} is its server ({why})"
            ));
            self.settings.apply_guard(&guard);
        }
        self.knows_guards = true;
        Ok(())
    }

    /// Finds out which protection applies to this server, before any output. If this fails, it is
    /// repeated before a change.
    pub async fn learn_protection(&mut self) {
        if let Ok(client) = self.connect().await {
            // `connect_writer` repeats the check and then reports the error.
            let _ = self.apply_guards(&client).await;
        }
    }

    /// The permission to make changes, which a read-only context does not give.
    fn permit(&self) -> Result<Permit, CommandError> {
        match self.settings.access() {
            Access::Full(permit) => Ok(permit.clone()),
            Access::ReadOnly => {
                let stop = CommandError::usage(format!(
                    "{}; it allows no changes",
                    self.settings.read_only()
                ));
                Err(match self.settings.way_to_change() {
                    Some(hint) => stop.hint(hint),
                    None => stop,
                })
            }
        }
    }

    /// A server to load with temporary records: the server that the command line names, or else a
    /// temporary local Redis. Variables and the config file are ignored. Prints which server it is,
    /// in a sentence that begins with `doing`.
    ///
    /// # Errors
    /// Refused for safety in a read-only or protected context; else the errors of
    /// [`Session::connect`].
    pub async fn load_server(&mut self, doing: &str) -> Result<(Client, Writable)> {
        if self.settings.wants_sandbox() {
            self.use_sandbox().await?;
        } else if !self.settings.asks_for_its_server() {
            // A variable or the default context may name a production server, and the command puts
            // load on it.
            self.spare_the_server();
            self.use_sandbox().await?;
        }
        self.refuse_load()?;
        let client = self.connect_to_target().await?;
        self.apply_guards(&client).await?;
        // A second time, because a guard may have protected the server.
        self.refuse_load()?;
        if self.sandbox.is_none() {
            let at = if self.settings.context_name().is_some() { "on" } else { "at" };
            self.ui.status(&format!("{doing} {at} {} ...", self.server_label(&client.name())));
        }
        Ok((client, self.permit()?.over(self.settings.target().clone())))
    }

    /// Checks that no context protects the server from load.
    fn refuse_load(&self) -> Result<(), CommandError> {
        self.permit().map_err(|stop| stop.hint(USE_SANDBOX))?;
        if self.settings.is_protected() {
            let message =
                format!("{}; idemctl does not put load on it", self.settings.protection());
            return Err(CommandError::usage(message).hint(USE_SANDBOX));
        }
        Ok(())
    }

    /// Prints that a temporary local Redis is used, because the command line names no server.
    fn spare_the_server(&mut self) {
        let how = "name another server with -u, -h, -p, -s, --sentinel or --context";
        let why = match self.settings.names_its_server() {
            Some(who) => format!(
                "{who} names {}, but this command puts load on its server",
                self.settings.target()
            ),
            None => "No server is given".to_owned(),
        };
        self.ui.status(&format!("{why}. Using a temporary local Redis ({how})."));
    }

    /// Opens a new connection to the server.
    ///
    /// # Errors
    /// The errors of [`store::connect`]; there is no server program for a temporary local Redis.
    pub async fn connect(&mut self) -> Result<Client> {
        if self.settings.wants_sandbox() {
            self.use_sandbox().await?;
        }
        self.connect_to_target().await
    }

    async fn connect_to_target(&mut self) -> Result<Client> {
        if self.settings.asks_password() {
            let question =
                format!("Password for {}", self.server_label(&self.settings.target().to_string()));
            let password = Secret::from(self.ui.ask_password(&question)?);
            self.settings.set_password(&password);
        }
        self.show_server();
        let client = store::connect(self.settings.target()).await?;
        if self.settings.target().only_cluster {
            client.masters().await?;
            if !client.is_cluster() {
                return Err(CommandError::usage(format!(
                    "-c: {} is not a cluster node",
                    client.name()
                ))
                .into());
            }
        }
        Ok(client)
    }

    /// The server's name for messages, after the name of its context in the context's colour.
    pub fn server_label(&self, server: &str) -> String {
        match self.settings.context_name() {
            Some(name) => {
                format!("{} at {server}", self.ui.colored_name(name, self.settings.color()))
            }
            None => server.to_owned(),
        }
    }

    /// Shows the server once if its context has a colour, so that the operator does not mistake it
    /// for another one.
    fn show_server(&mut self) {
        if self.settings.color().is_some() && self.ui.err_is_terminal() && !self.has_shown_server {
            let label = self.server_label(&self.settings.target().to_string());
            self.ui.status(&label);
        } else if !self.has_shown_server {
            self.ui.detail(&format!(
                "server: {}",
                self.server_label(&self.settings.target().to_string())
            ));
        }
        self.has_shown_server = true;
    }

    /// Uses a temporary local Redis from now on. The first call starts it.
    ///
    /// # Errors
    /// Unreachable: there is no server program, or it does not start.
    pub async fn use_sandbox(&mut self) -> Result<&mut Sandbox> {
        let sandbox = match self.sandbox.take() {
            Some(sandbox) => sandbox,
            None => {
                let environment = self.settings.environment();
                let sandbox = Sandbox::start(&environment.path(), &environment.temp_dir())
                    .await
                    .map_err(no_sandbox)?;
                self.settings.use_sandbox(&sandbox.target(self.settings.target()));
                sandbox
            }
        };
        Ok(self.sandbox.insert(sandbox))
    }

    /// True if the server is a temporary local Redis.
    pub fn is_on_sandbox(&self) -> bool {
        self.sandbox.is_some()
    }

    /// The local time, for file names and the audit log; never compared with times of Redis.
    pub fn now(&self) -> SystemTime {
        SystemTime::now()
    }

    /// The local time in milliseconds since the epoch.
    pub fn now_ms(&self) -> u64 {
        let since = self.now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
    }

    /// A random 64-bit name for one run of a command that makes changes.
    pub fn new_operation(&self) -> String {
        // A UUID has fixed bits in both halves, at different positions, so the halves are combined.
        let (high, low) = uuid::Uuid::new_v4().as_u64_pair();
        format!("{:016x}", high ^ low)
    }

    pub fn host(&self) -> String {
        rustix::system::uname().nodename().to_string_lossy().into_owned()
    }
}

/// Runs work that may be cancelled at any time, until Ctrl-C.
pub async fn interruptible<T>(work: impl Future<Output = Result<T>>) -> Result<T> {
    tokio::select! {
        done = work => done,
        _ = tokio::signal::ctrl_c() => Err(CommandError::interrupted("interrupted").into()),
    }
}

/// The place of the server at `target`.
///
/// # Errors
/// The server cannot be asked.
async fn provenance_at(target: &Target) -> Result<Provenance, StoreError> {
    store::connect(target).await?.provenance().await
}

fn no_sandbox(error: SandboxError) -> CommandError {
    let stop = CommandError::new(Exit::Unreachable, error.to_string());
    match error.hint() {
        Some(hint) => stop.hint(hint),
        None => stop,
    }
}
