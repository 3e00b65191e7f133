//! The body of a response, as `--body` gives it.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::exit::CommandError;
use crate::files;

/// The longest string that Redis stores by default (`proto-max-bulk-len`).
const LARGEST: u64 = 512 * 1024 * 1024;

/// Reads `@FILE`, `-` (stdin) or the text itself; `@@TEXT` is a text that begins with one `@`.
pub(super) fn read(given: &OsStr) -> Result<Vec<u8>, CommandError> {
    match given.as_bytes() {
        b"-" => files::up_to(std::io::stdin().lock(), LARGEST)
            .map_err(|error| CommandError::usage(format!("--body: cannot read stdin: {error}"))),
        [b'@', text @ ..] if text.starts_with(b"@") => Ok(text.to_vec()),
        [b'@', file @ ..] => {
            let file = Path::new(OsStr::from_bytes(file));
            files::read_or_receive(file, LARGEST).map_err(|error| {
                CommandError::usage(format!("--body: cannot read {}: {error}", file.display()))
                    .hint("to pass a text that begins with @, write @@TEXT")
            })
        }
        text => Ok(text.to_vec()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_itself_and_two_ats_are_one() {
        let text = |given: &str| read(OsStr::new(given)).unwrap();
        assert_eq!(text("{}"), b"{}");
        assert_eq!(text(""), b"");
        assert_eq!(text("@@ops"), b"@ops");
        assert_eq!(read(OsStr::from_bytes(b"\xff")).unwrap(), b"\xff");
    }

    #[test]
    fn a_file_is_read_as_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("body");
        std::fs::write(&file, b"a\n\xff").unwrap();
        let given = format!("@{}", file.display());
        assert_eq!(read(OsStr::new(&given)).unwrap(), b"a\n\xff");
        let missing = read(OsStr::new("@/nowhere/body")).unwrap_err();
        assert!(missing.message.contains("/nowhere/body") && missing.hint.is_some());
        assert!(read(OsStr::new("@")).is_err());
    }
}
