//! Adopting a schema: the config file says that a context's commands read the schema's records, and under which prefix.
//! Everything else in the file stays as it is.

use toml_edit::{Array, DocumentMut, Item, Table, TableLike, value};

use super::config::Config;
use super::edit;
use super::file::ConfigFile;
use crate::exit::Stop;

/// A schema, and what a context has to say for its records to be read.
pub(crate) struct Adoption<'a> {
    pub(crate) schema: &'a str,
    pub(crate) prefix: Option<&'a str>,
    /// The schemas that a context without a list reads, where the schema is read only by name: a list then names them all.
    pub(crate) beside: Option<&'a [String]>,
    /// True when a context without a list reads the schema as soon as there is one of its name.
    pub(crate) is_read_unasked: bool,
}

/// Writes what is missing; gives the lines that were written, none where the context says all of it.
///
/// # Errors
/// Usage: there is no such context, the context states another prefix, or the file cannot be written.
pub(crate) fn adopt(file: &ConfigFile, context: &str, adoption: &Adoption<'_>) -> Result<Vec<String>, Stop> {
    let config = file.context(context)?;
    let path = file.path().ok_or_else(|| Stop::usage("there is no config file"))?;
    let stated = config.deployment.get(adoption.schema);
    let is_listed = config.schema.iter().any(|name| name == adoption.schema);
    let listed = match (config.schema.is_empty(), adoption.beside) {
        (false, _) if !is_listed => Some([&config.schema[..], &[adoption.schema.to_owned()]].concat()),
        (true, Some(beside)) => Some(beside.to_vec()),
        _ => None,
    };
    let prefix = match (adoption.prefix, stated.and_then(|stated| stated.prefix.as_deref())) {
        (Some(wanted), Some(there)) if wanted != there => return Err(other_prefix(file, context, adoption, there)),
        (Some(wanted), None) => Some(wanted),
        _ => None,
    };
    let is_named = listed.is_some() || is_listed || stated.is_some() || adoption.is_read_unasked;
    let mut lines = Vec::new();
    let cannot = |why: String| Stop::usage(format!("cannot write the config file {}: {why}", path.display()));
    let mut document: DocumentMut =
        file.text().parse().map_err(|error: toml_edit::TomlError| cannot(error.to_string()))?;
    let of_context = context_of(&mut document, context).ok_or_else(|| cannot(format!("it has no table {context}")))?;
    if let Some(names) = listed {
        lines.push(format!("schema = {names:?}"));
        list(of_context, &names);
    }
    if prefix.is_some() || !is_named {
        let header = format!("[contexts.{context}.deployment.{}]", adoption.schema);
        lines.push(prefix.map_or(header.clone(), |prefix| format!("{header} prefix = {prefix:?}")));
        let deployment = table(of_context, "deployment", true).and_then(|all| table(all, adoption.schema, false));
        let deployment = deployment.ok_or_else(|| cannot(format!("{header} is no table")))?;
        if let Some(prefix) = prefix {
            deployment.insert("prefix", value(prefix));
        }
    }
    if !lines.is_empty() {
        let text = document.to_string();
        // What was written has to say what was meant, or nothing is written.
        toml::from_str::<Config>(&text).map_err(|error| cannot(error.message().to_owned()))?;
        edit::write(path, &text).map_err(|error| cannot(error.to_string()))?;
    }
    Ok(lines)
}

fn other_prefix(file: &ConfigFile, context: &str, adoption: &Adoption<'_>, there: &str) -> Stop {
    let line = file.line_of(&["contexts", context, "deployment", adoption.schema, "prefix"]).unwrap_or(1);
    let at = file.path().map(|path| path.display().to_string()).unwrap_or_default();
    let schema = adoption.schema;
    Stop::usage(format!("context `{context}` states the prefix `{there}` for {schema} ({at}:{line})")).hint(format!(
        "a context has one prefix a schema: change that line, or copy the schema for the other prefix: `idemctl schema new NAME --from {schema}`"
    ))
}

/// The context's table; `context` is the first version's name for `contexts`.
fn context_of<'a>(document: &'a mut DocumentMut, context: &str) -> Option<&'a mut dyn TableLike> {
    let all = if document.contains_key("contexts") { "contexts" } else { "context" };
    document.get_mut(all)?.as_table_like_mut()?.get_mut(context)?.as_table_like_mut()
}

/// The table of a table, made where there is none; `None` where something else has the name.
fn table<'a>(within: &'a mut dyn TableLike, name: &str, is_implicit: bool) -> Option<&'a mut dyn TableLike> {
    if !within.contains_key(name) {
        let mut new = Table::new();
        new.set_implicit(is_implicit);
        within.insert(name, Item::Table(new));
    }
    within.get_mut(name)?.as_table_like_mut()
}

/// Names the schemas; comments among those that were named before stay.
fn list(of_context: &mut dyn TableLike, names: &[String]) {
    match of_context.get_mut("schema").and_then(Item::as_array_mut) {
        Some(listed) => {
            let known: Vec<_> = listed.iter().filter_map(|name| name.as_str().map(str::to_owned)).collect();
            names.iter().filter(|name| !known.contains(name)).for_each(|name| listed.push(name));
        }
        None => _ = of_context.insert("schema", value(names.iter().collect::<Array>())),
    }
}
