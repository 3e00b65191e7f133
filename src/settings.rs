//! Settings: flags before `IDEMCTL_*` variables before the context of the config file before defaults.
//! The environment is read here and nowhere else.

use std::collections::BTreeMap;
use std::env;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;

use crate::args::{ConnectionArgs, SchemaArgs};
use crate::exit::Stop;
use crate::schemas::Deployment;
use crate::store::{Address, Target};

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 6379;
const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// The variables idemctl heeds. No other is ever read.
const VARIABLES: &[&str] = &[
    "IDEMCTL_URL",
    "IDEMCTL_CONTEXT",
    "IDEMCTL_CONFIG",
    "IDEMCTL_SCHEMA_DIR",
    "REDIS_URL",
    "REDISCLI_AUTH",
    "XDG_CONFIG_HOME",
    "XDG_STATE_HOME",
    "HOME",
    "USER",
    "LOGNAME",
    "PATH",
    "TMPDIR",
];

/// What of the environment idemctl heeds.
#[derive(Debug, Clone, Default)]
pub struct Environment(BTreeMap<&'static str, String>);

impl Environment {
    /// Reads it; a variable that is empty counts as not set.
    pub fn capture() -> Self {
        let set = |name: &&'static str| Some((*name, env::var(name).ok().filter(|value| !value.is_empty())?));
        Self(VARIABLES.iter().filter_map(set).collect())
    }

    fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// The folders programs are looked for in.
    pub fn path(&self) -> Vec<PathBuf> {
        self.get("PATH").map(|path| env::split_paths(path).collect()).unwrap_or_default()
    }

    /// The folder for temporary files.
    pub fn temp_dir(&self) -> PathBuf {
        self.get("TMPDIR").map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    }

    /// The operator's user name, or number where it has no name.
    pub fn user(&self) -> String {
        let name = self.get("USER").or_else(|| self.get("LOGNAME"));
        name.map_or_else(|| format!("uid {}", rustix::process::getuid().as_raw()), str::to_owned)
    }

    fn folder(&self, variable: &str, below_home: &str) -> Option<PathBuf> {
        let base = match self.get(variable).map(PathBuf::from).filter(|path| path.is_absolute()) {
            Some(base) => base,
            None => Path::new(self.get("HOME")?).join(below_home),
        };
        Some(base.join("idemctl"))
    }
}

/// The config file.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Config {
    default_context: Option<String>,
    context: BTreeMap<String, ContextConfig>,
}

/// One context of the config file: a server and how its services are deployed.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct ContextConfig {
    url: Option<String>,
    schema: Vec<String>,
    schema_dir: Option<PathBuf>,
    protected: bool,
    read_only: bool,
    timeout: Option<String>,
    deployment: BTreeMap<String, DeploymentConfig>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct DeploymentConfig {
    prefix: Option<String>,
    lock_ttl: Option<String>,
    result_ttl: Option<String>,
}

/// What flags, variables and config file come to.
#[derive(Debug, Clone)]
pub struct Settings {
    environment: Environment,
    target: Target,
    named: bool,
    sandbox: bool,
    askpass: bool,
    context_name: Option<String>,
    context: ContextConfig,
}

impl Settings {
    /// Puts together flags, variables and the config file.
    ///
    /// # Errors
    /// Usage: a URL or config file that cannot be read, an unknown context, a user without a password.
    pub fn resolve(args: &ConnectionArgs, environment: Environment) -> Result<Self, Stop> {
        let (context_name, context) = context(args, &environment)?;
        let configured = context.timeout.as_deref().map(|text| duration("timeout", text)).transpose()?;
        let timeout = args.timeout.or(configured).unwrap_or(DEFAULT_TIMEOUT);
        if timeout.is_zero() {
            return Err(Stop::usage("--timeout is longer than zero"));
        }
        let (target, named) = target(args, &environment, &context, timeout)?;
        Ok(Self { environment, target, named, sandbox: args.sandbox, askpass: args.askpass, context_name, context })
    }

    /// The server.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// True when the server was named anywhere, and is not the default.
    pub fn names_a_server(&self) -> bool {
        self.named
    }

    /// True when a throw-away server is wanted.
    pub fn wants_sandbox(&self) -> bool {
        self.sandbox
    }

    /// True when the password is to be asked for.
    pub fn asks_password(&self) -> bool {
        self.askpass
    }

    /// Sets the password that was asked for.
    pub fn set_password(&mut self, password: String) {
        self.target.password = Some(password);
    }

    /// Works on this server from here on: the throw-away one, which needs no protection.
    pub fn set_target(&mut self, target: Target) {
        self.target = target;
        self.askpass = false;
        self.context_name = None;
        self.context.protected = false;
        self.context.read_only = false;
    }

    /// What the environment says.
    pub fn environment(&self) -> &Environment {
        &self.environment
    }

    /// The context's name.
    pub fn context_name(&self) -> Option<&str> {
        self.context_name.as_deref()
    }

    /// True when changes have to be confirmed by typing the context's name.
    pub fn is_protected(&self) -> bool {
        !self.sandbox && self.context.protected
    }

    /// True when nothing may be changed.
    pub fn is_read_only(&self) -> bool {
        !self.sandbox && self.context.read_only
    }

    /// The schemas to work on: the flag's, else the context's; empty means all.
    pub fn schema_names(&self, args: &SchemaArgs) -> Vec<String> {
        if args.schema.is_empty() { self.context.schema.clone() } else { args.schema.clone() }
    }

    /// The folder of the operator's own schemas: the flag's or variable's, which must exist, else the default one
    /// where it does.
    pub fn schema_dir(&self, flag: Option<&Path>) -> Option<PathBuf> {
        let named = flag
            .map(Path::to_owned)
            .or_else(|| self.environment.get("IDEMCTL_SCHEMA_DIR").map(PathBuf::from))
            .or_else(|| self.context.schema_dir.clone());
        let default = || self.environment.folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("schemas"));
        named.or_else(|| default().filter(|folder| folder.is_dir()))
    }

    /// How this deployment differs from a schema's defaults.
    ///
    /// # Errors
    /// A duration in the config file that cannot be read.
    pub fn deployment(&self, schema: &str, args: &SchemaArgs) -> Result<Deployment, Stop> {
        let config = self.context.deployment.get(schema).cloned().unwrap_or_default();
        let ttl = |name, text: Option<&str>| text.map(|text| duration(name, text)).transpose();
        Ok(Deployment {
            prefix: args.prefix.clone().or(config.prefix),
            lock_ttl: args.lock_ttl.or(ttl("lock_ttl", config.lock_ttl.as_deref())?),
            result_ttl: args.result_ttl.or(ttl("result_ttl", config.result_ttl.as_deref())?),
        })
    }

    /// Where backups and the audit log are kept.
    ///
    /// # Errors
    /// When neither `XDG_STATE_HOME` nor `HOME` is set.
    pub fn state_dir(&self) -> Result<PathBuf, Stop> {
        self.environment.folder("XDG_STATE_HOME", ".local/state").ok_or_else(|| {
            Stop::usage("no folder for backups and the audit log: neither XDG_STATE_HOME nor HOME is set")
        })
    }
}

fn context(args: &ConnectionArgs, environment: &Environment) -> Result<(Option<String>, ContextConfig), Stop> {
    let named = args.config.clone().or_else(|| environment.get("IDEMCTL_CONFIG").map(PathBuf::from));
    let default = environment.folder("XDG_CONFIG_HOME", ".config").map(|folder| folder.join("config.toml"));
    let config = match (named, default) {
        (Some(path), _) => read_config(&path)?,
        (None, Some(path)) if path.is_file() => read_config(&path)?,
        _ => Config::default(),
    };
    let wanted = args.context.as_deref().or_else(|| environment.get("IDEMCTL_CONTEXT"));
    let Some(name) = wanted.or(config.default_context.as_deref()).map(str::to_owned) else {
        return Ok((None, ContextConfig::default()));
    };
    match config.context.get(&name) {
        Some(context) => Ok((Some(name), context.clone())),
        None => {
            let known: Vec<_> = config.context.keys().map(String::as_str).collect();
            let known = if known.is_empty() { "the config file has none".to_owned() } else { known.join(", ") };
            Err(Stop::usage(format!("there is no context `{name}`")).hint(format!("contexts: {known}")))
        }
    }
}

fn read_config(path: &Path) -> Result<Config, Stop> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Stop::usage(format!("cannot read the config file {}: {error}", path.display())))?;
    toml::from_str(&text).map_err(|error: toml::de::Error| {
        let line = error.span().map_or(1, |span| text[..span.start].matches('\n').count() + 1);
        Stop::usage(format!("{}:{line}: {}", path.display(), error.message()))
    })
}

/// The server, and whether it was named anywhere.
fn target(
    args: &ConnectionArgs,
    environment: &Environment,
    context: &ContextConfig,
    timeout: Duration,
) -> Result<(Target, bool), Stop> {
    let addressed = args.host.is_some() || args.port.is_some() || args.socket.is_some();
    let from_context = |url: &Option<String>| url.clone().filter(|_| !addressed);
    let url = match &args.url {
        Some(url) => Some(("--url", url.clone())),
        None if addressed => None,
        None if args.context.is_some() && context.url.is_some() => {
            from_context(&context.url).map(|url| ("the context", url))
        }
        None => environment
            .get("IDEMCTL_URL")
            .map(|url| ("IDEMCTL_URL", url.to_owned()))
            .or_else(|| from_context(&context.url).map(|url| ("the context", url)))
            .or_else(|| environment.get("REDIS_URL").map(|url| ("REDIS_URL", url.to_owned()))),
    };
    let named = addressed || url.is_some();
    let mut target = match url {
        Some((from, url)) => Target::parse(&url, timeout).map_err(|why| Stop::usage(format!("{from}: {why}")))?,
        None => Target { address: address(args), db: 0, user: None, password: None, timeout },
    };
    target.db = args.db.unwrap_or(target.db);
    target.user = args.user.clone().or(target.user);
    let flag = args
        .password
        .clone()
        .or_else(|| environment.get("REDISCLI_AUTH").filter(|_| target.password.is_none()).map(str::to_owned));
    target.password = flag.or(target.password);
    if target.user.is_some() && target.password.is_none() && !args.askpass {
        return Err(Stop::usage("--user needs a password: without one Redis ignores the user")
            .hint("give it with -a, --askpass or REDISCLI_AUTH"));
    }
    Ok((target, named))
}

fn address(args: &ConnectionArgs) -> Address {
    match &args.socket {
        Some(path) => Address::Unix(path.clone()),
        None => Address::Tcp(
            args.host.clone().unwrap_or_else(|| DEFAULT_HOST.to_owned()),
            args.port.unwrap_or(DEFAULT_PORT),
        ),
    }
}

fn duration(name: &str, text: &str) -> Result<Duration, Stop> {
    humantime::parse_duration(text).map_err(|error| Stop::usage(format!("config file: {name} = \"{text}\": {error}")))
}
