//! Reading schema folders: the ones compiled in, and the operator's own.

use std::fs;
use std::path::{Path, PathBuf};
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
    /// The prefix of the keys of every schema whose templates say where a prefix stands.
    pub shared_prefix: Option<String>,
    pub lock_ttl: Option<Duration>,
    pub result_ttl: Option<Duration>,
    /// JSON pointers to fields that its values have besides those of the schema's value formats.
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
    /// The deployment sets a prefix for a schema that takes none.
    #[error("schema `{schema}` takes no prefix: {why}")]
    NoPrefix {
        schema: String,
        /// Why a prefix cannot stand anywhere.
        why: String,
    },
}

/// The schemas that there are, and those of the operator's folder that are left out.
#[derive(Debug, Default)]
pub struct Loaded {
    pub schemas: Vec<Schema>,
    /// Schemas that can be read and would not do what they say, each with the first thing that is wrong: to be played, and for
    /// nothing else.
    pub unsound: Vec<(Schema, SchemaError)>,
    /// The names of folders that cannot be used, each with the first thing that is wrong. A built-in schema of such a name is
    /// left out as well: the operator does not want that one.
    pub left_out: Vec<(String, SchemaError)>,
    /// The names of those that are drafts, whether they can be read or not: they are used only if they are named.
    pub drafts: Vec<String>,
}

/// Every schema: the built-in ones, and those of the operator's folder, which replace built-in ones of the same name.
///
/// # Errors
/// The folder cannot be read, or a schema does not take its prefix.
pub fn load(
    folder: Option<&Path>,
    deployment: impl FnMut(&str) -> Deployment,
) -> Result<Loaded, LoadError> {
    load_with(folder, |_| false, deployment)
}

/// The same, and the layouts of published libraries that somebody wants by name.
///
/// # Errors
/// As `load`.
pub fn load_with(
    folder: Option<&Path>,
    wants: impl Fn(&str) -> bool,
    mut deployment: impl FnMut(&str) -> Deployment,
) -> Result<Loaded, LoadError> {
    let own = folder.map(folders_in).transpose()?.unwrap_or_default();
    let mut loaded = Loaded::default();
    let libraries = LIBRARIES.iter().filter(|library| wants(library.folder));
    for built_in in BUILT_IN.iter().chain(libraries) {
        if !own.iter().any(|folder| name_of(folder) == built_in.folder) {
            let read = |deployment: &Deployment| read_built_in(built_in, deployment);
            loaded.schemas.push(with_its_prefix(built_in.folder, read, &mut deployment)?);
        }
    }
    for folder in &own {
        // A schema that replaces a built-in one is not a draft: without it, those records would not be read at all.
        let is_in_place = BUILT_IN.iter().any(|built_in| built_in.folder == name_of(folder));
        if !is_in_place && is_draft(folder) {
            loaded.drafts.push(name_of(folder));
        }
        let read = |deployment: &Deployment| read_folder(folder, deployment);
        match with_its_prefix(&name_of(folder), read, &mut deployment) {
            Err(LoadError::Schema(wrong)) => loaded.left_out.push((name_of(folder), wrong)),
            Err(error) => return Err(error),
            Ok(schema) => {
                match faults::problems(folder, &schema).into_iter().find(|problem| problem.is_error)
                {
                    Some(problem) => loaded.unsound.push((schema, problem.what)),
                    None => loaded.schemas.push(schema),
                }
            }
        }
    }
    Ok(loaded)
}

/// One schema as it is deployed; `None` where there is none of this name.
///
/// # Errors
/// The schema cannot be read, or does not take its prefix.
pub(super) fn one(
    folder: Option<&Path>,
    name: &str,
    deployment: &Deployment,
) -> Result<Option<Schema>, LoadError> {
    let own = folder
        .map(|folder| folder.join(name))
        .filter(|folder| folder.join("schema.toml").is_file());
    let built_in = BUILT_IN.iter().chain(LIBRARIES).find(|built_in| built_in.folder == name);
    let read = |deployment: &Deployment| match (&own, built_in) {
        (Some(own), _) => read_folder(own, deployment).map(Some),
        (None, Some(built_in)) => read_built_in(built_in, deployment).map(Some),
        (None, None) => Ok(None),
    };
    let Some(schema) = read(deployment)? else { return Ok(None) };
    refuse_prefix(&schema, deployment)?;
    Ok(Some(schema))
}

/// The files of a schema; `None` where there is none of this name.
///
/// # Errors
/// They cannot be read.
pub(crate) fn files_of(folder: Option<&Path>, name: &str) -> Result<Option<Files>, SchemaError> {
    if let Some(own) =
        folder.map(|folder| folder.join(name)).filter(|own| own.join("schema.toml").is_file())
    {
        let file = own.join("schema.toml");
        let toml = files::read_text(&file, LARGEST).map_err(|error| unreadable(&file, &error))?;
        return Ok(Some(Files { toml, scripts: scripts_in(&own)? }));
    }
    let built_in = BUILT_IN.iter().chain(LIBRARIES).find(|built_in| built_in.folder == name);
    let source = built_in.map(|of| of.source(Prefixes::default()));
    Ok(source.map(|of| Files { toml: of.toml.to_owned(), scripts: of.scripts }))
}

/// The schema, with the prefix in its keys that the deployment sets: for an older release that of the newer one, whose
/// Redis keys they share, unless the older has a prefix of its own.
fn with_its_prefix(
    name: &str,
    read: impl Fn(&Deployment) -> Result<Schema, SchemaError>,
    deployment: &mut impl FnMut(&str) -> Deployment,
) -> Result<Schema, LoadError> {
    let own = deployment(name);
    let schema = read(&own)?;
    if own.prefix.is_none() {
        let newer = schema.older_release_of.as_deref().filter(|_| schema.takes_prefix);
        let prefix = newer.and_then(|newer| deployment(newer).prefix);
        return Ok(if prefix.is_some() { read(&Deployment { prefix, ..own })? } else { schema });
    }
    refuse_prefix(&schema, &own)?;
    Ok(schema)
}

/// # Errors
/// The deployment sets a prefix, and the schema takes none.
fn refuse_prefix(schema: &Schema, deployment: &Deployment) -> Result<(), LoadError> {
    match schema.prefix.place.refusal().filter(|_| deployment.prefix.is_some()) {
        Some(why) => Err(LoadError::NoPrefix { why: why.to_owned(), schema: schema.name.clone() }),
        None => Ok(()),
    }
}

/// Reads one schema folder.
///
/// # Errors
/// What is wrong, with file and line.
pub(crate) fn read_folder(folder: &Path, deployment: &Deployment) -> Result<Schema, SchemaError> {
    let none = || unreadable(folder, &std::io::Error::other("nothing tells why"));
    read_whole(folder, deployment).map_err(|all| all.into_iter().next().unwrap_or_else(none))
}

/// Reads one schema folder.
///
/// # Errors
/// All that is wrong, with file and line.
pub(crate) fn read_whole(
    folder: &Path,
    deployment: &Deployment,
) -> Result<Schema, Vec<SchemaError>> {
    let file = folder.join("schema.toml");
    let toml = files::read_text(&file, LARGEST).map_err(|error| vec![unreadable(&file, &error)])?;
    let source = SchemaSource {
        file: &file.display().to_string(),
        toml: &toml,
        json: None,
        scripts: scripts_in(folder).map_err(|error| vec![error])?,
        origin: SchemaOrigin::Folder(folder.to_owned()),
        prefixes: deployment.prefixes(),
    };
    let schema = deployed(schema::parse_all(source)?, deployment);
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
    schema.lock_ttl = deployment.lock_ttl.unwrap_or(schema.lock_ttl);
    schema.result_ttl = deployment.result_ttl.unwrap_or(schema.result_ttl);
    let stated = [(TtlOf::Lock, deployment.lock_ttl), (TtlOf::Result, deployment.result_ttl)];
    schema.stated = stated.into_iter().filter_map(|(of, ttl)| ttl.map(|_| of)).collect();
    for path in &deployment.extra_fields {
        schema.allow_field(path);
    }
    schema
}

/// True if the file of a folder says `draft = true`, or has values that a person still has to decide. Such a file need not be right.
fn is_draft(folder: &Path) -> bool {
    let Ok(toml) = files::read_text(&folder.join("schema.toml"), LARGEST) else { return false };
    let is_open = toml.lines().any(|line| line.trim_end().ends_with(&format!("= \"{DECIDE}\"")));
    let table = toml.parse::<toml::Table>();
    let says_draft =
        table.is_ok_and(|table| table.get("draft").and_then(toml::Value::as_bool) == Some(true));
    is_open || says_draft
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, SchemaError> {
    let mut folders: Vec<_> =
        entries(folder)?.into_iter().filter(|path| path.join("schema.toml").is_file()).collect();
    folders.sort();
    Ok(folders)
}

fn scripts_in(folder: &Path) -> Result<Vec<Script>, SchemaError> {
    let lua = entries(folder)?
        .into_iter()
        .filter(|path| path.extension().is_some_and(|extension| extension == "lua"));
    lua.map(|path| {
        let text = files::read_text(&path, LARGEST).map_err(|error| unreadable(&path, &error))?;
        Ok(Script { name: name_of(&path.with_extension("")), text: text.into() })
    })
    .collect()
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, SchemaError> {
    let wrong = |error: std::io::Error| unreadable(folder, &error);
    fs::read_dir(folder).map_err(wrong)?.map(|entry| Ok(entry.map_err(wrong)?.path())).collect()
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
