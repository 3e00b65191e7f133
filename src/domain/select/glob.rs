//! Glob patterns as Redis understands them.
//!
//! This is own code, because a pattern must match exactly the keys that the server's `MATCH`
//! matches. Tests compare the two. Ranges that end beyond ASCII may differ, because servers compare
//! bytes as signed on some machines and as unsigned on others.

/// True if the bytes match the pattern by the rules of Redis's `MATCH`: `*`, `?`, `[a-z]`, `[^a]`,
/// `\` escapes.
pub fn matches(pattern: &[u8], text: &[u8]) -> bool {
    // Only the last `*` needs backtracking: an earlier one could match no more than the later one
    // allows.
    let mut p = 0;
    let mut t = 0;
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        if pattern.get(p) == Some(&b'*') {
            star = Some((p + 1, t));
            p += 1;
            continue;
        }
        if let Some(next) = match_one(pattern, p, text[t]) {
            p = next;
            t += 1;
            continue;
        }
        let Some((after, from)) = star else { return false };
        star = Some((after, from + 1));
        p = after;
        t = from + 1;
    }
    pattern[p..].iter().all(|byte| *byte == b'*')
}

/// The position in the pattern after the element at `p`, if that element matches `byte`.
fn match_one(pattern: &[u8], p: usize, byte: u8) -> Option<usize> {
    match *pattern.get(p)? {
        b'?' => Some(p + 1),
        b'[' => match_class(pattern, p, byte),
        b'\\' if p + 1 < pattern.len() => {
            if pattern[p + 1] == byte {
                Some(p + 2)
            } else {
                None
            }
        }
        literal if literal == byte => Some(p + 1),
        _ => None,
    }
}

/// Matches `[…]`; a class that is never closed extends to the pattern's end, as in Redis.
fn match_class(pattern: &[u8], open: usize, byte: u8) -> Option<usize> {
    let mut p = open + 1;
    let negated = pattern.get(p) == Some(&b'^');
    p += usize::from(negated);
    let mut found = false;
    while p < pattern.len() && pattern[p] != b']' {
        if pattern[p] == b'\\' && p + 1 < pattern.len() {
            found |= pattern[p + 1] == byte;
            p += 2;
        } else if p + 2 < pattern.len() && pattern[p + 1] == b'-' {
            // Redis swaps the ends of a range that is written backwards.
            let low = pattern[p].min(pattern[p + 2]);
            let high = pattern[p].max(pattern[p + 2]);
            found |= (low..=high).contains(&byte);
            p += 3;
        } else {
            found |= pattern[p] == byte;
            p += 1;
        }
    }
    if found == negated {
        return None;
    }
    Some((p + 1).min(pattern.len()))
}

/// Rejects a pattern that Redis would accept, but that is probably a mistake.
///
/// # Errors
/// What is wrong: the pattern is empty, a class is never closed, or an escape at the end escapes
/// nothing.
pub(crate) fn check(pattern: &[u8]) -> Result<(), String> {
    if pattern.is_empty() {
        return Err("the glob is empty".to_owned());
    }
    let mut p = 0;
    let mut in_class = false;
    while p < pattern.len() {
        match pattern[p] {
            b'\\' if p + 1 == pattern.len() => {
                return Err("the glob ends in `\\`, which escapes nothing".to_owned());
            }
            b'\\' => p += 1,
            // Within a class, `[` is an ordinary character.
            b'[' if !in_class => in_class = true,
            b']' => in_class = false,
            _ => {}
        }
        p += 1;
    }
    if in_class {
        Err("the glob has a `[` that is never closed; `\\[` is the bracket itself".to_owned())
    } else {
        Ok(())
    }
}

/// True for a pattern that matches every key.
pub(crate) fn is_everything(pattern: &[u8]) -> bool {
    !pattern.is_empty() && pattern.iter().all(|byte| *byte == b'*')
}

/// True if the pattern contains a literal byte, which every matching text then contains as well.
pub(crate) fn has_literal(pattern: &[u8]) -> bool {
    let mut p = 0;
    while p < pattern.len() {
        match pattern[p] {
            b'*' | b'?' => p += 1,
            // A class may match several bytes, so no single byte is certain.
            b'[' => p = class_end(pattern, p),
            _ => return true,
        }
    }
    false
}

/// The position after the class that begins at `open`.
fn class_end(pattern: &[u8], open: usize) -> usize {
    let mut p = open + 1;
    while p < pattern.len() && pattern[p] != b']' {
        p += if pattern[p] == b'\\' { 2 } else { 1 };
    }
    (p + 1).min(pattern.len())
}

/// A pattern that matches exactly these bytes.
pub fn escape(literal: &[u8]) -> Vec<u8> {
    let mut pattern = Vec::with_capacity(literal.len());
    for byte in literal {
        if b"*?[]\\^-".contains(byte) {
            pattern.push(b'\\');
        }
        pattern.push(*byte);
    }
    pattern
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finds_fault_with_what_is_left_open() {
        for sound in ["*", "order-*", "[a-z]?", "a\\[b", "[\\]]", "]", "[[]"] {
            assert_eq!(check(sound.as_bytes()), Ok(()), "{sound}");
        }
        for wrong in ["", "a[b", "[a\\]", "a\\", "[^"] {
            assert!(check(wrong.as_bytes()).is_err(), "{wrong}");
        }
        for literal in ["a", "*a*", "[a-z]b", "\\*", "]", "[\\]]x", "??-"] {
            assert!(has_literal(literal.as_bytes()), "{literal}");
        }
        for open in ["", "*", "??*", "[a-z]*", "[^a]?", "[\\]]", "[a"] {
            assert!(!has_literal(open.as_bytes()), "{open}");
        }
        assert!(is_everything(b"**") && !is_everything(b"*a") && !is_everything(b""));
    }

    #[test]
    fn knows_the_forms_of_redis() {
        for (pattern, text, expected) in [
            ("*", "", true),
            ("order-*", "order-1", true),
            ("order-*", "orders", false),
            ("?", "a", true),
            ("?", "", false),
            ("[a-c]x", "bx", true),
            ("[^a-c]x", "bx", false),
            ("[z-x]", "y", true),
            ("\\*", "*", true),
            ("\\*", "a", false),
            ("a*b*c", "axxbyyc", true),
            ("a*b*c", "axxbyy", false),
            ("[abc", "c", true),
        ] {
            assert_eq!(
                matches(pattern.as_bytes(), text.as_bytes()),
                expected,
                "{pattern} on {text}"
            );
        }
    }

    proptest! {
        #[test]
        fn an_escaped_literal_matches_itself_alone(a in prop::collection::vec(any::<u8>(), 0..20), b in prop::collection::vec(any::<u8>(), 0..20)) {
            prop_assert!(matches(&escape(&a), &a));
            prop_assert_eq!(matches(&escape(&a), &b), a == b);
        }

        #[test]
        fn many_stars_take_no_longer_than_the_product(text in "[ab]{0,200}") {
            let _ = matches(b"*a*a*a*a*a*a*a*a*a*a*b", text.as_bytes());
        }
    }
}
