//! The schemas of a run, and the warnings about unusable ones.

use std::sync::Arc;

use anyhow::Result;

use super::Context;
use crate::args::{SchemaArgs, SchemaFolderArgs};
use crate::domain::record::Extended;
use crate::domain::schema::{Catalog, Schema, SchemaError};
use crate::exit::CommandError;
use crate::schemas::{self, AllSchemas, Loaded};
use crate::store::audit::log;

impl Context {
    /// The known schemas, and the ones to work on.
    ///
    /// # Errors
    /// Usage: an unknown name, an unusable schema that is named, a setting without effect, or a
    /// prefix that no chosen schema accepts.
    pub fn catalog(&mut self, args: &SchemaArgs) -> Result<Catalog> {
        let folder = self.settings.environment().schema_dir();
        self.ui.invocation_mut().heed_schemas(args, folder);
        let mut loaded = self.loaded(args)?;
        loaded
            .left_out
            .extend(loaded.unsound.drain(..).map(|(schema, wrong)| (schema.name, wrong)));
        let catalog = self.catalog_of(loaded, args)?;
        for schema in catalog.all() {
            // Schemas last as long as the process, and freeing their many small parts takes time.
            std::mem::forget(Arc::clone(schema));
        }
        Ok(catalog)
    }

    /// Like [`Context::catalog`], for a server other than the context's server. The context's list
    /// of schemas does not apply to it.
    ///
    /// # Errors
    /// The errors of [`Context::catalog`].
    pub fn catalog_without_context(&mut self, args: &SchemaArgs) -> Result<Catalog> {
        let catalog = self.catalog(args)?;
        Ok(if args.schema.is_empty() { catalog.of_all() } else { catalog })
    }

    fn loaded(&self, args: &SchemaArgs) -> Result<Loaded, CommandError> {
        let folder = self.settings.schema_dir(args.folder.schema_dir.as_deref());
        let wants = |library: &str| self.settings.names_schema(library, args);
        schemas::load_with(folder.as_deref(), wants, |name| self.settings.deployment(name, args))
            .map_err(|error| self.settings.not_loaded(&error, args))
    }

    /// All known schemas, including those that are not chosen.
    ///
    /// # Errors
    /// Usage: the user's schema folder cannot be read.
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
        let is_left_out = |name: &String| left_out.iter().any(|(left_out, _)| left_out == name);
        if is_of_context && !names.iter().all(is_left_out) {
            // One unreadable schema must not hide the records of the others.
            unreadable.extend(names.extract_if(.., |name| is_left_out(name)));
        }
        self.settings.heed(&all, &left_out)?;
        let known = all.iter().map(|schema| schema.name.clone()).collect::<Vec<_>>().join(", ");
        // A draft that is not named must not claim Redis keys, and needs no warning.
        drafts.retain(|name| !self.settings.names_schema(name, args));
        all.retain(|schema| !drafts.contains(&schema.name));
        left_out.retain(|(name, _)| !drafts.contains(name));
        self.warn_of(&left_out, &names)?;
        let catalog = Catalog::new(all, &names).map_err(|name| {
            let libraries = schemas::libraries().collect::<Vec<_>>().join(", ");
            CommandError::usage(format!("there is no schema `{name}`"))
                .hint(format!("schemas: {known}; of published libraries: {libraries}"))
        })?;
        if let Some(option) = args.of_one_schema().filter(|_| catalog.chosen().len() != 1) {
            let chosen = catalog.chosen().len();
            return Err(CommandError::usage(format!(
                "{option} needs exactly one --schema, but {chosen} are selected"
            ))
            .hint(format!(
                "pass exactly one --schema ({known}); to set it for several schemas, use `idemctl context \
                set NAME --lock-ttl SCHEMA=DURATION`, or the same with --result-ttl or --prefix"
            ))
            .into());
        }
        if args.prefix.is_some() && !catalog.chosen().iter().any(|schema| schema.takes_prefix) {
            return Err(
                CommandError::usage("--prefix: none of the chosen schemas takes a prefix").into()
            );
        }
        let catalog =
            if is_of_context { catalog.of_context().with_unreadable(unreadable) } else { catalog };
        let chosen: Vec<&str> =
            catalog.chosen().iter().map(|schema| schema.name.as_str()).collect();
        self.ui.detail(&format!("schemas: {}", chosen.join(", ")));
        Ok(catalog.with_extended(self.extended()).with_drafts(drafts))
    }

    /// The locks that were extended on this machine. An unreadable log counts as empty.
    fn extended(&self) -> Extended {
        let log = self.settings.audit_log().ok();
        Extended::read_by(move || log.and_then(|log| log::extended(&log).ok()).unwrap_or_default())
    }

    /// The same context without warnings about unusable schemas.
    #[must_use]
    pub fn saying_nothing(self) -> Self {
        Self { warned: true, ..self }
    }

    /// Warns once per run about unusable schemas of the user's folder.
    ///
    /// # Errors
    /// Usage: one of them is named.
    fn warn_of(
        &mut self,
        left_out: &[(String, SchemaError)],
        names: &[String],
    ) -> Result<(), CommandError> {
        let hint = |name: &str| format!("to see all errors, run `idemctl schema check {name}`");
        if let Some((name, wrong)) = left_out.iter().find(|(name, _)| names.contains(name)) {
            return Err(CommandError::usage(format!("schema {wrong}")).hint(hint(name)));
        }
        if !std::mem::replace(&mut self.warned, true) {
            for (name, wrong) in left_out {
                self.ui.warning(&format!("skipped schema {name}: {wrong}"));
            }
            if let Some((name, _)) = left_out.first() {
                self.ui.hint(&hint(name));
            }
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
        let is_all = |name: &&String| *name == "all";
        let named = args.schema.iter().filter(|name| !is_all(name)).cloned().collect();
        let named = SchemaArgs { schema: named, ..args.clone() };
        // A schema that would not behave as it states may still be executed.
        let mut loaded = self.loaded(&named)?;
        loaded.schemas.extend(loaded.unsound.drain(..).map(|(schema, _)| schema));
        let catalog = self.catalog_of(loaded, &named)?;
        let wants_all = args.schema.iter().any(|name| is_all(&name));
        let is_wanted =
            |schema: &&Arc<Schema>| wants_all || catalog.is_named() || is_default(schema);
        let from = if wants_all { catalog.all() } else { catalog.chosen() };
        let wanted = from.iter().filter(is_wanted).cloned().collect();
        let (executed, left_out) = self.sparing(wanted, catalog.is_named() && !wants_all, lacks)?;
        left_out.iter().for_each(|line| self.ui.warning(line));
        Ok((executed, catalog))
    }

    /// The schemas that lack nothing, and a sentence about each of the others.
    ///
    /// # Errors
    /// Usage: the user named a schema that lacks something, or all schemas do.
    pub fn sparing(
        &self,
        mut schemas: Vec<Arc<Schema>>,
        is_named: bool,
        lacks: impl Fn(&Schema) -> Option<String>,
    ) -> Result<(Vec<Arc<Schema>>, Vec<String>), CommandError> {
        let lacking: Vec<_> = schemas
            .iter()
            .filter_map(|schema| Some((schema.name.clone(), lacks(schema)?)))
            .collect();
        schemas.retain(|schema| lacks(schema).is_none());
        if let Some((name, why)) = lacking.first().filter(|_| is_named || schemas.is_empty()) {
            let hint = format!("`idemctl schema show {name}` shows what the schema describes");
            return Err(
                CommandError::usage(format!("{name} is not supported here: {why}")).hint(hint)
            );
        }
        let left_out = lacking.iter().map(|(name, why)| format!("Skipped schema {name}: {why}"));
        Ok((schemas, left_out.collect()))
    }
}
