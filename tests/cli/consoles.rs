//! The consoles of the documents: every command of every ```console block is run, in the order of the document, on a seeded
//! throw-away server of the document's own, and prints what the document shows. What differs from run to run (numbers,
//! times, identifiers, bars, the width of columns) is not compared, nor is the line `Idle`, which only Redis 7.2 and later can
//! tell. A line `…` stands for any lines, a word `…` for any words. `IDEMCTL_BLESS=1` (`make generate`) writes the blocks that leave nothing out anew.

use std::fs;
use std::path::PathBuf;

use crate::support::terminal::{plain, shown_on};
use crate::support::{Run, Runs, binary, idemctl, program};

/// The documents whose consoles speak of `idemctl sandbox --seed 20`. The consoles of `docs/connecting.md` need clusters, Sentinels
/// and certificates: the tests of these run them.
const DOCUMENTS: [Document; 4] = [
    Document { name: "README.md", columns: None },
    Document { name: "docs/operations.md", columns: None },
    Document { name: "docs/simulations.md", columns: None },
    Document { name: "docs/screens.md", columns: Some(80) },
];

/// A document, and the width of the terminal in which its consoles run; `None` for a pipe.
struct Document {
    name: &'static str,
    columns: Option<u16>,
}

const FENCE: &str = "```console\n";
/// Stands before the output of each command of the script.
const MARK: &str = "@@@ next command";

/// A command of a document and the lines that the document shows below.
struct Shown {
    command: String,
    output: Vec<String>,
}

/// A piece of a document: text as it stands, or a console.
enum Piece {
    Text(String),
    Console(Vec<Shown>),
}

fn pieces(document: &str) -> Vec<Piece> {
    let mut parts = document.split(FENCE);
    let mut all = vec![Piece::Text(parts.next().unwrap_or_default().to_owned())];
    for part in parts {
        let (console, text) = part.split_once("```").expect("a console ends");
        all.push(Piece::Console(commands(console)));
        all.push(Piece::Text(text.to_owned()));
    }
    all
}

fn commands(console: &str) -> Vec<Shown> {
    let mut all: Vec<Shown> = Vec::new();
    for line in console.lines() {
        match (line.strip_prefix("$ "), all.last_mut()) {
            (Some(command), _) => {
                all.push(Shown { command: command.to_owned(), output: Vec::new() })
            }
            (None, Some(last)) if last.command.ends_with('\\') => {
                last.command = format!("{}\n{line}", last.command);
            }
            (None, Some(last)) => last.output.push(line.to_owned()),
            (None, None) => panic!("a console begins with a command, not with {line:?}"),
        }
    }
    all
}

/// What each command prints, stdout and stderr together, one after the other on one seeded server.
fn played(commands: &[&Shown], columns: Option<u16>) -> Vec<Vec<String>> {
    played_on(commands, columns, plain)
}

/// Like [`played`]; `read` takes the text from what the terminal got.
fn played_on(
    commands: &[&Shown],
    columns: Option<u16>,
    read: fn(&Run) -> String,
) -> Vec<Vec<String>> {
    // Its length decides where lines fold, so that it is the same on every machine.
    let home = tempfile::Builder::new().prefix("home-").tempdir_in("/tmp").unwrap();
    let script: String =
        commands.iter().map(|shown| format!("echo '{MARK}'\n{}\n", shown.command)).collect();
    // A person has a default context, so that the lines that idemctl prints need no server.
    let context = "idemctl context set demo -u \"$IDEMCTL_URL\" --quiet\nunset IDEMCTL_URL";
    let script = format!("exec 2>&1\n{context}\nidemctl context use demo --quiet\n{script}");
    fs::write(home.path().join("script"), script).unwrap();
    let binary = binary();
    let folders = [binary.parent().unwrap(), program().parent().unwrap()]
        .map(|folder| folder.display().to_string());
    let mut command = idemctl(home.path());
    command
        .env("PATH", format!("{}:/usr/bin:/bin", folders.join(":")))
        .env("USER", "ana")
        // The documents show the temporary folder of most machines.
        .env("TMPDIR", "/tmp");
    let words = ["sandbox", "--seed", "20", "--", "sh", "script"];
    let text = match columns {
        Some(columns) => read(&shown_on(columns, &command, &words)),
        None => command.args(words).run().text(),
    };
    let text = text.replace(&home.path().display().to_string(), "~");
    let outputs: Vec<_> = text.split(&format!("{MARK}\n")).skip(1).map(lines).collect();
    assert_eq!(outputs.len(), commands.len(), "{text}");
    outputs
}

fn lines(text: &str) -> Vec<String> {
    let mut lines = Vec::new();
    for line in text.lines() {
        if !line.starts_with("  Idle  ") {
            lines.push(line.trim_end().to_owned());
        }
    }
    lines
}

/// A line without what differs from run to run.
fn constant(line: &str) -> String {
    let mut words: Vec<String> = Vec::new();
    for word in line.split_whitespace().map(constant_word).filter(|word| !word.is_empty()) {
        // `23h 59m` is one time, and so are `1d` and `under 1s`.
        if word == "TIME" && words.last().is_some_and(|last| last == "under") {
            words.pop();
        }
        if word != "TIME" || words.last().is_none_or(|last| last != "TIME") {
            words.push(word);
        }
    }
    words.join(" ")
}

fn constant_word(word: &str) -> String {
    let bar = |letter: char| ('\u{2580}'..='\u{259f}').contains(&letter);
    let bare: String = word.chars().filter(|letter| !bar(*letter)).collect();
    // Some identifiers look like a time in days.
    if bare.len() >= 8 && bare.bytes().all(|letter| letter.is_ascii_hexdigit()) {
        return "ID".to_owned();
    }
    let punctuation = bare.len() - bare.trim_end_matches([',', ';', ':', '.', ')']).len();
    let (value, end) = bare.split_at(bare.len() - punctuation);
    let measure = value
        .trim_start_matches(['~', '('])
        .trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
    let begins =
        value.trim_start_matches(['~', '(']).starts_with(|letter: char| letter.is_ascii_digit());
    if begins && ["ms", "s", "m", "h", "d", "µs"].contains(&measure) {
        return "TIME".to_owned();
    }
    if begins && ["KiB", "MiB", "B"].contains(&measure) {
        return format!("SIZE{end}");
    }
    let parts = bare.split_inclusive(|letter: char| !letter.is_ascii_alphanumeric());
    // A busy machine spreads what was one number over a range.
    parts.map(constant_part).collect::<String>().replace("0–0", "0")
}

/// A part of a word: `ID` for an identifier in hexadecimal digits, `0` for a number.
fn constant_part(part: &str) -> String {
    let name = part.trim_end_matches(|letter: char| !letter.is_ascii_alphanumeric());
    let is_hex = name.chars().all(|letter| letter.is_ascii_hexdigit())
        && name.contains(|letter: char| letter.is_ascii_digit());
    if name.len() >= 8 && is_hex {
        return format!("ID{}", &part[name.len()..]);
    }
    let mut constant = String::new();
    for letter in part.chars() {
        match letter {
            '0'..='9' if constant.ends_with('0') => {}
            '0'..='9' => constant.push('0'),
            _ => constant.push(letter),
        }
    }
    constant
}

/// True where the lines are what the document shows, a line `…` standing for any.
fn matches(shown: &[String], printed: &[String]) -> bool {
    match (shown.split_first(), printed.split_first()) {
        (None, None) => true,
        (Some((first, rest)), _) if first == "…" => {
            (0..=printed.len()).any(|skipped| matches(rest, &printed[skipped..]))
        }
        (Some((first, rest)), Some((line, others))) => {
            is_line(first, line) && matches(rest, others)
        }
        _ => false,
    }
}

/// True where a line is what the document shows, a word `…` standing for any words.
fn is_line(shown: &str, printed: &str) -> bool {
    let (shown, mut rest) = (constant(shown), format!("{} ", constant(printed)));
    let parts: Vec<_> =
        format!("{shown} ").split(" … ").map(|part| part.trim().to_owned()).collect();
    let (first, others) = parts.split_first().expect("a split gives a part");
    match rest.strip_prefix(first.as_str()) {
        Some(behind) => rest = behind.to_owned(),
        None => return false,
    }
    for part in others {
        match rest.split_once(part.as_str()) {
            Some((_, behind)) => rest = behind.to_owned(),
            None => return false,
        }
    }
    rest.trim().is_empty() || others.last().is_some_and(String::is_empty)
}

fn leaves_out(shown: &Shown) -> bool {
    shown.output.iter().any(|line| line.split_whitespace().any(|word| word == "…"))
}

fn written(pieces: &[Piece], printed: &[Vec<String>]) -> String {
    let mut printed = printed.iter();
    let mut document = String::new();
    for piece in pieces {
        let shown = match piece {
            Piece::Text(text) => {
                document.push_str(text);
                continue;
            }
            Piece::Console(shown) => shown,
        };
        document.push_str(FENCE);
        for shown in shown {
            let now = printed.next().expect("as many outputs as commands");
            let output = if leaves_out(shown) { &shown.output } else { now };
            document.push_str(&format!("$ {}\n", shown.command));
            output.iter().for_each(|line| document.push_str(&format!("{line}\n")));
        }
        document.push_str("```");
    }
    document
}

#[test]
fn the_consoles_of_the_documents_show_what_is_printed() {
    for Document { name, columns } in DOCUMENTS {
        let file = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name);
        let document = fs::read_to_string(&file).unwrap();
        let pieces = pieces(&document);
        let shown: Vec<&Shown> = pieces
            .iter()
            .filter_map(|piece| match piece {
                Piece::Console(shown) => Some(shown),
                Piece::Text(_) => None,
            })
            .flatten()
            .collect();
        assert!(!shown.is_empty(), "{name} has no consoles");
        let printed = played(&shown, columns);
        if std::env::var_os("IDEMCTL_BLESS").is_some() {
            fs::write(&file, written(&pieces, &printed)).unwrap();
        }
        for (shown, printed) in shown.iter().zip(&printed) {
            // Where a line folds depends on the digits of a number.
            let is_same = match columns {
                Some(_) => is_line(&shown.output.join(" "), &printed.join(" ")),
                None => matches(&shown.output, printed),
            };
            let same =
                is_same || (std::env::var_os("IDEMCTL_BLESS").is_some() && !leaves_out(shown));
            assert!(
                same,
                "{name}: $ {}\nshown:\n{}\n\nprinted:\n{}\n\n`make generate` writes it anew",
                shown.command,
                shown.output.join("\n"),
                printed.join("\n"),
            );
        }
    }
}

/// The pictures of README.md: commands in a terminal of 80 columns.
const PICTURES: [(&str, &str); 3] = [
    ("inspect", "idemctl inspect invoices.sent-3-48007"),
    ("list", "idemctl list --sort key --finding no-expiry,excess-ttl,unreadable --limit 8"),
    ("explore", "idemctl explore express --sandbox"),
];

/// What a terminal keeps of a run: the lines with their colours, without cursor movements.
fn kept(run: &Run) -> String {
    let text = String::from_utf8_lossy(&run.stdout).replace("\r\n", "\n");
    let mut kept = String::new();
    for line in text.lines() {
        let mut rest = line.rsplit('\r').next().unwrap_or(line);
        while let Some((before, escape)) = rest.split_once("\u{1b}[") {
            kept.push_str(before);
            let end = escape.find(|letter: char| letter.is_ascii_alphabetic()).unwrap();
            if escape[end..].starts_with('m') {
                kept.push_str(&format!("\u{1b}[{}", &escape[..=end]));
            }
            rest = &escape[end + 1..];
        }
        kept.push_str(rest);
        kept.push('\n');
    }
    kept
}

/// The texts of a picture, line by line, without what differs from run to run.
fn texts(svg: &str) -> Vec<String> {
    let mut texts = Vec::new();
    for line in svg.lines().filter(|line| line.contains("<tspan")) {
        let mut text = String::new();
        for part in line.split('<') {
            text.push_str(part.split_once('>').map_or("", |(_, text)| text));
        }
        // Only Redis 7.2 and later can tell it.
        if !text.trim_start().starts_with("Idle ") {
            texts.push(constant(&text));
        }
    }
    texts
}

#[test]
fn the_pictures_of_the_readme_show_what_is_printed() {
    for (name, line) in PICTURES {
        let shown = Shown { command: line.to_owned(), output: Vec::new() };
        let printed = played_on(&[&shown], Some(80), kept).remove(0);
        let screen = format!("$ {line}\n{}\n", printed.join("\n"));
        let svg = anstyle_svg::Term::new().min_width_px(740).render_svg(&screen);
        let file =
            PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(format!("docs/images/{name}.svg"));
        if std::env::var_os("IDEMCTL_BLESS").is_some() {
            fs::write(&file, &svg).unwrap();
        }
        let kept = fs::read_to_string(&file).unwrap_or_default();
        assert_eq!(texts(&kept), texts(&svg), "`make generate` writes {} anew", file.display());
    }
}
