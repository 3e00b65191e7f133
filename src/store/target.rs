//! Which server is meant, and how it is named to people: never with its password.

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

/// A server, a database on it, and who logs in.
#[derive(Clone, PartialEq, Eq)]
pub struct Target {
    /// Where it listens.
    pub address: Address,
    /// The database number.
    pub db: i64,
    /// The ACL user; `None` is the default user.
    pub user: Option<String>,
    /// The password.
    pub password: Option<String>,
    /// How long connecting, and waiting for a reply, may take.
    pub timeout: Duration,
}

/// Where a server listens.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Host and port.
    Tcp(String, u16),
    /// A unix socket.
    Unix(PathBuf),
}

impl Target {
    /// Parses `redis://[user[:password]@]host[:port][/db]` or `unix:///path[?db=n]`.
    ///
    /// # Errors
    /// What is wrong with it, without repeating the URL, for it may hold a password.
    pub fn parse(url: &str, timeout: Duration) -> Result<Self, String> {
        let parsed = redis::parse_redis_url(url)
            .ok_or("the URL is not a Redis URL: write redis://host:6379/0 or unix:///path/to/socket")?;
        if parsed.scheme() == "rediss" || parsed.scheme() == "valkeys" {
            return Err("TLS (rediss://) is not supported by this version".to_owned());
        }
        let info = <url_info::ConnectionInfo as url_info::FromUrl>::from_url(parsed.as_str())?;
        Ok(Self { address: info.address, db: info.db, user: info.user, password: info.password, timeout })
    }
}

mod url_info {
    //! The crate reads URLs well; its words for what is wrong are turned into ours here.

    use redis::{ConnectionAddr, IntoConnectionInfo as _};

    use super::Address;

    pub(super) struct ConnectionInfo {
        pub address: Address,
        pub db: i64,
        pub user: Option<String>,
        pub password: Option<String>,
    }

    pub(super) trait FromUrl: Sized {
        fn from_url(url: &str) -> Result<Self, String>;
    }

    impl FromUrl for ConnectionInfo {
        fn from_url(url: &str) -> Result<Self, String> {
            let info = url.into_connection_info().map_err(|_| {
                "the URL cannot be read: is the database a number, and are special characters in the password %-escaped?"
            })?;
            let address = match info.addr() {
                ConnectionAddr::Tcp(host, port) => Address::Tcp(host.clone(), *port),
                ConnectionAddr::Unix(path) => Address::Unix(path.clone()),
                _ => return Err("this kind of URL is not supported by this version".to_owned()),
            };
            let redis = info.redis_settings();
            Ok(Self {
                address,
                db: redis.db(),
                user: redis.username().filter(|user| !user.is_empty()).map(str::to_owned),
                password: redis.password().map(str::to_owned),
            })
        }
    }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.address {
            Address::Tcp(host, port) if host.contains(':') => write!(f, "[{host}]:{port}/{}", self.db),
            Address::Tcp(host, port) => write!(f, "{host}:{port}/{}", self.db),
            Address::Unix(path) => write!(f, "{}/{}", path.display(), self.db),
        }
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
        let target = Target::parse("redis://ops:s3cret@cache.example:7000/3", Duration::from_secs(1)).unwrap();
        assert_eq!(target.to_string(), "cache.example:7000/3");
        assert!(!format!("{target:?}").contains("s3cret"));
        assert_eq!(target.user.as_deref(), Some("ops"));
    }

    #[test]
    fn a_bad_url_is_not_repeated() {
        let why = Target::parse("redis://:s3cret@host/notanumber", Duration::from_secs(1)).unwrap_err();
        assert!(!why.contains("s3cret"));
    }
}
