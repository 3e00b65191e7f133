//! Breaking text into lines that fit.

/// Breaks text at spaces so that no line is wider than `width` columns; colours do not count. A
/// word that is longer than a line stays whole, so that keys can be copied. A command line from ``
/// `idemctl `` to the next backtick stays whole as well: after pasting, a shell would run only its
/// first line.
pub fn fold(text: &str, width: Option<usize>) -> Vec<String> {
    // Below twenty columns, folding makes text harder to read than the terminal's own wrapping.
    let Some(width) = width.filter(|width| *width >= 20) else { return vec![text.to_owned()] };
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut columns = 0;
    for word in words(text) {
        let word_columns = columns_of(word);
        if !line.is_empty() && columns + 1 + word_columns > width {
            lines.push(std::mem::take(&mut line));
            columns = 0;
        } else if !line.is_empty() {
            line.push(' ');
            columns += 1;
        }
        line.push_str(word);
        columns += word_columns;
    }
    lines.push(line);
    lines
}

/// Text that is indented by this many columns and folded at `width`.
pub(crate) fn lines(text: &str, indent: usize, width: Option<usize>) -> String {
    let mut lines = String::new();
    for line in fold(text, width.map(|width| width.saturating_sub(indent))) {
        lines += &format!("{:indent$}{line}\n", "");
    }
    lines
}

/// The words between spaces, with each command line as one word.
fn words(text: &str) -> Vec<&str> {
    let mut words = Vec::new();
    let mut rest = text;
    loop {
        // Only a command line at the beginning of the next word counts; later ones follow in later
        // rounds.
        let mut from = 0;
        if let Some(at) = rest.find("`idemctl ")
            && !rest[..at].contains(' ')
            && let Some(length) = rest[at + 1..].find('`')
        {
            // A comma or a bracket may follow the command line directly.
            from = at + 1 + length;
        }
        let Some(end) = rest[from..].find(' ') else {
            words.push(rest);
            return words;
        };
        words.push(&rest[..from + end]);
        rest = &rest[from + end + 1..];
    }
}

/// The number of terminal columns of a text, without colours.
pub fn columns_of(text: &str) -> usize {
    unicode_width::UnicodeWidthStr::width(anstream::adapter::strip_str(text).to_string().as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folds_at_spaces_and_leaves_long_words_whole() {
        let text = "one two three four five six seven averyveryveryverylongword";
        let lines = fold(text, Some(20));
        assert_eq!(lines, ["one two three four", "five six seven", "averyveryveryverylongword"]);
        assert_eq!(fold(text, None), [text]);
        let text = "then (`idemctl -p 7000 force-unlock 'a b'`), or wait for `a b` to end";
        let lines =
            ["then", "(`idemctl -p 7000 force-unlock 'a b'`),", "or wait for `a b` to", "end"];
        assert_eq!(fold(text, Some(20)), lines);
    }
}
