//! The schemas of a run, and the warnings about unusable ones.

use std::sync::Arc;

use anyhow::Result;

use super::Session;
use super::key_list::KeyList;
use crate::args::{SchemaArgs, SchemaFolderArgs};
use crate::domain::record::{Extended, RecordName};
use crate::domain::schema::{Catalog, Schema, SchemaError, Shipped};
use crate::exit::CommandError;
use crate::render::invocation::word;
use crate::schemas::{self, AllSchemas, Deployment, Loaded};
use crate::store::audit::expiries;

impl Session {
    /// The known schemas, and the ones to work on.
    ///
    /// # Errors
    /// Usage: an unknown name, an unusable schema that is named, a setting without effect, or a
    /// prefix that no chosen schema accepts.
    pub fn catalog(&mut self, args: &SchemaArgs) -> Result<Catalog> {
        self.catalog_for(args, &mut KeyList::of_words(&[])?)
    }

    /// Like [`Session::catalog`], with the schemas and prefixes of the names among the keys.
    ///
    /// # Errors
    /// The errors of [`Session::catalog`] and [`KeyList::places`].
    pub fn catalog_for(&mut self, args: &SchemaArgs, keys: &mut KeyList) -> Result<Catalog> {
        Ok(self.catalog_and_places(args, keys)?.0)
    }

    /// Like [`Session::catalog_for`], for a command that changes the records.
    ///
    /// # Errors
    /// Also usage: a name has another prefix than the deployment.
    pub fn catalog_to_change(&mut self, args: &SchemaArgs, keys: &mut KeyList) -> Result<Catalog> {
        let (catalog, names) = self.catalog_and_places(args, keys)?;
        for name in &names {
            let deployed = catalog.all().iter().find(|schema| schema.name == name.schema);
            let Some(deployed) = deployed.filter(|schema| schema.prefix.is_set) else { continue };
            if deployed.only_by_name || name.is_under(deployed) {
                continue;
            }
            let given = word(&name.text());
            let here = word(&RecordName::new(deployed, &name.key).text());
            let prefix = word(name.prefix.as_deref().unwrap_or_default());
            return Err(CommandError::usage(format!(
                "{given} has another prefix than this deployment, whose record is {here}"
            ))
            .hint(format!("add `--schema {} --prefix {prefix}`", name.schema))
            .into());
        }
        Ok(catalog)
    }

    fn catalog_and_places(
        &mut self,
        args: &SchemaArgs,
        keys: &mut KeyList,
    ) -> Result<(Catalog, Vec<RecordName>)> {
        let own_folder = self.settings.environment().schema_dir();
        self.ui.invocation_mut().note_schemas(args, own_folder);
        let mut loaded = self.loaded(args)?;
        loaded.leave_out_unsound();
        if self.needs_its_schemas_named(&loaded, args) {
            self.ui.invocation_mut().set_named_schemas(&args.schema);
        }
        let names = keys.places(|schema| loaded.knows(schema))?;
        let folder = self.settings.schema_dir(args.folder.schema_dir.as_deref());
        for name in &names {
            let is_loaded = |schema: &Schema| {
                name.is_under(schema) || schema.elsewhere().any(|other| name.is_under(&other))
            };
            if loaded.schemas.iter().any(is_loaded) {
                continue;
            }
            refuse_unusable(&loaded.left_out, &name.schema)?;
            let prefix = name.prefix.clone();
            let deployment = self.settings.deployment(&name.schema, args);
            let deployment = Deployment { prefix, shared_prefix: None, ..deployment };
            // A schema that takes no prefix has no such records.
            if let Ok(Some(schema)) = schemas::one(folder.as_deref(), &name.schema, &deployment) {
                loaded.schemas.push(Schema { only_by_name: true, ..schema });
            }
        }
        Ok((self.keep_catalog(loaded, args)?, names))
    }

    /// The known schemas and those of all published libraries, for a command that reads the name of
    /// each schema from a record of an earlier run.
    ///
    /// # Errors
    /// The errors of [`Session::catalog`].
    pub fn catalog_with_libraries(&mut self) -> Result<Catalog> {
        let args = SchemaArgs::default();
        let folder = self.settings.environment().schema_dir();
        self.ui.invocation_mut().note_schemas(&args, folder);
        let mut loaded = self.loaded_with(&args, |_| true)?;
        loaded.leave_out_unsound();
        self.keep_catalog(loaded, &args)
    }

    /// True if the run names a schema that a run without `--schema` would not read.
    fn needs_its_schemas_named(&self, loaded: &Loaded, args: &SchemaArgs) -> bool {
        let unnamed = SchemaArgs::default();
        for name in &args.schema {
            let is_read_if_named =
                schemas::libraries().any(|library| library == name) || loaded.drafts.contains(name);
            if is_read_if_named && !self.settings.names_schema(name, &unnamed) {
                return true;
            }
        }
        false
    }

    fn keep_catalog(&mut self, loaded: Loaded, args: &SchemaArgs) -> Result<Catalog> {
        let catalog = self.catalog_of(loaded, args)?;
        for schema in catalog.all() {
            // Schemas last as long as the process, and freeing their many small parts takes time.
            std::mem::forget(Arc::clone(schema));
        }
        Ok(catalog)
    }

    /// Like [`Session::catalog`], for a server other than the context's server. The context's list
    /// of schemas does not apply to it.
    ///
    /// # Errors
    /// The errors of [`Session::catalog`].
    pub fn catalog_without_context(&mut self, args: &SchemaArgs) -> Result<Catalog> {
        let catalog = self.catalog(args)?;
        Ok(if args.schema.is_empty() { catalog.with_all_chosen() } else { catalog })
    }

    fn loaded(&self, args: &SchemaArgs) -> Result<Loaded, CommandError> {
        self.loaded_with(args, |library| self.settings.names_schema(library, args))
    }

    /// The schemas of a run, with the published libraries that `wants` accepts.
    fn loaded_with(
        &self,
        args: &SchemaArgs,
        wants: impl Fn(&str) -> bool,
    ) -> Result<Loaded, CommandError> {
        let folder = self.settings.schema_dir(args.folder.schema_dir.as_deref());
        let loaded = schemas::load_with(folder.as_deref(), wants, |name| {
            self.settings.deployment(name, args)
        });
        loaded.map_err(|error| self.settings.not_loaded(&error, args))
    }

    /// The operator's schemas that cannot be read or do not behave as they state, and why.
    ///
    /// # Errors
    /// Usage: the operator's schema folder cannot be read.
    pub fn unread_schemas(&self) -> Result<Vec<(String, SchemaError)>, CommandError> {
        let mut loaded = self.loaded(&SchemaArgs::default())?;
        loaded.leave_out_unsound();
        Ok(loaded.left_out)
    }

    /// All known schemas, including those that are not chosen.
    ///
    /// # Errors
    /// Usage: the operator's schema folder cannot be read.
    pub fn all_schemas(&self, folder: &SchemaFolderArgs) -> Result<AllSchemas, CommandError> {
        let args = SchemaArgs { folder: folder.clone(), ..SchemaArgs::default() };
        let folder = self.settings.schema_dir(folder.schema_dir.as_deref());
        AllSchemas::read(folder.as_deref()).map_err(|error| self.settings.not_loaded(&error, &args))
    }

    fn catalog_of(&mut self, loaded: Loaded, args: &SchemaArgs) -> Result<Catalog> {
        let Loaded { schemas: mut all, mut left_out, mut drafts, .. } = loaded;
        let mut names = self.settings.schema_names(args);
        let mut unreadable = Vec::new();
        let is_of_context = args.schema.is_empty();
        let chooses_all = names.is_empty();
        if is_of_context && !names.iter().all(|name| is_among(name, &left_out)) {
            // One unreadable schema must not hide the records of the others.
            unreadable.extend(names.extract_if(.., |name| is_among(name, &left_out)));
        }
        self.settings.heed(&all, &left_out)?;
        let known: Vec<_> = all.iter().map(|schema| schema.name.clone()).collect();
        let known = known.join(", ");
        // A draft that is not named must not claim Redis keys, and needs no warning.
        drafts.retain(|name| !self.settings.names_schema(name, args));
        all.retain(|schema| schema.only_by_name || !drafts.contains(&schema.name));
        left_out.retain(|(name, _)| !drafts.contains(name));
        if chooses_all {
            unreadable.extend(left_out.iter().map(|(name, _)| name.clone()));
        }
        self.warn_of(&left_out, &names)?;
        let catalog = Catalog::new(all, &names).map_err(|name| {
            let libraries = schemas::libraries().collect::<Vec<_>>().join(", ");
            CommandError::no_schema(&name, &[&known, "of published libraries:", &libraries])
        })?;
        for (option, of) in args.of_one_schema() {
            let is_clear = match of {
                Some(name) => catalog.chosen().iter().any(|schema| schema.name == name),
                None => catalog.chosen().len() == 1,
            };
            if !is_clear {
                let message = format!("{option} needs exactly one --schema");
                return Err(CommandError::usage(message)
                    .hint(format!("schemas: {known}; a TTL may name one: SCHEMA=30s"))
                    .into());
            }
        }
        // An option without effect would suggest that the schemas use another prefix.
        if args.prefix.is_some() && !catalog.chosen().iter().any(|schema| schema.takes_prefix) {
            return Err(
                CommandError::usage("--prefix: none of the chosen schemas takes a prefix").into()
            );
        }
        let mut catalog = catalog;
        if is_of_context {
            catalog = catalog.of_context();
            catalog.unreadable = unreadable;
        }
        self.ui.detail(&format!("schemas: {}", catalog.scanned_names().join(", ")));
        catalog.extended = self.extended();
        catalog.shipped = Shipped::read_by(schemas::shipped);
        catalog.drafts = drafts;
        Ok(catalog)
    }

    /// The locks that were extended on this machine. An unreadable file counts as empty.
    pub(crate) fn extended(&self) -> Extended {
        let folder = self.settings.audit_dir().ok();
        Extended::read_by(move || {
            folder.and_then(|folder| expiries::extended(&folder).ok()).unwrap_or_default()
        })
    }

    /// The same session without warnings about unusable schemas.
    #[must_use]
    pub fn saying_nothing(self) -> Self {
        Self { warned: true, ..self }
    }

    /// Warns once per run about unusable schemas of the operator's folder.
    ///
    /// # Errors
    /// Usage: one of them is named.
    fn warn_of(
        &mut self,
        left_out: &[(String, SchemaError)],
        names: &[String],
    ) -> Result<(), CommandError> {
        for name in names {
            refuse_unusable(left_out, name)?;
        }
        // A command may load its schemas more than once.
        if self.warned {
            return Ok(());
        }
        self.warned = true;
        for (name, wrong) in left_out {
            self.ui.warning(&format!("skipped schema {name}: {wrong}"));
        }
        Ok(())
    }

    /// The schemas to execute: the named ones, or else those that `is_default` accepts. The name
    /// `all` stands for every known schema. A schema that `lacks` something is left out with a
    /// warning.
    pub fn schemas_to_play(
        &mut self,
        args: &SchemaArgs,
        is_default: impl Fn(&Schema) -> bool,
        lacks: impl Fn(&Schema) -> Option<String>,
    ) -> Result<(Vec<Arc<Schema>>, Catalog)> {
        let mut named = args.clone();
        named.schema.retain(|name| name != "all");
        let wants_all = named.schema.len() < args.schema.len();
        // A schema that would not behave as it states may still be executed.
        let mut loaded = self.loaded(&named)?;
        let mut unsound = Vec::new();
        for (schema, wrong) in loaded.unsound.drain(..) {
            unsound.push((schema.name.clone(), wrong));
            loaded.schemas.push(schema);
        }
        let catalog = self.catalog_of(loaded, &named)?;
        let candidates = if wants_all { catalog.all() } else { catalog.chosen() };
        let mut wanted = Vec::new();
        for schema in candidates {
            if wants_all || catalog.names_schemas() || is_default(schema) {
                wanted.push(Arc::clone(schema));
            }
        }
        for (name, wrong) in &unsound {
            if wanted.iter().any(|schema| schema.name == *name) {
                self.ui.warning(&format!(
                    "other commands refuse schema {name}, so do not rely on what follows: {wrong}"
                ));
            }
        }
        let (executed, left_out) =
            self.sparing(wanted, catalog.names_schemas() && !wants_all, lacks)?;
        for line in &left_out {
            self.ui.warning(line);
        }
        Ok((executed, catalog))
    }

    /// The schemas that lack nothing, and a sentence about each of the others.
    ///
    /// # Errors
    /// Usage: the operator named a schema that lacks something, or all schemas do.
    pub fn sparing(
        &self,
        mut schemas: Vec<Arc<Schema>>,
        is_named: bool,
        lacks: impl Fn(&Schema) -> Option<String>,
    ) -> Result<(Vec<Arc<Schema>>, Vec<String>), CommandError> {
        let mut lacking = Vec::new();
        for schema in &schemas {
            if let Some(why) = lacks(schema) {
                lacking.push((schema.name.clone(), why));
            }
        }
        schemas.retain(|schema| lacks(schema).is_none());
        if let Some((name, why)) = lacking.first()
            && (is_named || schemas.is_empty())
        {
            let hint = format!("`idemctl schema show {name}` shows what the schema describes");
            return Err(
                CommandError::usage(format!("{name} is not supported here: {why}")).hint(hint)
            );
        }
        let mut left_out = Vec::new();
        for (name, why) in lacking {
            left_out.push(format!("Skipped schema {name}: {why}"));
        }
        Ok((schemas, left_out))
    }
}

/// # Errors
/// Usage: the schema was left out because of its errors.
fn refuse_unusable(left_out: &[(String, SchemaError)], name: &str) -> Result<(), CommandError> {
    let Some((_, wrong)) = left_out.iter().find(|(left_out, _)| left_out == name) else {
        return Ok(());
    };
    let hint = format!("to see all errors, run `idemctl schema check {name}`");
    Err(CommandError::usage(format!("schema {wrong}")).hint(hint))
}

/// True if the schema was left out because of its errors.
fn is_among(name: &str, left_out: &[(String, SchemaError)]) -> bool {
    left_out.iter().any(|(left_out, _)| left_out == name)
}
