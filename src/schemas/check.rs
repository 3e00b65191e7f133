//! Checks an operator's schema folders and reports all problems with file and line.

use std::fs;
use std::path::{Path, PathBuf};

use super::faults::{self, LARGEST, Problem};
use super::load::{Deployment, read_whole};
use crate::domain::draft::DECIDE;
use crate::domain::schema::{Schema, SchemaError};
use crate::files;

#[derive(Debug)]
pub(crate) struct SchemaReport {
    pub(crate) folder: PathBuf,
    /// The schema, if it can be read.
    pub(crate) schema: Option<Schema>,
    pub(crate) problems: Vec<Problem>,
}

impl SchemaReport {
    /// True if the schema is unusable, or would not behave as it states.
    pub(crate) fn is_wrong(&self) -> bool {
        self.problems.iter().any(|problem| problem.is_error)
    }

    /// Adds a problem at the line of the table with this heading and index.
    pub(crate) fn add(&mut self, heading: &str, index: usize, message: String, is_error: bool) {
        let file = self.folder.join("schema.toml");
        // The schema was read from this file before. If it cannot be read again, only the line
        // number is lost.
        let text = files::read_text(&file, LARGEST).unwrap_or_default();
        let line = faults::line_of_table(&text, heading, index);
        let what = SchemaError { file: file.display().to_string(), line, message };
        self.problems.push(Problem { what, is_error });
    }
}

/// Checks the schema in a folder, or those in the folders directly below it; `None` if there is
/// none.
pub(crate) fn check(folder: &Path) -> std::io::Result<Option<Vec<SchemaReport>>> {
    if folder.join("schema.toml").is_file() {
        return Ok(Some(vec![report(folder)]));
    }
    let mut below = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.join("schema.toml").is_file() {
            below.push(path);
        }
    }
    if below.is_empty() {
        return Ok(None);
    }
    // The order of a directory's entries differs from machine to machine.
    below.sort();
    Ok(Some(below.iter().map(|folder| report(folder)).collect()))
}

fn report(folder: &Path) -> SchemaReport {
    // A folder given as `.` is resolved, because the schema's name must match the folder's name.
    let named = fs::canonicalize(folder).unwrap_or_else(|_| folder.to_owned());
    match read_whole(&named, &Deployment::default()) {
        Err(errors) => {
            // The report names the files by the path that the operator gave, not by the resolved
            // one.
            let resolved = named.display().to_string();
            let given = folder.display().to_string();
            let mut problems = Vec::new();
            for error in errors {
                let file = error.file.replacen(&resolved, &given, 1);
                problems.push(Problem { what: SchemaError { file, ..error }, is_error: true });
            }
            SchemaReport { folder: folder.to_owned(), schema: None, problems }
        }
        Ok(schema) => {
            let mut problems = faults::problems(folder, &schema);
            // A copy is a draft because of a comment, and looks complete.
            let file = folder.join("schema.toml");
            let text = files::read_text(&file, LARGEST).unwrap_or_default();
            if let Some(index) = text.lines().position(|line| line.contains(DECIDE)) {
                let message = format!(
                    "the word {DECIDE} keeps it a draft, which is read only if --schema or a \
                    context names it; delete the line to read it everywhere"
                );
                let file = file.display().to_string();
                let what = SchemaError { file, line: index + 1, message };
                problems.push(Problem { what, is_error: false });
            }
            SchemaReport { folder: folder.to_owned(), schema: Some(schema), problems }
        }
    }
}
