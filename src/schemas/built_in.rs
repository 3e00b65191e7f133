//! The schema folders that are compiled in. Every run reads the services' schemas; the layouts of
//! published libraries are read only if they are named.

use crate::domain::schema::{CompiledIn, Prefixes, SchemaOrigin, SchemaSource, Script};

/// A folder of `lua/` or of `lua/libraries/`.
pub(super) struct BuiltIn {
    pub(super) folder: &'static str,
    /// The path of `schema.toml` in the project.
    file: &'static str,
    toml: &'static str,
    json: &'static str,
    files_hash: &'static str,
    scripts: &'static [(&'static str, &'static str)],
}

pub(super) const BUILT_IN: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/built_in.rs"));

/// Separate from `BUILT_IN`, because every schema slows down every run, and other programs' keys
/// may look like a library's.
pub(super) const LIBRARIES: &[BuiltIn] = include!(concat!(env!("OUT_DIR"), "/libraries.rs"));

impl BuiltIn {
    /// The parser's input, with the prefixes of the deployment.
    pub(super) fn source<'a>(&self, prefixes: Prefixes<'a>) -> SchemaSource<'a> {
        let mut scripts = Vec::new();
        for (name, text) in self.scripts {
            scripts.push(Script { name: (*name).to_owned(), text: (*text).into() });
        }
        SchemaSource {
            file: self.file,
            toml: self.toml,
            compiled_in: Some(CompiledIn { json: self.json, files_hash: self.files_hash }),
            scripts,
            origin: SchemaOrigin::BuiltIn,
            prefixes,
        }
    }
}

/// The names of the published libraries with a known layout.
pub(crate) fn libraries() -> impl Iterator<Item = &'static str> {
    LIBRARIES.iter().map(|library| library.folder)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::schema;

    #[test]
    fn what_is_compiled_in_says_what_the_files_say() {
        for built_in in BUILT_IN.iter().chain(LIBRARIES) {
            let compiled_in = built_in.source(Prefixes::default());
            let files = SchemaSource { compiled_in: None, ..built_in.source(Prefixes::default()) };
            let from_toml = schema::parse(files).unwrap();
            let from_json = schema::parse(compiled_in).unwrap();
            assert_eq!(format!("{from_json:?}"), format!("{from_toml:?}"));
        }
    }
}
