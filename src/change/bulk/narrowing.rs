//! How narrow a change of many records has to be, so that other programs' values stay.

use crate::args::SchemaArgs;
use crate::domain::schema::Catalog;
use crate::domain::select::glob;
use crate::exit::CommandError;

/// The options that narrow a change down to keys that the operator knows.
pub struct Narrowing<'a> {
    pub glob: Option<&'a [u8]>,
    pub has_key_file: bool,
    pub schemas: &'a SchemaArgs,
}

impl Narrowing<'_> {
    /// Passes where a change of the catalog's records is narrow enough; `takes_unreadable` where the change takes values that
    /// nobody can read, too.
    ///
    /// # Errors
    /// Refused for safety, with what is missing.
    pub fn check(&self, catalog: &Catalog, takes_unreadable: bool) -> Result<(), CommandError> {
        let names_keys = self.has_key_file || self.glob.is_some_and(glob::has_literal);
        let scanned = catalog.scanned();
        if let Some(schema) = scanned.iter().find(|schema| !schema.has_prefix() && !names_keys) {
            let name = &schema.name;
            return Err(CommandError::usage(format!(
                "{name} has no literal prefix: any Redis key may be {name}'s"
            ))
            .hint("say which: --prefix, or --match with a literal part; a purge also takes keys"));
        }
        let (is_named, prefix) =
            (!self.schemas.schema.is_empty(), self.schemas.prefix.as_deref().unwrap_or_default());
        if takes_unreadable && !(is_named && (names_keys || !prefix.is_empty())) {
            return Err(CommandError::usage("a value that cannot be read may be any program's")
                .hint("say whose: --schema, with --prefix or --match with a literal part; a purge also takes keys"));
        }
        Ok(())
    }
}
