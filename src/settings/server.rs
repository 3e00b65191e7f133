//! The server, the log-in, the timeouts and TLS, each from the nearest source.
//!
//! A context's log-in and TLS settings belong to its server. If another source names the server,
//! none of them is sent there.

use std::sync::Arc;
use std::time::Duration;

use super::config::ContextConfig;
use super::environment::Environment;
use super::login::{self, SentinelLogin};
use super::origin::{Origin, Sourced, pick};
use super::password_command;
use super::tls_settings::TlsSettings;
use super::url::Url;
use crate::args::ConnectionArgs;
use crate::domain::secret::Secret;
use crate::exit::CommandError;
use crate::store::{Address, DEFAULT_CONNECT_TIMEOUT, DEFAULT_TIMEOUT, Sentinels, Target, Tls};

const DEFAULT_HOST: &str = "127.0.0.1";
/// The port on which Redis listens by default.
const DEFAULT_PORT: u16 = 6379;

#[derive(Debug, Clone)]
pub(super) struct Server {
    pub(crate) address: Sourced<Address>,
    pub(crate) db: Sourced<i64>,
    pub(crate) user: Sourced<Option<String>>,
    pub(crate) password: Sourced<Option<Secret>>,
    /// The option or field with the command that prints the password, and the command.
    pub(crate) password_command: Option<(&'static str, String)>,
    pub(crate) sentinel: SentinelLogin,
    pub(crate) timeout: Sourced<Duration>,
    pub(crate) connect_timeout: Sourced<Duration>,
    pub(crate) tls: Sourced<Option<TlsSettings>>,
    pub(crate) address_map: Arc<Vec<(Address, Address)>>,
    /// True if idemctl must refuse a server that is not a cluster node.
    pub(crate) only_cluster: bool,
    pub(crate) warnings: Vec<String>,
}

impl Server {
    /// # Errors
    /// Usage: a URL cannot be read, there is a Redis user without a password, or the TLS settings
    /// are invalid.
    pub(super) fn resolve(
        args: &ConnectionArgs,
        environment: &Environment,
        context: &ContextConfig,
    ) -> Result<Self, CommandError> {
        let url = Url::nearest(args, environment, context)?;
        let named_here = args.host.is_some() || args.port.is_some() || args.socket.is_some();
        let is_of_another = match &url {
            Some(url) => named_here || !url.is_of_context(),
            None => named_here,
        };
        // A context without a server of its own applies to any server that is named.
        let context = if is_of_another && context.url.is_some() {
            &context.for_another_server()
        } else {
            context
        };
        let mut warnings = Vec::new();
        let password = login::password(args, environment, context, url.as_ref(), &mut warnings)?;
        let user = login::user(args, context, url.as_ref());
        let command = match password.origin {
            Origin::Flag(name) => args.password_command.clone().map(|command| (name, command)),
            Origin::Context(name) if password.value.is_none() => {
                context.password_command.clone().map(|command| (name, command))
            }
            _ => None,
        };
        if user.value.is_some() && password.origin == Origin::Default {
            return Err(CommandError::usage(
                "a user needs a password: without one Redis ignores the user",
            )
            .hint("give it with --askpass, --pass-file or REDISCLI_AUTH"));
        }
        let sentinel = login::at_sentinels(args, environment, context, &mut warnings)?;
        let address = address(args, url.as_ref());
        let is_service = matches!(address.value, Address::Service(_));
        // The variable and the context may serve other commands, so only the flag is an error.
        if let Origin::Flag(flag) = sentinel.password.origin
            && !is_service
        {
            return Err(CommandError::usage(format!(
                "{flag} is for Sentinels, and none are named"
            ))
            .hint("--sentinel HOST:PORT --master-name NAME, or a redis-sentinel:// URL"));
        }
        let tls = TlsSettings::resolve(&args.tls, context, url.as_ref(), &address.value)?;
        if let Some(tls) = &tls.value {
            warnings.extend(tls.warnings());
        }
        let db = match (&args.db, &url) {
            (Some(db), _) => Sourced::new(*db, Origin::Flag("-n")),
            (None, Some(url)) => Sourced::new(url.target.db, url.origin),
            (None, None) => Sourced::default(0),
        };
        let (timeout, connect_timeout) = timeouts(args, context)?;
        let map = context.address_map.iter();
        let address_map = map.map(|(from, to)| (from.address(), to.address())).collect();
        let only_cluster = args.cluster;
        Ok(Self {
            address,
            db,
            user,
            password,
            password_command: command,
            sentinel,
            timeout,
            connect_timeout,
            tls,
            address_map: Arc::new(address_map),
            only_cluster,
            warnings,
        })
    }

    fn address(&self) -> Address {
        let Address::Service(sentinels) = &self.address.value else {
            return self.address.value.clone();
        };
        let user = self.sentinel.user.value.clone();
        let password =
            self.sentinel.password.value.as_ref().map(|password| password.reveal().to_owned());
        // The log-in is a part of the address, because the Sentinels are asked again after a
        // failover.
        Address::Service(Arc::new(Sentinels { user, password, ..(**sentinels).clone() }))
    }

    pub(super) fn target(&self) -> Target {
        Target {
            db: self.db.value,
            user: self.user.value.clone(),
            password: self.password.value.as_ref().map(|password| password.reveal().to_owned()),
            credentials: self
                .password_command
                .as_ref()
                .map(|(name, command)| password_command::credentials(name, command)),
            timeout: self.timeout.value,
            connect_timeout: self.connect_timeout.value,
            tls: self.tls.value.as_ref().map(|tls| Tls::new(tls.options())),
            only_cluster: self.only_cluster,
            address_map: Arc::clone(&self.address_map),
            ..Target::new(self.address())
        }
    }
}

impl ContextConfig {
    /// The settings of a context that apply to any server. Password and TLS are only for the
    /// context's own server.
    fn for_another_server(&self) -> Self {
        Self { timeout: self.timeout, connect_timeout: self.connect_timeout, ..Self::default() }
    }
}

fn timeouts(
    args: &ConnectionArgs,
    context: &ContextConfig,
) -> Result<(Sourced<Duration>, Sourced<Duration>), CommandError> {
    let timeout = pick(args.timeout, "--timeout", context.timeout, "timeout").or(DEFAULT_TIMEOUT);
    let of_context = context.connect_timeout;
    let connect_timeout =
        pick(args.connect_timeout, "--connect-timeout", of_context, "connect_timeout")
            .or(DEFAULT_CONNECT_TIMEOUT);
    for (name, span) in [("--timeout", timeout.value), ("--connect-timeout", connect_timeout.value)]
    {
        if span.is_zero() {
            return Err(CommandError::usage(format!("{name} is longer than zero")));
        }
    }
    Ok((timeout, connect_timeout))
}

fn address(args: &ConnectionArgs, url: Option<&Url>) -> Sourced<Address> {
    if let Some(path) = &args.socket {
        return Sourced::new(Address::Unix(path.clone()), Origin::Flag("--socket"));
    }
    match url {
        Some(url) => Sourced::new(url.target.address.clone(), url.origin),
        None => {
            let origin = match (&args.host, args.port) {
                (Some(_), _) => Origin::Flag("--host"),
                (None, Some(_)) => Origin::Flag("--port"),
                (None, None) => Origin::Default,
            };
            let host = args.host.clone().unwrap_or_else(|| DEFAULT_HOST.to_owned());
            Sourced::new(Address::Tcp(host, args.port.unwrap_or(DEFAULT_PORT)), origin)
        }
    }
}
