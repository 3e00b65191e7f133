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
    codecs.iter().rev().try_fold(bytes, |bytes, codec| one(codec, bytes))
}

fn one(codec: &Codec, bytes: Vec<u8>) -> Result<Vec<u8>, String> {
    let failed = |why: io::Error| format!("{}: {why}", codec.word());
    Ok(match codec {
        Codec::Gzip => {
            let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&bytes).and_then(|()| encoder.finish()).map_err(failed)?
        }
        Codec::Zlib => {
            let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
            encoder.write_all(&bytes).and_then(|()| encoder.finish()).map_err(failed)?
        }
        Codec::Hex => hex(&bytes).into_bytes(),
        Codec::Base64 => STANDARD.encode(&bytes).into_bytes(),
        Codec::Prefix(text) => [text.as_bytes(), &bytes].concat(),
        Codec::Suffix(text) => [&bytes, text.as_bytes()].concat(),
    })
}
