//! The manual pages that are no command's are the documents of the project in the language of manual pages. `IDEMCTL_BLESS=1`
//! (`make generate`) writes these pages anew.

use std::fs;
use std::path::{Path, PathBuf};

use idemctl::version::RELEASED;
use pulldown_cmark::{Event, HeadingLevel, Options, Parser, Tag, TagEnd};

/// A page, its section, its first line, and the chapters of documents that it holds; an empty chapter is a whole document.
struct Page {
    name: &'static str,
    section: u8,
    about: &'static str,
    chapters: &'static [(&'static str, &'static str)],
}

const PAGES: [Page; 5] = [
    Page {
        name: "idemctl-config",
        section: 5,
        about: "the config file of idemctl: servers by name",
        chapters: &[("docs/connecting.md", "## Contexts")],
    },
    Page {
        name: "idemctl-schema",
        section: 5,
        about: "schema.toml: how one service keeps its idempotency keys in Redis",
        chapters: &[("lua/README.md", "## A schema")],
    },
    Page {
        name: "idemctl-findings",
        section: 7,
        about: "what idemctl finds wrong with a record, whose the record is, and how well that is known",
        chapters: &[
            ("docs/operations.md", "## Findings"),
            ("docs/operations.md", "## Claims"),
            ("docs/operations.md", "## Evidence"),
        ],
    },
    Page {
        name: "idemctl-checks",
        section: 7,
        about: "the checks of idemctl doctor, with their rules and sources",
        chapters: &[("docs/doctor.md", "## Checks")],
    },
    Page {
        name: "idemctl-json",
        section: 7,
        about: "the JSON output of idemctl",
        chapters: &[("docs/json.md", "# JSON")],
    },
];

impl Page {
    fn text(&self) -> String {
        let version = env!("CARGO_PKG_VERSION");
        let mut text = format!(
            ".TH {} {} {RELEASED} \"idemctl {version}\" idemctl\n.SH NAME\n{} \\- {}\n",
            self.name,
            self.section,
            escaped(self.name),
            self.about
        );
        for (document, heading) in self.chapters {
            text.push_str(&Writer::default().chapter(&chapter(document, heading)));
        }
        text + ".SH SEE ALSO\nidemctl(1)\n"
    }

    fn file(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("man/{}.{}", self.name, self.section))
    }
}

/// A chapter of a document: its heading and all below that is no heading of the same level or a higher one.
fn chapter(document: &str, heading: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(document)).unwrap();
    let level = heading.chars().take_while(|letter| *letter == '#').count();
    let mut in_code = false;
    let mut is_heading = |line: &str| {
        in_code ^= line.starts_with("```");
        let hashes = line.chars().take_while(|letter| *letter == '#').count();
        !in_code && (1..=level).contains(&hashes)
    };
    let mut lines = text.lines().skip_while(|line| *line != heading);
    let first = lines.next().unwrap_or_else(|| panic!("{document} has no {heading}"));
    let rest = lines.take_while(|line| !is_heading(line));
    std::iter::once(first).chain(rest).map(|line| format!("{line}\n")).collect()
}

/// Text as it stands, for roff.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\e")
        .replace('-', "\\-")
        .replace('\'', "\\(aq")
        .replace('`', "\\(ga")
        .replace('~', "\\(ti")
        .replace('^', "\\(ha")
}

/// Writes Markdown as roff.
#[derive(Default)]
struct Writer {
    text: String,
    /// The line that is being written.
    line: String,
    /// How many `#` the chapter's own heading has less one: what is below is a subsection.
    top: Option<HeadingLevel>,
    in_code: bool,
    in_cell: bool,
    cells: Vec<String>,
}

impl Writer {
    fn chapter(mut self, markdown: &str) -> String {
        for event in Parser::new_ext(markdown, Options::ENABLE_TABLES) {
            match event {
                Event::Start(tag) => self.start(&tag),
                Event::End(tag) => self.end(tag),
                Event::Text(text) if self.in_code => self.code(&text),
                Event::Text(text) => self.line.push_str(&escaped(&text)),
                Event::Code(text) => self.line.push_str(&format!("\\fB{}\\fR", escaped(&text))),
                Event::SoftBreak | Event::HardBreak => self.line.push(' '),
                _ => {}
            }
        }
        self.text
    }

    fn start(&mut self, tag: &Tag) {
        match tag {
            Tag::CodeBlock(_) => {
                let space = if self.begins() { "" } else { ".PP\n" };
                self.text.push_str(&format!("{space}.RS 4\n.nf\n"));
                self.in_code = true;
            }
            Tag::Item => self.text.push_str(".IP \\(bu 2\n"),
            Tag::Paragraph if !self.begins() => self.text.push_str(".PP\n"),
            Tag::TableCell => self.in_cell = true,
            Tag::Emphasis => self.line.push_str("\\fI"),
            Tag::Strong => self.line.push_str("\\fB"),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Heading(level) => self.heading(level),
            TagEnd::CodeBlock => {
                self.text.push_str(".fi\n.RE\n");
                self.in_code = false;
            }
            TagEnd::Paragraph | TagEnd::Item => self.end_line(),
            TagEnd::Emphasis | TagEnd::Strong => self.line.push_str("\\fR"),
            TagEnd::TableCell => {
                self.in_cell = false;
                self.cells.push(std::mem::take(&mut self.line));
            }
            TagEnd::TableRow => self.row(),
            TagEnd::TableHead => self.cells.clear(),
            _ => {}
        }
    }

    /// True behind a heading and at the start of an item, where a paragraph begins by itself.
    fn begins(&self) -> bool {
        let last = self.text.lines().last().unwrap_or_default();
        [".SH", ".SS", ".IP"].iter().any(|request| last.starts_with(request))
    }

    fn heading(&mut self, level: HeadingLevel) {
        let title = std::mem::take(&mut self.line);
        let top = *self.top.get_or_insert(level);
        let (request, title) =
            if level <= top { ("SH", title.to_uppercase()) } else { ("SS", title) };
        self.text.push_str(&format!(
            ".{request} \"{}\"\n",
            title.replace("\\FB", "").replace("\\FR", "")
        ));
    }

    /// A row of a table: its first cell names, the others explain.
    fn row(&mut self) {
        let cells = std::mem::take(&mut self.cells);
        let (first, others) = cells.split_first().expect("a row has cells");
        let others: Vec<_> =
            others.iter().filter(|cell| !cell.is_empty()).map(String::as_str).collect();
        self.text.push_str(&format!(".TP\n{first}\n{}\n", safe(&others.join("; "))));
    }

    fn code(&mut self, text: &str) {
        for line in text.lines() {
            self.text.push_str(&format!("{}\n", safe(&escaped(line))));
        }
    }

    fn end_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.text.push_str(&format!("{}\n", safe(&line)));
        }
    }
}

/// A line that roff does not take for a request.
fn safe(line: &str) -> String {
    if line.starts_with(['.', '\'']) { format!("\\&{line}") } else { line.to_owned() }
}

#[test]
fn the_pages_of_sections_5_and_7_are_the_documents() {
    for page in &PAGES {
        let (file, text) = (page.file(), page.text());
        if std::env::var_os("IDEMCTL_BLESS").is_some() {
            fs::write(&file, &text).unwrap();
        }
        let there = fs::read_to_string(&file).unwrap_or_default();
        assert!(there == text, "{} is stale; `make generate` writes it anew", file.display());
    }
}
