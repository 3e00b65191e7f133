//! Checks a context's settings for schemas against the known schemas. A setting without effect is
//! an error, with its line.

use super::effective::Settings;
use crate::args::SchemaArgs;
use crate::domain::schema::{PrefixPlace, Schema, SchemaError};
use crate::exit::CommandError;
use crate::schemas::LoadError;

impl Settings {
    /// The error for schemas that cannot be loaded, with the line of the setting that caused it.
    pub(crate) fn not_loaded(&self, error: &LoadError, args: &SchemaArgs) -> CommandError {
        match error {
            // The flag has precedence over the context, so it is the cause if it is given.
            LoadError::NoPrefix { schema, .. } if self.prefix_flag(schema, args).is_some() => {
                CommandError::usage(format!("--prefix: {error}"))
            }
            LoadError::NoPrefix { schema, .. } => {
                self.at_fault(&["deployment", schema, "prefix"], &error.to_string())
            }
            LoadError::Schema(_) => CommandError::usage(error.to_string()),
        }
    }

    /// Checks that the context's settings for schemas have an effect.
    ///
    /// # Errors
    /// Usage, with file and line: an unknown schema, or a prefix that no schema of the context
    /// accepts.
    pub(crate) fn heed(
        &self,
        known: &[Schema],
        left_out: &[(String, SchemaError)],
    ) -> Result<(), CommandError> {
        self.check_names(known, left_out)?;
        self.check_prefix(known)
    }

    fn check_names(
        &self,
        known: &[Schema],
        left_out: &[(String, SchemaError)],
    ) -> Result<(), CommandError> {
        let context = &self.server_context.context;
        for (index, name) in context.schema.iter().enumerate() {
            self.check_name(&["schema", &index.to_string()], name, known, left_out)?;
        }
        for name in context.deployment.keys() {
            self.check_name(&["deployment", name], name, known, left_out)?;
        }
        Ok(())
    }

    /// Checks that the schema that a field names exists.
    fn check_name(
        &self,
        field: &[&str],
        name: &str,
        known: &[Schema],
        left_out: &[(String, SchemaError)],
    ) -> Result<(), CommandError> {
        if known.iter().any(|schema| schema.name == name) {
            return Ok(());
        }
        // A schema with errors exists, and has a warning of its own.
        if left_out.iter().any(|(left_out, _)| left_out == name) {
            return Ok(());
        }
        let names: Vec<_> = known.iter().map(|schema| schema.name.as_str()).collect();
        let CommandError { message, hint, .. } = CommandError::no_schema(name, &names);
        Err(CommandError { hint, ..self.at_fault(field, &message) })
    }

    fn check_prefix(&self, known: &[Schema]) -> Result<(), CommandError> {
        let context = &self.server_context.context;
        if context.prefix.is_none() {
            return Ok(());
        }
        for schema in known {
            let is_listed = context.schema.is_empty() || context.schema.contains(&schema.name);
            if is_listed && schema.prefix.place == PrefixPlace::Written {
                return Ok(());
            }
        }
        let why = "`prefix` is for schemas whose key templates write {prefix}, \
                   and none of this context's does";
        Err(self
            .at_fault(&["prefix"], why)
            .hint("[contexts.NAME.deployment.SCHEMA] takes the prefix of one schema"))
    }

    /// A usage error with the line of a field of the server's context.
    fn at_fault(&self, field: &[&str], why: &str) -> CommandError {
        let mut keys = vec!["contexts", self.server_context.stated_in.as_str()];
        keys.extend_from_slice(field);
        CommandError::usage(format!("{}: {why}", self.at_line(&keys)))
    }
}
