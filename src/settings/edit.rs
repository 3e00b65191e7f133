//! Choosing the default context: one word of the config file, everything else in it as it was.

use std::fs;
use std::io::Write as _;
use std::path::Path;

use toml_edit::{DocumentMut, value};

use super::file::ConfigFile;
use crate::exit::Stop;

/// Makes a context the default one: `default_context` in the file.
///
/// # Errors
/// Usage: there is no such context, or the file cannot be written.
pub(crate) fn use_context(file: &ConfigFile, name: &str) -> Result<(), Stop> {
    file.context(name)?;
    let path = file.path().ok_or_else(|| Stop::usage("there is no config file"))?;
    let wrong = |why: String| Stop::usage(format!("cannot write the config file {}: {why}", path.display()));
    let mut document: DocumentMut =
        file.text().parse().map_err(|error: toml_edit::TomlError| wrong(error.to_string()))?;
    match document.get_mut("default_context").and_then(|item| item.as_value_mut()) {
        // Comments behind the value stay.
        Some(old) => {
            let around = old.decor().clone();
            *old = name.into();
            *old.decor_mut() = around;
        }
        None => {
            document.insert("default_context", value(name));
        }
    }
    write(path, &document.to_string()).map_err(|error| wrong(error.to_string()))
}

/// All or nothing: through a file beside it, with its rights; where it is a link, what it leads to.
pub(super) fn write(path: &Path, text: &str) -> std::io::Result<()> {
    let path = fs::canonicalize(path)?;
    let folder = path.parent().unwrap_or(Path::new("/"));
    let mut new = tempfile::Builder::new().prefix(".config-").tempfile_in(folder)?;
    new.write_all(text.as_bytes())?;
    new.as_file().set_permissions(fs::metadata(&path)?.permissions())?;
    new.as_file().sync_all()?;
    new.persist(&path).map_err(|error| error.error)?;
    Ok(())
}
