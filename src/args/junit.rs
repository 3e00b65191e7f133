//! A file with the results for the reporters of CI systems.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args;

use crate::exit::CommandError;
use crate::files;
use crate::render::junit::{TestSuite, document};

/// A file with the results as JUnit XML.
#[derive(Debug, Clone, Default, Args)]
pub(crate) struct JunitArgs {
    /// Write the results to FILE as JUnit XML, for CI systems
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
}

impl JunitArgs {
    /// Writes the file, if the operator wants one. `command` is the name of the command.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn write(&self, command: &str, suites: &[TestSuite]) -> Result<()> {
        let Some(file) = &self.junit else { return Ok(()) };
        files::publish(file, document(command, suites).as_bytes())
            .map_err(|error| cannot_write(file, &error))?;
        Ok(())
    }

    /// Checks that the file can be written, for commands whose work cannot be repeated for free.
    ///
    /// # Errors
    /// The file cannot be written.
    pub(crate) fn check(&self) -> Result<(), CommandError> {
        let Some(file) = &self.junit else { return Ok(()) };
        files::check_publish(file).map_err(|error| cannot_write(file, &error))
    }
}

fn cannot_write(file: &Path, error: &io::Error) -> CommandError {
    CommandError::usage(format!("--junit: cannot write {}: {error}", file.display()))
}
