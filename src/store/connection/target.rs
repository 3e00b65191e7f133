//! The server to connect to, and its name in messages, which never contains its password.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use redis::{ConnectionAddr, IntoConnectionInfo as _};

use super::client_options::ClientOptions;
use super::credentials::Credentials;
use super::sentinels::Sentinels;
use super::tls::{Tls, TlsOptions};
use super::trace::Trace;

/// What is wrong with a URL that [`Target::parse`] does not read. It does not repeat the URL, which
/// may contain a password.
pub const NO_URL: &str = "not a Redis URL: write redis://USER:PASSWORD@HOST:PORT/DB, rediss://… \
    for TLS, unix:///PATH?db=DB or redis-sentinel://HOST:PORT,HOST:PORT/SERVICE/DB, and %-escape \
    special characters in the password";

/// The connect timeout if the operator sets none.
pub const DEFAULT_CONNECT_TIMEOUT: Duration = Duration::from_secs(2);

/// The reply timeout if the operator sets none. After it, idemctl does not know the outcome of a
/// change until it has read the record back, so the timeout is not short.
pub const DEFAULT_TIMEOUT: Duration = Duration::from_secs(5);

/// A server, a database on it, and the log-in.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    pub address: Address,
    pub db: i64,
    /// The ACL user; `None` is the default user.
    pub user: Option<String>,
    pub password: Option<String>,
    /// The log-ins of a program, instead of the password.
    pub credentials: Option<Credentials>,
    /// How long to wait for a reply.
    pub timeout: Duration,
    /// How long to wait for a connection. The TLS handshake may take the same time again.
    pub connect_timeout: Duration,
    /// The TLS settings; `None` for a connection without TLS.
    pub tls: Option<Tls>,
    /// True if idemctl must refuse a server that is not a cluster node.
    pub only_cluster: bool,
    /// The Sentinels that named this server as the master, and may name another one later.
    pub sentinels: Option<Arc<Sentinels>>,
    /// The optional requests that this server refuses, shared by all its connections.
    pub client_options: ClientOptions,
    /// Where sockets are opened instead of at these addresses, such as those that the nodes of a
    /// cluster announce. Nothing else uses it.
    pub address_map: Arc<Vec<(Address, Address)>>,
    /// The receiver of a report on each command.
    pub trace: Option<Trace>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    Tcp(String, u16),
    Unix(PathBuf),
    /// A service whose Sentinels must be asked for its master before anything else.
    Service(Arc<Sentinels>),
}

impl Target {
    /// A server without log-in and TLS, with the default timeouts.
    pub fn new(address: Address) -> Self {
        Self {
            address,
            db: 0,
            user: None,
            password: None,
            credentials: None,
            timeout: DEFAULT_TIMEOUT,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            tls: None,
            only_cluster: false,
            sentinels: None,
            client_options: ClientOptions::default(),
            address_map: Arc::default(),
            trace: None,
        }
    }

    /// Parses `redis://[user[:password]@]host[:port][/db]` or `redis://…[?db=n]`,
    /// `rediss://…[#insecure]` (TLS), `unix:///path[?db=n]`, or `redis-sentinel://` and
    /// `rediss-sentinel://` with a service's Sentinels. `None` for any other text.
    pub fn parse(url: &str) -> Option<Self> {
        if let Some(rest) = url.strip_prefix("redis-sentinel://") {
            return Self::of_service(rest);
        }
        if let Some(rest) = url.strip_prefix("rediss-sentinel://") {
            let tls = Some(Tls::new(TlsOptions::default()));
            return Some(Self { tls, ..Self::of_service(rest)? });
        }
        let mut parsed = redis::parse_redis_url(url)?;
        let has_tls = matches!(parsed.scheme(), "rediss" | "valkeys");
        let insecure = match parsed.fragment() {
            None => false,
            Some("insecure") if has_tls => true,
            Some(_) => return None,
        };
        parsed.set_fragment(None);
        let is_socket = parsed.scheme().ends_with("unix");
        let db = database(is_socket, &parsed)?;
        if !is_socket {
            parsed.set_query(None);
        }
        // The crate parses only the address and the log-in; idemctl handles TLS itself.
        let plain = match parsed.as_str().split_once(':') {
            Some((_, rest)) if has_tls => format!("redis:{rest}"),
            _ => parsed.to_string(),
        };
        let info = plain.into_connection_info().ok()?;
        let address = match info.addr() {
            ConnectionAddr::Tcp(host, port) => Address::Tcp(host.clone(), *port),
            ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
            _ => return None,
        };
        let redis = info.redis_settings();
        // A URL such as `redis://:password@host` names no user.
        let user = redis.username().filter(|user| !user.is_empty());
        let tls = has_tls.then(|| Tls::new(TlsOptions { insecure, ..TlsOptions::default() }));
        Some(Self {
            db: db.unwrap_or(redis.db()),
            user: user.map(str::to_owned),
            password: redis.password().map(str::to_owned),
            tls,
            ..Self::new(address)
        })
    }

    /// Parses a service whose Sentinels name the master,
    /// `[user[:password]@]host:port,host:port/service[/db]`. The log-in is that of the servers.
    fn of_service(rest: &str) -> Option<Self> {
        let (log_in, hosts) = rest.rsplit_once('@').unwrap_or(("", rest));
        let sentinels = Sentinels::parse(hosts)?;
        let mut service = sentinels.service.clone();
        let mut db = 0;
        if let Some((name, number)) = sentinels.service.split_once('/') {
            db = number.parse().ok()?;
            service = name.to_owned();
        }
        if service.contains('?') {
            return None;
        }
        // Let the crate parse the log-in, because it knows the syntax.
        let at = if log_in.is_empty() { String::new() } else { format!("{log_in}@") };
        let like = Self::parse(&format!("redis://{at}127.0.0.1"))?;
        Some(Self {
            address: Address::Service(Arc::new(Sentinels { service, ..sentinels })),
            db,
            ..like
        })
    }

    /// True if the connection uses TLS.
    pub fn is_tls(&self) -> bool {
        self.tls.is_some()
    }
}

/// The database in a URL's query. The crate reads it, and the log-in, only from the URL of a Unix
/// socket. `None` for an unknown parameter, which may name another database, for a repeated one, and
/// for another database than that of the path.
fn database(is_socket: bool, url: &url::Url) -> Option<Option<i64>> {
    let known: &[&str] = if is_socket { &["db", "user", "pass"] } else { &["db"] };
    let mut db = None;
    let mut seen = Vec::new();
    for (name, value) in url.query_pairs() {
        if !known.contains(&name.as_ref()) || seen.contains(&name) {
            return None;
        }
        if name == "db" {
            db = Some(value.parse::<i64>().ok().filter(|number| *number >= 0)?);
        }
        seen.push(name);
    }
    let in_path = url.path().trim_matches('/');
    if let Some(db) = db
        && !is_socket
        && !in_path.is_empty()
        && in_path.parse() != Ok(db)
    {
        return None;
    }
    Some(db)
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}"),
            Self::Tcp(host, port) => write!(f, "{host}:{port}"),
            Self::Unix(path) => write!(f, "{}", path.display()),
            Self::Service(sentinels) => write!(f, "{sentinels}"),
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.address, self.db)
    }
}

impl fmt::Debug for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Target({self})")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_shown_without_its_password() {
        let target = Target::parse("redis://ops:s3cret@cache.example:7000/3").unwrap();
        assert_eq!(target.to_string(), "cache.example:7000/3");
        assert!(!format!("{target:?}").contains("s3cret"));
        assert_eq!(target.user.as_deref(), Some("ops"));
    }

    #[test]
    fn a_url_names_one_database_and_nothing_that_is_not_understood() {
        for (url, db) in [
            ("redis://h:7000?db=5", 5),
            ("rediss://:pw@h/?db=5", 5),
            ("redis://h/5?db=5", 5),
            ("redis://h/3", 3),
            ("redis://h/?", 0),
            ("unix:///s?db=5&user=ops&pass=pw", 5),
            ("redis-sentinel://:pw@h:1/pay/5", 5),
        ] {
            assert_eq!(Target::parse(url).map(|target| target.db), Some(db), "{url}");
        }
        for url in [
            "redis://:s3cret@host/notanumber",
            "redis://:s3cret@host/0#insecure",
            "rediss://:s3cret@host#s3cret",
            "redis://h/0?db=5",
            "redis://h?db=",
            "redis://h?db=-1",
            "redis://h?db=1&db=2",
            "redis://h?DB=5",
            "redis://h?ssl=true",
            "redis://h?password=s3cret",
            "redis://h?protocol=resp3",
            "unix:///s?database=5",
            "unix:///s?db=1&db=2",
            "unix:///s?db=x",
            "redis-sentinel://h:1/pay?db=5",
        ] {
            assert!(Target::parse(url).is_none(), "{url}");
        }
    }

    #[test]
    fn a_url_says_whether_tls_is_spoken() {
        let of = |url: &str| Target::parse(url).unwrap();
        assert!(
            !of("redis://host").is_tls()
                && !of("valkey://host").is_tls()
                && !of("unix:///s").is_tls()
        );
        for url in ["rediss://ops:pw@[::1]:6390/2", "valkeys://ops:pw@[::1]:6390/2#insecure"] {
            let target = of(url);
            assert_eq!(target.to_string(), "[::1]:6390/2");
            assert_eq!(target.tls.unwrap().options().insecure, url.ends_with("#insecure"));
            assert_eq!(target.password.as_deref(), Some("pw"));
        }
    }
}
