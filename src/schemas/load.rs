//! Reading schema folders: the ones compiled in, and the operator's own.

use std::borrow::Cow;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::faults;
use crate::domain::schema::{self, Origin, Prefixes, Schema, SchemaError, SchemaSource, Script, TtlOf};
use crate::files;

/// Larger than any `schema.toml` or script.
const LARGEST: u64 = 1024 * 1024;

/// How a deployment differs from a schema's defaults.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Deployment {
    pub prefix: Option<String>,
    /// The prefix of the keys of every schema whose templates say where a prefix stands.
    pub shared_prefix: Option<String>,
    pub lock_ttl: Option<Duration>,
    pub result_ttl: Option<Duration>,
    /// JSON pointers to fields that its values have besides those of the schema's forms.
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

struct BuiltIn {
    folder: &'static str,
    toml: &'static str,
    json: &'static str,
    scripts: &'static [(&'static str, &'static str)],
}

const BUILT_IN: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

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
}

/// Every schema: the built-in ones, and those of the operator's folder, which replace built-in ones of the same name.
///
/// # Errors
/// The folder cannot be read, or a schema does not take its prefix.
pub fn load(folder: Option<&Path>, mut deployment: impl FnMut(&str) -> Deployment) -> Result<Loaded, LoadError> {
    let own = folder.map(folders_in).transpose()?.unwrap_or_default();
    let mut loaded = Loaded::default();
    for built_in in BUILT_IN {
        if !own.iter().any(|folder| name_of(folder) == built_in.folder) {
            let read = |deployment: &Deployment| read_built_in(built_in, deployment);
            loaded.schemas.push(with_its_prefix(built_in.folder, read, &mut deployment)?);
        }
    }
    for folder in &own {
        let read = |deployment: &Deployment| read_folder(folder, deployment);
        match with_its_prefix(&name_of(folder), read, &mut deployment) {
            Err(LoadError::Schema(wrong)) => loaded.left_out.push((name_of(folder), wrong)),
            Err(error) => return Err(error),
            Ok(schema) => match faults::of(folder, &schema).into_iter().find(|problem| problem.is_error) {
                Some(problem) => loaded.unsound.push((schema, problem.what)),
                None => loaded.schemas.push(schema),
            },
        }
    }
    Ok(loaded)
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
    match schema.prefix.place.refusal() {
        Some(why) => Err(LoadError::NoPrefix { why: why.to_owned(), schema: schema.name }),
        None => Ok(schema),
    }
}

/// Reads one schema folder.
///
/// # Errors
/// What is wrong, with file and line.
pub(crate) fn read_folder(folder: &Path, deployment: &Deployment) -> Result<Schema, SchemaError> {
    let file = folder.join("schema.toml");
    let toml = files::read_text(&file, LARGEST).map_err(|error| unreadable(&file, &error))?;
    let source = SchemaSource {
        file: &file.display().to_string(),
        toml: &toml,
        json: None,
        scripts: scripts_in(folder)?,
        origin: Origin::Folder(folder.to_owned()),
        prefixes: deployment.prefixes(),
    };
    let schema = deployed(schema::parse(source)?, deployment);
    if schema.name != name_of(folder) {
        let line = schema::line_of_key(&toml, "name");
        let message =
            format!("name is `{}`, but the folder is called `{}`: they must be the same", schema.name, name_of(folder));
        return Err(SchemaError { file: file.display().to_string(), line, message });
    }
    Ok(schema)
}

fn read_built_in(built_in: &BuiltIn, deployment: &Deployment) -> Result<Schema, SchemaError> {
    let source = SchemaSource {
        file: &format!("lua/{}/schema.toml", built_in.folder),
        toml: built_in.toml,
        json: Some(built_in.json),
        scripts: built_in.scripts.iter().map(|(name, text)| script(name, *text)).collect(),
        origin: Origin::BuiltIn,
        prefixes: deployment.prefixes(),
    };
    Ok(deployed(schema::parse(source)?, deployment))
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

fn script(name: &str, text: impl Into<Cow<'static, str>>) -> Script {
    Script { name: name.to_owned(), text: text.into() }
}

fn folders_in(folder: &Path) -> Result<Vec<PathBuf>, SchemaError> {
    let mut folders: Vec<_> = entries(folder)?.into_iter().filter(|path| path.join("schema.toml").is_file()).collect();
    folders.sort();
    Ok(folders)
}

fn scripts_in(folder: &Path) -> Result<Vec<Script>, SchemaError> {
    let lua = entries(folder)?.into_iter().filter(|path| path.extension().is_some_and(|extension| extension == "lua"));
    lua.map(|path| {
        let text = files::read_text(&path, LARGEST).map_err(|error| unreadable(&path, &error))?;
        Ok(script(&name_of(&path.with_extension("")), text))
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
    SchemaError { file: path.display().to_string(), line: 1, message: format!("cannot be read: {error}") }
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
    fn the_json_compiled_in_says_what_the_toml_says() {
        let source = |built_in: &'static BuiltIn, json| SchemaSource {
            file: built_in.folder,
            toml: built_in.toml,
            json,
            scripts: built_in.scripts.iter().map(|(name, text)| script(name, *text)).collect(),
            origin: Origin::BuiltIn,
            prefixes: Prefixes::default(),
        };
        for built_in in BUILT_IN {
            let from_toml = schema::parse(source(built_in, None)).unwrap();
            let from_json = schema::parse(source(built_in, Some(built_in.json))).unwrap();
            assert_eq!(format!("{from_json:?}"), format!("{from_toml:?}"));
        }
    }

    #[test]
    fn every_built_in_schema_takes_a_prefix_into_each_of_its_redis_keys() {
        let plain = load(None, |_| Deployment::default()).unwrap().schemas;
        let deployed =
            load(None, |_| Deployment { prefix: Some("shop:".into()), ..Deployment::default() }).unwrap().schemas;
        for (plain, deployed) in plain.iter().zip(&deployed) {
            assert!(deployed.takes_prefix, "{}", deployed.name);
            let in_key = deployed.prefix.place == PrefixPlace::InKey;
            for (plain, key) in plain.redis_keys(b"k").iter().zip(deployed.redis_keys(b"k")) {
                let (plain, key) = (String::from_utf8_lossy(plain), String::from_utf8_lossy(&key).into_owned());
                let (before, behind) = plain.split_at(if in_key { plain.len() - 1 } else { 0 });
                assert_eq!(key, format!("{before}shop:{behind}"), "{}", deployed.name);
            }
        }
    }

    #[test]
    fn a_shared_prefix_changes_the_keys_of_those_alone_whose_templates_write_one_and_whose_steps_do_not() {
        let shared = load(None, |_| Deployment { shared_prefix: Some("pay:".into()), ..Deployment::default() });
        let shared = shared.unwrap().schemas;
        let with = shared.iter().filter(|schema| schema.prefix.text == "pay:").map(|schema| schema.name.as_str());
        assert_eq!(with.collect::<Vec<_>>(), ["go-chi"]);
    }
}
