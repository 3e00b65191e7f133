//! The hash of a schema's files. The build script includes this file too, so that no run has to hash
//! the built-in schemas.

use sha2::{Digest as _, Sha256};

/// The SHA-256 of `schema.toml` and of the scripts, in hex. `scripts` are names and texts in the
/// order of the names.
pub(super) fn of<'a>(toml: &str, scripts: impl IntoIterator<Item = (&'a str, &'a str)>) -> String {
    let mut hash = Sha256::new();
    add_file(&mut hash, "schema.toml", toml);
    for (name, text) in scripts {
        add_file(&mut hash, name, text);
    }
    format!("{:x}", hash.finalize())
}

fn add_file(hash: &mut Sha256, name: &str, text: &str) {
    // The length keeps the text of one file apart from the next.
    hash.update(format!("{name} {}\n", text.len()));
    hash.update(text);
}
