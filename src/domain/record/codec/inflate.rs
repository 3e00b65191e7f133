//! Decompresses values in chunks, so that the output never exceeds the requested size.

use std::io::{ErrorKind, Read};

use flate2::read::GzDecoder;
use flate2::{Decompress, FlushDecompress, Status};

/// The size of a chunk of output.
pub(super) const CHUNK: usize = 8 << 10;

/// How the decompression of a value ended.
#[derive(Debug)]
pub(super) enum InflateEnd {
    Reached,
    /// There is more output than requested.
    Full,
    /// The input ends before the compressed data does.
    Cut,
    Damaged(String),
}

pub(super) fn gzip(bytes: &[u8], most: usize) -> (Vec<u8>, InflateEnd) {
    drain(GzDecoder::new(bytes), most)
}

/// The crate's reader does not distinguish truncated data from damaged data, so this drives the
/// decoder itself.
pub(super) fn zlib(bytes: &[u8], most: usize) -> (Vec<u8>, InflateEnd) {
    let mut decoder = Decompress::new(true);
    let mut opened = Vec::new();
    let mut rest = bytes;
    loop {
        opened.reserve(CHUNK);
        let taken_before = decoder.total_in();
        let given_before = opened.len();
        let status = decoder.decompress_vec(rest, &mut opened, FlushDecompress::None);
        let taken = usize::try_from(decoder.total_in() - taken_before).unwrap_or(rest.len());
        rest = rest.get(taken..).unwrap_or_default();
        let end = match status {
            Err(why) => InflateEnd::Damaged(why.to_string()),
            _ if opened.len() > most => InflateEnd::Full,
            Ok(Status::StreamEnd) => InflateEnd::Reached,
            // Without progress the decoder waits for input that was not read.
            Ok(_) if taken == 0 && opened.len() == given_before => InflateEnd::Cut,
            Ok(_) => continue,
        };
        opened.truncate(most);
        return (opened, end);
    }
}

fn drain(mut from: impl Read, most: usize) -> (Vec<u8>, InflateEnd) {
    let mut opened = Vec::new();
    let mut chunk = [0; CHUNK];
    loop {
        let end = match from.read(&mut chunk) {
            Ok(0) => InflateEnd::Reached,
            Ok(count) => {
                opened.extend_from_slice(&chunk[..count]);
                if opened.len() <= most {
                    continue;
                }
                InflateEnd::Full
            }
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            Err(error) if error.kind() == ErrorKind::UnexpectedEof => InflateEnd::Cut,
            Err(error) => InflateEnd::Damaged(error.to_string()),
        };
        opened.truncate(most);
        return (opened, end);
    }
}
