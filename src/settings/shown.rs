//! The effective settings for display, without passwords, each with its source.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::{IncludedAlarm, Ttl};
use super::effective::Settings;
use super::origin::{Origin, Sourced};
use super::tls_settings::TlsSettings;
use crate::domain::duration;
use crate::domain::schema::ttl::{NO_TTL, NONE};
use crate::store::Address;

/// A setting, its value without secrets, and its source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ShownSetting {
    /// The setting's name in the config file, e.g. `tls.cacert`.
    pub(crate) name: String,
    /// The setting's value; `None` if it is unset.
    pub(crate) value: Option<String>,
    pub(crate) origin: String,
}

impl Settings {
    pub(crate) fn rows(&self) -> Vec<ShownSetting> {
        let server = &self.server;
        let mut rows = Vec::new();
        // The default path is shown only if the file exists, because otherwise nothing was read
        // from it.
        let file = self.file().path().filter(|path| path.is_file());
        rows.push(self.row("config", file.map(shown), Origin::Default));
        rows.push(match &self.server_context.name {
            Some(name) => self.row("context", Some(name.value.clone()), name.origin),
            None => self.row("context", None, Origin::Default),
        });
        rows.push(if self.wants_sandbox() {
            let sandbox = "a temporary local Redis".to_owned();
            self.row("server", Some(sandbox), Origin::Flag("--sandbox"))
        } else {
            self.row("server", Some(self.shown_address()), server.address.origin)
        });
        rows.push(self.row("db", Some(server.db.value.to_string()), server.db.origin));
        rows.push(self.row("user", server.user.value.clone(), server.user.origin));
        // The password itself is never printed, only whether there is one.
        let password = if server.password.value.is_some() {
            Some("set".to_owned())
        } else if self.asks_password() {
            Some("asked for".to_owned())
        } else {
            None
        };
        rows.push(self.row("password", password, server.password.origin));
        if matches!(server.address.value, Address::Service(_)) {
            let at = &server.sentinel;
            rows.push(self.row("sentinel.user", at.user.value.clone(), at.user.origin));
            let password = if at.password.value.is_some() { Some("set".to_owned()) } else { None };
            rows.push(self.row("sentinel.password", password, at.password.origin));
        }
        let timeout = span(server.timeout.value);
        rows.push(self.row("timeout", Some(timeout), server.timeout.origin));
        let connect_timeout = span(server.connect_timeout.value);
        let origin = server.connect_timeout.origin;
        rows.push(self.row("connect_timeout", Some(connect_timeout), origin));
        let uses_tls = server.tls.value.is_some();
        rows.push(self.row("tls", Some(uses_tls.to_string()), server.tls.origin));
        if let Some(tls) = &server.tls.value {
            for (name, value, origin) in of_tls(tls) {
                rows.push(self.row(name, value, origin));
            }
        }
        rows.extend(self.of_server_context());
        rows.extend(self.of_deployments());
        rows.extend(self.of_check());
        rows
    }

    fn row(&self, name: &str, value: Option<String>, origin: Origin) -> ShownSetting {
        ShownSetting { name: name.to_owned(), value, origin: self.in_words(origin) }
    }

    /// The settings of the context that the server belongs to.
    fn of_server_context(&self) -> Vec<ShownSetting> {
        let context = &self.server_context.context;
        let own = self.context_name().unwrap_or_default();
        let mut rows = Vec::new();
        let schemas = Some(context.schema.join(", ")).filter(|names| !names.is_empty());
        rows.push(self.field("schema", schemas, own, !context.schema.is_empty()));
        let prefix = context.prefix.clone();
        rows.push(self.field("prefix", prefix, own, context.prefix.is_some()));
        let folder = self.schema_dir_sourced(None);
        let origin = match folder.origin {
            Origin::Context(field) => self.place(own, &[field]),
            origin => self.in_words(origin),
        };
        let folder = folder.value.as_deref().map(shown);
        rows.push(ShownSetting { name: "schema_dir".to_owned(), value: folder, origin });
        // Another context with the same server may be the one that protects it.
        for (name, by) in [
            ("protected", self.server_context.protected_by.as_deref()),
            ("read_only", self.server_context.read_only_by.as_deref()),
        ] {
            let is_set = by.is_some();
            rows.push(self.field(name, Some(is_set.to_string()), by.unwrap_or_default(), is_set));
        }
        let window = context.retry_window.map(|window| span(window.0));
        rows.push(self.field("retry_window", window, own, context.retry_window.is_some()));
        let color = context.color.map(|color| color.as_str().to_owned());
        rows.push(self.field("color", color, own, context.color.is_some()));
        rows
    }

    /// A field that a context may set.
    fn field(
        &self,
        name: &'static str,
        value: Option<String>,
        context: &str,
        is_set: bool,
    ) -> ShownSetting {
        let origin =
            if is_set { self.place(context, &[name]) } else { self.in_words(Origin::Default) };
        ShownSetting { name: name.to_owned(), value, origin }
    }

    fn of_deployments(&self) -> Vec<ShownSetting> {
        let mut rows = Vec::new();
        let name = self.context_name().unwrap_or_default();
        for (schema, deployment) in &self.server_context.context.deployment {
            let extra: Vec<_> =
                deployment.extra_fields.iter().map(|pointer| pointer.0.as_str()).collect();
            let extra = extra.join(", ");
            for (field, value) in [
                ("prefix", deployment.prefix.clone()),
                ("lock_ttl", deployment.lock_ttl.map(ttl)),
                ("result_ttl", deployment.result_ttl.map(ttl)),
                ("extra_fields", Some(extra).filter(|extra| !extra.is_empty())),
                ("retry_window", deployment.retry_window.map(|window| span(window.0))),
            ] {
                if value.is_some() {
                    let origin = self.place(name, &["deployment", schema, field]);
                    rows.push(ShownSetting {
                        name: format!("deployment.{schema}.{field}"),
                        value,
                        origin,
                    });
                }
            }
        }
        rows
    }

    fn of_check(&self) -> Vec<ShownSetting> {
        let mut rows = Vec::new();
        let name = self.context_name().unwrap_or_default();
        let check = self.check();
        let mut include = Vec::new();
        for IncludedAlarm(alarm) in &check.include {
            include.push(format!("{}={}", alarm.code.as_str(), alarm.status.as_str()));
        }
        let include = Some(include.join(", ")).filter(|include| !include.is_empty());
        for (field, value) in
            [("overdue", check.overdue.map(|overdue| span(overdue.0))), ("include", include)]
        {
            if value.is_some() {
                rows.push(ShownSetting {
                    name: format!("check.{field}"),
                    value,
                    origin: self.place(name, &["check", field]),
                });
            }
        }
        rows
    }

    /// The source in words. A field of a context belongs to the chosen context, which determines
    /// how the server is reached.
    fn in_words(&self, origin: Origin) -> String {
        match origin {
            Origin::Flag(name) => name.to_owned(),
            Origin::Variable(name) => format!("${name}"),
            Origin::Context(field) => {
                let chosen = self.chosen().map_or("", |chosen| &chosen.value);
                self.place(chosen, &field.split('.').collect::<Vec<_>>())
            }
            Origin::File(field) => self.at_line(&[field]),
            Origin::Address => "the server's address".to_owned(),
            Origin::Default => "default".to_owned(),
        }
    }

    /// The place of a context's field in the config file.
    fn place(&self, name: &str, field: &[&str]) -> String {
        let keys: Vec<_> = ["contexts", name].into_iter().chain(field.iter().copied()).collect();
        format!("context {name}, {}", self.at_line(&keys))
    }

    pub(super) fn at_line(&self, keys: &[&str]) -> String {
        let path = self.file().path().map(shown).unwrap_or_default();
        match self.file().line_of(keys) {
            Some(line) => format!("{path}:{line}"),
            None => path,
        }
    }
}

fn of_tls(tls: &TlsSettings) -> [(&'static str, Option<String>, Origin); 6] {
    [
        path("tls.cacert", &tls.cacert),
        path("tls.cacertdir", &tls.cacertdir),
        path("tls.cert", &tls.cert),
        path("tls.key", &tls.key),
        ("tls.sni", tls.sni.value.clone(), tls.sni.origin),
        ("tls.insecure", Some(tls.insecure.value.to_string()), tls.insecure.origin),
    ]
}

fn path(
    name: &'static str,
    path: &Sourced<Option<PathBuf>>,
) -> (&'static str, Option<String>, Origin) {
    (name, path.value.as_deref().map(shown), path.origin)
}

/// A TTL as the config file writes it.
fn ttl(ttl: Ttl) -> String {
    if ttl.0 == NO_TTL { NONE.to_owned() } else { span(ttl.0) }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn span(span: Duration) -> String {
    duration::exact(span)
}
