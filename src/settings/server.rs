//! Which server, who logs in, how long it may take, and TLS: each from the nearest source.
//!
//! What a context says of log-in and TLS belongs to its server: where another source names the server, none of it is
//! sent there.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::config::{ContextConfig, Span};
use super::environment::Environment;
use super::login::{self, SentinelLogin};
use super::origin::{Origin, Sourced, pick};
use crate::args::{ConnectionArgs, TlsArgs};
use crate::domain::secret::Secret;
use crate::exit::Stop;
use crate::store::{Address, DEFAULT_CONNECT_TIMEOUT, DEFAULT_TIMEOUT, Sentinels, Target, Tls, TlsOptions};

const DEFAULT_HOST: &str = "127.0.0.1";
const DEFAULT_PORT: u16 = 6379;

/// The server, setting by setting.
#[derive(Debug, Clone)]
pub(super) struct Server {
    pub address: Sourced<Address>,
    pub db: Sourced<i64>,
    pub user: Sourced<Option<String>>,
    pub password: Sourced<Option<Secret>>,
    pub sentinel: SentinelLogin,
    pub timeout: Sourced<Duration>,
    pub connect_timeout: Sourced<Duration>,
    pub tls: Sourced<Option<TlsSettings>>,
    /// True when only a cluster's node will do.
    pub only_cluster: bool,
    /// What has to be said of it on stderr.
    pub warnings: Vec<String>,
}

/// How TLS is spoken, setting by setting.
#[derive(Debug, Clone)]
pub(super) struct TlsSettings {
    pub cacert: Sourced<Option<PathBuf>>,
    pub cacertdir: Sourced<Option<PathBuf>>,
    pub cert: Sourced<Option<PathBuf>>,
    pub key: Sourced<Option<PathBuf>>,
    pub sni: Sourced<Option<String>>,
    pub insecure: Sourced<bool>,
}

impl Server {
    /// Puts it together.
    ///
    /// # Errors
    /// Usage: a URL that cannot be read, a user without a password, what TLS cannot be made of.
    pub(super) fn resolve(
        args: &ConnectionArgs,
        environment: &Environment,
        context: &ContextConfig,
    ) -> Result<Self, Stop> {
        let url = Url::nearest(args, environment, context)?;
        let named_here = args.host.is_some() || args.port.is_some() || args.socket.is_some();
        // A context without a server of its own says how to reach whichever is named.
        let another = named_here || url.as_ref().is_some_and(|url| !url.is_of_context());
        let context = if another && context.url.is_some() { &context.for_another_server() } else { context };
        let mut warnings = Vec::new();
        let password = login::password(args, environment, context, url.as_ref(), &mut warnings)?;
        let user = login::user(args, context, url.as_ref());
        if user.value.is_some() && password.value.is_none() && !args.askpass {
            return Err(Stop::usage("a user needs a password: without one Redis ignores the user")
                .hint("give it with --askpass, --pass-file or REDISCLI_AUTH"));
        }
        let sentinel = login::at_sentinels(args, environment, context, &mut warnings)?;
        let address = address(args, url.as_ref());
        if let (Origin::Flag(flag), false) = (sentinel.password.origin, matches!(address.value, Address::Service(_))) {
            return Err(Stop::usage(format!("{flag} is for Sentinels, and none are named"))
                .hint("--sentinel HOST:PORT --master-name NAME, or a redis-sentinel:// URL"));
        }
        let tls = tls(&args.tls, context, url.as_ref(), &address.value, &mut warnings)?;
        let db = match (&args.db, &url) {
            (Some(db), _) => Sourced::new(*db, Origin::Flag("-n")),
            (None, Some(url)) => Sourced::new(url.target.db, url.origin),
            (None, None) => Sourced::default(0),
        };
        let span = |span: Option<Span>| span.map(|span| span.0);
        let timeout = pick(args.timeout, "--timeout", span(context.timeout), "timeout").or(DEFAULT_TIMEOUT);
        let connect = pick(args.connect_timeout, "--connect-timeout", span(context.connect_timeout), "connect_timeout");
        let connect_timeout = connect.or(DEFAULT_CONNECT_TIMEOUT);
        for (name, span) in [("--timeout", timeout.value), ("--connect-timeout", connect_timeout.value)] {
            if span.is_zero() {
                return Err(Stop::usage(format!("{name} is longer than zero")));
            }
        }
        let only_cluster = args.cluster;
        Ok(Self { address, db, user, password, sentinel, timeout, connect_timeout, tls, only_cluster, warnings })
    }

    /// Where it is, with the log-in of its Sentinels.
    fn address(&self) -> Address {
        let Address::Service(sentinels) = &self.address.value else { return self.address.value.clone() };
        let user = self.sentinel.user.value.clone();
        let password = self.sentinel.password.value.as_ref().map(|password| password.reveal().to_owned());
        Address::Service(Arc::new(Sentinels { user, password, ..(**sentinels).clone() }))
    }

    /// The same as the store takes it.
    pub(super) fn target(&self) -> Target {
        let options = self.tls.value.as_ref().map(|tls| TlsOptions {
            cacert: tls.cacert.value.clone(),
            cacertdir: tls.cacertdir.value.clone(),
            cert: tls.cert.value.clone(),
            key: tls.key.value.clone(),
            insecure: tls.insecure.value,
            sni: tls.sni.value.clone(),
        });
        Target {
            db: self.db.value,
            user: self.user.value.clone(),
            password: self.password.value.as_ref().map(|password| password.reveal().to_owned()),
            timeout: self.timeout.value,
            connect_timeout: self.connect_timeout.value,
            tls: options.map(Tls::new),
            only_cluster: self.only_cluster,
            ..Target::new(self.address())
        }
    }
}

/// The URL that names the server.
pub(super) struct Url {
    pub target: Target,
    pub origin: Origin,
}

impl Url {
    fn nearest(
        args: &ConnectionArgs,
        environment: &Environment,
        context: &ContextConfig,
    ) -> Result<Option<Self>, Stop> {
        let addressed = args.host.is_some() || args.port.is_some() || args.socket.is_some();
        let of_context = || context.url.clone().map(|url| (url, Origin::Context("url")));
        let of_variable =
            |name: &'static str| environment.get(name).map(|url| (url.to_owned(), Origin::Variable(name)));
        let url = match (&args.url, args.sentinel.as_ref().zip(args.master_name.as_ref())) {
            (Some(url), _) => Some((url.clone(), Origin::Flag("--url"))),
            (None, Some((sentinels, service))) => {
                Some((format!("redis-sentinel://{sentinels}/{service}"), Origin::Flag("--sentinel")))
            }
            _ if addressed => None,
            _ if args.context.is_some() && context.url.is_some() => of_context(),
            _ => of_variable("IDEMCTL_URL").or_else(of_context).or_else(|| of_variable("REDIS_URL")),
        };
        let Some((url, origin)) = url else { return Ok(None) };
        let from = match origin {
            Origin::Flag(name) | Origin::Variable(name) => name,
            _ => "the context's url",
        };
        let target = Target::parse(&url).map_err(|why| Stop::usage(format!("{from}: {why}")))?;
        Ok(Some(Self { target, origin }))
    }

    /// True when the context names it.
    pub(super) fn is_of_context(&self) -> bool {
        matches!(self.origin, Origin::Context(_))
    }
}

impl ContextConfig {
    /// What of a context is meant for whichever server: its password and its TLS are its own server's.
    fn for_another_server(&self) -> Self {
        Self { timeout: self.timeout, connect_timeout: self.connect_timeout, ..Self::default() }
    }
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

fn tls(
    args: &TlsArgs,
    context: &ContextConfig,
    url: Option<&Url>,
    address: &Address,
    warnings: &mut Vec<String>,
) -> Result<Sourced<Option<TlsSettings>>, Stop> {
    let how = &context.tls.how;
    let of_url = url.and_then(|url| Some((url.target.tls.as_ref()?, url.origin)));
    let origin =
        match (args.tls, &of_url, context.tls.on) {
            (true, ..) => Origin::Flag("--tls"),
            (_, Some(_), Some(false)) => {
                return Err(Stop::usage("the context's url says TLS (rediss://), and `tls = false`"));
            }
            (_, Some((_, origin)), _) => *origin,
            (_, None, Some(true)) => Origin::Context("tls"),
            (_, None, on) => {
                return match args.named() {
                    Some(name) => Err(Stop::usage(format!("{name} is for TLS, which nothing asks for"))
                        .hint("--tls, or a rediss:// URL")),
                    None => Ok(Sourced::new(None, on.map_or(Origin::Default, |_| Origin::Context("tls")))),
                };
            }
        };
    if matches!(address, Address::Unix(_)) {
        return Err(Stop::usage("TLS goes over TCP: a unix socket has no use for it"));
    }
    let insecure = match &of_url {
        _ if args.insecure => Sourced::new(true, Origin::Flag("--insecure")),
        Some((tls, origin)) if tls.options().insecure => Sourced::new(true, *origin),
        _ => pick(None, "", how.insecure, "tls.insecure").or(false),
    };
    let tls = TlsSettings {
        cacert: pick(args.cacert.clone(), "--cacert", how.cacert.clone(), "tls.cacert"),
        cacertdir: pick(args.cacertdir.clone(), "--cacertdir", how.cacertdir.clone(), "tls.cacertdir"),
        cert: pick(args.cert.clone(), "--cert", how.cert.clone(), "tls.cert"),
        key: pick(args.key.clone(), "--key", how.key.clone(), "tls.key"),
        sni: pick(args.sni.clone(), "--sni", how.sni.clone(), "tls.sni"),
        insecure,
    };
    if tls.cert.value.is_some() != tls.key.value.is_some() {
        let (has, lacks) = if tls.cert.value.is_some() { ("--cert", "--key") } else { ("--key", "--cert") };
        return Err(Stop::usage(format!(
            "{has} needs {lacks}: a client shows its certificate and proves it with the key"
        )));
    }
    if tls.insecure.value {
        warnings.push(
            "insecure: the server's certificate is not checked; whoever is on the way can read and change everything, \
             the password too"
                .to_owned(),
        );
    }
    if let Some(key) = tls.key.value.as_deref().filter(|key| super::file::others_can_read(key)) {
        warnings.push(format!(
            "{} is a private key and can be read by others: {}",
            key.display(),
            super::file::chmod(key)
        ));
    }
    Ok(Sourced::new(Some(tls), origin))
}
