//! Reads the password from a file or stdin.

use std::io;
use std::path::Path;

use super::file::{READABLE, chmod, others_can_read};
use crate::domain::secret::Secret;
use crate::exit::CommandError;
use crate::files;

/// Longer than any password. The limit keeps a wrong path, such as that of a device without an end,
/// from filling the memory.
pub(super) const LONGEST: u64 = 64 * 1024;

/// The first line of a file, or of stdin if the file is `-`, and a warning about the file if there
/// is one.
///
/// # Errors
/// Usage: it cannot be read, or contains no password.
pub(super) fn from_file(path: &Path, from: &str) -> Result<(Secret, Option<String>), CommandError> {
    let is_stdin = path == Path::new("-");
    let bytes =
        if is_stdin { first_line_of_stdin() } else { files::read_or_receive(path, LONGEST) };
    let bytes = bytes.map_err(|error| unusable(path, from, &error.to_string()))?;
    let Ok(text) = String::from_utf8(bytes) else {
        return Err(unusable(path, from, "a password is UTF-8 text"));
    };
    let password = only_line(&text).map_err(|why| unusable(path, from, why))?;
    let mut warning = None;
    if !is_stdin && others_can_read(path) {
        warning = Some(format!("{} {READABLE} {}", path.display(), chmod(path)));
    }
    Ok((Secret::from(password), warning))
}

/// The only line of a text, without its end.
///
/// # Errors
/// It is empty, or there are more lines.
pub(super) fn only_line(text: &str) -> Result<&str, &'static str> {
    // Editors end the line with LF or CR LF, which is not a part of the password.
    let line = text.strip_suffix('\n').unwrap_or(text);
    let line = line.strip_suffix('\r').unwrap_or(line);
    if line.is_empty() {
        return Err("there is no password in it");
    }
    if line.contains('\n') {
        return Err("it has more than one line");
    }
    Ok(line)
}

fn unusable(path: &Path, from: &str, why: &str) -> CommandError {
    CommandError::usage(format!("{from}: {}: {why}", path.display()))
}

/// Reads byte by byte, because the bytes after the line belong to the command.
fn first_line_of_stdin() -> io::Result<Vec<u8>> {
    let mut line = Vec::new();
    let mut byte = [0];
    while (line.len() as u64) < LONGEST
        && rustix::io::read(rustix::stdio::stdin(), &mut byte)? == 1
        && byte[0] != b'\n'
    {
        line.push(byte[0]);
    }
    Ok(line)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_password_is_the_one_line_of_its_file() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("pass");
        let read = |text: &str, mode| {
            std::fs::write(&file, text).unwrap();
            std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
            from_file(&file, "--pass-file")
        };
        for text in ["s3cret", "s3cret\n", "s3cret\r\n"] {
            let (password, warning) = read(text, 0o600).unwrap();
            assert_eq!((password.reveal(), warning), ("s3cret", None));
        }
        assert_eq!(read(" a b ", 0o600).unwrap().0.reveal(), " a b ");
        let (_, warning) = read("s3cret", 0o640).unwrap();
        assert!(warning.is_some_and(|warning| warning.contains("chmod 600") && !warning.contains("s3cret")));
        for text in ["", "\n", "s3cret\nmore\n"] {
            let stop = read(text, 0o600).unwrap_err();
            assert!(!stop.message.contains("s3cret"), "{}", stop.message);
        }
    }
}
