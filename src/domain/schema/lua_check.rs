//! Compares the KEYS and ARGV positions that a script uses with the script's header and with the
//! calls that send it.

use std::collections::BTreeSet;

/// A difference between a script, its header and its calls.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LuaFault {
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
    /// True if the script cannot work: it reads a position that the call does not send.
    pub(crate) breaks: bool,
}

/// How many KEYS and ARGV a call sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ArgumentCounts {
    pub(crate) keys: usize,
    /// Up to the first word that stands for several.
    pub(crate) args: usize,
    /// True if such a word follows: the names and values of a hash, whose number is not known.
    pub(crate) more_args: bool,
}

/// Compares a script with its own header and with the calls that send it.
pub(crate) fn check(text: &str, calls: &[ArgumentCounts]) -> Vec<LuaFault> {
    // Without comments and strings, a search for the names is enough: no Lua parser is needed.
    let code = code_of(text);
    let mut faults = Vec::new();
    for table in ["KEYS", "ARGV"] {
        let used = positions(&code, table);
        for call in calls {
            let is_keys = table == "KEYS";
            let sent = if is_keys { call.keys } else { call.args };
            faults.extend(against_call(table, &used, sent, !is_keys && call.more_args));
        }
        faults.extend(against_header(table, &used, &header(text, table)));
    }
    faults.sort_by_key(|fault| fault.line);
    // Several calls of one script can have the same fault.
    faults.dedup();
    faults
}

/// The positions of a table that a text names, each with its first line.
#[derive(Debug, Default)]
struct Positions {
    named: Vec<(usize, usize)>,
    /// True if the text also uses the table in another way, such as `#KEYS` or `unpack(KEYS)`.
    otherwise: bool,
}

impl Positions {
    fn has(&self, number: usize) -> bool {
        self.named.iter().any(|(named, _)| *named == number)
    }
}

/// Compares the positions with those that a call sends: `sent` of them, or at least so many.
fn against_call(table: &str, used: &Positions, sent: usize, or_more: bool) -> Vec<LuaFault> {
    let mut faults = Vec::new();
    for (number, line) in &used.named {
        // KEYS and ARGV start at 1, so that position 0 is always nil.
        if (*number > sent && !or_more) || *number == 0 {
            let message = format!("uses {table}[{number}], but the call sends {}", count(sent));
            faults.push(LuaFault { line: *line, message, breaks: true });
        }
    }
    // A script that uses the table as a whole may use every position.
    if used.otherwise {
        return faults;
    }
    for number in (1..=sent).filter(|number| !used.has(*number)) {
        let message = format!("the call sends {table}[{number}], which the script never uses");
        faults.push(LuaFault { line: 1, message, breaks: false });
    }
    faults
}

/// Compares a script with its header. A script does not need a header, but a header must name every
/// position.
fn against_header(table: &str, used: &Positions, header: &Positions) -> Vec<LuaFault> {
    let mut faults = Vec::new();
    // A header that also mentions the table in another way cannot be compared.
    if header.otherwise {
        return faults;
    }
    if !header.named.is_empty() {
        for (number, line) in used.named.iter().filter(|(number, _)| !header.has(*number)) {
            let message = format!("uses {table}[{number}], which the header does not name");
            faults.push(LuaFault { line: *line, message, breaks: false });
        }
    }
    if used.otherwise {
        return faults;
    }
    for (number, line) in header.named.iter().filter(|(number, _)| !used.has(*number)) {
        let message = format!("the header names {table}[{number}], which the script never uses");
        faults.push(LuaFault { line: *line, message, breaks: false });
    }
    faults
}

fn count(sent: usize) -> String {
    match sent {
        0 => "none".to_owned(),
        1 => "one".to_owned(),
        sent => format!("{sent}"),
    }
}

/// Finds every `TABLE[number]` in a text. Any other mention of the table, such as `#TABLE`, is a
/// use in another way.
fn positions(text: &str, table: &str) -> Positions {
    let mut found = Positions::default();
    let mut seen = BTreeSet::new();
    for (index, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices(table) {
            let after = &line[at + table.len()..];
            // `MY_KEYS` and `KEYS2` are other names.
            if line[..at].ends_with(is_of_name) || after.starts_with(is_of_name) {
                continue;
            }
            match number_in_brackets(after) {
                // Only the first use of a position is reported.
                Some(number) if seen.insert(number) => found.named.push((number, index + 1)),
                Some(_) => {}
                None => found.otherwise = true,
            }
        }
    }
    found
}

/// The number in the brackets at the beginning of the text; `None` if there is anything else.
fn number_in_brackets(text: &str) -> Option<usize> {
    let (number, _) = text.trim_start().strip_prefix('[')?.split_once(']')?;
    number.trim().parse().ok()
}

fn is_of_name(letter: char) -> bool {
    letter.is_alphanumeric() || letter == '_'
}

/// The positions that the comment at the beginning of a script names.
fn header(text: &str, table: &str) -> Positions {
    let mut named = String::new();
    for line in text.lines().take_while(|line| line.trim_start().starts_with("--")) {
        let comment = line.trim_start().trim_start_matches('-').trim_start();
        if comment.starts_with(table) {
            named.push_str(comment.split_whitespace().next().unwrap_or_default());
        }
        // One line of output for each line of the script, so that a position keeps its line number.
        named.push('\n');
    }
    positions(&named, table)
}

/// The text without comments and strings, with the same line numbers.
fn code_of(text: &str) -> String {
    let mut code = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let hidden = hidden_length(rest);
        if hidden == 0 {
            code.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            code.extend(rest[..hidden].chars().filter(|character| *character == '\n'));
            // Without a space, the words before and after the comment would become one word.
            code.push(' ');
            rest = &rest[hidden..];
        }
    }
    code
}

/// The length in bytes of the comment or string at the beginning of the text; 0 if there is none.
fn hidden_length(text: &str) -> usize {
    if let Some(comment) = text.strip_prefix("--") {
        if let Some(length) = long_bracket(comment) {
            return 2 + length;
        }
        return 2 + comment.find('\n').unwrap_or(comment.len());
    }
    let Some(quote @ ('"' | '\'')) = text.chars().next() else {
        return long_bracket(text).unwrap_or(0);
    };
    let mut escaped = false;
    for (index, character) in text.char_indices().skip(1) {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            // A quote that is not closed must not hide the rest of the script.
            '\n' => return index,
            other if other == quote => return index + 1,
            _ => {}
        }
    }
    text.len()
}

/// The length of `[[…]]` or `[==[…]==]` at the beginning of the text.
fn long_bracket(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('[')?;
    let level = inside.len() - inside.trim_start_matches('=').len();
    inside[level..].strip_prefix('[')?;
    let end = format!("]{}]", "=".repeat(level));
    match text.find(&end) {
        Some(at) => Some(at + end.len()),
        // Lua rejects a bracket that is not closed.
        None => Some(text.len()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOUND: &str = "-- x: does.\n--\n-- KEYS[1]  a  b\n-- ARGV[1]  c  d\n\nlocal a = KEYS[1]\nreturn ARGV[1] .. a\n";

    fn messages(text: &str, keys: usize, args: usize) -> Vec<String> {
        check(text, &[ArgumentCounts { keys, args, more_args: false }])
            .into_iter()
            .map(|fault| format!("{}: {}", fault.line, fault.message))
            .collect()
    }

    #[test]
    fn a_sound_script_has_no_fault() {
        assert_eq!(messages(SOUND, 1, 1), [""; 0]);
        assert_eq!(messages("return #KEYS + #ARGV", 3, 4), [""; 0]);
    }

    #[test]
    fn a_position_that_is_not_sent_breaks_the_script() {
        assert_eq!(messages(SOUND, 1, 0), ["7: uses ARGV[1], but the call sends none"]);
        assert!(
            check("return KEYS[0]", &[ArgumentCounts { keys: 1, args: 0, more_args: false }])
                .iter()
                .any(|fault| fault.breaks)
        );
    }

    #[test]
    fn the_words_of_a_hash_are_not_counted() {
        let call = ArgumentCounts { keys: 0, args: 1, more_args: true };
        let broken = |text| check(text, &[call]).iter().filter(|fault| fault.breaks).count();
        assert_eq!(broken("return ARGV[1] .. ARGV[6]"), 0);
        assert_eq!(broken("return ARGV[1] .. ARGV[0]"), 1);
        assert_eq!(check("return ARGV[2]", &[call]).len(), 1, "ARGV[1] is sent and not used");
    }

    #[test]
    fn an_unused_position_is_reported() {
        assert_eq!(
            messages(SOUND, 2, 1),
            ["1: the call sends KEYS[2], which the script never uses"]
        );
    }

    #[test]
    fn the_header_is_compared_with_the_body() {
        let text = SOUND.replace("ARGV[1] .. a", "ARGV[2] .. a");
        assert_eq!(
            messages(&text, 1, 2),
            [
                "1: the call sends ARGV[1], which the script never uses",
                "4: the header names ARGV[1], which the script never uses",
                "7: uses ARGV[2], which the header does not name",
            ]
        );
    }

    #[test]
    fn a_name_that_contains_a_table_is_another_name() {
        let found = positions("local MY_KEYS, KEYS2 = KEYS[1], 2", "KEYS");
        assert_eq!((found.named, found.otherwise), (vec![(1, 1)], false));
    }

    #[test]
    fn positions_in_comments_and_strings_do_not_count() {
        let text = "local a = KEYS[1] -- not KEYS[2]\n--[[ KEYS[3]\nKEYS[4] ]] local b = 'KEYS[5] \\' KEYS[6]'\nreturn [==[KEYS[7]]==]";
        assert_eq!(messages(text, 1, 0), [""; 0]);
        assert_eq!(positions(&code_of(text), "KEYS").named, [(1, 1)]);
    }
}
