//! `--expect`: a result that was accepted, compared with what is found now.

use std::fs;

use serde_json::{Value, json};

use super::{USUAL, explore};
use crate::simulate::variant::{MINE, home, reference, run};
use crate::support::Run;

/// A folder with a result that was accepted.
struct Accepted {
    folder: tempfile::TempDir,
}

impl Accepted {
    fn of(words: &[&str]) -> Self {
        let folder = home();
        let written = explore(&[words, &["-o", "json"]].concat()).text();
        fs::write(folder.path().join("accepted.json"), written).unwrap();
        Self { folder }
    }

    fn path(&self) -> String {
        self.folder.path().join("accepted.json").to_str().unwrap().to_owned()
    }

    /// Changes the document.
    fn edited(self, edit: impl FnOnce(&mut Value)) -> Self {
        let mut document = serde_json::from_slice(&fs::read(self.path()).unwrap()).unwrap();
        edit(&mut document);
        fs::write(self.path(), document.to_string()).unwrap();
        self
    }

    fn compare(&self, words: &[&str]) -> Run {
        explore(&[words, &["--expect", &self.path()]].concat())
    }
}

#[test]
fn what_was_accepted_is_no_difference() {
    let accepted = Accepted::of(&["express"]);
    let same = accepted.compare(&["express"]).exits(0);
    assert_eq!(same.text(), "All results match the accepted file.\n");
    // A schema that was not accepted is new as a whole.
    let new = accepted.compare(&["go-chi", "-o", "json"]).exits(1);
    assert_eq!(new.json()["differences"][0]["change"], "new");
    explore(&["express", "--expect", "/nowhere"]).exits(2).says("/nowhere");
}

/// Rule: only what differs is shown, with the history of what is new.
#[test]
fn accepted_violations_are_not_shown_again() {
    let accepted = Accepted::of(&["express"]).edited(|document| {
        let harms = document["schemas"][0]["harms"].as_array_mut().unwrap();
        harms.retain(|harm| harm["invariant"] != "result-kept");
        let mut other = harms[0].clone();
        other["invariant"] = json!("true-replay");
        harms.push(other);
    });
    let text = accepted.compare(&["express"]).exits(1).text();
    let (differences, rest) = text.split_once("\n\n").unwrap();
    assert_eq!(
        differences,
        "Different from the accepted file\n  \
         new  express: result-kept by expiry=1,fail=1 (cause: schema)\n  \
         new  express: result-kept by expiry=1,late-fail=1 (cause: not-fenced)\n  \
         new  express: result-kept by fail=1,resend=1 (cause: schema)\n  \
         new  express: result-kept by late-fail=1,resend=1 (cause: not-fenced)\n  \
         gone express: true-replay by fail=1,resend=1 (cause: schema)"
    );
    assert!(rest.starts_with("express\n  result-kept, 1 call sent again + 1 failing"), "{rest}");
    assert!(!rest.contains("owner-only") && !rest.contains("one-effect"), "{rest}");
    assert!(rest.contains("What to change\nresult-kept: express\n"), "{rest}");
    let differences = accepted.compare(&["express", "-o", "json"]).exits(1).json()["differences"]
        .as_array()
        .unwrap()
        .clone();
    assert_eq!(differences[0]["minimal_faults"], json!({ "expiry": 1, "fail": 1 }));
    assert_eq!(differences[0]["cause"], "schema");
}

/// Rule: a smaller run proves nothing about the accepted bounds, so it does not pass.
#[test]
fn smaller_bounds_are_refused() {
    let accepted = Accepted::of(&["express"]);
    for (words, why) in [
        (&["--workers", "2"][..], "with workers=3, but this run has workers=2"),
        (&["--faults", "fail=0"], "with fail=1, but this run has fail=0"),
        (&["--assume", "critical-section"], "without assuming critical-section"),
        (&["--faults", USUAL], "without --faults and --assume"),
    ] {
        let refused = accepted.compare(&[&["express"], words].concat()).exits(2);
        refused.says("express was accepted").says(why);
    }
    // Larger bounds are compared.
    accepted.compare(&["express", "--workers", "4"]).exits(0);
    // Bounds of schemas that are not explored do not matter.
    accepted.compare(&["reference", "--workers", "2"]).exits(1);
}

/// Rule: durations and sizes are no differences, and neither is another idemctl that counts states otherwise.
#[test]
fn durations_and_sizes_are_ignored() {
    let accepted = Accepted::of(&["express"]).edited(|document| {
        for field in ["search_us", "wall_ms", "states", "server_calls", "bytes_a_state"] {
            document["schemas"][0][field] = json!(7);
        }
    });
    accepted.compare(&["express"]).exits(0);
}

/// Rule: changed files are mentioned, and are no difference.
#[test]
fn the_hash_of_the_files_is_information() {
    let sound = reference();
    let dir = ["--schema-dir", sound.folder().to_str().unwrap(), "--sandbox"];
    let words = [&["explore", MINE][..], &dir].concat();
    let written = run(sound.folder(), &[&words[..], &["-o", "json"]].concat()).exits(0);
    let hash = written.json()["schemas"][0]["hashes"][MINE].as_str().unwrap().to_owned();
    assert_eq!(hash.len(), 64);
    let file = sound.folder().join("accepted.json");
    fs::write(&file, written.text()).unwrap();
    let words = [&words[..], &["--expect", file.to_str().unwrap()]].concat();
    assert!(!run(sound.folder(), &words).exits(0).text().contains("have changed"));
    let script = sound.folder().join("mine/begin.lua");
    fs::write(&script, fs::read_to_string(&script).unwrap() + "-- a remark\n").unwrap();
    run(sound.folder(), &words)
        .exits(0)
        .shows("The files of mine have changed since the result was accepted.\n");
}

/// Rule: a result of given faults has no causes, and is compared without them.
#[test]
fn a_file_without_causes_is_compared_without_them() {
    let accepted = Accepted::of(&["express", "--faults", USUAL]);
    let same = accepted.compare(&["express"]).exits(0);
    assert_eq!(same.text(), "All results match the accepted file.\n");
}
