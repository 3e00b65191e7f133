//! Settings and contexts as tables and JSON, without secrets.

use serde::Serialize;

use super::style::View;
use super::{escape, table};

/// A setting: its name in the config file, its value (`None` if unset), and the origin of the
/// value.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Setting {
    pub name: String,
    pub value: Option<String>,
    pub origin: String,
}

/// A context of the config file, in the order of the JSON fields.
#[derive(Serialize)]
pub struct NamedContext {
    pub name: String,
    /// True for the context that a command would use.
    pub used: bool,
    /// The server, without a password; `None` if the file does not set it.
    pub server: Option<String>,
    pub user: Option<String>,
    pub tls: bool,
    /// The names of schemas; empty for all schemas.
    pub schemas: Vec<String>,
    /// True if the operator must type the name before a change.
    pub protected: bool,
    pub read_only: bool,
    pub color: Option<String>,
    /// The TTLs of the deployment, each as `express: lock 1m 30s`.
    #[serde(skip)]
    pub ttls: Vec<String>,
}

/// The table of settings, with their origins if `origin` is true.
pub fn settings(settings: &[Setting], origin: bool, view: View) -> String {
    let heading = ["SETTING", "VALUE", "FROM"];
    let count = if origin { 3 } else { 2 };
    let rows = settings.iter().map(|setting| {
        let value = setting.value.as_deref().unwrap_or("-");
        let cells = [&setting.name, value, &setting.origin];
        cells[..count].iter().map(|cell| shown(cell)).collect()
    });
    table::grid(view, 0, &heading[..count], rows)
}

/// The table of contexts.
pub fn contexts(contexts: &[NamedContext], view: View) -> String {
    let rows = contexts.iter().map(|context| {
        let mark = if context.used { "*" } else { "" };
        vec![
            mark.to_owned(),
            shown(&context.name),
            server(context),
            schemas(context),
            kept(context),
        ]
    });
    table::grid(view, 0, &["", "NAME", "SERVER", "SCHEMAS", "PROTECTION"], rows)
}

/// The page of one context.
pub fn context(context: &NamedContext, view: View) -> String {
    let mut rows = vec![
        ("Server", server(context)),
        ("User", shown(context.user.as_deref().unwrap_or("-"))),
        ("Schemas", schemas(context)),
        ("Protection", kept(context)),
        ("Color", context.color.clone().unwrap_or_else(|| "-".to_owned())),
    ];
    for ttl in &context.ttls {
        rows.push(("TTL", shown(ttl)));
    }
    let used = if context.used { "  (used)" } else { "" };
    let mut text = format!("{}{used}\n", view.palette.bold(&shown(&context.name)));
    for (label, value) in rows {
        text.push_str(&format!("  {}  {value}\n", view.palette.dim(&format!("{label:<10}"))));
    }
    text
}

fn schemas(context: &NamedContext) -> String {
    if context.schemas.is_empty() { "all".to_owned() } else { shown(&context.schemas.join(", ")) }
}

fn server(context: &NamedContext) -> String {
    let server = shown(context.server.as_deref().unwrap_or("-"));
    if context.tls { format!("{server} (TLS)") } else { server }
}

fn kept(context: &NamedContext) -> String {
    match (context.protected, context.read_only) {
        // Read-only is the stronger protection, so it stands for both.
        (_, true) => "read-only".to_owned(),
        (true, false) => "protected".to_owned(),
        (false, false) => "-".to_owned(),
    }
}

fn shown(text: &str) -> String {
    escape::text(text.as_bytes())
}
