//! `--request-body`: the keys that services derive from the body of a request.

use std::path::Path;

use crate::domain::schema::Catalog;
use crate::exit::CommandError;
use crate::files;

/// Larger than a request that a service would read to hash its body.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The idempotency keys of a request whose body is in a file (`-`: stdin), under the schemas that
/// derive keys from bodies.
///
/// # Errors
/// Usage: the file cannot be read; no chosen schema derives a key from a body; a key contains more
/// than the body.
pub(super) fn keys(catalog: &Catalog, file: &Path) -> Result<Vec<Vec<u8>>, CommandError> {
    let body = if file.as_os_str() == "-" {
        files::up_to(std::io::stdin().lock(), LARGEST)
    } else {
        files::read_or_receive(file, LARGEST)
    };
    let body = body.map_err(|error| {
        CommandError::usage(format!("--request-body: cannot read {}: {error}", file.display()))
    })?;
    let mut keys: Vec<Vec<u8>> = Vec::new();
    for schema in catalog.chosen() {
        let Some(key_hash) = schema.key_hash else { continue };
        let hash = key_hash.of(&body);
        if let Some(groups) = schema.keys[0].template.groups() {
            let message = format!(
                "--request-body: a key of {} is {groups}, but the body determines only {{key}}",
                schema.name
            );
            return Err(CommandError::usage(message).hint(format!(
                "{{key}} is {hash}; pass the whole key, or search with --find {hash}"
            )));
        }
        // Several schemas may derive the same key.
        if !keys.contains(&hash.as_bytes().to_vec()) {
            keys.push(hash.into_bytes());
        }
    }
    if keys.is_empty() {
        let message = "--request-body: no chosen schema uses hashes of bodies as keys";
        return Err(CommandError::usage(message)
            .hint("if yours does, add to [keys] in its schema.toml: hash = \"sha256(body)\""));
    }
    Ok(keys)
}
