//! Undoing hex and base64.

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::inflate::InflateEnd;

/// Encoders differ in whether they pad.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

pub(super) fn hex(text: &[u8]) -> (Vec<u8>, InflateEnd) {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for pair in text.chunks(2) {
        let digit = |at: usize| pair.get(at).map(|letter| char::from(*letter).to_digit(16));
        match (digit(0), digit(1)) {
            (Some(Some(high)), Some(Some(low))) => bytes.extend(u8::try_from(high * 16 + low)),
            (Some(Some(_)), None) => return (bytes, InflateEnd::Cut),
            _ => return (bytes, InflateEnd::Damaged("a letter in it is no hex digit".to_owned())),
        }
    }
    (bytes, InflateEnd::Reached)
}

/// Takes both alphabets, padded or not.
pub(super) fn base64(text: &[u8]) -> (Vec<u8>, InflateEnd) {
    let is_url_safe = text.iter().any(|letter| b"-_".contains(letter));
    let engine = if is_url_safe { URL_SAFE } else { STANDARD };
    match engine.decode(text) {
        Ok(bytes) => (bytes, InflateEnd::Reached),
        // The letters come in fours: those that are complete stand for bytes, wherever the text was cut.
        Err(why) => match engine.decode(&text[..text.len() - text.len() % 4]) {
            Ok(bytes) => (bytes, InflateEnd::Cut),
            Err(_) => (Vec::new(), InflateEnd::Damaged(why.to_string())),
        },
    }
}
