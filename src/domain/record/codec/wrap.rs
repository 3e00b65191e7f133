//! Applies codecs to a value, as the service does.

use std::io::{self, Write as _};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::write::{GzEncoder, ZlibEncoder};

use crate::domain::hex::hex;
use crate::domain::schema::Codec;

/// Applies codecs to bytes, so that [`undo`](super::undo()) undoes them in their order.
///
/// # Errors
/// Why a codec rejects the bytes, for people.
pub(crate) fn wrap(codecs: &[Codec], bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let mut bytes = bytes;
    // The order of the codecs is that of reading, so the last one is applied first.
    for codec in codecs.iter().rev() {
        bytes = one(codec, &bytes)?;
    }
    Ok(bytes)
}

fn one(codec: &Codec, bytes: &[u8]) -> Result<Vec<u8>, String> {
    Ok(match codec {
        Codec::Gzip => gzip(bytes).map_err(|why| format!("{}: {why}", codec.word()))?,
        Codec::Zlib => zlib(bytes).map_err(|why| format!("{}: {why}", codec.word()))?,
        Codec::Hex => hex(bytes).into_bytes(),
        Codec::Base64 => STANDARD.encode(bytes).into_bytes(),
        Codec::Prefix(text) => [text.as_bytes(), bytes].concat(),
        Codec::Suffix(text) => [bytes, text.as_bytes()].concat(),
    })
}

fn gzip(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}

fn zlib(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
    encoder.write_all(bytes)?;
    encoder.finish()
}
