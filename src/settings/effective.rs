//! The effective settings, made from flags, variables and the config file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::address;
use super::config::{CheckConfig, ContextConfig};
use super::environment::Environment;
use super::file::ConfigFile;
use super::origin::{Origin, Sourced};
use super::server::Server;
use super::server_context::ServerContext;
use crate::args::{ConnectionArgs, SchemaArgs, StatedTtl};
use crate::domain::secret::Secret;
use crate::exit::CommandError;
use crate::render::invocation::word;
use crate::render::style::NameColor;
use crate::schemas::Deployment;
use crate::store::{Access, Address, Target, Trace, Writable};

#[derive(Clone)]
pub struct Settings {
    environment: Environment,
    file: ConfigFile,
    chosen: Option<Sourced<String>>,
    pub(super) server_context: ServerContext,
    pub(super) server: Server,
    target: Target,
    access: Access,
    sandbox: bool,
    /// Why the config file could not be read, if this run goes on without it.
    wrong: Option<String>,
}

/// A context that protects its server from changes.
pub(crate) struct Guard {
    context: String,
    pub(crate) target: Target,
}

impl Guard {
    /// The name of the context.
    pub(crate) fn context(&self) -> &str {
        &self.context
    }

    /// True if the context's server has one of these addresses. `None` if that is possible, because
    /// a name could not be resolved.
    pub(crate) fn is_at(&self, addresses: &[Address]) -> Option<bool> {
        address::is_among(&self.target.address, addresses)
    }

    /// True if both the context's server and this address are on this machine. They may then be the
    /// same server, under another loopback address or a socket.
    pub(crate) fn may_be_beside(&self, address: &Address) -> bool {
        address::is_here(&self.target.address) && address::is_here(address)
    }

    /// True if the context names Sentinels, which determine the server.
    pub(crate) fn has_sentinels(&self) -> bool {
        matches!(self.target.address, Address::Service(_))
    }
}

impl Settings {
    /// Combines flags, variables and the config file.
    ///
    /// # Errors
    /// Usage: a URL or config file cannot be read, a context is unknown, or a Redis user has no
    /// password.
    pub(crate) fn resolve(
        args: &ConnectionArgs,
        environment: Environment,
    ) -> Result<Self, CommandError> {
        let file = ConfigFile::read(args, &environment)?;
        let chosen = file.chosen(args, &environment);
        let context = match &chosen {
            Some(name) => file.context(&name.value)?.clone(),
            None => ContextConfig::default(),
        };
        if args.sandbox {
            // The log-in for another server is neither used nor asked for here.
            let server = Server::resolve(
                &args.for_sandbox(),
                &Environment::default(),
                &ContextConfig::default(),
            )?;
            let server_context = ServerContext::chosen(chosen.as_ref(), &file);
            return Ok(Self::of(environment, file, chosen, server_context, server, true));
        }
        let server = Server::resolve(args, &environment, &context)?;
        let server_context =
            ServerContext::of(&server.address.value, server.db.value, chosen.as_ref(), &file);
        Ok(Self::of(environment, file, chosen, server_context, server, false))
    }

    /// The settings for commands that edit the config file, which need no context. The file that an
    /// option or a variable names may be missing if `creates` is true.
    pub(crate) fn of_file(
        args: &ConnectionArgs,
        environment: Environment,
        creates: bool,
    ) -> Result<Self, CommandError> {
        let file = match creates {
            true => ConfigFile::read_or_new(args, &environment)?,
            false => ConfigFile::read(args, &environment)?,
        };
        let chosen = file.chosen(args, &environment);
        // Without the context and the variables, because a mistake in them must not prevent its
        // correction.
        let server = server_of(&ContextConfig::default())?;
        let server_context = ServerContext { name: chosen.clone(), ..ServerContext::default() };
        Ok(Self::of(environment, file, chosen, server_context, server, false))
    }

    /// The settings without a config file, for `config check`, which reports this error of it.
    pub(crate) fn without_file(
        environment: Environment,
        wrong: &CommandError,
    ) -> Result<Self, CommandError> {
        let server = server_of(&ContextConfig::default())?;
        let (file, context) = (ConfigFile::default(), ServerContext::default());
        let settings = Self::of(environment, file, None, context, server, false);
        Ok(Self { wrong: Some(wrong.with_hint()), ..settings })
    }

    /// Why the config file could not be read, if this run goes on without it.
    pub(crate) fn wrong(&self) -> Option<&str> {
        self.wrong.as_deref()
    }

    fn of(
        environment: Environment,
        file: ConfigFile,
        chosen: Option<Sourced<String>>,
        server_context: ServerContext,
        server: Server,
        sandbox: bool,
    ) -> Self {
        let target = server.target();
        let access = Access::of(server_context.read_only_by.is_some());
        Self {
            environment,
            file,
            chosen,
            server_context,
            server,
            target,
            access,
            sandbox,
            wrong: None,
        }
    }

    /// Warnings about the settings, for stderr.
    pub(crate) fn warnings(&self) -> impl Iterator<Item = String> {
        let surprise = self.server_context.surprise(self.chosen.as_ref(), &self.shown_address());
        self.server.warnings.iter().cloned().chain(self.file.warning()).chain(surprise)
    }

    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    pub(crate) fn access(&self) -> &Access {
        &self.access
    }

    /// True if the command line names the server, by a connection option or by `--context`.
    pub(crate) fn asks_for_its_server(&self) -> bool {
        let is_context_named = match &self.chosen {
            Some(chosen) => matches!(chosen.origin, Origin::Flag(_)),
            None => false,
        };
        match self.server.address.origin {
            Origin::Flag(_) => true,
            Origin::Context(_) => is_context_named || self.server.only_cluster,
            _ => self.server.only_cluster,
        }
    }

    /// The source that names the server if the command line does not: a variable, or the config
    /// file.
    pub(crate) fn names_its_server(&self) -> Option<&'static str> {
        match (self.server.address.origin, self.chosen.as_ref().map(|chosen| chosen.origin)) {
            // The variable names the server, either directly or through the context that it
            // chooses.
            (Origin::Variable(name), _) => Some(name),
            (Origin::Context(_), Some(Origin::Variable(name) | Origin::File(name))) => Some(name),
            _ => None,
        }
    }

    /// The URL in `REDIS_URL`, if that variable names the server.
    pub(crate) fn url_of_redis_url(&self) -> Option<&str> {
        let variable = "REDIS_URL";
        match self.server.address.origin {
            Origin::Variable(name) if name == variable => self.environment.get(variable),
            _ => None,
        }
    }

    pub(crate) fn wants_sandbox(&self) -> bool {
        self.sandbox
    }

    pub(crate) fn asks_password(&self) -> bool {
        self.server.password.origin == Origin::Flag("--askpass") && self.target.password.is_none()
    }

    pub(crate) fn set_password(&mut self, password: &Secret) {
        self.target.password = Some(password.reveal().to_owned());
    }

    /// Sets the receiver of a report on each command that is sent to a server.
    pub(crate) fn trace(&mut self, trace: Trace) {
        self.target.trace = Some(trace);
    }

    /// Uses the temporary local Redis, which needs no protection, instead of the server.
    pub(crate) fn use_sandbox(&mut self, server: &Writable) {
        self.target = (**server).clone();
        self.access = Access::Full(server.permit().clone());
        // This also forgets `--askpass`. The temporary server has no password.
        self.server.password = Sourced::default(None);
        self.server_context = std::mem::take(&mut self.server_context).throw_away();
    }

    pub(crate) fn environment(&self) -> &Environment {
        &self.environment
    }

    pub(crate) fn file(&self) -> &ConfigFile {
        &self.file
    }

    /// The name of the chosen context, and its source.
    pub(super) fn chosen(&self) -> Option<&Sourced<String>> {
        self.chosen.as_ref()
    }

    pub(crate) fn context_name(&self) -> Option<&str> {
        self.server_context.name.as_ref().map(|name| name.value.as_str())
    }

    /// The source that overrides the config file's choice of a context: the variable, or the flag.
    pub(crate) fn overriding_context(&self) -> Option<&'static str> {
        match self.chosen.as_ref()?.origin {
            Origin::Flag(name) | Origin::Variable(name) => Some(name),
            _ => None,
        }
    }

    pub(crate) fn color(&self) -> Option<NameColor> {
        self.server_context.context.color
    }

    /// The contexts that protect other servers, which by their addresses are not this one. Each
    /// comes with its server.
    pub(crate) fn other_guards(&self) -> Vec<Guard> {
        let mut guards = Vec::new();
        for (name, context) in self.file.contexts() {
            // A context whose server cannot be read leads nowhere.
            if context.url.is_some()
                && self.server_context.is_weaker_than(context)
                && let Ok(server) = server_of(context)
            {
                guards.push(Guard { context: name.clone(), target: server.target() });
            }
        }
        guards
    }

    /// Each context that names a server, with the server's address and database in the format of
    /// the audit log.
    pub(crate) fn context_places(&self) -> Vec<(String, String, i64)> {
        let mut places = Vec::new();
        for (name, context) in self.file.contexts() {
            // A context whose server cannot be read leads nowhere.
            if context.url.is_some()
                && let Ok(server) = server_of(context)
            {
                let target = server.target();
                places.push((name.clone(), target.address.to_string(), target.db));
            }
        }
        places
    }

    /// Applies a context's protection to this server, because it is the context's server.
    pub(crate) fn apply_guard(&mut self, guard: &Guard) {
        if let Ok(context) = self.file.context(&guard.context) {
            self.server_context.add(&guard.context, context);
            self.access = Access::of(self.server_context.read_only_by.is_some());
        }
    }

    /// True if the operator must confirm changes by typing the context's name.
    pub(crate) fn is_protected(&self) -> bool {
        self.server_context.protected_by.is_some()
    }

    /// False in a read-only context.
    pub(crate) fn may_change(&self) -> bool {
        self.server_context.read_only_by.is_none()
    }

    /// Which context is protected, as the beginning of a sentence.
    pub(crate) fn protection(&self) -> String {
        self.kept("protected", self.server_context.protected_by.as_deref())
    }

    /// Which context is read-only, as the beginning of a sentence.
    pub(crate) fn read_only(&self) -> String {
        self.kept("read-only", self.server_context.read_only_by.as_deref())
    }

    /// How to change records although another context makes the server read-only.
    pub(crate) fn way_to_change(&self) -> Option<String> {
        let writable = self.server_context.writable.as_deref()?;
        Some(format!("pass --context {}", word(writable)))
    }

    fn kept(&self, how: &str, by: Option<&str>) -> String {
        let name = self.context_name().unwrap_or_default();
        match by {
            Some(by) if by != name => {
                format!("context `{name}` has the server of `{by}`, which is {how}")
            }
            _ => format!("context `{name}` is {how}"),
        }
    }

    /// The schemas to work on, from the flag or else the context; empty means all.
    pub(crate) fn schema_names(&self, args: &SchemaArgs) -> Vec<String> {
        if args.schema.is_empty() {
            self.server_context.context.schema.clone()
        } else {
            args.schema.clone()
        }
    }

    /// True if the operator or the context names the schema, or the context has settings for it.
    /// Layouts of published libraries and drafts are read only then.
    pub(crate) fn names_schema(&self, schema: &str, args: &SchemaArgs) -> bool {
        let context = &self.server_context.context;
        let listed = args.schema.iter().chain(&context.schema).any(|name| name == schema);
        listed || context.deployment.contains_key(schema)
    }

    /// The folder of the operator's own schemas. One that a flag or a variable names must exist;
    /// the default folder is used if it exists.
    pub(crate) fn schema_dir(&self, flag: Option<&Path>) -> Option<PathBuf> {
        self.schema_dir_sourced(flag).value
    }

    /// The default folder of the operator's own schemas; it may not exist.
    pub(crate) fn usual_schema_dir(&self) -> Option<PathBuf> {
        self.environment.config_dir().map(|folder| folder.join("schemas"))
    }

    pub(super) fn schema_dir_sourced(&self, flag: Option<&Path>) -> Sourced<Option<PathBuf>> {
        let variable = self.environment.schema_dir();
        match (flag, variable, &self.server_context.context.schema_dir) {
            (Some(path), ..) => Sourced::new(Some(path.to_owned()), Origin::Flag("--schema-dir")),
            (None, Some(path), _) => {
                Sourced::new(Some(path), Origin::Variable("IDEMCTL_SCHEMA_DIR"))
            }
            (None, None, Some(path)) => {
                Sourced::new(Some(path.clone()), Origin::Context("schema_dir"))
            }
            (None, None, None) => {
                Sourced::default(self.usual_schema_dir().filter(|folder| folder.is_dir()))
            }
        }
    }

    /// How this deployment differs from a schema's defaults.
    pub(crate) fn deployment(&self, schema: &str, args: &SchemaArgs) -> Deployment {
        let context = &self.server_context.context;
        let config = context.deployment.get(schema).cloned().unwrap_or_default();
        let stated = |ttl: &Option<StatedTtl>| ttl.as_ref().and_then(|ttl| ttl.of(schema));
        Deployment {
            prefix: self.prefix_flag(schema, args).map(str::to_owned).or(config.prefix),
            shared_prefix: args.prefix.clone().or_else(|| context.prefix.clone()),
            lock_ttl: stated(&args.lock_ttl).or(config.lock_ttl),
            result_ttl: stated(&args.result_ttl).or(config.result_ttl),
            extra_fields: config.extra_fields.into_iter().map(|pointer| pointer.0).collect(),
        }
    }

    /// How long the requests of a schema may come again; `None` if the context does not state it.
    pub(crate) fn retry_window(&self, schema: &str) -> Option<Duration> {
        let context = &self.server_context.context;
        let own = context.deployment.get(schema).and_then(|own| own.retry_window);
        own.or(context.retry_window)
    }

    /// The command that gets the beginning and the end of each operation, and whether nothing is
    /// changed if it fails.
    pub(crate) fn audit_command(&self) -> Option<(&str, bool)> {
        let context = &self.server_context.context;
        Some((context.audit_command.as_deref()?, context.audit_required.unwrap_or(true)))
    }

    /// The context's settings for `check`.
    pub(crate) fn check(&self) -> &CheckConfig {
        &self.server_context.context.check
    }

    /// The value of `--prefix`, if this schema is among those that were named.
    pub(super) fn prefix_flag<'a>(&self, schema: &str, args: &'a SchemaArgs) -> Option<&'a str> {
        let prefix = args.prefix.as_deref()?;
        let is_named = self.schema_names(args).iter().any(|name| name == schema);
        if is_named { Some(prefix) } else { None }
    }

    /// The folder of the backups and the audit log.
    ///
    /// # Errors
    /// Neither `XDG_STATE_HOME` nor `HOME` is set.
    pub(crate) fn state_dir(&self) -> Result<PathBuf, CommandError> {
        self.environment.state_dir().ok_or_else(|| {
            CommandError::usage(
                "no folder for backups and the audit log, because neither XDG_STATE_HOME nor HOME \
                is set",
            )
        })
    }

    /// The folder of the backups, unless `--backup` names another one.
    ///
    /// # Errors
    /// The errors of [`Settings::state_dir`].
    pub(crate) fn backup_dir(&self) -> Result<PathBuf, CommandError> {
        Ok(self.state_dir()?.join("backups"))
    }

    /// The folder of the audit log.
    ///
    /// # Errors
    /// The errors of [`Settings::state_dir`].
    pub(crate) fn audit_dir(&self) -> Result<PathBuf, CommandError> {
        Ok(self.state_dir()?.join("audit"))
    }

    /// The server's address without the database, for messages.
    pub(super) fn shown_address(&self) -> String {
        match &self.target.address {
            Address::Tcp(..) | Address::Service(_) => {
                let target = self.target.to_string();
                match target.rsplit_once('/') {
                    Some((address, _db)) => address.to_owned(),
                    None => String::new(),
                }
            }
            // The path of a socket may contain slashes, so no part of it is cut off.
            Address::Unix(path) => path.display().to_string(),
        }
    }
}

/// The server of a context, which options and variables do not change: they apply only to the
/// server of this run.
fn server_of(context: &ContextConfig) -> Result<Server, CommandError> {
    Server::resolve(&ConnectionArgs::default(), &Environment::default(), context)
}
