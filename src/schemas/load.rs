//! Reads schema folders: the built-in ones and the operator's own.

use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use super::built_in::{BUILT_IN, BuiltIn, LIBRARIES};
use super::faults::{self, LARGEST};
use super::new_folder::Files;
use crate::domain::draft::DECIDE;
use crate::domain::schema::{
    self, Prefixes, Schema, SchemaError, SchemaOrigin, SchemaSource, Script, TtlOf,
};
use crate::files;

/// How a deployment differs from a schema's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deployment {
    pub prefix: Option<String>,
    /// The prefix for all schemas whose templates have a place for one.
    pub shared_prefix: Option<String>,
    pub lock_ttl: Option<Duration>,
    pub result_ttl: Option<Duration>,
    /// JSON pointers to fields that this deployment writes in addition to those of the schema's
    /// value formats.
    pub extra_fields: Vec<String>,
}

impl Deployment {
    fn prefixes(&self) -> Prefixes<'_> {
        Prefixes { own: self.prefix.as_deref(), shared: self.shared_prefix.as_deref() }
    }
}

#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    #[error("schema {0}")]
    Schema(#[from] SchemaError),
    /// The deployment sets a prefix for a schema that accepts none.
    #[error("schema `{schema}` cannot have a prefix: {why}")]
    NoPrefix {
        schema: String,
        /// Why the schema has no place for a prefix.
        why: String,
    },
}

/// The available schemas, and those of the operator's folder that are left out.
#[derive(Debug, Default)]
pub struct Loaded {
    pub schemas: Vec<Schema>,
    /// Schemas that can be read but would not behave as they state, each with its first problem.
    /// They may only be executed.
    pub unsound: Vec<(Schema, SchemaError)>,
    /// The names of unusable folders, each with its first problem. A built-in schema of the same
    /// name is left out as well, because the operator wanted to replace it.
    pub left_out: Vec<(String, SchemaError)>,
    /// The names of drafts, whether readable or not. A draft is used only if it is named.
    pub drafts: Vec<String>,
}

impl Loaded {
    /// Leaves the unsound schemas out, too.
    pub(crate) fn leave_out_unsound(&mut self) {
        for (schema, wrong) in self.unsound.drain(..) {
            self.left_out.push((schema.name, wrong));
        }
    }

    /// True if there is a schema of this name, read or not.
    pub(crate) fn knows(&self, name: &str) -> bool {
        self.schemas.iter().any(|schema| schema.name == name)
            || self.left_out.iter().any(|(left_out, _)| left_out == name)
            || self.drafts.iter().any(|draft| draft == name)
            || LIBRARIES.iter().any(|library| library.folder == name)
    }
}

/// All schemas: the built-in ones and those of the operator's folder, which replace built-in ones
/// of the same name.
///
/// # Errors
/// The folder cannot be read, or a schema does not accept its prefix.
pub fn load(
    folder: Option<&Path>,
    deployment: impl FnMut(&str) -> Deployment,
) -> Result<Loaded, LoadError> {
    load_with(folder, |_| false, deployment)
}

/// Like [`load`], with the layouts of published libraries that `wants` accepts.
///
/// # Errors
/// The errors of [`load`].
pub fn load_with(
    folder: Option<&Path>,
    wants: impl Fn(&str) -> bool,
    mut deployment: impl FnMut(&str) -> Deployment,
) -> Result<Loaded, LoadError> {
    let own_folders = match folder {
        Some(folder) => folders_in(folder)?,
        None => Vec::new(),
    };
    let mut compiled_in: Vec<&'static BuiltIn> = BUILT_IN.iter().collect();
    for library in LIBRARIES {
        if wants(library.folder) {
            compiled_in.push(library);
        }
    }
    let mut loaded = Loaded::default();
    for built_in in compiled_in {
        // Replaced even if the folder turns out to be unusable, because the operator does not want
        // the built-in schema.
        if own_folders.iter().any(|folder| name_of(folder) == built_in.folder) {
            continue;
        }
        let schema = with_its_prefix(
            built_in.folder,
            |deployment| read_built_in(built_in, deployment),
            &mut deployment,
        )?;
        loaded.schemas.push(schema);
    }
    for folder in &own_folders {
        let name = name_of(folder);
        // A schema that replaces a built-in one is not treated as a draft, because otherwise those
        // records would not be read at all.
        let replaces_built_in = BUILT_IN.iter().any(|built_in| built_in.folder == name);
        if !replaces_built_in && is_draft(folder) {
            loaded.drafts.push(name.clone());
        }
        let read =
            with_its_prefix(&name, |deployment| read_folder(folder, deployment), &mut deployment);
        let schema = match read {
            Ok(schema) => schema,
            // One unusable folder must not keep the commands from the other schemas.
            Err(LoadError::Schema(error)) => {
                loaded.left_out.push((name, error));
                continue;
            }
            Err(error) => return Err(error),
        };
        let mut problems = faults::problems(folder, &schema).into_iter();
        match problems.find(|problem| problem.is_error) {
            Some(problem) => loaded.unsound.push((schema, problem.what)),
            None => loaded.schemas.push(schema),
        }
    }
    Ok(loaded)
}

/// The built-in schemas and those of published libraries, with their defaults.
pub fn shipped() -> Vec<Arc<Schema>> {
    let loaded = load_with(None, |_| true, |_| Deployment::default()).unwrap_or_default();
    loaded.schemas.into_iter().map(Arc::new).collect()
}

/// One schema with the deployment's settings; `None` if there is no schema of this name.
///
/// # Errors
/// The schema cannot be read, or does not accept its prefix.
pub(crate) fn one(
    folder: Option<&Path>,
    name: &str,
    deployment: &Deployment,
) -> Result<Option<Schema>, LoadError> {
    // The operator's folder comes first, because it replaces a built-in schema of the same name.
    let schema = if let Some(own) = own_folder(folder, name) {
        read_folder(&own, deployment)?
    } else if let Some(built_in) = built_in_schema(name) {
        read_built_in(built_in, deployment)?
    } else {
        return Ok(None);
    };
    refuse_prefix(&schema, deployment)?;
    Ok(Some(schema))
}

/// The operator's own folder of a schema; `None` if the operator has no schema of this name.
fn own_folder(folder: Option<&Path>, name: &str) -> Option<PathBuf> {
    let own = folder?.join(name);
    if own.join("schema.toml").is_file() { Some(own) } else { None }
}

/// The built-in schema or the library of this name.
fn built_in_schema(name: &str) -> Option<&'static BuiltIn> {
    BUILT_IN.iter().chain(LIBRARIES).find(|built_in| built_in.folder == name)
}

/// The files of a schema; `None` if there is no schema of this name.
///
/// # Errors
/// The files cannot be read.
pub(crate) fn files_of(folder: Option<&Path>, name: &str) -> Result<Option<Files>, SchemaError> {
    if let Some(own) = own_folder(folder, name) {
        let file = own.join("schema.toml");
        let toml = files::read_text(&file, LARGEST).map_err(|error| unreadable(&file, &error))?;
        return Ok(Some(Files { toml, scripts: scripts_in(&own)? }));
    }
    let Some(built_in) = built_in_schema(name) else { return Ok(None) };
    let source = built_in.source(Prefixes::default());
    Ok(Some(Files { toml: source.toml.to_owned(), scripts: source.scripts }))
}

/// The schema with the deployment's prefix in its keys. An older release without a prefix of its
/// own gets that of the newer release, because both share their Redis keys.
fn with_its_prefix(
    name: &str,
    read: impl Fn(&Deployment) -> Result<Schema, SchemaError>,
    deployment: &mut impl FnMut(&str) -> Deployment,
) -> Result<Schema, LoadError> {
    let own = deployment(name);
    let schema = read(&own)?;
    if own.prefix.is_some() {
        refuse_prefix(&schema, &own)?;
        return Ok(schema);
    }
    if !schema.takes_prefix {
        return Ok(schema);
    }
    let Some(newer) = &schema.older_release_of else { return Ok(schema) };
    let prefix = deployment(newer).prefix;
    if prefix.is_none() {
        return Ok(schema);
    }
    Ok(read(&Deployment { prefix, ..own })?)
}

/// # Errors
/// The deployment sets a prefix, and the schema accepts none.
fn refuse_prefix(schema: &Schema, deployment: &Deployment) -> Result<(), LoadError> {
    // A shared prefix is not a reason to refuse, because it applies only to schemas with a place
    // for it.
    if deployment.prefix.is_none() {
        return Ok(());
    }
    match schema.prefix.place.refusal() {
        Some(why) => Err(LoadError::NoPrefix { why: why.to_owned(), schema: schema.name.clone() }),
        None => Ok(()),
    }
}

/// Reads one schema folder, and stops at the first problem.
///
/// # Errors
/// The first problem, with file and line.
pub(crate) fn read_folder(folder: &Path, deployment: &Deployment) -> Result<Schema, SchemaError> {
    let problems = match read_whole(folder, deployment) {
        Ok(schema) => return Ok(schema),
        Err(problems) => problems,
    };
    match problems.into_iter().next() {
        Some(first) => Err(first),
        None => Err(unreadable(folder, &std::io::Error::other("the cause is unknown"))),
    }
}

/// Reads one schema folder, and reports every problem.
///
/// # Errors
/// All problems, with file and line.
pub(crate) fn read_whole(
    folder: &Path,
    deployment: &Deployment,
) -> Result<Schema, Vec<SchemaError>> {
    let file = folder.join("schema.toml");
    let toml = files::read_text(&file, LARGEST).map_err(|error| vec![unreadable(&file, &error)])?;
    let source = SchemaSource {
        file: &file.display().to_string(),
        toml: &toml,
        compiled_in: None,
        scripts: scripts_in(folder).map_err(|error| vec![error])?,
        origin: SchemaOrigin::Folder(folder.to_owned()),
        prefixes: deployment.prefixes(),
    };
    let schema = deployed(schema::parse_all(source)?, deployment);
    // A schema is found by the name of its folder, so another name in the file would not be found.
    if schema.name != name_of(folder) {
        let line = schema::line_of_key(&toml, "name");
        let message = format!(
            "name is `{}`, but the folder is called `{}`: they must be the same",
            schema.name,
            name_of(folder)
        );
        return Err(vec![SchemaError { file: file.display().to_string(), line, message }]);
    }
    Ok(schema)
}

fn read_built_in(
    built_in: &'static BuiltIn,
    deployment: &Deployment,
) -> Result<Schema, SchemaError> {
    Ok(deployed(schema::parse(built_in.source(deployment.prefixes()))?, deployment))
}

fn deployed(mut schema: Schema, deployment: &Deployment) -> Schema {
    // Only a TTL that the deployment sets is evidence about its records. A schema's default is an
    // estimate.
    schema.stated.clear();
    if let Some(ttl) = deployment.lock_ttl {
        schema.lock_ttl = ttl;
        schema.stated.push(TtlOf::Lock);
    }
    if let Some(ttl) = deployment.result_ttl {
        schema.result_ttl = ttl;
        schema.stated.push(TtlOf::Result);
    }
    for path in &deployment.extra_fields {
        schema.allow_field(path);
    }
    schema
}

/// True if somebody still has to decide something in the folder's file, which need not be valid.
fn is_draft(folder: &Path) -> bool {
    let toml = files::read_text(&folder.join("schema.toml"), LARGEST);
    toml.is_ok_and(|toml| toml.contains(DECIDE))
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, SchemaError> {
    let mut folders = entries(folder)?;
    folders.retain(|path| path.join("schema.toml").is_file());
    // The order of a directory's entries differs from machine to machine.
    folders.sort();
    Ok(folders)
}

fn scripts_in(folder: &Path) -> Result<Vec<Script>, SchemaError> {
    let mut scripts = Vec::new();
    for path in entries(folder)? {
        if path.extension() != Some(OsStr::new("lua")) {
            continue;
        }
        let text = files::read_text(&path, LARGEST).map_err(|error| unreadable(&path, &error))?;
        scripts.push(Script { name: name_of(&path.with_extension("")), text: text.into() });
    }
    Ok(scripts)
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, SchemaError> {
    let mut paths = Vec::new();
    for entry in fs::read_dir(folder).map_err(|error| unreadable(folder, &error))? {
        let entry = entry.map_err(|error| unreadable(folder, &error))?;
        paths.push(entry.path());
    }
    Ok(paths)
}

fn name_of(path: &Path) -> String {
    path.file_name().unwrap_or_default().to_string_lossy().into_owned()
}

fn unreadable(path: &Path, error: &std::io::Error) -> SchemaError {
    SchemaError {
        file: path.display().to_string(),
        line: 1,
        message: format!("cannot be read: {error}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::schema::PrefixPlace;

    #[test]
    fn every_built_in_schema_is_sound_and_named_as_its_folder() {
        let schemas = load(None, |_| Deployment::default()).unwrap().schemas;
        let names: Vec<_> = schemas.iter().map(|schema| schema.name.as_str()).collect();
        let folders: Vec<_> = BUILT_IN.iter().map(|built_in| built_in.folder).collect();
        assert_eq!(names, folders);
        assert_eq!(names.len(), 7);
    }

    #[test]
    fn every_built_in_schema_takes_a_prefix_into_each_of_its_redis_keys() {
        let plain = load(None, |_| Deployment::default()).unwrap().schemas;
        let deployed =
            load(None, |_| Deployment { prefix: Some("shop:".into()), ..Deployment::default() })
                .unwrap()
                .schemas;
        for (plain, deployed) in plain.iter().zip(&deployed) {
            assert!(deployed.takes_prefix, "{}", deployed.name);
            let in_key = deployed.prefix.place == PrefixPlace::InKey;
            for (plain, key) in plain.redis_keys(b"k").iter().zip(deployed.redis_keys(b"k")) {
                let (plain, key) =
                    (String::from_utf8_lossy(plain), String::from_utf8_lossy(&key).into_owned());
                let (before, behind) = plain.split_at(if in_key { plain.len() - 1 } else { 0 });
                assert_eq!(key, format!("{before}shop:{behind}"), "{}", deployed.name);
            }
        }
    }

    #[test]
    fn a_shared_prefix_changes_the_keys_of_those_alone_whose_templates_write_one_and_whose_steps_do_not()
     {
        let shared = load(None, |_| Deployment {
            shared_prefix: Some("pay:".into()),
            ..Deployment::default()
        });
        let shared = shared.unwrap().schemas;
        let with = shared
            .iter()
            .filter(|schema| schema.prefix.text == "pay:")
            .map(|schema| schema.name.as_str());
        assert_eq!(with.collect::<Vec<_>>(), ["go-chi"]);
    }
}
