//! Closes the beginning of a JSON document.

/// Closes the beginning of a JSON document. Every prefix of valid JSON becomes valid JSON, except
/// for prefixes that contain no complete value yet.
pub(crate) fn close(head: &[u8]) -> Vec<u8> {
    let head = &head[..head.utf8_end()];
    let mut scan = JsonScan::default();
    for (index, byte) in head.iter().enumerate() {
        scan.step(index, *byte);
    }
    scan.finish(head)
}

trait Utf8End {
    fn utf8_end(&self) -> usize;
}

impl Utf8End for [u8] {
    /// The end of the last whole character if only the last one is truncated, else the end of the
    /// bytes.
    fn utf8_end(&self) -> usize {
        match std::str::from_utf8(self) {
            Err(error) if error.error_len().is_none() => error.valid_up_to(),
            _ => self.len(),
        }
    }
}

/// The state of a scan of JSON: the open containers, and the end of the complete part.
#[derive(Default)]
struct JsonScan {
    open: Vec<u8>,
    /// Everything before this index can be kept, if the first `safe_open` containers are then
    /// closed.
    safe: usize,
    safe_open: usize,
    in_string: bool,
    /// The open string is a value, not a member's name.
    value_string: bool,
    /// Where the open escape sequence began, and how many bytes of it are missing.
    escape: Option<(usize, usize)>,
    after_colon: bool,
}

impl JsonScan {
    fn step(&mut self, index: usize, byte: u8) {
        if self.in_string {
            self.step_in_string(index, byte);
            return;
        }
        match byte {
            b'"' => {
                self.in_string = true;
                // In an object, a string is a member's name unless it follows a colon.
                self.value_string = self.after_colon || self.open.last() != Some(&b'}');
            }
            b'{' | b'[' => {
                self.open.push(if byte == b'{' { b'}' } else { b']' });
                self.after_colon = false;
                self.keep(index + 1);
            }
            b'}' | b']' => {
                // A scalar ends where its container does.
                self.open.pop();
                self.after_colon = false;
                self.keep(index + 1);
            }
            b',' => {
                self.after_colon = false;
                self.keep(index);
            }
            b':' => self.after_colon = true,
            _ => {}
        }
    }

    fn step_in_string(&mut self, index: usize, byte: u8) {
        match (self.escape, byte) {
            (Some((start, left)), _) => {
                let left =
                    if left == 1 && byte == b'u' && index == start + 1 { 4 } else { left - 1 };
                self.escape = if left > 0 { Some((start, left)) } else { None };
            }
            (None, b'\\') => self.escape = Some((index, 1)),
            (None, b'"') => {
                self.in_string = false;
                if self.value_string {
                    self.keep(index + 1);
                }
            }
            (None, _) => {}
        }
    }

    fn keep(&mut self, index: usize) {
        self.safe = index;
        self.safe_open = self.open.len();
    }

    fn finish(&self, head: &[u8]) -> Vec<u8> {
        let mut closed;
        if self.in_string && self.value_string {
            // Half an escape sequence before the closing quote would not be valid JSON.
            let end = match self.escape {
                Some((start, _)) => start,
                None => head.len(),
            };
            closed = without_lone_surrogate(&head[..end]).to_vec();
            closed.push(b'"');
            closed.extend(self.open.iter().rev());
        } else if self.open.is_empty() && self.safe == 0 {
            closed = head.to_vec();
        } else {
            closed = head[..self.safe].to_vec();
            closed.extend(self.open[..self.safe_open].iter().rev());
        }
        closed
    }
}

/// Drops a trailing `\ud83d` whose second half is missing.
fn without_lone_surrogate(text: &[u8]) -> &[u8] {
    let Some(start) = text.len().checked_sub(6) else { return text };
    let tail = &text[start..];
    let is_high_surrogate = tail[0] == b'\\'
        && tail[1] == b'u'
        && tail[2].eq_ignore_ascii_case(&b'd')
        && b"89abAB".contains(&tail[3]);
    if !is_high_surrogate {
        return text;
    }
    // After an odd number of backslashes, its own backslash is an escaped one, and `ud83d` is plain
    // text. Cutting there would leave half an escape sequence, which would escape the closing
    // quote.
    let backslashes_before = text[..start].iter().rev().take_while(|byte| **byte == b'\\').count();
    if backslashes_before % 2 == 1 { text } else { &text[..start] }
}
