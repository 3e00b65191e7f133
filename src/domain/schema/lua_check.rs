//! Compares the KEYS and ARGV positions that a script uses with the calls that send it.

/// A position that a script reads and a call does not send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct LuaFault {
    /// The line, from 1.
    pub(crate) line: usize,
    pub(crate) message: String,
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

/// Compares a script with the calls that send it.
pub(crate) fn check(text: &str, calls: &[ArgumentCounts]) -> Vec<LuaFault> {
    // Without comments and strings, a search for the names is enough: no Lua parser is needed.
    let code = code_of(text);
    let mut faults = Vec::new();
    for table in ["KEYS", "ARGV"] {
        let used = positions(&code, table);
        for call in calls {
            faults.extend(against_call(table, &used, call));
        }
    }
    faults.sort_by_key(|fault| fault.line);
    // Several calls of one script can have the same fault.
    faults.dedup();
    faults
}

fn against_call(table: &str, used: &[(usize, usize)], call: &ArgumentCounts) -> Vec<LuaFault> {
    let sent = if table == "KEYS" { call.keys } else { call.args };
    let or_more = table == "ARGV" && call.more_args;
    let mut faults = Vec::new();
    for (number, line) in used {
        // KEYS and ARGV start at 1, so that position 0 is always nil.
        if (*number > sent && !or_more) || *number == 0 {
            let message = format!("uses {table}[{number}], but the call sends {sent}");
            faults.push(LuaFault { line: *line, message });
        }
    }
    faults
}

/// Every number of `TABLE[number]` in a text, with its first line.
fn positions(text: &str, table: &str) -> Vec<(usize, usize)> {
    let mut found: Vec<(usize, usize)> = Vec::new();
    for (index, line) in text.lines().enumerate() {
        for (at, _) in line.match_indices(table) {
            let after = &line[at + table.len()..];
            // `MY_KEYS` and `KEYS2` are other names.
            if line[..at].ends_with(is_of_name) || after.starts_with(is_of_name) {
                continue;
            }
            if let Some(number) = number_in_brackets(after)
                && !found.iter().any(|(known, _)| *known == number)
            {
                found.push((number, index + 1));
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
        assert_eq!(messages(SOUND, 1, 0), ["7: uses ARGV[1], but the call sends 0"]);
        assert_eq!(messages("return KEYS[0]", 1, 0), ["1: uses KEYS[0], but the call sends 1"]);
    }

    #[test]
    fn the_words_of_a_hash_are_not_counted() {
        let call = ArgumentCounts { keys: 0, args: 1, more_args: true };
        let broken = |text| check(text, &[call]).len();
        assert_eq!(broken("return ARGV[1] .. ARGV[6]"), 0);
        assert_eq!(broken("return ARGV[1] .. ARGV[0]"), 1);
    }

    #[test]
    fn a_name_that_contains_a_table_is_another_name() {
        assert_eq!(positions("local MY_KEYS, KEYS2 = KEYS[1], 2", "KEYS"), [(1, 1)]);
    }

    #[test]
    fn positions_in_comments_and_strings_do_not_count() {
        let text = "local a = KEYS[1] -- not KEYS[2]\n--[[ KEYS[3]\nKEYS[4] ]] local b = 'KEYS[5] \\' KEYS[6]'\nreturn [==[KEYS[7]]==]";
        assert_eq!(messages(text, 1, 0), [""; 0]);
        assert_eq!(positions(&code_of(text), "KEYS"), [(1, 1)]);
    }
}
