//! Checking an operator's schema folders: all that is wrong with them, with file and line.

use std::fs;
use std::path::{Path, PathBuf};

use super::faults::{self, Problem};
use super::load::Deployment;
use super::load::read_folder;

#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) folder: PathBuf,
    pub(crate) name: Option<String>,
    pub(crate) problems: Vec<Problem>,
}

impl Report {
    /// True when the schema cannot be used, or would not do what it says.
    pub(crate) fn is_wrong(&self) -> bool {
        self.problems.iter().any(|problem| problem.is_error)
    }
}

/// Checks the schema in a folder, or those in the folders below it; `None` when there is none.
pub(crate) fn check(folder: &Path) -> std::io::Result<Option<Vec<Report>>> {
    if folder.join("schema.toml").is_file() {
        return Ok(Some(vec![report(folder)]));
    }
    let mut below = fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<std::io::Result<Vec<_>>>()?;
    below.retain(|path| path.join("schema.toml").is_file());
    below.sort();
    Ok((!below.is_empty()).then(|| below.iter().map(|folder| report(folder)).collect()))
}

fn report(folder: &Path) -> Report {
    // A folder given as `.` has a name too, which the schema's must be.
    let named = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    match read_folder(&named, &Deployment::default()) {
        Err(mut error) => {
            error.file = error.file.replacen(&named.display().to_string(), &folder.display().to_string(), 1);
            Report { folder: folder.to_owned(), name: None, problems: vec![Problem { what: error, is_error: true }] }
        }
        Ok(schema) => {
            let problems = faults::of(folder, &schema);
            Report { folder: folder.to_owned(), name: Some(schema.name), problems }
        }
    }
}
