//! The outcomes that a provider exported: a csv file with one operation per line.

use std::collections::HashMap;
use std::iter::Peekable;
use std::str::Chars;

use super::provider_answer::{DoneResponse, ProviderAnswer};
use crate::domain::manual_step;

/// The columns of the file, in this order.
const COLUMNS: [&str; 4] = ["key", "outcome", "status", "body_file"];

/// One operation of the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ProviderRow {
    /// The line on which it begins, from 1.
    pub(crate) line: usize,
    pub(crate) key: String,
    /// What the provider says. The body is in a file, relative to the folder of the csv file.
    pub(crate) answer: ProviderAnswer,
}

/// Reads the rows of a csv file as RFC 4180 describes it, with a heading.
///
/// # Errors
/// The first line that is wrong, and why.
pub(crate) fn parse_rows(bytes: &[u8]) -> Result<Vec<ProviderRow>, String> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes);
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let before = &bytes[..error.valid_up_to()];
        let line = before.iter().filter(|byte| **byte == b'\n').count() + 1;
        format!("line {line}: it is not UTF-8")
    })?;
    let mut lines = parse_lines(text)
        .map_err(|line| format!("line {line}: it is not csv (RFC 4180); check its quotes"))?
        .into_iter();
    let heading = lines.next().map(|(_, cells)| cells).unwrap_or_default();
    let names: Vec<_> =
        heading.iter().map(|name| name.trim().to_lowercase().replace([' ', '-'], "_")).collect();
    if names != COLUMNS {
        return Err(format!("line 1: the heading must be {}", COLUMNS.join(",")));
    }
    let mut rows: Vec<ProviderRow> = Vec::new();
    let mut seen: HashMap<String, usize> = HashMap::new();
    for (line, cells) in lines {
        let row = row(line, cells)?;
        if let Some(first) = seen.insert(row.key.clone(), line) {
            return Err(format!("line {line}: its key is on line {first} already"));
        }
        rows.push(row);
    }
    if rows.is_empty() {
        return Err("it has no line after the heading".to_owned());
    }
    Ok(rows)
}

fn row(line: usize, cells: Vec<String>) -> Result<ProviderRow, String> {
    let count = cells.len();
    let Ok([key, outcome, status, body_file]) = <[String; 4]>::try_from(cells) else {
        return Err(format!("line {line}: it has {count} columns instead of {}", COLUMNS.len()));
    };
    if key.is_empty() {
        return Err(format!("line {line}: the key is empty"));
    }
    let status = match status.trim() {
        "" => None,
        text => Some(manual_step::status(text).map_err(|why| format!("line {line}: {why}"))?),
    };
    let body_file = if body_file.is_empty() { None } else { Some(body_file) };
    if outcome != "done" && (status.is_some() || body_file.is_some()) {
        return Err(format!("line {line}: only `done` has a status and a body file"));
    }
    let answer = match outcome.as_str() {
        "done" => {
            let response = DoneResponse { status, body_file, ..DoneResponse::default() };
            ProviderAnswer::Done(Box::new(response))
        }
        "not-done" => ProviderAnswer::NotDone,
        "unknown" => ProviderAnswer::Unknown("the file says so".to_owned()),
        _ => return Err(format!("line {line}: the outcome must be done, not-done or unknown")),
    };
    Ok(ProviderRow { line, key, answer })
}

/// The cells of each line that is not empty, with the number of the line. The error is the number of
/// a line that is not csv.
fn parse_lines(text: &str) -> Result<Vec<(usize, Vec<String>)>, usize> {
    let mut lines = Vec::new();
    let mut characters = text.chars().peekable();
    let mut line = 1;
    while characters.peek().is_some() {
        let first_line = line;
        let mut cells = Vec::new();
        loop {
            let mut cell = String::new();
            if characters.next_if_eq(&'"').is_some() {
                line += quoted_cell(&mut characters, &mut cell).ok_or(first_line)?;
                if !matches!(characters.peek(), None | Some(',' | '\n' | '\r')) {
                    return Err(line);
                }
            } else {
                while let Some(character) =
                    characters.next_if(|next| !matches!(next, ',' | '\n' | '\r'))
                {
                    cell.push(character);
                }
                if cell.contains('"') {
                    return Err(line);
                }
            }
            cells.push(cell);
            match characters.next() {
                Some(',') => {}
                Some('\r') => match characters.next() {
                    Some('\n') | None => break,
                    Some(_) => return Err(line),
                },
                _ => break,
            }
        }
        line += 1;
        if cells != [""] {
            lines.push((first_line, cells));
        }
    }
    Ok(lines)
}

/// Reads the rest of a quoted cell, and returns how many lines end in it. `None` if it is not
/// closed.
fn quoted_cell(characters: &mut Peekable<Chars<'_>>, cell: &mut String) -> Option<usize> {
    let mut lines = 0;
    loop {
        match characters.next()? {
            '"' if characters.next_if_eq(&'"').is_some() => cell.push('"'),
            '"' => return Some(lines),
            character => {
                lines += usize::from(character == '\n');
                cell.push(character);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADING: &str = "key,outcome,status,body_file\n";

    fn rows(text: &str) -> Result<Vec<ProviderRow>, String> {
        parse_rows(format!("{HEADING}{text}").as_bytes())
    }

    #[test]
    fn cells_are_read_as_the_rfc_says() {
        let read = rows("\"a,\"\"b\"\"\nc\",done,201,body.json\r\n\nd,unknown,,\n").unwrap();
        assert_eq!(read[0].key, "a,\"b\"\nc");
        let response = DoneResponse {
            status: Some(201),
            body_file: Some("body.json".to_owned()),
            ..DoneResponse::default()
        };
        let done = ProviderAnswer::Done(Box::new(response));
        assert_eq!((read[0].line, &read[0].answer), (2, &done));
        assert_eq!((read[1].line, read[1].key.as_str()), (5, "d"));
    }

    #[test]
    fn each_error_names_its_line() {
        for (text, says) in [
            ("a,done,201\n", "line 2: it has 3 columns"),
            ("a,done,,\nb,perhaps,,\n", "line 3: the outcome"),
            ("a,done,99,\n", "line 2: the status"),
            ("a,done,,\na,done,,\n", "line 3: its key is on line 2"),
            (",done,,\n", "line 2: the key is empty"),
            ("a,not-done,201,\n", "line 2: only `done`"),
            ("\"a,done,,\n", "line 2: it is not csv"),
            ("a\"b,done,,\n", "line 2: it is not csv"),
            ("", "no line after the heading"),
        ] {
            let why = rows(text).unwrap_err();
            assert!(why.contains(says), "{text:?}: {why}");
        }
        assert!(parse_rows(b"key,outcome\n").unwrap_err().contains("line 1"));
        assert!(parse_rows(b"key,outcome,status,body_file\n\xff").unwrap_err().contains("line 2"));
    }
}
