//! The header of a script, taken apart by the grammar of `CONTRIBUTING.md`.

use crate::support::wire;

/// A script taken apart.
pub struct Script {
    /// `<folder>/<file>`, for failures.
    pub path: String,
    /// The name its first line gives.
    pub name: String,
    /// What its first line says of it.
    pub summary: String,
    pub positions: Vec<Position>,
    pub replies: Vec<String>,
    /// What each reply means.
    pub meanings: Vec<String>,
    /// The lines behind the header, comments removed.
    pub body: Vec<String>,
}

/// A line of the header that names a position of KEYS or ARGV.
#[derive(Debug)]
pub struct Position {
    /// `KEYS` or `ARGV`.
    pub list: String,
    /// `1`, `1..n`, `n+1`, or `2..m` for all that follow.
    pub index: String,
    pub name: String,
    pub meaning: String,
}

impl Position {
    /// How Lua reads it.
    pub fn expression(&self) -> String {
        match self.index.as_str() {
            "1..n" | "n+1..2n" => self.list.clone(),
            index if index.ends_with("..m") => {
                format!("{{unpack({}, {})}}", self.list, index.trim_end_matches("..m"))
            }
            index => format!(
                "{}[{}]",
                self.list,
                index.replace("2n+", "2 * #KEYS + ").replace("n+", "#KEYS + ")
            ),
        }
    }

    /// True when the header says that the body leaves it out.
    pub fn is_declared_unused(&self) -> bool {
        self.meaning.contains("not needed here")
    }
}

impl Script {
    /// Reads and parses `lua/<path>.lua`; panics where the header breaks its grammar.
    pub fn read(path: &str) -> Self {
        let text = wire::source(path);
        let (header, body) = text
            .split_once("\n\n")
            .unwrap_or_else(|| panic!("{path}: no empty line ends the header"));
        let header: Vec<_> = header.lines().map(|line| header_line(path, line)).collect();
        let mut parts = header.split(|line| line.is_empty());
        let [title, positions, replies, rest] = [(); 4].map(|()| parts.next().unwrap_or_default());
        assert!(
            rest.is_empty() && parts.next().is_none(),
            "{path}: the header has more than three parts"
        );
        let [title] = title else { panic!("{path}: the first line is not one summary") };
        let (name, summary) =
            title.split_once(": ").unwrap_or_else(|| panic!("{path}: no `name: summary`"));
        assert!(
            summary.ends_with('.') && !summary.trim_end_matches('.').contains(". "),
            "{path}: not one sentence"
        );
        assert_eq!(replies.first(), Some(&"Replies"), "{path}");
        let (replies, meanings) = replies[1..].iter().map(|line| reply(path, line)).unzip();
        Self {
            path: path.to_owned(),
            name: name.to_owned(),
            summary: summary.to_owned(),
            positions: positions.iter().map(|line| position(path, line)).collect(),
            replies,
            meanings,
            body: body
                .lines()
                .map(without_comment)
                .filter(|line| !line.trim().is_empty())
                .collect(),
        }
    }

    /// How many lines of the header name a position of this list.
    pub fn count(&self, list: &str) -> usize {
        self.positions.iter().filter(|position| position.list == list).count()
    }

    /// True when it takes any number of keys.
    pub fn takes_many_keys(&self) -> bool {
        self.positions.iter().any(|position| position.list == "KEYS" && position.index == "1..n")
    }

    /// The lines behind the names of the positions.
    pub fn code(&self) -> &[String] {
        &self.body[self.positions.len()..]
    }
}

fn header_line<'a>(path: &str, line: &'a str) -> &'a str {
    line.strip_prefix("-- ")
        .or_else(|| line.strip_prefix("--"))
        .unwrap_or_else(|| panic!("{path}: `{line}` is no comment"))
}

/// Two spaces or more stand between columns.
fn columns(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|column| !column.is_empty()).collect()
}

fn position(path: &str, line: &str) -> Position {
    let [place, name, meaning] = columns(line)[..] else {
        panic!("{path}: `{line}` has not three columns")
    };
    let (list, index) =
        place.strip_suffix(']').and_then(|place| place.split_once('[')).expect(line);
    assert!(["KEYS", "ARGV"].contains(&list), "{path}: {line}");
    Position {
        list: list.to_owned(),
        index: index.to_owned(),
        name: name.to_owned(),
        meaning: meaning.to_owned(),
    }
}

fn reply(path: &str, line: &str) -> (String, String) {
    let [reply, meaning] = columns(line)[..] else {
        panic!("{path}: `{line}` has not two columns")
    };
    assert!(line.starts_with("  "), "{path}: `{line}` is not indented");
    (reply.to_owned(), meaning.to_owned())
}

fn without_comment(line: &str) -> String {
    line.split("--").next().unwrap_or_default().trim_end().to_owned()
}
