//! The effective settings for display, without passwords, each with its source.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::{IncludedAlarm, Ttl};
use super::effective::Settings;
use super::origin::{Origin, Sourced};
use super::tls_settings::TlsSettings;
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
        let mut add = |name: &str, value: Option<String>, origin: Origin| {
            rows.push(ShownSetting { name: name.to_owned(), value, origin: self.in_words(origin) });
        };
        let file = self.file().path().filter(|path| path.is_file());
        add("config", file.map(shown), Origin::Default);
        let name = self.server_context.name.as_ref();
        add(
            "context",
            name.map(|name| name.value.clone()),
            name.map_or(Origin::Default, |name| name.origin),
        );
        if self.wants_sandbox() {
            add("server", Some("a temporary local Redis".to_owned()), Origin::Flag("--sandbox"));
        } else {
            add("server", Some(self.shown_address()), server.address.origin);
        }
        add("db", Some(server.db.value.to_string()), server.db.origin);
        add("user", server.user.value.clone(), server.user.origin);
        let asked = self.asks_password().then_some("asked for");
        let password = server.password.value.as_ref().map(|_| "set").or(asked);
        add("password", password.map(str::to_owned), server.password.origin);
        if matches!(server.address.value, Address::Service(_)) {
            let at = &server.sentinel;
            add("sentinel.user", at.user.value.clone(), at.user.origin);
            add(
                "sentinel.password",
                at.password.value.as_ref().map(|_| "set".to_owned()),
                at.password.origin,
            );
        }
        add("timeout", Some(span(server.timeout.value)), server.timeout.origin);
        add(
            "connect_timeout",
            Some(span(server.connect_timeout.value)),
            server.connect_timeout.origin,
        );
        add("tls", Some(server.tls.value.is_some().to_string()), server.tls.origin);
        for (name, value, origin) in server.tls.value.iter().flat_map(of_tls) {
            add(name, value, origin);
        }
        rows.extend(self.of_server_context());
        rows.extend(self.of_deployments());
        rows.extend(self.of_check());
        rows
    }

    /// The settings of the context that the server belongs to.
    fn of_server_context(&self) -> Vec<ShownSetting> {
        let (server_context, context) = (&self.server_context, &self.server_context.context);
        let mut rows = Vec::new();
        let mut add = |name: &str, value: Option<String>, by: Option<&str>, origin: Origin| {
            let origin = match origin {
                Origin::Context(field) => self.place(by.unwrap_or_default(), &[field]),
                origin => self.in_words(origin),
            };
            rows.push(ShownSetting { name: name.to_owned(), value, origin });
        };
        let own = self.context_name();
        let field = |set: bool, name: &'static str| {
            if set { Origin::Context(name) } else { Origin::Default }
        };
        let schemas = Some(context.schema.join(", ")).filter(|names| !names.is_empty());
        add("schema", schemas, own, field(!context.schema.is_empty(), "schema"));
        add("prefix", context.prefix.clone(), own, field(context.prefix.is_some(), "prefix"));
        let folder = self.schema_dir_sourced(None);
        add("schema_dir", folder.value.as_deref().map(shown), own, folder.origin);
        for (name, by) in [
            ("protected", &server_context.protected_by),
            ("read_only", &server_context.read_only_by),
        ] {
            add(name, Some(by.is_some().to_string()), by.as_deref(), field(by.is_some(), name));
        }
        let color = context.color.map(|color| color.as_str().to_owned());
        add("color", color, own, field(context.color.is_some(), "color"));
        rows
    }

    fn of_deployments(&self) -> Vec<ShownSetting> {
        let mut rows = Vec::new();
        let name = self.context_name().unwrap_or_default();
        for (schema, deployment) in &self.server_context.context.deployment {
            let shown = |ttl: Ttl| if ttl.0 == NO_TTL { NONE.to_owned() } else { span(ttl.0) };
            let ttl = |ttl: Option<Ttl>| ttl.map(shown);
            let extra: Vec<_> =
                deployment.extra_fields.iter().map(|pointer| pointer.0.as_str()).collect();
            let extra = extra.join(", ");
            for (field, value) in [
                ("prefix", deployment.prefix.clone()),
                ("lock_ttl", ttl(deployment.lock_ttl)),
                ("result_ttl", ttl(deployment.result_ttl)),
                ("extra_fields", Some(extra).filter(|extra| !extra.is_empty())),
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
    let path = |path: &Sourced<Option<PathBuf>>| (path.value.as_deref().map(shown), path.origin);
    let row = |name, (value, origin)| (name, value, origin);
    [
        row("tls.cacert", path(&tls.cacert)),
        row("tls.cacertdir", path(&tls.cacertdir)),
        row("tls.cert", path(&tls.cert)),
        row("tls.key", path(&tls.key)),
        ("tls.sni", tls.sni.value.clone(), tls.sni.origin),
        ("tls.insecure", Some(tls.insecure.value.to_string()), tls.insecure.origin),
    ]
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn span(span: Duration) -> String {
    humantime::format_duration(span).to_string()
}
