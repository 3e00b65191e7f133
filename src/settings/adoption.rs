//! Adopts a schema: adds to a context in the config file that its commands read the schema's
//! records, and with which prefix. The rest of the file remains unchanged.

use std::path::PathBuf;

use toml_edit::{Array, Item, TableLike, value};

use super::edit::{ConfigLock, Edit, table};
use super::file::ConfigFile;
use crate::exit::CommandError;

/// A schema, and the settings that a context needs to read its records.
pub(crate) struct Adoption<'a> {
    pub(crate) schema: &'a str,
    pub(crate) prefix: Option<&'a str>,
    /// True if a context without a list reads the schema as soon as it exists.
    pub(crate) is_read_unasked: bool,
}

/// A change of the config file that has not been written yet.
pub(crate) struct Adopted<'a> {
    file: &'a ConfigFile,
    edit: Edit<'a>,
    /// The lines to add; none if the context already has all of them.
    pub(crate) lines: Vec<String>,
}

impl Adopted<'_> {
    /// Writes the change and returns the path of the previous file.
    ///
    /// # Errors
    /// Usage: the file cannot be written, or was changed after the operator was asked. It remains
    /// unchanged.
    pub(crate) fn save(&self) -> Result<Option<PathBuf>, CommandError> {
        let (lock, _) = ConfigLock::take(self.file)?;
        self.edit.save(&lock)
    }
}

/// Finds out what the context lacks. Nothing is written yet.
///
/// # Errors
/// Usage: the context does not exist, or has another prefix.
pub(crate) fn adopt<'a>(
    file: &'a ConfigFile,
    context: &str,
    adoption: &Adoption<'_>,
) -> Result<Adopted<'a>, CommandError> {
    let config = file.context(context)?;
    let stated = config.deployment.get(adoption.schema);
    let is_listed = config.schema.iter().any(|name| name == adoption.schema);
    // A list must name the schema. Without a list, the context reads every schema.
    let listed = if config.schema.is_empty() || is_listed {
        None
    } else {
        Some([&config.schema[..], &[adoption.schema.to_owned()]].concat())
    };
    let prefix = match (adoption.prefix, stated.and_then(|stated| stated.prefix.as_deref())) {
        (Some(wanted), Some(there)) if wanted != there => {
            return Err(other_prefix(file, context, adoption, there));
        }
        (Some(wanted), None) => Some(wanted),
        _ => None,
    };
    let is_named = listed.is_some() || is_listed || stated.is_some() || adoption.is_read_unasked;
    let mut lines = Vec::new();
    let mut edit = Edit::open(file)?;
    // The error is made first, because the table below borrows the file that is being edited.
    let no_table = edit.cannot(format!("it has no table {context}"));
    let contexts = edit.contexts().and_then(|all| all.get_mut(context)?.as_table_like_mut());
    let Some(of_context) = contexts else { return Err(no_table) };
    if let Some(names) = listed {
        lines.push(format!("schema = {names:?}"));
        list(of_context, &names);
    }
    // Even an empty table names the schema, so that the context reads it.
    if prefix.is_some() || !is_named {
        let header = format!("[contexts.{context}.deployment.{}]", adoption.schema);
        lines.push(match prefix {
            Some(prefix) => format!("{header} prefix = {prefix:?}"),
            None => header.clone(),
        });
        let mut deployment = None;
        if let Some(deployments) = table(of_context, "deployment", true) {
            deployment = table(deployments, adoption.schema, false);
        }
        let Some(deployment) = deployment else {
            return Err(edit.cannot(format!("{header} is no table")));
        };
        if let Some(prefix) = prefix {
            deployment.insert("prefix", value(prefix));
        }
    }
    Ok(Adopted { file, edit, lines })
}

fn other_prefix(
    file: &ConfigFile,
    context: &str,
    adoption: &Adoption<'_>,
    there: &str,
) -> CommandError {
    let schema = adoption.schema;
    let line = file.line_of(&["contexts", context, "deployment", schema, "prefix"]).unwrap_or(1);
    let at = file.shown_path();
    CommandError::usage(format!(
        "context `{context}` states the prefix `{there}` for {schema} ({at}:{line})"
    ))
    .hint(format!(
        "a context has one prefix a schema: change that line, or copy the schema for the other \
        prefix: `idemctl schema new NAME --from {schema}`"
    ))
}

/// Sets the list of schemas, and keeps the comments among the existing entries.
fn list(of_context: &mut dyn TableLike, names: &[String]) {
    let Some(listed) = of_context.get_mut("schema").and_then(Item::as_array_mut) else {
        of_context.insert("schema", value(names.iter().collect::<Array>()));
        return;
    };
    for name in names {
        if !listed.iter().any(|known| known.as_str() == Some(name)) {
            listed.push(name);
        }
    }
}
