//! A Rust file as the layer rules look at it: what it imports and mentions, comments, strings and tests left out.

/// A source file.
pub struct Source {
    /// Its path from the project's root.
    pub file: String,
    /// How many lines it has.
    pub length: usize,
    /// The text with comments, strings and tests blanked out, line by line as it was.
    code: String,
    strings: Vec<(usize, String)>,
    /// Modules of files that are for tests only.
    test_files: Vec<String>,
}

impl Source {
    /// Reads a file.
    pub fn new(file: &str, text: &str) -> Self {
        let length = text.lines().count();
        let (text, test_files) = without_tests(text);
        let mut scanner = Scanner { text: &text, at: 0, code: String::new(), strings: Vec::new() };
        scanner.run();
        Self { file: file.to_owned(), length, code: scanner.code, strings: scanner.strings, test_files }
    }

    /// The module's path within the crate, e.g. `commands::inspect::watch`.
    pub fn module(&self) -> String {
        let path = self.file.trim_start_matches("src/").trim_end_matches(".rs").trim_end_matches("/mod");
        path.replace('/', "::")
    }

    /// The modules below this one that are for tests only.
    pub fn test_modules(&self) -> Vec<String> {
        self.test_files.iter().map(|name| format!("{}::{name}", self.module())).collect()
    }

    /// The first part of the module's path.
    pub fn room(&self) -> &str {
        let path = self.file.trim_start_matches("src/");
        path.split('/').next().unwrap_or_default().trim_end_matches(".rs")
    }

    /// A place in the file, and what is wrong there.
    pub fn at(&self, line: usize, what: &str) -> String {
        format!("{}:{line}: {what}", self.file)
    }

    /// Every path into this crate, from its root, with its line.
    pub fn imports(&self) -> Vec<(usize, String)> {
        let mut imports = Vec::new();
        for root in ["crate::", "super::"] {
            for at in self.starts_of(root) {
                // `super::super::` is found from its first word.
                if self.code[..at].ends_with("super::") {
                    continue;
                }
                for path in expand(&self.code[at..]) {
                    imports.extend(self.resolve(&path).map(|path| (self.line_of(at), path)));
                }
            }
        }
        imports
    }

    /// The lines that mention a path such as `std::fs` or `redis`, in full or in a `use` group.
    pub fn lines_with_path(&self, wanted: &str) -> Vec<usize> {
        let root = wanted.split("::").next().unwrap_or_default();
        let starts = self.starts_of(&format!("{root}::")).into_iter();
        let below = |path: &String| path == wanted || path.starts_with(&format!("{wanted}::"));
        starts.filter(|at| expand(&self.code[*at..]).iter().any(below)).map(|at| self.line_of(at)).collect()
    }

    /// The lines that hold one of these texts.
    pub fn mentions(&self, texts: &[&str]) -> Vec<String> {
        let found = texts.iter().flat_map(|text| self.starts_of(text).into_iter().map(move |at| (at, text)));
        found.map(|(at, text)| self.at(self.line_of(at), &format!("mentions {text}"))).collect()
    }

    /// What stands between semicolons and braces at the top, attributes left out.
    pub fn statements(&self) -> Vec<(usize, String)> {
        let mut statements = Vec::new();
        let (mut start, mut depth) = (0, 0_usize);
        for (at, character) in self.code.char_indices() {
            match character {
                '{' | '(' | '[' => depth += 1,
                '}' | ')' | ']' => depth = depth.saturating_sub(1),
                _ => {}
            }
            let is_use = self.code[start..at].trim_start().contains("use ");
            let ends = depth == 0 && (character == ';' || character == ']' || (character == '}' && !is_use));
            if ends {
                let text = self.code[start..=at].trim();
                let is_attribute = text.starts_with("#[") || text.starts_with("#![");
                if !is_attribute && text != ";" {
                    let first = start + self.code[start..].len() - self.code[start..].trim_start().len();
                    statements.push((self.line_of(first), text.split_whitespace().collect::<Vec<_>>().join(" ")));
                }
                start = at + 1;
            }
        }
        statements
    }

    /// The texts of string literals, with their lines.
    pub fn strings(&self) -> Vec<(usize, String)> {
        self.strings.clone()
    }

    /// Where a text stands that does not begin in the middle of a word.
    fn starts_of(&self, text: &str) -> Vec<usize> {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let starts = self.code.match_indices(text).map(|(at, _)| at);
        starts.filter(|at| !text.starts_with(is_word) || !self.code[..*at].ends_with(is_word)).collect()
    }

    fn line_of(&self, at: usize) -> usize {
        self.code[..at].matches('\n').count() + 1
    }

    /// From the crate's root, what `crate::…` or `super::…` in this file means.
    fn resolve(&self, path: &str) -> Option<String> {
        let mut module: Vec<_> = self.module().split("::").map(str::to_owned).collect();
        let mut rest = path;
        if let Some(path) = rest.strip_prefix("crate::") {
            return Some(path.to_owned());
        }
        while let Some(path) = rest.strip_prefix("super::") {
            module.pop()?;
            rest = path;
        }
        module.push(rest.to_owned());
        Some(module.join("::"))
    }
}

/// The paths at the start of a text: one, or one for each leaf of a group such as `a::{b, c::{d, e}}`.
fn expand(text: &str) -> Vec<String> {
    let end = text.find(|c: char| !(c.is_alphanumeric() || c == '_' || c == ':')).unwrap_or(text.len());
    let head = text[..end].trim_end_matches(':');
    let Some(group) = text[end..].strip_prefix('{').filter(|_| text[..end].ends_with("::")) else {
        return vec![head.to_owned()];
    };
    let mut paths = Vec::new();
    let (mut depth, mut start) = (0, 0);
    for (at, character) in group.char_indices() {
        let ends = match character {
            '{' => {
                depth += 1;
                false
            }
            '}' if depth == 0 => true,
            '}' => {
                depth -= 1;
                false
            }
            ',' => depth == 0,
            _ => false,
        };
        if ends {
            let leaf = group[start..at].trim();
            paths
                .extend(expand(leaf).into_iter().filter(|leaf| !leaf.is_empty()).map(|leaf| format!("{head}::{leaf}")));
            start = at + 1;
        }
        if character == '}' && ends {
            break;
        }
    }
    paths
}

/// The text without what is for tests only: a module at the end, or a line that names a file.
fn without_tests(text: &str) -> (String, Vec<String>) {
    let mut kept = String::new();
    let mut files = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if line.trim() != "#[cfg(test)]" {
            kept.push_str(line);
        } else if let Some(name) = lines.next().and_then(|next| next.trim().strip_suffix(';')) {
            files.push(name.split_whitespace().last().unwrap_or_default().to_owned());
            kept.push('\n');
        } else {
            break;
        }
        kept.push('\n');
    }
    (kept, files)
}

/// Goes through a text once, and tells code from comments and strings.
struct Scanner<'a> {
    text: &'a str,
    at: usize,
    code: String,
    strings: Vec<(usize, String)>,
}

impl Scanner<'_> {
    fn run(&mut self) {
        while self.at < self.text.len() {
            let rest = &self.text[self.at..];
            if rest.starts_with("//") {
                self.blank(rest.find('\n').unwrap_or(rest.len()));
            } else if rest.starts_with("/*") {
                self.blank(rest.find("*/").map_or(rest.len(), |end| end + 2));
            } else if let Some(length) = char_literal(rest) {
                self.blank(length);
            } else if let Some(length) = string(rest) {
                let line = self.code.matches('\n').count() + 1;
                self.strings.push((line, rest[..length].to_owned()));
                self.blank(length);
            } else {
                let first = rest.chars().next().unwrap_or(' ');
                self.code.push(first);
                self.at += first.len_utf8();
            }
        }
    }

    fn blank(&mut self, length: usize) {
        self.code.extend(self.text[self.at..self.at + length].chars().filter(|c| *c == '\n'));
        self.code.push(' ');
        self.at += length;
    }
}

/// The length of `'x'` or `'\n'` at the start; a lifetime is none.
fn char_literal(text: &str) -> Option<usize> {
    let inside = text.strip_prefix('\'')?;
    if inside.starts_with('\\') {
        return inside[2..].find('\'').map(|end| end + 4);
    }
    let first = inside.chars().next()?.len_utf8();
    inside[first..].starts_with('\'').then_some(first + 2)
}

/// The length of a string literal at the start, raw ones included.
fn string(text: &str) -> Option<usize> {
    let raw = text.strip_prefix('r').filter(|rest| rest.starts_with(['#', '"']));
    if let Some(rest) = raw {
        let hashes = rest.len() - rest.trim_start_matches('#').len();
        rest[hashes..].strip_prefix('"')?;
        let end = format!("\"{}", "#".repeat(hashes));
        let body = 1 + hashes + 1;
        return Some(text[body..].find(&end).map_or(text.len(), |at| body + at + end.len()));
    }
    let inside = text.strip_prefix('"')?;
    let mut escaped = false;
    for (at, character) in inside.char_indices() {
        match character {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return Some(at + 2),
            _ => {}
        }
    }
    Some(text.len())
}
