//! The server to connect to, and its name in messages, which never contains its password.

use std::fmt;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::client_options::ClientOptions;
use super::sentinels::Sentinels;
use super::tls::{Tls, TlsOptions};
use super::trace::Trace;

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
            timeout: DEFAULT_TIMEOUT,
            connect_timeout: DEFAULT_CONNECT_TIMEOUT,
            tls: None,
            only_cluster: false,
            sentinels: None,
            client_options: ClientOptions::default(),
            trace: None,
        }
    }

    /// Parses `redis://[user[:password]@]host[:port][/db]` or `redis://…[?db=n]`,
    /// `rediss://…[#insecure]` (TLS), `unix:///path[?db=n]`, or `redis-sentinel://` and
    /// `rediss-sentinel://` with a service's Sentinels.
    ///
    /// # Errors
    /// The URL is invalid. The message does not repeat the URL, because it may contain a password.
    pub fn parse(url: &str) -> Result<Self, String> {
        if let Some(rest) = url.strip_prefix("redis-sentinel://") {
            return Self::of_service(rest);
        }
        if let Some(rest) = url.strip_prefix("rediss-sentinel://") {
            return Ok(Self {
                tls: Some(Tls::new(TlsOptions::default())),
                ..Self::of_service(rest)?
            });
        }
        let mut parsed = redis::parse_redis_url(url).ok_or(
            "the URL is not a Redis URL: write redis://host:6379/0, rediss://host:6379/0 for TLS \
            or unix:///path/to/socket",
        )?;
        let insecure = match parsed.fragment() {
            None => false,
            Some("insecure") => true,
            Some(_) => return Err("after # a URL may only say insecure".to_owned()),
        };
        parsed.set_fragment(None);
        let is_socket = parsed.scheme().ends_with("unix");
        let db = query::database(is_socket, parsed.path(), parsed.query_pairs())?;
        if !is_socket {
            parsed.set_query(None);
        }
        let tls = match parsed.scheme() {
            "rediss" | "valkeys" => {
                Some(Tls::new(TlsOptions { insecure, ..TlsOptions::default() }))
            }
            _ if insecure => return Err("#insecure is for TLS: rediss://".to_owned()),
            _ => None,
        };
        // The crate parses only the address and the log-in; idemctl handles TLS itself.
        let plain = match parsed.as_str().split_once(':') {
            Some((_, rest)) if tls.is_some() => format!("redis:{rest}"),
            _ => parsed.to_string(),
        };
        let info = <url_info::ConnectionInfo as url_info::FromUrl>::from_url(&plain)?;
        Ok(Self {
            db: db.unwrap_or(info.db),
            user: info.user,
            password: info.password,
            tls,
            ..Self::new(info.address)
        })
    }

    /// Parses a service whose Sentinels name the master,
    /// `[user[:password]@]host:port,host:port/service[/db]`. The log-in is that of the servers.
    fn of_service(rest: &str) -> Result<Self, String> {
        let (log_in, hosts) = rest.rsplit_once('@').unwrap_or(("", rest));
        let sentinels = Sentinels::parse(hosts)?;
        if sentinels.service.contains('?') {
            return Err(
                "a URL of Sentinels has nothing behind ?: the database stands behind the service"
                    .to_owned(),
            );
        }
        let mut service = sentinels.service.clone();
        let mut db = 0;
        if let Some((name, number)) = sentinels.service.split_once('/') {
            db = number
                .parse()
                .map_err(|_| "behind the service stands a database's number".to_owned())?;
            service = name.to_owned();
        }
        // Let the crate parse the log-in, because it knows the syntax.
        let at = if log_in.is_empty() { String::new() } else { format!("{log_in}@") };
        let like = Self::parse(&format!("redis://{at}127.0.0.1"))?;
        Ok(Self {
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

mod query {
    //! Parses the query of a URL. Unknown parameters are rejected, because one of them may name
    //! another database.

    use std::borrow::Cow;

    /// The database that a URL's query names. The crate reads it, and the log-in, only from the URL
    /// of a Unix socket.
    ///
    /// # Errors
    /// The query is invalid. The message does not repeat it, because it may contain a password.
    pub(super) fn database<'a>(
        is_socket: bool,
        path: &str,
        query: impl Iterator<Item = (Cow<'a, str>, Cow<'a, str>)>,
    ) -> Result<Option<i64>, String> {
        let known: &[&str] = if is_socket { &["db", "user", "pass"] } else { &["db"] };
        let mut db = None;
        let mut seen = Vec::new();
        for (name, value) in query {
            if !known.contains(&name.as_ref()) || seen.contains(&name) {
                return Err(format!(
                    "after ? this URL may only say {}, each once",
                    known.join(", ")
                ));
            }
            if name == "db" {
                match value.parse::<i64>() {
                    Ok(number) if number >= 0 => db = Some(number),
                    _ => return Err("after ?db= stands a database's number".to_owned()),
                }
            }
            seen.push(name);
        }
        let in_path = path.trim_matches('/');
        if let Some(db) = db
            && !is_socket
            && !in_path.is_empty()
            && in_path.parse() != Ok(db)
        {
            return Err("the URL names two databases, one after / and one after ?db=".to_owned());
        }
        Ok(db)
    }
}

mod url_info {
    //! The crate parses URLs; this module replaces its error messages by idemctl's own.

    use redis::{ConnectionAddr, IntoConnectionInfo as _};

    use super::Address;

    pub(in crate::store) struct ConnectionInfo {
        pub address: Address,
        pub db: i64,
        pub user: Option<String>,
        pub password: Option<String>,
    }

    pub(in crate::store) trait FromUrl: Sized {
        fn from_url(url: &str) -> Result<Self, String>;
    }

    impl FromUrl for ConnectionInfo {
        fn from_url(url: &str) -> Result<Self, String> {
            let info = url.into_connection_info().map_err(|_| {
                "the URL cannot be read: is the database a number, and are special characters in \
                the password %-escaped?"
            })?;
            let address = match info.addr() {
                ConnectionAddr::Tcp(host, port) => Address::Tcp(host.clone(), *port),
                ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
                _ => return Err("this kind of URL is not supported".to_owned()),
            };
            let redis = info.redis_settings();
            // A URL such as `redis://:password@host` names no user.
            let user = match redis.username() {
                Some(user) if !user.is_empty() => Some(user.to_owned()),
                _ => None,
            };
            Ok(Self {
                address,
                db: redis.db(),
                user,
                password: redis.password().map(str::to_owned),
            })
        }
    }
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
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn whatever_is_wrong_with_a_url_its_password_is_not_said(
            scheme in "(redis|rediss|valkey|valkeys|unix|redis\\+unix|redis-sentinel|rediss-sentinel|http|rediss?:)",
            before in "[a-z%@:/?#\\[\\]]{0,4}",
            after in "[a-z0-9%@:/?#&=\\[\\] ]{0,12}",
        ) {
            let url = format!("{scheme}://{before}:s3cret@{after}");
            if let Err(why) = Target::parse(&url) {
                prop_assert!(!why.contains("s3cret"), "{why}");
            }
        }
    }

    #[test]
    fn a_url_is_shown_without_its_password() {
        let target = Target::parse("redis://ops:s3cret@cache.example:7000/3").unwrap();
        assert_eq!(target.to_string(), "cache.example:7000/3");
        assert!(!format!("{target:?}").contains("s3cret"));
        assert_eq!(target.user.as_deref(), Some("ops"));
    }

    #[test]
    fn a_bad_url_is_not_repeated() {
        for url in [
            "redis://:s3cret@host/notanumber",
            "redis://:s3cret@host/0#insecure",
            "rediss://:s3cret@host#s3cret",
        ] {
            let why = Target::parse(url).unwrap_err();
            assert!(!why.contains("s3cret"), "{why}");
        }
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
            assert_eq!(Target::parse(url).map(|target| target.db), Ok(db), "{url}");
        }
        for url in [
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
            let why = Target::parse(url).unwrap_err();
            assert!(!why.contains("s3cret"), "{why}");
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
