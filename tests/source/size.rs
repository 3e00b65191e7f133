//! How large files and functions are, in `src/` and in `tests/`.

use std::collections::BTreeMap;

use crate::rust_source::Source;

/// Files that are longer hold more than one thing.
const LONGEST_FILE: usize = 700;

/// Functions that are longer do more than one thing.
const LONGEST_FUNCTION: usize = 100;

fn too_long(source: &Source) -> Vec<String> {
    let lines: Vec<_> = source.text.lines().collect();
    let file =
        (lines.len() > LONGEST_FILE).then(|| format!("{} has {} lines", source.file, lines.len()));
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
    let words = line
        .split_whitespace()
        .take_while(|word| ["fn", "async", "const"].contains(word) || word.starts_with("pub"));
    words.last() == Some("fn") && !line.ends_with('}') && !line.ends_with(';')
}

#[test]
fn files_and_functions_stay_short() {
    let sources = ["src", "tests"].into_iter().flat_map(Source::below);
    let found: Vec<_> = sources.flat_map(|source| too_long(&source)).collect();
    assert!(
        found.is_empty(),
        "split what holds or does more than one thing, by what that is:\n{}",
        found.join("\n")
    );
}

#[test]
fn a_long_file_and_a_long_function_are_noticed() {
    let file = Source::new("src/x.rs", &"\n".repeat(LONGEST_FILE + 1));
    assert_eq!(too_long(&file), ["src/x.rs has 701 lines"]);
    let function = |lines: usize| {
        format!("impl X {{\n    pub(crate) async fn f() {{\n{}    }}\n}}\n", "\n".repeat(lines))
    };
    assert_eq!(too_long(&Source::new("tests/x.rs", &function(LONGEST_FUNCTION - 2))), [""; 0]);
    assert_eq!(too_long(&Source::new("tests/x.rs", &function(LONGEST_FUNCTION - 1))).len(), 1);
}

/// The names of files that stand more than twice in `src/`, with how often.
fn too_common(files: impl Iterator<Item = String>) -> BTreeMap<String, usize> {
    let mut names = BTreeMap::new();
    for file in files {
        let name = file.rsplit('/').next().unwrap_or_default().to_owned();
        *names.entry(name).or_insert(0) += 1;
    }
    names.retain(|name, count| *count > 2 && !["mod.rs", "tests.rs"].contains(&name.as_str()));
    names
}

#[test]
fn a_file_is_known_by_its_name() {
    let found = too_common(Source::below("src").into_iter().map(|source| source.file));
    assert!(found.is_empty(), "a name that stands three times says too little: {found:?}");
    let thrice = ["a/run.rs", "b/run.rs", "c/run.rs", "a/mod.rs", "b/mod.rs", "c/mod.rs"];
    assert_eq!(
        too_common(thrice.into_iter().map(str::to_owned)).into_keys().collect::<Vec<_>>(),
        ["run.rs"]
    );
}
