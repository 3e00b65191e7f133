//! The content of the config file.

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::value::MapAccessDeserializer;
use serde::de::{self, MapAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::domain::diagnosis::health::Alarm;
use crate::domain::duration::parse_duration;
use crate::domain::schema::ttl::parse_ttl_or_none;
use crate::domain::secret::Secret;
use crate::render::style::NameColor;
use crate::store::{Address, Target, host_and_port};

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Config {
    pub(crate) default_context: Option<String>,
    /// `[contexts.NAME]`.
    pub(crate) contexts: BTreeMap<String, ContextConfig>,
}

/// One context: a server, its connection, and the deployment of its services.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ContextConfig {
    pub(crate) url: Option<String>,
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) password_file: Option<PathBuf>,
    /// A command that prints the password.
    pub(crate) password_command: Option<String>,
    pub(crate) sentinel: SentinelConfig,
    pub(crate) tls: TlsConfig,
    /// Where servers are reached, by the addresses that they announce.
    pub(crate) address_map: BTreeMap<HostPort, HostPort>,
    pub(crate) schema: Vec<String>,
    /// The prefix of the keys of every schema whose templates contain `{prefix}` and whose steps do
    /// not.
    pub(crate) prefix: Option<String>,
    /// A folder with the operator's own schemas.
    pub(crate) schema_dir: Option<PathBuf>,
    #[serde(deserialize_with = "span")]
    pub(crate) timeout: Option<Duration>,
    #[serde(deserialize_with = "span")]
    pub(crate) connect_timeout: Option<Duration>,
    /// The differences between the deployment and each schema's defaults, by schema.
    pub(crate) deployment: BTreeMap<String, DeploymentConfig>,
    /// How long clients or queues may send a request again.
    #[serde(deserialize_with = "span")]
    pub(crate) retry_window: Option<Duration>,
    /// A command that gets the first and the last line of each operation in the audit log.
    pub(crate) audit_command: Option<String>,
    /// False if changes go on where this command fails.
    pub(crate) audit_required: Option<bool>,
    /// The settings for `check`, which its options override.
    pub(crate) check: CheckConfig,
    /// True if the operator must type the context's name before changes.
    pub(crate) protected: bool,
    pub(crate) read_only: bool,
    pub(crate) color: Option<NameColor>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct SentinelConfig {
    pub(crate) user: Option<String>,
    pub(crate) password: Option<Secret>,
    pub(crate) password_file: Option<PathBuf>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DeploymentConfig {
    pub(crate) prefix: Option<String>,
    #[serde(deserialize_with = "ttl")]
    pub(crate) lock_ttl: Option<Duration>,
    #[serde(deserialize_with = "ttl")]
    pub(crate) result_ttl: Option<Duration>,
    /// Pointers to fields that this deployment writes in addition to those of the schema's value
    /// formats.
    pub(crate) extra_fields: Vec<Pointer>,
    /// The same as the context's, for this schema.
    #[serde(deserialize_with = "span")]
    pub(crate) retry_window: Option<Duration>,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct CheckConfig {
    #[serde(deserialize_with = "span")]
    pub(crate) overdue: Option<Duration>,
    /// The same values as `--include`.
    pub(crate) include: Vec<IncludedAlarm>,
}

/// `HOST:PORT`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct HostPort(String, u16);

impl HostPort {
    pub(super) fn address(&self) -> Address {
        Address::Tcp(self.0.clone(), self.1)
    }
}

impl<'de> Deserialize<'de> for HostPort {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        match host_and_port(&text) {
            Some((host, port)) => Ok(Self(host, port)),
            None => Err(de::Error::custom(format!("\"{text}\": write HOST:PORT"))),
        }
    }
}

/// `excess-ttl=CRITICAL`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct IncludedAlarm(pub Alarm);

impl<'de> Deserialize<'de> for IncludedAlarm {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        text.parse().map(Self).map_err(|why| de::Error::custom(format!("\"{text}\": {why}")))
    }
}

/// A JSON pointer to a field.
#[derive(Debug, Clone)]
pub(crate) struct Pointer(pub String);

impl<'de> Deserialize<'de> for Pointer {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        if text.starts_with('/') {
            return Ok(Self(text));
        }
        Err(de::Error::custom(format!(
            "\"{text}\" is not a JSON pointer to a field: write \"/traceId\""
        )))
    }
}

/// `tls = true`, or a table with settings, which also enables TLS.
#[derive(Debug, Clone, Default)]
pub(crate) struct TlsConfig {
    /// Whether TLS is used; `None` if the file does not specify it.
    pub(crate) on: Option<bool>,
    pub(crate) how: TlsTable,
}

#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct TlsTable {
    pub(crate) cacert: Option<PathBuf>,
    /// A folder with files like `cacert`.
    pub(crate) cacertdir: Option<PathBuf>,
    pub(crate) cert: Option<PathBuf>,
    pub(crate) key: Option<PathBuf>,
    pub(crate) insecure: Option<bool>,
    pub(crate) sni: Option<String>,
}

impl<'de> Deserialize<'de> for TlsConfig {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        // An untagged enum would report only that no variant matched, and not the unknown field.
        struct BoolOrTable;

        impl<'de> Visitor<'de> for BoolOrTable {
            type Value = TlsConfig;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(
                    "true, false or a table with cacert, cacertdir, cert, key, insecure, sni",
                )
            }

            fn visit_bool<E: de::Error>(self, on: bool) -> Result<TlsConfig, E> {
                Ok(TlsConfig { on: Some(on), how: TlsTable::default() })
            }

            fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<TlsConfig, A::Error> {
                let how = TlsTable::deserialize(MapAccessDeserializer::new(map))?;
                Ok(TlsConfig { on: Some(true), how })
            }
        }

        deserializer.deserialize_any(BoolOrTable)
    }
}

/// A duration in human-readable form.
fn span<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    parsed(from, |text| match parse_duration(text)? {
        Duration::ZERO => Err("it has to be longer than zero".to_owned()),
        span => Ok(span),
    })
}

/// A TTL, or `none`.
fn ttl<'de, D: Deserializer<'de>>(from: D) -> Result<Option<Duration>, D::Error> {
    parsed(from, parse_ttl_or_none)
}

fn parsed<'de, T, D: Deserializer<'de>>(
    from: D,
    parse: impl Fn(&str) -> Result<T, String>,
) -> Result<Option<T>, D::Error> {
    let text = String::deserialize(from)?;
    match parse(&text) {
        Ok(value) => Ok(Some(value)),
        Err(why) => Err(de::Error::custom(format!("\"{text}\": {why}"))),
    }
}

impl ContextConfig {
    /// The paths in the context. Each may begin with `~` or be relative to the file's folder.
    pub(super) fn paths(&mut self) -> impl Iterator<Item = &mut PathBuf> {
        let how = &mut self.tls.how;
        let sentinel = &mut self.sentinel;
        let paths = [&mut self.password_file, &mut sentinel.password_file, &mut self.schema_dir];
        paths
            .into_iter()
            .chain([&mut how.cacert, &mut how.cacertdir, &mut how.cert, &mut how.key])
            .flatten()
    }

    /// The server without its log-in; `None` if the file has none or it cannot be read.
    pub(crate) fn server(&self) -> Option<String> {
        self.target().map(|target| target.to_string())
    }

    pub(crate) fn user(&self) -> Option<String> {
        self.user.clone().or_else(|| self.target()?.user)
    }

    pub(crate) fn speaks_tls(&self) -> bool {
        if self.tls.on == Some(true) {
            return true;
        }
        match self.target() {
            Some(target) => target.is_tls(),
            None => false,
        }
    }

    fn target(&self) -> Option<Target> {
        Target::parse(self.url.as_deref()?)
    }

    pub(super) fn names_a_program(&self) -> bool {
        self.password_command.is_some() || self.audit_command.is_some()
    }

    pub(super) fn holds_a_password(&self) -> bool {
        if self.password.is_some() || self.sentinel.password.is_some() {
            return true;
        }
        match &self.url {
            Some(url) => has_password(url),
            None => false,
        }
    }
}

/// True if a URL may contain a password.
fn has_password(url: &str) -> bool {
    // The URL is not parsed, because one that idemctl cannot read may contain a password as well.
    let Some((_scheme, rest)) = url.split_once("://") else { return false };
    if rest.contains("pass=") {
        return true;
    }
    let authority = rest.split('/').next().unwrap_or_default();
    match authority.rsplit_once('@') {
        Some((login, _host)) => login.contains(':'),
        None => false,
    }
}
