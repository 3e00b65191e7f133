//! The files of a schema folder, as a template for a new folder.

use std::fs;
use std::io;
use std::path::Path;

use crate::domain::draft::DRAFT;
use crate::domain::schema::Script;
use crate::files;

/// A `schema.toml` and the scripts next to it.
pub(crate) struct Files {
    pub(crate) toml: String,
    pub(crate) scripts: Vec<Script>,
}

impl Files {
    /// The same files under another name, with their comments, marked as a draft.
    pub(crate) fn renamed(self, name: &str) -> Self {
        let mut toml = String::new();
        let mut is_named = false;
        for line in self.toml.lines() {
            // A copy of a draft has the line only once.
            if line == DRAFT {
                continue;
            }
            let field = line.split('=').next().unwrap_or_default().trim();
            // Only the first `name` is that of the schema. The value formats have names as well.
            if field == "name" && !is_named {
                is_named = true;
                toml.push_str(&format!("name = {name:?}\n{DRAFT}\n"));
            } else {
                toml.push_str(line);
                toml.push('\n');
            }
        }
        Self { toml, ..self }
    }
}

/// # Errors
/// The name contains characters that a schema's name must not contain.
pub(crate) fn refuse_name(name: &str) -> Result<(), String> {
    // The name becomes a folder's name. A dot at the beginning would hide the folder, and `..`
    // would lead out of its parent.
    let mut is_allowed = !name.is_empty() && !name.starts_with('.');
    for byte in name.bytes() {
        is_allowed &= byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    }
    if is_allowed {
        return Ok(());
    }
    Err(format!(
        "`{name}` cannot be a schema's name, which consists of letters, digits, `-`, `_` and `.`"
    ))
}

/// Creates the folder with these files, completely or not at all.
///
/// # Errors
/// The folder cannot be written.
pub(crate) fn write_new(folder: &Path, of: &Files) -> io::Result<()> {
    let around = folder.parent().unwrap_or(Path::new("."));
    fs::create_dir_all(around)?;
    // Written under another name first. A rename then shows the folder with all of its files, or
    // not at all.
    let beside = tempfile::Builder::new().prefix(".new-").tempdir_in(around)?;
    files::write(&beside.path().join("schema.toml"), of.toml.as_bytes(), false)?;
    for script in &of.scripts {
        files::write(
            &beside.path().join(format!("{}.lua", script.name)),
            script.text.as_bytes(),
            false,
        )?;
    }
    let made = beside.keep();
    fs::rename(&made, folder).inspect_err(|_| _ = fs::remove_dir_all(&made))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_copy_has_its_own_name_and_every_comment() {
        let toml = "# Ours.\nformat = 2\nname = \"old\" # its name\n[[value]]\nname = \"held\"\n"
            .to_owned();
        let renamed = Files { toml, scripts: Vec::new() }.renamed("new");
        assert_eq!(
            renamed.toml,
            format!("# Ours.\nformat = 2\nname = \"new\"\n{DRAFT}\n[[value]]\nname = \"held\"\n")
        );
    }

    #[test]
    fn a_name_leads_nowhere_else() {
        assert!(["..", "", "a/b", ".hidden", "a b"].iter().all(|name| refuse_name(name).is_err()));
        assert!(["shop", "shop-v1.2"].iter().all(|name| refuse_name(name).is_ok()));
    }
}
