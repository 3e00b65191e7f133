//! Bugs that are planted into correct protocols: what `explore` says of each, and the tables of them in `docs/explore.md`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;
use serde_json::Value;

use crate::simulate::variant::{home, run};

/// The folder of the project.
const PROJECT: &str = env!("CARGO_MANIFEST_DIR");

/// What `planted.toml` holds.
#[derive(Deserialize)]
struct Planted {
    bug: Vec<Bug>,
}

/// A bug; `planted.toml` describes the fields.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Bug {
    into: String,
    mistake: String,
    change: Vec<(String, String, String)>,
    /// The violation with the fewest faults.
    finds: Option<String>,
    goal: Option<String>,
    silent: Option<String>,
    /// Only a comparison with the correct protocol shows it, because the environment must fail, too.
    #[serde(default)]
    expect: bool,
    faults: Option<String>,
    /// Only a worker with another payload meets it.
    #[serde(default)]
    payloads: bool,
}

fn bugs() -> Vec<Bug> {
    let text = fs::read_to_string(format!("{PROJECT}/tests/cli/explore/planted.toml")).unwrap();
    toml::from_str::<Planted>(&text).unwrap().bug
}

/// The folder of a correct protocol.
fn source(protocol: &str) -> PathBuf {
    let built_in = Path::new(PROJECT).join("lua").join(protocol);
    if built_in.is_dir() {
        return built_in;
    }
    Path::new(PROJECT).join("tests/protocols").join(protocol)
}

/// Copies a protocol into a folder of protocols, under another name.
fn copy(protocol: &str, into: &Path, name: &str) {
    let folder = into.join(name);
    fs::create_dir_all(&folder).unwrap();
    for entry in fs::read_dir(source(protocol)).unwrap() {
        let file = entry.unwrap();
        if file.file_type().unwrap().is_file() {
            fs::copy(file.path(), folder.join(file.file_name())).unwrap();
        }
    }
    let (from, to) = (format!("\nname = \"{protocol}\"\n"), format!("\nname = \"{name}\"\n"));
    replace(&folder.join("schema.toml"), &from, &to);
}

/// Replaces a text that is in the file once.
fn replace(file: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(file).unwrap();
    assert_eq!(text.matches(from).count(), 1, "{} has it once: {from}", file.display());
    fs::write(file, text.replacen(from, to, 1)).unwrap();
}

/// A bug in a schema folder, with the name of its schema.
struct Case<'a> {
    bug: &'a Bug,
    name: String,
}

impl Case<'_> {
    fn write(&self, into: &Path) {
        copy(&self.bug.into, into, &self.name);
        for (file, from, to) in &self.bug.change {
            replace(&into.join(&self.name).join(file), from, to);
        }
    }
}

/// The explorations of these schemas, by name.
fn explored(dir: &Path, names: &[&str], words: &[&str]) -> BTreeMap<String, Value> {
    let dir = ["--schema-dir", dir.to_str().unwrap(), "--sandbox", "-o", "json"];
    let run = run(home().path(), &[&["explore"], names, words, &dir].concat());
    assert!(matches!(run.code, 0 | 1), "{}", run.all());
    let mut explored = BTreeMap::new();
    for exploration in run.json()["schemas"].as_array().unwrap() {
        assert_eq!(exploration["complete"], true, "{exploration:#}");
        explored.insert(exploration["schema"].as_str().unwrap().to_owned(), exploration.clone());
    }
    explored
}

/// A violation as `planted.toml` has it, such as `owner-only by expiry + fail, 5 steps`.
fn in_words(invariant: &str, faults: &Value, steps: u64) -> (u64, u64, String) {
    let mut by = Vec::new();
    for (fault, count) in faults.as_object().unwrap() {
        by.extend(std::iter::repeat_n(fault.as_str(), count.as_u64().unwrap() as usize));
    }
    let count = by.len() as u64;
    if by.is_empty() {
        by.push("no fault");
    }
    let plural = if steps == 1 { "" } else { "s" };
    (count, steps, format!("{invariant} by {}, {steps} step{plural}", by.join(" + ")))
}

/// The violation with the fewest faults, then the fewest steps, of those that count.
fn first(exploration: &Value, of: impl Fn(&Value) -> bool) -> Option<String> {
    let mut first: Option<(u64, u64, String)> = None;
    for harm in exploration["harms"].as_array().unwrap() {
        if !of(harm) {
            continue;
        }
        assert_eq!(harm["played_as_explored"], true, "{harm:#}");
        let found = in_words(
            harm["invariant"].as_str().unwrap(),
            &harm["minimal_faults"],
            harm["steps"].as_u64().unwrap(),
        );
        if first.as_ref().is_none_or(|first| (found.0, found.1) < (first.0, first.1)) {
            first = Some(found);
        }
    }
    first.map(|(_, _, words)| words)
}

/// What explore says of a bug: the violation, or the goals that are not reached; `None` if it has
/// nothing to say.
fn verdict(exploration: &Value) -> Option<String> {
    if let Some(found) = first(exploration, |harm| harm["counts"] == true) {
        return Some(found);
    }
    let unreached = exploration["unreached"].as_array().unwrap();
    unreached.first().map(|goal| goal["goal"].as_str().unwrap().to_owned())
}

/// Both assumptions, under which only the schema itself breaks anything.
const ASSUMING: [&str; 2] = ["--assume", "critical-section,results-outlive-retries"];

/// What explore says of each of these, with the options that they need.
fn verdicts(cases: &[&Case<'_>]) -> Vec<(String, Option<String>)> {
    let folder = home();
    let mut groups: BTreeMap<(Option<&str>, bool), Vec<&str>> = BTreeMap::new();
    for case in cases {
        case.write(folder.path());
        let options = (case.bug.faults.as_deref(), case.bug.payloads);
        groups.entry(options).or_default().push(&case.name);
    }
    let mut verdicts = Vec::new();
    for ((faults, payloads), names) in groups {
        let mut words = match faults {
            Some(faults) => [&["--faults", faults], &ASSUMING[..]].concat(),
            None => Vec::new(),
        };
        if payloads {
            words.extend(["--payloads", "2"]);
        }
        for (name, exploration) in explored(folder.path(), &names, &words) {
            verdicts.push((name, verdict(&exploration)));
        }
    }
    verdicts
}

/// What is new, compared with the accepted exploration of the correct protocol.
fn verdict_with_expect(case: &Case<'_>) -> Option<String> {
    let (correct, planted) = (home(), home());
    copy(&case.bug.into, correct.path(), &case.name);
    case.write(planted.path());
    let words = |dir: &Path| {
        let dir = dir.to_str().unwrap().to_owned();
        ["explore", &case.name, "--schema-dir", &dir, "--sandbox", "-o", "json"]
            .map(str::to_owned)
            .to_vec()
    };
    let accepted = correct.path().join("accepted.json");
    let words_of_correct = words(correct.path());
    let as_accepted: Vec<_> = words_of_correct.iter().map(String::as_str).collect();
    fs::write(&accepted, run(correct.path(), &as_accepted).exits(0).stdout).unwrap();
    let mut words = words(planted.path());
    words.extend(["--expect".to_owned(), accepted.to_str().unwrap().to_owned()]);
    let words: Vec<_> = words.iter().map(String::as_str).collect();
    let compared = run(planted.path(), &words).exits(1).json();
    let mut new = BTreeSet::new();
    for difference in compared["differences"].as_array().unwrap() {
        if difference["change"] == "new" {
            new.insert((
                difference["invariant"].to_string(),
                difference["minimal_faults"].to_string(),
            ));
        }
    }
    first(&compared["schemas"][0], |harm| {
        new.contains(&(harm["invariant"].to_string(), harm["minimal_faults"].to_string()))
    })
}

/// The tests that share the planted bugs, because all of them take a minute.
const SHARES: usize = 6;

/// Rule: explore finds a bug that someone writes into a correct protocol, or the document says why it cannot.
fn are_found_or_named_as_out_of_reach(share: usize) {
    let bugs = bugs();
    let mut cases = Vec::new();
    for (number, bug) in bugs.iter().enumerate() {
        if number % SHARES == share {
            cases.push(Case { bug, name: format!("bug-{}", number + 1) });
        }
    }
    let alone: Vec<_> = cases.iter().filter(|case| !case.bug.expect).collect();
    let mut found: BTreeMap<String, Option<String>> = verdicts(&alone).into_iter().collect();
    for case in cases.iter().filter(|case| case.bug.expect) {
        found.insert(case.name.clone(), verdict_with_expect(case));
    }
    let mut wrong = Vec::new();
    for case in &cases {
        let Bug { into, mistake, finds, goal, .. } = case.bug;
        let expected = finds.as_ref().or(goal.as_ref());
        let found = found[&case.name].as_ref();
        if found != expected {
            wrong.push(format!("{into}: {mistake}: {found:?}, and not {expected:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn planted_bugs_are_found_0() {
    are_found_or_named_as_out_of_reach(0);
}

#[test]
fn planted_bugs_are_found_1() {
    are_found_or_named_as_out_of_reach(1);
}

#[test]
fn planted_bugs_are_found_2() {
    are_found_or_named_as_out_of_reach(2);
}

#[test]
fn planted_bugs_are_found_3() {
    are_found_or_named_as_out_of_reach(3);
}

#[test]
fn planted_bugs_are_found_4() {
    are_found_or_named_as_out_of_reach(4);
}

#[test]
fn planted_bugs_are_found_5() {
    are_found_or_named_as_out_of_reach(5);
}

#[test]
fn each_planted_bug_has_one_answer() {
    let bugs = bugs();
    for Bug { into, mistake, finds, goal, silent, .. } in &bugs {
        let answers = [finds, goal, silent].into_iter().flatten();
        assert_eq!(answers.count(), 1, "{into}: {mistake}: one of finds, goal and silent");
    }
    let stopped = bugs.iter().filter(|bug| bug.silent.is_none()).count();
    assert!(stopped >= 30, "{stopped}");
}

/// Rule: a correct protocol causes nothing itself, and reaches every goal.
#[test]
fn correct_protocols_are_left_in_peace() {
    let mut correct: BTreeSet<String> = bugs().into_iter().map(|bug| bug.into).collect();
    let protocols = Path::new(PROJECT).join("tests/protocols");
    for entry in fs::read_dir(&protocols).unwrap() {
        let folder = entry.unwrap().path();
        let text = fs::read_to_string(folder.join("schema.toml")).unwrap();
        if text.contains("# Breaks under both assumptions: nothing\n") {
            correct.insert(folder.file_name().unwrap().to_str().unwrap().to_owned());
        }
    }
    let names: Vec<_> = correct.iter().map(String::as_str).collect();
    let explored = explored(&protocols, &names, &[]);
    assert_eq!(explored.len(), names.len());
    for (name, exploration) in explored {
        assert_eq!(verdict(&exploration), None, "{name}");
    }
}

const BEGIN: &str =
    "<!-- What follows is written by `make generate` from tests/cli/explore/planted.toml. -->\n";
const END: &str = "<!-- Here it ends. -->";

/// What explore says of a bug, as the table has it.
fn answer(bug: &Bug) -> String {
    if let Some(goal) = &bug.goal {
        let article = if goal == "effect" { "an" } else { "a" };
        return format!("never reaches {article} {}", goal.replace('-', " "));
    }
    let finds = bug.finds.as_ref().unwrap();
    let (invariant, by) = finds.split_once(' ').unwrap();
    let how = match &bug.faults {
        Some(faults) => format!(", with `--faults {faults}`"),
        None if bug.payloads => ", with `--payloads 2`".to_owned(),
        None if bug.expect => ", with `--expect`".to_owned(),
        None => String::new(),
    };
    format!("`{invariant}` {by}{how}")
}

fn tables() -> String {
    let mut found = "| protocol | bug | `explore` says |\n|---|---|---|\n".to_owned();
    let mut missed =
        "| protocol | bug | why `explore` does not find it |\n|---|---|---|\n".to_owned();
    for bug in bugs() {
        let Bug { into, mistake, silent, .. } = &bug;
        match silent {
            Some(why) => writeln!(missed, "| `{into}` | {mistake} | {why} |").unwrap(),
            None => writeln!(found, "| `{into}` | {mistake} | {} |", answer(&bug)).unwrap(),
        }
    }
    format!("\n{found}\n{missed}\n")
}

/// The document with the tables of the planted bugs.
pub fn with_tables(document: &str) -> String {
    let (before, rest) = document.split_once(BEGIN).expect("the document has a place for them");
    let (_, after) = rest.split_once(END).expect("the tables have an end");
    format!("{before}{BEGIN}{}{END}{after}", tables())
}
