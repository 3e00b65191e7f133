//! The effective settings for display, without passwords, each with its source.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::config::IncludedAlarm;
use super::effective::Settings;
use super::login::SentinelLogin;
use super::origin::{Origin, Sourced};
use super::server::Server;
use super::tls_settings::TlsSettings;
use crate::domain::duration::exact;
use crate::domain::schema::ttl::{NO_TTL, NONE};
use crate::domain::secret::Secret;
use crate::files;
use crate::render::settings::Setting;
use crate::render::words;
use crate::store::Address;

impl Settings {
    /// Every setting, without secrets.
    pub(crate) fn rows(&self) -> Vec<Setting> {
        let server = &self.server;
        // The default path is shown only if the file exists, because otherwise nothing was read
        // from it.
        let file = self.file().path().filter(|path| path.is_file());
        let context = self.server_context.name.as_ref();
        let mut address = Some(self.shown_address());
        let mut address_origin = server.address.origin;
        if self.wants_sandbox() {
            address = Some("a temporary local Redis".to_owned());
            address_origin = Origin::Flag("--sandbox");
        }
        // A password itself is never printed, only whether there is one.
        let mut password = is_set(&server.password);
        if password.is_none() && self.asks_password() {
            password = Some("asked for".to_owned());
        }
        if server.password_command.is_some() {
            password = Some("from a command".to_owned());
        }
        let mut rows = vec![
            ("config", file.map(shown), Origin::Default),
            (
                "context",
                context.map(|name| name.value.clone()),
                context.map_or(Origin::Default, |name| name.origin),
            ),
            ("server", address, address_origin),
            ("db", Some(server.db.value.to_string()), server.db.origin),
            ("user", server.user.value.clone(), server.user.origin),
            ("password", password, server.password.origin),
        ];
        if matches!(server.address.value, Address::Service(_)) {
            let SentinelLogin { user, password } = &server.sentinel;
            rows.push(("sentinel.user", user.value.clone(), user.origin));
            rows.push(("sentinel.password", is_set(password), password.origin));
        }
        let Server { timeout, connect_timeout, tls, .. } = server;
        rows.push(("timeout", Some(exact(timeout.value)), timeout.origin));
        rows.push(("connect_timeout", Some(exact(connect_timeout.value)), connect_timeout.origin));
        rows.push(("tls", Some(tls.value.is_some().to_string()), tls.origin));
        if let Some(tls) = &tls.value {
            rows.extend(of_tls(tls));
        }
        if !server.address_map.is_empty() {
            let pairs = server.address_map.iter().map(|(from, to)| format!("{from} = {to}"));
            let pairs = pairs.collect::<Vec<_>>().join(", ");
            rows.push(("address_map", Some(pairs), Origin::Context("address_map")));
        }
        if let Ok(folder) = self.state_dir() {
            for name in ["audit", "backups"] {
                let folder = folder.join(name);
                let size = words::bytes(files::size_of_files(&folder));
                rows.push((name, Some(format!("{} ({size})", shown(&folder))), Origin::Default));
            }
        }
        let mut settings = Vec::new();
        for (name, value, origin) in rows {
            settings.push(Setting { name: name.to_owned(), value, origin: self.in_words(origin) });
        }
        settings.extend(self.of_server_context());
        settings.extend(self.of_tables());
        settings
    }

    /// The settings of the context that the server belongs to.
    fn of_server_context(&self) -> Vec<Setting> {
        let context = &self.server_context.context;
        let own = self.context_name().unwrap_or_default();
        let folder = self.schema_dir_sourced(None);
        let place = match folder.origin {
            Origin::Context(field) => self.place(own, &[field]),
            origin => self.in_words(origin),
        };
        let folder = folder.value.as_deref().map(shown);
        let mut rows = vec![
            self.field("schema", not_empty(context.schema.join(", ")), Some(own)),
            self.field("prefix", context.prefix.clone(), Some(own)),
            Setting { name: "schema_dir".to_owned(), value: folder, origin: place },
        ];
        // Another context with the same server may be the one that protects it.
        for (name, by) in [
            ("protected", self.server_context.protected_by.as_deref()),
            ("read_only", self.server_context.read_only_by.as_deref()),
        ] {
            rows.push(self.field(name, Some(by.is_some().to_string()), by));
        }
        if let Some((_, is_required)) = self.audit_command() {
            rows.push(self.field("audit_command", Some("set".to_owned()), Some(own)));
            let by = context.audit_required.map(|_| own);
            rows.push(self.field("audit_required", Some(is_required.to_string()), by));
        }
        let window = context.retry_window.map(exact);
        rows.push(self.field("retry_window", window, Some(own)));
        let color = context.color.map(|color| color.as_str().to_owned());
        rows.push(self.field("color", color, Some(own)));
        rows
    }

    /// A field that this context may set.
    fn field(&self, name: &str, value: Option<String>, context: Option<&str>) -> Setting {
        let origin = match context.filter(|_| value.is_some()) {
            Some(context) => self.place(context, &[name]),
            None => self.in_words(Origin::Default),
        };
        Setting { name: name.to_owned(), value, origin }
    }

    /// The settings in the context's tables for schemas and for `check`, as far as they are set.
    fn of_tables(&self) -> Vec<Setting> {
        let mut fields = Vec::new();
        for (schema, deployment) in &self.server_context.context.deployment {
            let extra = deployment.extra_fields.iter().map(|pointer| pointer.0.as_str());
            let extra = extra.collect::<Vec<_>>().join(", ");
            for (field, value) in [
                ("prefix", deployment.prefix.clone()),
                ("lock_ttl", deployment.lock_ttl.map(ttl)),
                ("result_ttl", deployment.result_ttl.map(ttl)),
                ("extra_fields", not_empty(extra)),
                ("retry_window", deployment.retry_window.map(exact)),
            ] {
                fields.push((vec!["deployment", schema, field], value));
            }
        }
        let check = self.check();
        let mut include = Vec::new();
        for IncludedAlarm(alarm) in &check.include {
            include.push(alarm.text());
        }
        fields.push((vec!["check", "overdue"], check.overdue.map(exact)));
        fields.push((vec!["check", "include"], not_empty(include.join(", "))));
        let context = self.context_name().unwrap_or_default();
        let mut rows = Vec::new();
        for (keys, value) in fields {
            if value.is_some() {
                let origin = self.place(context, &keys);
                rows.push(Setting { name: keys.join("."), value, origin });
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
        let path = self.file().shown_path();
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
fn ttl(ttl: Duration) -> String {
    if ttl == NO_TTL { NONE.to_owned() } else { exact(ttl) }
}

fn shown(path: &Path) -> String {
    path.display().to_string()
}

fn not_empty(text: String) -> Option<String> {
    if text.is_empty() { None } else { Some(text) }
}

fn is_set(password: &Sourced<Option<Secret>>) -> Option<String> {
    password.value.as_ref().map(|_| "set".to_owned())
}
