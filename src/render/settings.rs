//! Settings and contexts as tables and JSON. What is secret does not come here.

use serde_json::{Value, json};

use super::style::Palette;
use super::{escape, table};

/// A setting.
#[derive(Debug, Clone, Copy)]
pub struct Setting<'a> {
    /// Its name in the config file.
    pub name: &'a str,
    /// Its value; `None` is unset.
    pub value: Option<&'a str>,
    /// Where it comes from.
    pub origin: &'a str,
}

/// A context of the config file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Its name.
    pub name: String,
    /// It is the one that is used.
    pub used: bool,
    /// The server, without a password; `None` where the file does not say.
    pub server: Option<String>,
    /// The ACL user.
    pub user: Option<String>,
    /// TLS is spoken.
    pub tls: bool,
    /// The schemas; empty is all.
    pub schemas: Vec<String>,
    /// The name has to be typed before anything is changed.
    pub protected: bool,
    /// Nothing can be changed.
    pub read_only: bool,
    /// The colour of its name.
    pub color: Option<String>,
}

/// Settings as a table, with where each comes from or without.
pub fn settings(palette: Palette, width: Option<usize>, settings: &[Setting<'_>], origin: bool) -> String {
    let heading = ["SETTING", "VALUE", "FROM"];
    let count = if origin { 3 } else { 2 };
    let rows = settings.iter().map(|setting| {
        let cells = [setting.name, setting.value.unwrap_or("-"), setting.origin];
        cells[..count].iter().map(|cell| shown(cell)).collect()
    });
    table::grid(palette, width, 0, &heading[..count], rows.collect())
}

/// Settings as one JSON document.
pub fn settings_document(settings: &[Setting<'_>]) -> String {
    document("settings", settings.iter().map(setting_json).collect())
}

/// Settings as JSON lines.
pub fn settings_lines(settings: &[Setting<'_>]) -> String {
    lines(settings.iter().map(setting_json))
}

/// Contexts as a table; `*` marks the one that is used.
pub fn places(palette: Palette, width: Option<usize>, places: &[Place]) -> String {
    let rows = places.iter().map(|place| {
        let mark = if place.used { "*" } else { "" };
        let schemas = if place.schemas.is_empty() { "all".to_owned() } else { place.schemas.join(", ") };
        vec![mark.to_owned(), shown(&place.name), server(place), shown(&schemas), kept(place)]
    });
    table::grid(palette, width, 0, &["", "NAME", "SERVER", "SCHEMAS", "KEPT"], rows.collect())
}

/// A context, one field a line.
pub fn place(palette: Palette, place: &Place) -> String {
    let schemas = if place.schemas.is_empty() { "all".to_owned() } else { place.schemas.join(", ") };
    let rows = [
        ("Server", server(place)),
        ("User", place.user.as_deref().map_or_else(|| "-".to_owned(), shown)),
        ("Schemas", shown(&schemas)),
        ("Kept", kept(place)),
        ("Colour", place.color.clone().unwrap_or_else(|| "-".to_owned())),
    ];
    let used = if place.used { "  (used)" } else { "" };
    let mut text = format!("{}{used}\n", palette.bold(&shown(&place.name)));
    for (label, value) in rows {
        text.push_str(&format!("  {}  {value}\n", palette.dim(&format!("{label:<7}"))));
    }
    text
}

/// Contexts as one JSON document.
pub fn places_document(places: &[Place]) -> String {
    document("contexts", places.iter().map(place_json).collect())
}

/// Contexts as JSON lines.
pub fn places_lines(places: &[Place]) -> String {
    lines(places.iter().map(place_json))
}

fn server(place: &Place) -> String {
    let server = place.server.as_deref().map_or_else(|| "-".to_owned(), shown);
    if place.tls { format!("{server} (TLS)") } else { server }
}

fn kept(place: &Place) -> String {
    match (place.protected, place.read_only) {
        (_, true) => "read-only".to_owned(),
        (true, false) => "protected".to_owned(),
        (false, false) => "-".to_owned(),
    }
}

fn shown(text: &str) -> String {
    escape::text(text.as_bytes())
}

fn setting_json(setting: &Setting<'_>) -> Value {
    json!({ "name": setting.name, "value": setting.value, "origin": setting.origin })
}

fn place_json(place: &Place) -> Value {
    json!({
        "name": place.name,
        "used": place.used,
        "server": place.server,
        "user": place.user,
        "tls": place.tls,
        "schemas": place.schemas,
        "protected": place.protected,
        "read_only": place.read_only,
        "color": place.color,
    })
}

fn document(name: &str, values: Vec<Value>) -> String {
    let document = json!({ "format": 1, name: values });
    format!("{}\n", escape::json(format!("{document:#}")))
}

fn lines(values: impl Iterator<Item = Value>) -> String {
    values.map(|value| format!("{}\n", escape::json(value.to_string()))).collect()
}
