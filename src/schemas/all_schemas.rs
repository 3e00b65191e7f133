//! All known schemas, each with any requested prefix. They show which application unclaimed keys
//! belong to.

use std::cell::RefCell;
use std::collections::HashMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::load::{self, Deployment, LoadError};
use crate::domain::detect::SchemaSet;
use crate::domain::schema::Schema;

/// Schemas by name and prefix; `None` for a schema that does not take the prefix.
type Prefixed = HashMap<(String, String), Option<Arc<Schema>>>;

/// The schemas of the operator's folder, followed by the built-in ones and those of published
/// libraries.
pub(crate) struct AllSchemas {
    folder: Option<PathBuf>,
    all: Vec<Arc<Schema>>,
    /// Schemas that were read with another prefix. Cached, because a scan requests the same ones
    /// often.
    prefixed: RefCell<Prefixed>,
}

impl AllSchemas {
    /// Reads all schemas, each with its own prefix.
    ///
    /// # Errors
    /// The folder cannot be read.
    pub(crate) fn read(folder: Option<&Path>) -> Result<Self, LoadError> {
        let loaded = load::load_with(folder, |_| true, |_| Deployment::default())?;
        let mut all: Vec<_> = loaded.schemas.into_iter().map(Arc::new).collect();
        all.sort_by_key(|schema| schema.is_built_in());
        Ok(Self { folder: folder.map(Path::to_owned), all, prefixed: RefCell::default() })
    }

    /// A schema with this prefix; `None` if there is no schema of this name.
    ///
    /// # Errors
    /// The schema cannot be read, or takes no prefix.
    pub(crate) fn deployed(
        &self,
        name: &str,
        prefix: Option<&str>,
    ) -> Result<Option<Schema>, LoadError> {
        let deployment = Deployment { prefix: prefix.map(str::to_owned), ..Deployment::default() };
        load::one(self.folder.as_deref(), name, &deployment)
    }
}

impl SchemaSet for AllSchemas {
    fn all(&self) -> &[Arc<Schema>] {
        &self.all
    }

    fn with_prefix(&self, name: &str, prefix: &str) -> Option<Arc<Schema>> {
        let named = (name.to_owned(), prefix.to_owned());
        let mut prefixed = self.prefixed.borrow_mut();
        if let Some(known) = prefixed.get(&named) {
            return known.clone();
        }
        let schema = match self.deployed(name, Some(prefix)) {
            Ok(Some(schema)) => Some(Arc::new(schema)),
            // A schema that does not take the prefix does not explain the keys.
            Ok(None) | Err(_) => None,
        };
        prefixed.insert(named, schema.clone());
        schema
    }
}
