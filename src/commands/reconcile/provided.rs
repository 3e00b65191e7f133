//! The answers of a provider's csv file, with their bodies.

use std::io;
use std::path::{Path, PathBuf};

use crate::domain::reconcile::{ProviderAnswer, ProviderRow, parse_rows};
use crate::exit::CommandError;
use crate::files;

/// The largest csv file, and the largest body. Both are kept in memory, and an answer of a program
/// has the same limit (`MAX_ANSWER`).
const MOST: u64 = 16 << 20;

/// True if the file is stdin.
pub(super) fn is_stdin(file: &Path) -> bool {
    file == Path::new("-")
}

/// Reads the file and all bodies, before anything else is done.
///
/// # Errors
/// Usage: a file cannot be read, or the first line that is wrong.
pub(super) fn read(file: &Path) -> Result<Vec<ProviderRow>, CommandError> {
    let wrong = |why: String| CommandError::usage(format!("--from {}: {why}", file.display()));
    let bytes = if is_stdin(file) {
        files::up_to(io::stdin().lock(), MOST)
    } else {
        files::read_or_receive(file, MOST)
    };
    let bytes = bytes.map_err(|error| wrong(error.to_string()))?;
    let mut rows = parse_rows(&bytes).map_err(wrong)?;
    let folder = file.parent().unwrap_or(Path::new(""));
    for row in &mut rows {
        if let ProviderAnswer::Done(response) = &mut row.answer
            && let Some(name) = &response.body_file
        {
            let read = path_below(folder, name).and_then(|path| files::read(&path, MOST));
            response.body = Some(read.map_err(|error| {
                wrong(format!("line {}: cannot read {name}: {error}", row.line))
            })?);
        }
    }
    Ok(rows)
}

/// The path of a body file. Clients get the body, and the provider wrote the name, so a file outside
/// the folder of the csv file is refused, also behind a symbolic link.
///
/// # Errors
/// The file does not exist, or is outside the folder.
fn path_below(folder: &Path, name: &str) -> io::Result<PathBuf> {
    let folder = folder.join(".").canonicalize()?;
    let path = folder.join(name).canonicalize()?;
    if path.starts_with(&folder) {
        return Ok(path);
    }
    Err(io::Error::other("it is not below the folder of the csv file"))
}
