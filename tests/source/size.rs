//! How large files and functions are, in `src/` and in `tests/`.

use crate::rust_source::Source;

/// Files that are longer hold more than one thing.
const LONGEST_FILE: usize = 300;

/// Functions that are longer do more than one thing.
const LONGEST_FUNCTION: usize = 50;

fn too_long(source: &Source) -> Vec<String> {
    let lines: Vec<_> = source.text.lines().collect();
    let file = (lines.len() > LONGEST_FILE).then(|| format!("{} has {} lines", source.file, lines.len()));
    file.into_iter().chain(long_functions(source, &lines)).collect()
}

/// rustfmt ends a function where a brace stands as far in as its first line.
fn long_functions(source: &Source, lines: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    for (at, line) in lines.iter().enumerate().filter(|(_, line)| is_function(line)) {
        let end = format!("{}}}", " ".repeat(line.len() - line.trim_start().len()));
        let length = lines[at..].iter().position(|line| *line == end).map_or(0, |last| last + 1);
        if length > LONGEST_FUNCTION {
            found.push(format!("{}:{}: {length} lines: {}", source.file, at + 1, line.trim()));
        }
    }
    found
}

fn is_function(line: &str) -> bool {
    let words =
        line.split_whitespace().take_while(|word| ["fn", "async", "const"].contains(word) || word.starts_with("pub"));
    words.last() == Some("fn") && !line.ends_with('}') && !line.ends_with(';')
}

#[test]
fn files_and_functions_stay_short() {
    let sources = ["src", "tests"].into_iter().flat_map(Source::below);
    let found: Vec<_> = sources.flat_map(|source| too_long(&source)).collect();
    assert!(found.is_empty(), "split what holds or does more than one thing, by what that is:\n{}", found.join("\n"));
}

#[test]
fn a_long_file_and_a_long_function_are_noticed() {
    let file = Source::new("src/x.rs", &"\n".repeat(LONGEST_FILE + 1));
    assert_eq!(too_long(&file), ["src/x.rs has 301 lines"]);
    let function =
        |lines: usize| format!("impl X {{\n    pub(crate) async fn f() {{\n{}    }}\n}}\n", "\n".repeat(lines));
    assert_eq!(too_long(&Source::new("tests/x.rs", &function(LONGEST_FUNCTION - 2))), [""; 0]);
    assert_eq!(too_long(&Source::new("tests/x.rs", &function(LONGEST_FUNCTION - 1))).len(), 1);
}
