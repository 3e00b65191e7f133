//! `--request-body`: the keys that services make of a request's body.

use std::path::Path;

use crate::domain::schema::Catalog;
use crate::exit::CommandError;
use crate::files;

/// Larger than a request that a service would read to hash its body.
const LARGEST: u64 = 64 * 1024 * 1024;

/// The idempotency keys of a request with the body that stands in a file (`-`: stdin), under the schemas that make keys so.
///
/// # Errors
/// Usage: the file cannot be read; no chosen schema makes a key of a body, or more than the body is in its keys.
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
        let Some(hash) = schema.key_hash.map(|hash| hash.of(&body)) else { continue };
        if let Some(groups) = schema.keys[0].template.groups() {
            let message = format!(
                "--request-body: a key of {} is {groups}, but the body determines only {{key}}",
                schema.name
            );
            return Err(CommandError::usage(message).hint(format!(
                "{{key}} is {hash}; pass the whole key, or search with --find {hash}"
            )));
        }
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
