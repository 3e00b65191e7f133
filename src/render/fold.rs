//! Breaking text into lines that fit.

/// Breaks text at spaces, so that no line is wider than `width` columns; colours do not count. A word that is longer than a
/// line stays whole, so that keys can be copied.
pub fn fold(text: &str, width: Option<usize>) -> Vec<String> {
    let Some(width) = width.filter(|width| *width >= 20) else { return vec![text.to_owned()] };
    let mut lines = Vec::new();
    let mut line = String::new();
    let mut columns = 0;
    for word in text.split(' ') {
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

/// The columns that a text takes on a terminal.
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
    }
}
