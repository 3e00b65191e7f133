//! Value formats that the templates of `[write]` describe already: their constants tell them apart,
//! and their placeholders say where the fields are.

use serde_json::{Map, Value, json};

use super::closed_fields::escaped;
use super::decoder::Encoding;
use super::location::{At as _, Checked, wrong};
use super::raw::{RawSchema, RawValue, Written};
use super::value_format::{FieldPointers, State};
use super::value_template::Template;
use super::write_format::WriteFormat;
use crate::domain::as_str::as_str;

/// The field of a `[[value]]` that names the template in `[write]` which describes its format.
pub(super) const WRITTEN: &str = "written";

as_str!(Written);

impl Written {
    const ALL: [Self; 3] = [Self::Lock, Self::Result, Self::Failed];

    fn state(self) -> State {
        match self {
            Self::Lock => State::InProgress,
            Self::Result => State::Completed,
            Self::Failed => State::Failed,
        }
    }

    fn template(self, write: &WriteFormat) -> Option<&Template> {
        match self {
            Self::Lock => write.lock_value.as_ref(),
            Self::Result => write.result_value.as_ref(),
            Self::Failed => write.failed_value.as_ref(),
        }
    }
}

/// Completes the formats that name a template of `[write]`, and adds one for each template whose
/// state no `[[value]]` has.
pub(super) fn add_formats(raw: &mut RawSchema) -> Checked<()> {
    for (index, derived) in derive(raw)? {
        let derived: RawValue = match serde_json::from_value(Value::Object(derived)) {
            Ok(derived) => derived,
            Err(error) => return wrong(error.to_string()).at("value"),
        };
        match index {
            Some(index) => fill(&mut raw.value[index], derived),
            None => raw.value.push(derived),
        }
    }
    Ok(())
}

/// Replaces the names of templates in a `schema.toml` by what they stand for, and adds the formats
/// that `[write]` describes alone.
pub(super) fn expand(raw: &RawSchema, document: &mut toml_edit::DocumentMut) -> Checked<()> {
    for (index, derived) in derive(raw)? {
        let values = document.entry("value").or_insert(toml_edit::array());
        let Some(values) = values.as_array_of_tables_mut() else {
            return wrong("write each format as a table [[value]]").at("value");
        };
        let index = match index {
            Some(index) => index,
            None => {
                values.push(toml_edit::Table::new());
                values.len() - 1
            }
        };
        let Some(table) = values.get_mut(index) else { continue };
        table.remove(WRITTEN);
        for (name, value) in derived {
            if !table.contains_key(&name) {
                table.insert(&name, toml_edit::value(in_toml(&value)));
                continue;
            }
            let stated = table.get_mut(&name).and_then(toml_edit::Item::as_table_like_mut);
            if let (Value::Object(members), Some(stated), "fields") =
                (&value, stated, name.as_str())
            {
                add_pointers(stated, members);
            }
        }
    }
    Ok(())
}

/// Adds the pointers of a derived format to those that the file states itself, which stay.
fn add_pointers(stated: &mut dyn toml_edit::TableLike, derived: &Map<String, Value>) {
    for (member, pointer) in derived {
        if !stated.contains_key(member) {
            stated.insert(member, toml_edit::value(in_toml(pointer)));
        }
    }
}

/// A format that a template describes: the index of its `[[value]]`, `None` for one that the file does
/// not have, and the `[[value]]` as JSON.
type DerivedFormat = (Option<usize>, Map<String, Value>);

/// Everything that the templates say about formats, by the index of the `[[value]]`; `None` for one
/// that the file does not have. Each is a `[[value]]` as JSON.
fn derive(raw: &RawSchema) -> Checked<Vec<DerivedFormat>> {
    let mut found = Vec::new();
    let write = raw.write.clone().unwrap_or_default();
    for (index, value) in raw.value.iter().enumerate() {
        let Some(written) = value.written else { continue };
        match Derivation::new(raw, &write, written, Some(value)).derive() {
            Ok(derived) => found.push((Some(index), derived)),
            Err(why) => {
                let name = written.as_str();
                return wrong(format!("`{name}` does not describe the format: {why}"))
                    .at(WRITTEN)
                    .at(index)
                    .at("value");
            }
        }
    }
    let is_stated = |written: Written| {
        raw.value
            .iter()
            .any(|value| value.state == Some(written.state()) || value.written == Some(written))
    };
    for written in Written::ALL {
        let state = written.state();
        // A service may store failures in the format of its results.
        let is_described =
            is_stated(written) || written == Written::Failed && is_stated(Written::Result);
        let keys = &raw.keys;
        let has_key = match written {
            Written::Lock => keys.record.is_some() || keys.lock.is_some(),
            _ => keys.record.is_some() || keys.result.is_some(),
        };
        let has_template = written.template(&write).is_some();
        if is_described || !has_key || !has_template {
            continue;
        }
        match Derivation::new(raw, &write, written, None).derive() {
            Ok(derived) => found.push((None, derived)),
            // The file may describe only some of the states, but then it says which.
            Err(_) if raw.protocol.is_none() && !raw.value.is_empty() => {}
            Err(why) => {
                let name = written.as_str();
                return wrong(format!(
                    "no [[value]] has the state `{}`, and `{name}` does not describe one: {why}",
                    state.as_str()
                ))
                .at(name)
                .at("write");
            }
        }
    }
    Ok(found)
}

/// Adds the fields of a lock that a result keeps at `pointer`. True if the time of the lock is one of
/// them.
fn add_kept_fields(
    fields: &mut Map<String, Value>,
    lock: &Map<String, Value>,
    kept: &str,
    pointer: &str,
) -> bool {
    let mut has_time = false;
    for field in ["owner", "fingerprint", "created_at"] {
        if lock.get(field).and_then(Value::as_str) == Some(kept) {
            fields.insert(field.to_owned(), json!(pointer));
            has_time |= field == "created_at";
        }
    }
    has_time
}

/// Adds to a `[[value]]` what it does not state itself.
fn fill(value: &mut RawValue, derived: RawValue) {
    value.at = value.at.take().or(derived.at);
    value.kind = value.kind.or(derived.kind);
    if value.decode_at.is_empty() {
        value.decode_at = derived.decode_at;
    }
    value.equals = value.equals.take().or(derived.equals);
    if value.fields_are.is_empty() {
        value.fields_are = derived.fields_are;
    }
    value.required = value.required.take().or(derived.required);
    value.optional = value.optional.take().or(derived.optional);
    if value.null.is_empty() {
        value.null = derived.null;
    }
    value.opaque |= derived.opaque;
    value.state = value.state.or(derived.state);
    value.body_encoding = value.body_encoding.or(derived.body_encoding);
    value.timestamp = value.timestamp.or(derived.timestamp);
    let (own, derived) = (std::mem::take(&mut value.fields), derived.fields);
    value.fields = FieldPointers {
        owner: own.owner.or(derived.owner),
        fingerprint: own.fingerprint.or(derived.fingerprint),
        created_at: own.created_at.or(derived.created_at),
        completed_at: own.completed_at.or(derived.completed_at),
        status: own.status.or(derived.status),
        headers: own.headers.or(derived.headers),
        content_type: own.content_type.or(derived.content_type),
        body: own.body.or(derived.body),
        error: own.error.or(derived.error),
        blob: own.blob.or(derived.blob),
    };
}

/// What a template has at a pointer.
#[derive(Debug, Clone, PartialEq)]
enum Leaf {
    /// The same in every value.
    Constant(Value),
    /// Only this placeholder.
    Placeholder(String),
    /// A text with placeholders in it.
    Mixed,
}

/// One template, taken apart.
struct Outline {
    /// What is at each pointer, in the order of the template.
    leaves: Vec<(String, Leaf)>,
    /// Pointers that only some values have.
    optional: Vec<String>,
    /// Fields of a hash that hold JSON.
    json_fields: Vec<String>,
}

impl Outline {
    fn at(&self, pointer: &str) -> Option<&Leaf> {
        let (_, leaf) = self.leaves.iter().find(|(path, _)| path == pointer)?;
        Some(leaf)
    }
}

/// The derivation of a format from its template.
struct Derivation<'a> {
    raw: &'a RawSchema,
    write: &'a WriteFormat,
    written: Written,
    /// The `[[value]]` of the file, if there is one.
    stated: Option<&'a RawValue>,
    is_hash: bool,
}

impl<'a> Derivation<'a> {
    fn new(
        raw: &'a RawSchema,
        write: &'a WriteFormat,
        written: Written,
        stated: Option<&'a RawValue>,
    ) -> Self {
        let is_hash = stated.is_some_and(|value| value.kind == Some(Encoding::Hash));
        Self { raw, write, written, stated, is_hash }
    }

    fn derive(&self) -> Result<Map<String, Value>, String> {
        let Some(template) = self.written.template(self.write) else {
            return Err(format!("[write] has no `{}`", self.written.as_str()));
        };
        let state = self.written.state();
        let name = self.stated.map_or(state.as_str(), |value| value.name.as_str());
        let at = match &self.raw.keys.record {
            Some(_) => None,
            None if state.is_result() => Some("result"),
            None => Some("lock"),
        };
        let text = template.display();
        let own = if text == "{owner}" {
            json!({ "opaque": true, "fields": { "owner": "" } })
        } else if self.is_hash || text.starts_with('{') {
            self.object(template)?
        } else if let Some(text) = template.constant() {
            json!({ "equals": text })
        } else {
            return Err("it is not a JSON object, and differs from value to value".to_owned());
        };
        let common = json!({ "name": name, "at": at, "state": state.as_str() });
        let mut format = Map::new();
        for (name, value) in [common, own].iter().filter_map(Value::as_object).flatten() {
            let is_unsaid = match value {
                Value::Null => true,
                // An empty list of required fields says that there are no others.
                Value::Array(items) => items.is_empty() && name != "required",
                Value::Object(members) => members.is_empty(),
                _ => false,
            };
            if !is_unsaid {
                format.insert(name.clone(), value.clone());
            }
        }
        Ok(format)
    }

    /// A value that is a JSON object or a hash.
    fn object(&self, template: &Template) -> Result<Value, String> {
        let outline = self.outline(template)?;
        let tests = self.tests(&outline);
        let mut required = Vec::new();
        let mut body_encoding = None;
        for (pointer, leaf) in &outline.leaves {
            let field = if self.is_hash { first_name(pointer) } else { pointer.clone() };
            let is_test = tests.contains_key(pointer) || outline.optional.contains(pointer);
            if !is_test && !required.contains(&field) {
                required.push(field);
            }
            match leaf {
                Leaf::Placeholder(word) if word == "body_json" => body_encoding = Some("json"),
                Leaf::Placeholder(word) if word == "body_base64" => body_encoding = Some("base64"),
                _ => {}
            }
        }
        let (fields, unit) = self.fields(&outline)?;
        let mut decode_at = Map::new();
        for field in &outline.json_fields {
            decode_at.insert(field.clone(), json!(["json"]));
        }
        Ok(json!({
            "type": if self.is_hash { Some("hash") } else { None },
            "where": tests,
            "required": required,
            "optional": outline.optional,
            "null": self.nullable(&outline),
            "decode_at": decode_at,
            "fields": fields,
            "timestamp": unit.filter(|unit| *unit != "ms"),
            "body_encoding": body_encoding,
        }))
    }

    /// Takes a template apart, with `response` in its place.
    fn outline(&self, template: &Template) -> Result<Outline, String> {
        let marked = template.marked(self.write.response.as_ref())?;
        let Ok(Value::Object(members)) = serde_json::from_str(&marked) else {
            return Err("it is not a JSON object".to_owned());
        };
        let mut outline =
            Outline { leaves: Vec::new(), optional: Vec::new(), json_fields: Vec::new() };
        for (name, value) in members {
            let pointer = format!("/{}", escaped(&name));
            let is_json = match &value {
                Value::Object(_) | Value::Array(_) => true,
                // `body_text` stands in a hash without the quotes of JSON.
                Value::String(text) => matches!(
                    Template::marked_word(text),
                    Some("body_json" | "headers" | "header_lists")
                ),
                _ => false,
            };
            if self.is_hash && is_json {
                outline.json_fields.push(pointer.clone());
            }
            add_leaves(pointer, value, &mut outline.leaves);
        }
        let sometimes: Vec<String> =
            template.kept_members().map(|pointer| format!("kept:{pointer}")).collect();
        for (pointer, leaf) in &outline.leaves {
            if Template::is_marked(pointer) {
                return Err("a member's name differs from value to value".to_owned());
            }
            if matches!(leaf, Leaf::Placeholder(word) if sometimes.contains(word)) {
                outline.optional.push(pointer.clone());
            }
        }
        Ok(outline)
    }

    /// The constants that tell the format apart: another template has another constant there. If
    /// there are none, all constants that no other template has, so that the format takes no value
    /// of another one for its own.
    fn tests(&self, outline: &Outline) -> Map<String, Value> {
        let mut others = Vec::new();
        for written in Written::ALL {
            if written != self.written
                && let Some(template) = written.template(self.write)
                && let Ok(other) = self.outline(template)
            {
                others.push(other);
            }
        }
        let mut differing = Map::new();
        let mut own = Map::new();
        for (pointer, leaf) in &outline.leaves {
            let Leaf::Constant(constant) = leaf else { continue };
            let is_whole = constant.is_i64() || constant.is_u64();
            if !(is_whole || constant.is_string() || constant.is_boolean()) {
                continue;
            }
            let differs = others.iter().any(|other| match other.at(pointer) {
                Some(Leaf::Constant(others)) => others != constant && !others.is_null(),
                _ => false,
            });
            if differs {
                differing.insert(pointer.clone(), constant.clone());
            }
            if others.iter().all(|other| other.at(pointer) != Some(leaf)) {
                own.insert(pointer.clone(), constant.clone());
            }
        }
        if differing.is_empty() { own } else { differing }
    }

    /// The pointers to the fields, and the unit of the times among them.
    fn fields(
        &self,
        outline: &Outline,
    ) -> Result<(Map<String, Value>, Option<&'static str>), String> {
        let mut fields = Map::new();
        let mut times: Vec<(&str, &'static str)> = Vec::new();
        let lock = self.lock_fields();
        let mut created = None;
        for (pointer, leaf) in &outline.leaves {
            let Leaf::Placeholder(word) = leaf else { continue };
            let field = match word.as_str() {
                "owner" => "owner",
                "fingerprint" => "fingerprint",
                "status" => "status",
                "headers" | "header_lists" => "headers",
                "body" | "body_base64" | "body_json" | "body_text" => "body",
                "content_type" => "content_type",
                "error_text" => "error",
                "body_hex" => {
                    return Err(format!(
                        "a body in hex needs decode_at = {{ \"{pointer}\" = [\"hex\"] }}, and \
                        {{body_text}} in the template, which idemctl then encodes"
                    ));
                }
                word => {
                    if let Some(unit) = unit_of(word) {
                        times.push((pointer, unit));
                    }
                    // What a result keeps of its lock has the same meaning.
                    let kept = word.strip_prefix("kept:");
                    if let (Some(kept), Some((lock, unit))) = (kept, &lock)
                        && add_kept_fields(&mut fields, lock, kept, pointer)
                    {
                        created = *unit;
                    }
                    continue;
                }
            };
            fields.insert(field.to_owned(), json!(pointer));
        }
        let unit = self.add_times(times, created, lock.as_ref(), &mut fields)?;
        Ok((fields, unit))
    }

    /// Adds the times of a lock or a result. In a result, the time where the lock has its own is
    /// that of the lock, if there is another one.
    fn add_times(
        &self,
        mut times: Vec<(&str, &'static str)>,
        created: Option<&'static str>,
        lock: Option<&(Map<String, Value>, Option<&'static str>)>,
        fields: &mut Map<String, Value>,
    ) -> Result<Option<&'static str>, String> {
        let stated = self.stated.map(|value| &value.fields);
        if let Some(stated) = stated {
            for pointer in [&stated.created_at, &stated.completed_at].into_iter().flatten() {
                let unit = times.iter().find(|(path, _)| path == pointer).map(|(_, unit)| *unit);
                if let Some(unit) = unit {
                    return Ok(Some(unit));
                }
            }
            if stated.created_at.is_some() || stated.completed_at.is_some() {
                return Ok(created);
            }
        }
        let mut unit = created;
        if self.written != Written::Lock && times.len() > 1 {
            let of_lock = lock.and_then(|(fields, _)| fields.get("created_at")?.as_str());
            if let Some(index) = times.iter().position(|(path, _)| Some(*path) == of_lock) {
                let (pointer, of_created) = times.remove(index);
                fields.insert("created_at".to_owned(), json!(pointer));
                unit = Some(of_created);
            }
        }
        // A format has one unit of time.
        times.retain(|(_, of_time)| unit.is_none_or(|unit| unit == *of_time));
        match times.as_slice() {
            [] => Ok(unit),
            [(pointer, of_time)] => {
                let is_lock = self.written == Written::Lock;
                let field = if is_lock { "created_at" } else { "completed_at" };
                fields.insert(field.to_owned(), json!(pointer));
                Ok(Some(of_time))
            }
            _ => {
                Err("it has several times; write a [[value]] with this `written`, and say in its \
                `fields` which is `created_at` or `completed_at`"
                    .to_owned())
            }
        }
    }

    /// The fields of locks and the unit of their times, to know them again in a result.
    fn lock_fields(&self) -> Option<(Map<String, Value>, Option<&'static str>)> {
        if self.written == Written::Lock {
            return None;
        }
        let locks = self.raw.value.iter().filter(|value| {
            value.state == Some(State::InProgress) || value.written == Some(Written::Lock)
        });
        let stated = locks.clone().next();
        let lock = Derivation::new(self.raw, self.write, Written::Lock, stated);
        let mut fields = Map::new();
        let mut unit = None;
        if let Some(template) = &self.write.lock_value
            && let Ok(outline) = lock.outline(template)
            && let Ok(found) = lock.fields(&outline)
        {
            (fields, unit) = found;
        }
        for (name, pointer) in stated.iter().flat_map(|value| value.fields.pointers()) {
            fields.insert(name.to_owned(), json!(pointer));
        }
        Some((fields, unit))
    }

    /// The pointers that may have null.
    fn nullable(&self, outline: &Outline) -> Vec<String> {
        let mut null = Vec::new();
        // A hash has only texts.
        if self.is_hash {
            return null;
        }
        for (pointer, leaf) in &outline.leaves {
            let is_nullable = match leaf {
                Leaf::Constant(constant) => constant.is_null(),
                Leaf::Placeholder(word) => match word.as_str() {
                    "body_json" | "error_text" | "content_type" => true,
                    "body_text" => self.write.no_body.as_deref() == Some("null"),
                    word => word.starts_with("kept:"),
                },
                Leaf::Mixed => false,
            };
            if is_nullable {
                null.push(pointer.clone());
            }
        }
        null
    }
}

/// The unit of a placeholder for the present time.
fn unit_of(word: &str) -> Option<&'static str> {
    match word {
        "now" | "now_ms" => Some("ms"),
        "now_s" => Some("s"),
        "now_rfc3339" | "now_isoformat" => Some("rfc3339"),
        "now_ticks" => Some("ticks"),
        _ => None,
    }
}

fn add_leaves(pointer: String, value: Value, leaves: &mut Vec<(String, Leaf)>) {
    match value {
        Value::Object(members) if !members.is_empty() => {
            for (name, value) in members {
                add_leaves(format!("{pointer}/{}", escaped(&name)), value, leaves);
            }
        }
        Value::String(text) => {
            let leaf = match Template::marked_word(&text) {
                Some(word) => Leaf::Placeholder(word.to_owned()),
                None if Template::is_marked(&text) => Leaf::Mixed,
                None => Leaf::Constant(Value::String(text)),
            };
            leaves.push((pointer, leaf));
        }
        other => leaves.push((pointer, Leaf::Constant(other))),
    }
}

/// The pointer to the first member of a pointer.
fn first_name(pointer: &str) -> String {
    let name = pointer.trim_start_matches('/').split('/').next().unwrap_or_default();
    format!("/{name}")
}

/// A value as TOML in one line.
fn in_toml(value: &Value) -> toml_edit::Value {
    match value {
        Value::Bool(flag) => (*flag).into(),
        Value::Number(number) => number.as_i64().unwrap_or_default().into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let items: toml_edit::Array = items.iter().map(in_toml).collect();
            items.into()
        }
        Value::Object(members) => {
            let mut table = toml_edit::InlineTable::new();
            for (name, value) in members {
                table.insert(name, in_toml(value));
            }
            table.into()
        }
        Value::Null => "".into(),
    }
}
