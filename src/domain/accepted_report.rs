//! Results of an earlier report that were accepted, for comparison with those of now.

use serde::Deserialize;
use serde::de::DeserializeOwned;

#[derive(Deserialize)]
struct DocumentFormat {
    format: u64,
}

/// Reads the accepted results of a document that `--output json` wrote.
///
/// # Errors
/// The text is not such a document, or it has another format.
pub(crate) fn parse_accepted<T: DeserializeOwned>(json: &[u8]) -> Result<T, String> {
    let DocumentFormat { format } = serde_json::from_slice(json).map_err(|why| why.to_string())?;
    if format != 1 {
        return Err(format!("format {format} is not known: this idemctl reads format 1"));
    }
    serde_json::from_slice(json).map_err(|why| why.to_string())
}
