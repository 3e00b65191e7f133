//! Undoes codecs one after the other. The output of each is limited, so that a decompression bomb
//! cannot fill the memory.

use std::borrow::Cow;

use base64::Engine as _;
use base64::alphabet;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};

use super::inflate::{self, InflateEnd};
use crate::domain::schema::{Codec, Decoder};

/// The most bytes that a whole value may expand to. This equals the most bytes that are ever read
/// to recognise a value.
const MAX_DECODED: usize = 16 << 20;

/// The most bytes that the beginning of a value may expand to. This equals the most bytes that a
/// scan reads of a value.
const MAX_OF_PART: usize = 64 << 10;

/// The first bytes of gzip (RFC 1952).
const GZIP_MAGIC: [u8; 2] = [0x1f, 0x8b];

/// Some encoders pad, others do not.
const LENIENT: GeneralPurposeConfig =
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent);
const STANDARD: GeneralPurpose = GeneralPurpose::new(&alphabet::STANDARD, LENIENT);
const URL_SAFE: GeneralPurpose = GeneralPurpose::new(&alphabet::URL_SAFE, LENIENT);

/// The content of a value after its codecs are undone.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Plain<'a> {
    pub(crate) bytes: Cow<'a, [u8]>,
    /// False if more bytes may follow.
    pub(crate) whole: bool,
}

/// Undoes codecs in their order. With `whole` false the bytes may end anywhere.
///
/// # Errors
/// Why the bytes are not what the codecs write, for people.
pub(crate) fn undo<'a>(
    codecs: &[Codec],
    bytes: &'a [u8],
    whole: bool,
) -> Result<Plain<'a>, String> {
    let mut plain = Plain { bytes: Cow::Borrowed(bytes), whole };
    for codec in codecs {
        let (bytes, whole) = one(codec, &plain.bytes, plain.whole)?;
        plain = Plain { bytes: Cow::Owned(bytes), whole };
    }
    Ok(plain)
}

fn one(codec: &Codec, bytes: &[u8], whole: bool) -> Result<(Vec<u8>, bool), String> {
    let most = if whole { MAX_DECODED } else { MAX_OF_PART };
    let (opened, end) = match codec {
        Codec::Gzip => inflate::gzip(bytes, most),
        Codec::Zlib => inflate::zlib(bytes, most),
        Codec::Hex => hex(bytes),
        Codec::Base64 => base64(bytes),
        Codec::Prefix(text) => prefix(bytes, text),
        Codec::Suffix(text) => suffix(bytes, text, whole),
    };
    let name = codec.word();
    // No compressor writes zero bytes, so an empty value is an error unless more may follow.
    if bytes.is_empty() && codec.compresses() {
        return if whole {
            Err(format!("not {name}: nothing is there"))
        } else {
            Ok((opened, false))
        };
    }
    match end {
        InflateEnd::Reached => Ok((opened, whole)),
        InflateEnd::Full if whole => {
            Err(format!("what {name} wraps is larger than {} MiB, which is not opened", most >> 20))
        }
        InflateEnd::Cut if whole => Err(format!("not {name}: the end is missing")),
        // The input ended where the read ended, so more content may follow.
        InflateEnd::Full | InflateEnd::Cut => Ok((opened, false)),
        InflateEnd::Damaged(_) if !whole && !opened.is_empty() => Ok((opened, false)),
        InflateEnd::Damaged(why) => Err(format!("not {name}: {why}")),
    }
}

/// True if a value begins as the decoder's values do. If the decoder rejects it, it may then be a
/// damaged one of them.
pub(crate) fn begins_so(decoder: &Decoder, bytes: &[u8]) -> bool {
    let mut bytes = Cow::Borrowed(bytes);
    for codec in &decoder.codecs {
        match codec {
            Codec::Gzip => return bytes.starts_with(&GZIP_MAGIC),
            // The two bytes of a zlib header are a multiple of 31, and the method is 8 (RFC 1950).
            Codec::Zlib => {
                let Some([method, flags]) = bytes.first_chunk::<2>() else { return false };
                let header = u16::from(*method) * 256 + u16::from(*flags);
                return method & 0x0f == 8 && header % 31 == 0;
            }
            // A few letters are enough for what is inside, and the damage may follow them.
            Codec::Hex | Codec::Base64 => {
                let start = &bytes[..bytes.len().min(8) / 4 * 4];
                match one(codec, start, false) {
                    Ok((decoded, _)) => bytes = Cow::Owned(decoded),
                    Err(_) => return false,
                }
            }
            Codec::Prefix(text) => match bytes.strip_prefix(text.as_bytes()) {
                Some(rest) => bytes = Cow::Owned(rest.to_vec()),
                None => return false,
            },
            Codec::Suffix(_) => {}
        }
    }
    !decoder.encoding.has_fields() || decoder.encoding.begins_so(&bytes)
}

/// Undoes hex.
fn hex(text: &[u8]) -> (Vec<u8>, InflateEnd) {
    let mut bytes = Vec::with_capacity(text.len() / 2);
    for pair in text.chunks(2) {
        let Some(high) = char::from(pair[0]).to_digit(16) else { return (bytes, no_hex()) };
        // A read may end between the two digits of a byte.
        let Some(second) = pair.get(1) else { return (bytes, InflateEnd::Cut) };
        let Some(low) = char::from(*second).to_digit(16) else { return (bytes, no_hex()) };
        bytes.extend(u8::try_from(high * 16 + low));
    }
    (bytes, InflateEnd::Reached)
}

fn no_hex() -> InflateEnd {
    InflateEnd::Damaged("a letter in it is no hex digit".to_owned())
}

/// Undoes base64 of both alphabets, padded or not.
fn base64(text: &[u8]) -> (Vec<u8>, InflateEnd) {
    let is_url_safe = text.iter().any(|letter| b"-_".contains(letter));
    let engine = if is_url_safe { URL_SAFE } else { STANDARD };
    match engine.decode(text) {
        Ok(bytes) => (bytes, InflateEnd::Reached),
        // Base64 encodes in groups of four letters. The complete groups decode, even if the text
        // was truncated within a group.
        Err(why) => match engine.decode(&text[..text.len() - text.len() % 4]) {
            Ok(bytes) => (bytes, InflateEnd::Cut),
            Err(_) => (Vec::new(), InflateEnd::Damaged(why.to_string())),
        },
    }
}

/// Removes a text from the front.
fn prefix(bytes: &[u8], text: &str) -> (Vec<u8>, InflateEnd) {
    match bytes.strip_prefix(text.as_bytes()) {
        Some(rest) => (rest.to_vec(), InflateEnd::Reached),
        None if text.as_bytes().starts_with(bytes) => (Vec::new(), InflateEnd::Cut),
        None => (Vec::new(), InflateEnd::Damaged("it does not begin so".to_owned())),
    }
}

/// Removes a text from the end. If only the beginning of a value was read, its last bytes may
/// contain part of that text.
fn suffix(bytes: &[u8], text: &str, whole: bool) -> (Vec<u8>, InflateEnd) {
    match bytes.strip_suffix(text.as_bytes()) {
        Some(rest) if whole => (rest.to_vec(), InflateEnd::Reached),
        _ if !whole => (bytes.to_vec(), InflateEnd::Cut),
        _ => (Vec::new(), InflateEnd::Damaged("it does not end so".to_owned())),
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;
    use std::slice::from_ref;

    use flate2::Compression;
    use flate2::write::{GzEncoder, ZlibEncoder};
    use proptest::prelude::*;

    use super::*;
    use crate::domain::record::codec::wrap;
    use crate::domain::schema::Encoding;

    const TEXT: &[u8] = br#"{"status":"COMPLETED","statusCode":201,"body":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"}"#;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn zlib(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = ZlibEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn opened(codecs: &[Codec], bytes: &[u8], whole: bool) -> Result<(Vec<u8>, bool), String> {
        undo(codecs, bytes, whole).map(|plain| (plain.bytes.into_owned(), plain.whole))
    }

    #[test]
    fn what_was_wrapped_comes_out() {
        let whole = Ok((TEXT.to_vec(), true));
        assert_eq!(opened(&[], TEXT, true), whole);
        assert_eq!(opened(&[Codec::Gzip], &gzip(TEXT), true), whole);
        assert_eq!(opened(&[Codec::Zlib], &zlib(TEXT), true), whole);
        let text = base64::engine::general_purpose::STANDARD.encode(gzip(TEXT));
        assert_eq!(opened(&[Codec::Base64, Codec::Gzip], text.as_bytes(), true), whole);
    }

    /// What Ruby's `Zlib.deflate` makes of `abc`, with the version that idempo puts behind.
    #[test]
    fn a_text_in_front_or_behind_is_told_and_taken_away() {
        let version = [Codec::Suffix(":1".to_owned()), Codec::Zlib];
        let stored = b"x\x9cKLJ\x06\x00\x02M\x01':1";
        assert_eq!(opened(&version, stored, true), Ok((b"abc".to_vec(), true)));
        assert_eq!(opened(&version, &stored[..9], false), Ok((b"abc".to_vec(), false)));
        let other = opened(&version, &stored[..stored.len() - 2], true).unwrap_err();
        assert!(other.contains("suffix=:1") && other.contains("does not end so"), "{other}");
        let front = [Codec::Prefix("v1:".to_owned())];
        assert_eq!(opened(&front, b"v1:{}", true), Ok((b"{}".to_vec(), true)));
        assert_eq!(opened(&front, b"v1", false), Ok((Vec::new(), false)));
        assert!(opened(&front, b"v1", true).is_err() && opened(&front, b"v2:{}", false).is_err());
    }

    #[test]
    fn a_whole_value_that_is_damaged_or_lacks_its_end_is_refused() {
        for (codec, good) in [(Codec::Gzip, gzip(TEXT)), (Codec::Zlib, zlib(TEXT))] {
            for cut in [0, 1, good.len() / 2, good.len() - 1] {
                assert!(opened(from_ref(&codec), &good[..cut], true).is_err(), "{codec:?} {cut}");
                assert!(
                    opened(from_ref(&codec), &good[..cut], false).is_ok_and(|(_, whole)| !whole),
                    "{codec:?} {cut}"
                );
            }
            assert!(opened(from_ref(&codec), b"\xff\xfe plain text", true).is_err(), "{codec:?}");
        }
        let mut damaged = gzip(TEXT);
        let at = damaged.len() - 6;
        damaged[at] ^= 1;
        assert!(opened(&[Codec::Gzip], &damaged, true).is_err(), "its checksum does not hold");
        assert!(
            opened(&[Codec::Hex], b"7b7", true).is_err()
                && opened(&[Codec::Hex], b"no", true).is_err()
        );
    }

    /// Rule: a small bomb eats no memory. A value that comes to more than the bound is refused, and
    /// of a beginning no more than a scan reads comes out.
    #[test]
    fn a_bomb_is_refused_beyond_the_bound() {
        let bomb = gzip(&vec![b'a'; MAX_DECODED + 1]);
        assert!(bomb.len() < 20_000, "{}", bomb.len());
        let why = opened(&[Codec::Gzip], &bomb, true).unwrap_err();
        assert!(why.contains("16 MiB"), "{why}");
        let (part, whole) = opened(&[Codec::Gzip], &bomb, false).unwrap();
        assert!(!whole && part.len() <= MAX_OF_PART + inflate::CHUNK, "{}", part.len());
        let nested = zlib(&bomb);
        assert!(opened(&[Codec::Zlib, Codec::Gzip], &nested, true).is_err());
        let fits = gzip(&vec![b'a'; MAX_DECODED]);
        assert_eq!(opened(&[Codec::Gzip], &fits, true).unwrap().0.len(), MAX_DECODED);
    }

    proptest! {
        #[test]
        fn what_is_wrapped_is_undone(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            order in prop::sample::subsequence(
                vec![Codec::Suffix(":1".to_owned()), Codec::Hex, Codec::Zlib, Codec::Base64, Codec::Gzip, Codec::Prefix("v".to_owned())], 0..6,
            ),
        ) {
            let wrapped = wrap(&order, bytes.clone()).unwrap();
            prop_assert_eq!(opened(&order, &wrapped, true), Ok((bytes, true)));
        }

        #[test]
        fn the_beginning_of_what_is_stored_opens_to_the_beginning_of_what_is_in_it(
            bytes in prop::collection::vec(any::<u8>(), 0..400),
            cut in any::<prop::sample::Index>(),
        ) {
            for (codec, wrapped) in [(Codec::Gzip, gzip(&bytes)), (Codec::Zlib, zlib(&bytes))] {
                let (part, whole) = opened(&[codec], &wrapped[..cut.index(wrapped.len())], false).unwrap();
                prop_assert!(!whole && bytes.starts_with(&part));
            }
        }

        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..80), whole in any::<bool>()) {
            let around = [Codec::Prefix("v1:".to_owned()), Codec::Suffix(":1".to_owned())];
            for codec in [Codec::Gzip, Codec::Zlib, Codec::Hex, Codec::Base64].into_iter().chain(around) {
                let _ = opened(&[codec], &bytes, whole);
            }
        }
    }

    /// Whether a value that the decoder rejects may be a damaged value of it.
    #[test]
    fn a_damaged_value_begins_as_a_whole_one() {
        let begins = |codecs: Vec<Codec>, encoding, bytes: &[u8]| {
            begins_so(&Decoder { codecs, encoding }, bytes)
        };
        let json = |codecs: Vec<Codec>, bytes: &[u8]| begins(codecs, Encoding::Json, bytes);
        for (bytes, expected) in [
            (&b" {\"a\""[..], true),
            (b"[", true),
            (b"", false),
            (b"PENDING", false),
            (b"7", false),
        ] {
            assert_eq!(json(vec![], bytes), expected, "{}", bytes.escape_ascii());
        }
        assert!(json(vec![Codec::Gzip], &gzip(TEXT)[..9]) && !json(vec![Codec::Gzip], TEXT));
        assert!(json(vec![Codec::Zlib], &zlib(TEXT)[..5]) && !json(vec![Codec::Zlib], b"xyz"));
        let lock = || vec![Codec::Prefix("LOCK:".to_owned())];
        assert!(json(lock(), b"LOCK:{") && !json(lock(), b"{") && !json(lock(), b"LOCK:x"));
        // `eyJ` is base64 for `{"`.
        assert!(
            json(vec![Codec::Base64], b"eyJhIjoxfQ=x") && !json(vec![Codec::Base64], b"held by")
        );
        assert!(json(vec![Codec::Hex], b"7b22zz") && !json(vec![Codec::Hex], b"zz"));
        assert!(
            begins(vec![], Encoding::Msgpack, b"\x82\xa1a")
                && !begins(vec![], Encoding::Msgpack, b"a")
        );
        assert!(
            begins(vec![], Encoding::Php, b"a:1:{")
                && !begins(vec![], Encoding::Php, b"s:1:\"a\";")
        );
    }
}
