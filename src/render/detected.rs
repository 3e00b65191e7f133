//! The schemas that were detected in an unknown Redis: for people, and as JSON.

use serde::Serialize;
use serde_json::{Map, Value, json};

use super::escape;
use super::invocation::{Invocation, option_words};
use super::page::Page;
use super::style::View;
use super::table::{Column, of_columns};
use super::words;
use crate::domain::detect::{Confidence, Guess, KeyGroup};

/// The most unclaimed groups that people see; JSON contains all.
const MAX_OF_NOBODY: usize = 10;

/// A group and the suggested command for its schema.
pub struct Detected {
    pub group: KeyGroup,
    pub next: Next,
    /// The number of Redis keys in the group: exact, or projected from the sample.
    pub keys: u64,
    /// True if every Redis key was read, so that the number is exact.
    pub is_exact: bool,
}

/// What the operator must do before other commands can read the group.
pub enum Next {
    /// Adopt this schema, with this prefix.
    Adopt(String, Option<String>),
    /// Look at the records of this schema with this prefix. They are read already, or the same
    /// schema is in use under another prefix.
    List(String, Option<String>),
    /// Draft a schema from the Redis keys that match this glob.
    Describe(String),
    /// Nothing useful: idemctl cannot describe these keys.
    Nothing,
}

impl Next {
    /// The suggested command line.
    fn command(&self, invocation: &Invocation) -> Option<String> {
        let (command, options) = match self {
            Self::Adopt(schema, prefix) => {
                (vec!["schema", "adopt", schema], vec![("--prefix", prefix.as_ref())])
            }
            Self::List(schema, prefix) => {
                (vec!["list"], vec![("--schema", Some(schema)), ("--prefix", prefix.as_ref())])
            }
            Self::Describe(glob) => (vec!["schema", "new", "NAME"], vec![("--match", Some(glob))]),
            Self::Nothing => return None,
        };
        let mut words: Vec<_> = command.into_iter().map(str::to_owned).collect();
        for (option, value) in options {
            if let Some(value) = value {
                words.extend(option_words(option, value));
            }
        }
        Some(invocation.command_line(words))
    }
}

/// The fields of a group that text and JSON share.
#[derive(Serialize)]
pub struct GroupFields {
    pattern: String,
    #[serde(rename = "type")]
    kind: String,
    sampled: usize,
    keys: u64,
    schema: Option<String>,
    prefix: Option<String>,
    role: Option<&'static str>,
    confidence: &'static str,
    evidence: Vec<String>,
    states: Map<String, Value>,
    stuck: Option<usize>,
    no_expiry: usize,
    endless_keys: Vec<String>,
    over_a_year: usize,
    also_possible: Vec<Value>,
    adopt: Option<String>,
    describe: Option<String>,
}

/// The fields of a group.
pub fn fields(detected: &Detected, invocation: &Invocation) -> GroupFields {
    let Detected { group, next, keys, .. } = detected;
    let guess = group.guess.as_ref();
    let mut states = Map::new();
    for (state, count) in &group.states {
        states.insert((*state).to_owned(), json!(count));
    }
    let mut also_possible = Vec::new();
    for other in &group.others {
        also_possible.push(json!({ "schema": other.schema, "why": other.why }));
    }
    let command = next.command(invocation);
    let (adopt, describe) = match next {
        Next::Adopt(..) => (command, None),
        Next::Describe(_) => (None, command),
        Next::List(..) | Next::Nothing => (None, None),
    };
    GroupFields {
        pattern: group.pattern.clone(),
        kind: group.kind.clone(),
        sampled: group.sampled,
        keys: *keys,
        schema: guess.map(|guess| guess.schema.name.clone()),
        prefix: guess.and_then(Guess::other_prefix).map(str::to_owned),
        role: guess.map(|guess| guess.schema.keys[guess.key_index].role.as_str()),
        confidence: group.confidence.as_str(),
        evidence: group.evidence.clone(),
        states,
        stuck: group.stuck,
        no_expiry: group.no_expiry,
        endless_keys: group.endless_keys.iter().map(|key| escape::text(key)).collect(),
        over_a_year: group.over_a_year,
        also_possible,
        adopt,
        describe,
    }
}

/// A page for people: a table of the claimed groups, those with stuck locks first, and one of the
/// others. `explains` adds what speaks for each schema.
pub fn text(all: &[Detected], invocation: &Invocation, view: View, explains: bool) -> String {
    let mut page = Page::new(view);
    let (mut claimed, mut others): (Vec<_>, Vec<_>) =
        all.iter().partition(|detected| detected.group.guess.is_some());
    claimed.sort_by_key(|detected| std::cmp::Reverse(detected.group.stuck));
    // Keys that stay for good may be stuck locks, however few they are, and so may be groups that
    // look like locks.
    others.sort_by_key(|Detected { group, .. }| {
        (group.no_expiry + group.over_a_year == 0, group.evidence.is_empty())
    });
    if !claimed.is_empty() {
        let mut columns = claimed_columns();
        if explains {
            columns.push(Column::folded("EVIDENCE", 0, |of| {
                escape::text(of.group.evidence.join("; ").as_bytes())
            }));
        }
        page.text.push_str(&of_columns(view, &columns, &claimed));
        adopt(&mut page, &claimed, invocation);
        page.line("");
    }
    if !others.is_empty() {
        page.line(&view.palette.bold("Not recognised"));
        let first = &others[..MAX_OF_NOBODY.min(others.len())];
        page.text.push_str(&of_columns(view, &columns_of_nobody(), first));
        let more = &others[MAX_OF_NOBODY.min(others.len())..];
        if !more.is_empty() {
            let patterns = words::counted(more.len() as u64, "more pattern");
            page.line(&format!("and {patterns} (-o json lists them all)"));
        }
        describe(&mut page, &others, invocation);
    }
    page.text
}

fn claimed_columns<'a>() -> Vec<Column<&'a Detected>> {
    vec![
        Column::number("STUCK", 0, |of: &&Detected| match of.group.stuck {
            Some(stuck) => in_sample(of, stuck),
            None => "unknown".to_owned(),
        }),
        Column::number("KEYS", 0, |of| count(of)),
        Column::shortened("PATTERN", 0, |of| escape::text(of.group.pattern.as_bytes())),
        Column::folded("SCHEMA", 0, |of| match &of.group.guess {
            Some(guess) => schema(&of.group, guess),
            None => String::new(),
        }),
        Column::folded("STATES", 1, |of| states(&of.group)),
    ]
}

/// The command lines that adopt or list schemas with another prefix. Each stays in one line at any
/// width, for copying.
fn adopt(page: &mut Page, claimed: &[&Detected], invocation: &Invocation) {
    for detected in claimed {
        let label = match (&detected.next, detected.group.confidence) {
            (Next::Adopt(..), Confidence::Is) => "Adopt:",
            (Next::Adopt(..), _) => "Adopt, if right:",
            (Next::List(_, Some(_)), _) => "List with:",
            _ => continue,
        };
        if let Some(command) = detected.next.command(invocation) {
            page.line(&format!("{} {command}", page.view.palette.dim(label)));
        }
    }
}

/// Prints the command line that drafts a schema for one unclaimed group: the first one that may be
/// locks, else the largest one.
fn describe(page: &mut Page, unclaimed: &[&Detected], invocation: &Invocation) {
    // Those that may be locks come first, then the others, each in the order of their size.
    let first = unclaimed.iter().find(|detected| matches!(detected.next, Next::Describe(_)));
    if let Some(command) = first.and_then(|detected| detected.next.command(invocation)) {
        let label = page.view.palette.dim("To describe one of these groups:");
        page.line(&format!("{label} {command}"));
    }
}

fn schema(group: &KeyGroup, guess: &Guess) -> String {
    let name = escape::text(guess.schema.name.as_bytes());
    let perhaps = if group.confidence == Confidence::Is { "" } else { "perhaps " };
    let mut text = format!("{perhaps}{name}");
    if let Some(prefix) = guess.other_prefix() {
        text += &format!(", prefix {}", escape::text(prefix.as_bytes()));
    }
    for other in &group.others {
        let schema = escape::text(other.schema.as_bytes());
        text += &format!("; or {schema}: {}", escape::text(other.why.as_bytes()));
    }
    text
}

/// How many keys of the sample there are: `3+` if the keyspace may have more.
fn in_sample(detected: &Detected, count: usize) -> String {
    let more = if detected.is_exact { "" } else { "+" };
    format!("{count}{more}")
}

fn count(detected: &Detected) -> String {
    let sign = if detected.is_exact { "" } else { "~" };
    format!("{sign}{}", detected.keys)
}

fn states(group: &KeyGroup) -> String {
    let mut states = Vec::new();
    for (state, count) in &group.states {
        // `foreign` is the JSON's word.
        let state = match *state {
            "foreign" => "unrecognised",
            "undecided" => "of unknown state",
            state => state,
        };
        states.push(format!("{count} {state}"));
    }
    states.join(", ")
}

/// The columns of groups that no schema reads.
fn columns_of_nobody<'a>() -> [Column<&'a Detected>; 6] {
    [
        Column::shortened("PATTERN", 0, |of: &&Detected| escape::text(of.group.pattern.as_bytes())),
        Column::text("TYPE", 1, |of| escape::text(of.group.kind.as_bytes())),
        Column::number("KEYS", 0, |of| count(of)),
        Column::number("NO EXPIRY", 0, |of| in_sample(of, of.group.no_expiry)),
        Column::number("OVER 1 YEAR", 2, |of| in_sample(of, of.group.over_a_year)),
        Column::folded("NOTE", 0, |of| {
            let mut note = of.group.evidence.clone();
            if !of.group.endless_keys.is_empty() {
                let keys: Vec<_> =
                    of.group.endless_keys.iter().map(|key| escape::text(key)).collect();
                note.push(format!("without expiry: {}", keys.join(", ")));
            }
            for other in &of.group.others {
                note.push(format!("{} {}", other.schema, other.why));
            }
            escape::text(note.join("; ").as_bytes())
        }),
    ]
}
