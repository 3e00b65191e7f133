//! Schemas to play: a built-in one, copied and changed.

use std::fmt;
use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::LazyLock;

use serde_json::Value;

use crate::support::{Run, Runs, idemctl, program};

/// The name that a copy goes by.
pub const MINE: &str = "mine";

/// A copy of a built-in schema in a schema folder of its own.
pub struct Variant {
    folder: tempfile::TempDir,
}

impl Variant {
    /// A copy that is a built-in schema in all but its name.
    pub fn of(built_in: &str) -> Self {
        Self { folder: home() }.and(built_in, MINE)
    }

    /// One more copy of a built-in schema beside it.
    pub fn and(self, built_in: &str, name: &str) -> Self {
        let folder = self.folder.path().join(name);
        fs::create_dir(&folder).unwrap();
        for entry in fs::read_dir(format!("{}/lua/{built_in}", env!("CARGO_MANIFEST_DIR"))).unwrap()
        {
            let file = entry.unwrap().file_name().into_string().unwrap();
            let text =
                fs::read_to_string(format!("{}/lua/{built_in}/{file}", env!("CARGO_MANIFEST_DIR")))
                    .unwrap();
            fs::write(folder.join(&file), text).unwrap();
        }
        let (from, to) = (format!("\nname = \"{built_in}\"\n"), format!("\nname = \"{name}\"\n"));
        self.changed(&format!("{name}/schema.toml"), |text| text.replacen(&from, &to, 1))
    }

    /// With this text in the place of that one, which is there once. A file of another copy is named with its folder.
    pub fn with(self, file: &str, from: &str, to: &str) -> Self {
        let path = if file.contains('/') { file.to_owned() } else { format!("{MINE}/{file}") };
        self.changed(&path, |text| {
            assert_eq!(text.matches(from).count(), 1, "{file} has it once: {from}");
            text.replacen(from, to, 1)
        })
    }

    /// With this text in the place of all that stands from one text up to another.
    pub fn with_block(self, file: &str, (from, up_to): (&str, &str), to: &str) -> Self {
        self.changed(&format!("{MINE}/{file}"), |text| {
            let start = text.find(from).unwrap_or_else(|| panic!("{file} has {from}"));
            let end = text[start..]
                .find(up_to)
                .map_or_else(|| panic!("{file} has {up_to}"), |end| start + end);
            format!("{}{to}{}", &text[..start], &text[end..])
        })
    }

    /// Whose failure gives the lock up, and stores nothing.
    pub fn releasing(self) -> Self {
        self.with("schema.toml", "on_failure = \"store\"", "on_failure = \"release\"")
    }

    fn changed(self, file: &str, change: impl Fn(String) -> String) -> Self {
        let path = self.folder.path().join(file);
        let before = fs::read_to_string(&path).unwrap();
        let after = change(before.clone());
        assert_ne!(before, after, "{file} changes");
        fs::write(path, after).unwrap();
        self
    }

    /// Which `schema check` finds nothing wrong with.
    #[track_caller]
    pub fn checked(self) -> Self {
        run(self.folder.path(), &["schema", "check", MINE]).exits(0);
        self
    }

    /// The schema folder.
    pub fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// What the scenario comes to.
    #[track_caller]
    pub fn plays(&self, scenario: &str) -> Cell {
        self.plays_each(&[scenario]).remove(0)
    }

    /// What each of these scenarios comes to, all played at the same time.
    #[track_caller]
    pub fn plays_each(&self, scenarios: &[&str]) -> Vec<Cell> {
        let folder = self.folder.path();
        let words = [
            &["simulate"],
            scenarios,
            &["--schema", MINE, "--schema-dir", folder.to_str().unwrap()],
        ]
        .concat();
        let played = cells(run(folder, &[&words[..], &["--sandbox", "-o", "json"]].concat()));
        assert_eq!(played.len(), scenarios.len());
        played
    }
}

/// The line with which renew and release of the reference compare the owner of a lock with their own.
pub const FENCES: &str = "if not holder or holder ~= owner then";

/// A copy of the schema that passes wherever a schema can.
pub fn reference() -> Variant {
    Variant::of("reference")
}

/// Every scenario with every built-in schema, played once.
pub fn matrix() -> &'static [Cell] {
    static MATRIX: LazyLock<Vec<Cell>> = LazyLock::new(|| {
        let words = ["simulate", "--all", "--schema", "all", "--sandbox", "-o", "json"];
        cells(run(home().path(), &words))
    });
    &MATRIX
}

/// What the scenario comes to with a built-in schema.
#[track_caller]
pub fn plays(schema: &str, scenario: &str) -> Cell {
    let is_asked = |cell: &&Cell| cell.0["schema"] == schema && cell.0["scenario"] == scenario;
    matrix()
        .iter()
        .find(is_asked)
        .cloned()
        .unwrap_or_else(|| panic!("{scenario} is played with {schema}"))
}

#[track_caller]
fn cells(run: Run) -> Vec<Cell> {
    let cells: Vec<_> = run.json()["cells"].as_array().unwrap().iter().cloned().map(Cell).collect();
    let is_bad = |cell: &Cell| {
        cell.0["excuse"].is_null() && BAD.contains(&cell.0["verdict"].as_str().unwrap())
    };
    run.exits(i32::from(cells.iter().any(is_bad)));
    cells
}

/// The verdicts that are worse than `blocked`.
const BAD: [&str; 4] = ["stuck", "wrong-answer", "duplicate", "overwritten"];

/// A cell of the matrix.
#[derive(Clone)]
pub struct Cell(pub Value);

impl Cell {
    /// Asserts the verdict, showing everything when it is another.
    #[track_caller]
    pub fn is(self, verdict: &str) -> Self {
        assert_eq!(self.0["verdict"], verdict, "{self}");
        self
    }

    /// Asserts why the verdict makes the exit status 1 or not.
    #[track_caller]
    pub fn has_excuse(self, excuse: Option<&str>) -> Self {
        assert_eq!(self.0["excuse"].as_str(), excuse, "{self}");
        self
    }

    /// Asserts that the reason has these words.
    #[track_caller]
    pub fn because(self, words: &str) -> Self {
        assert!(self.0["why"].as_str().unwrap().contains(words), "{words}: {self}");
        self
    }

    /// Asserts how often the operation was made.
    #[track_caller]
    pub fn makes(self, times: u64) -> Self {
        assert_eq!(self.0["effects"], times, "{self}");
        self
    }

    /// Asserts how long a client waits at most, in milliseconds.
    #[track_caller]
    pub fn blocks(self, ms: u64) -> Self {
        assert_eq!(self.0["blocked_ms"], ms, "{self}");
        self
    }

    /// How often the operation is made in one take.
    pub fn made_in(&self, take: &str) -> usize {
        let made = |event: &&Value| event["step"].as_str().unwrap().starts_with("executes the ");
        let events = self.0["timeline"].as_array().unwrap().iter();
        events.filter(|event| event["take"] == take).filter(made).count()
    }
}

impl fmt::Display for Cell {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&serde_json::to_string_pretty(&self.0).unwrap())
    }
}

/// A folder for one test: home, temporary files and schemas of the binary under test.
pub fn home() -> tempfile::TempDir {
    tempfile::Builder::new().prefix("idemctl-").tempdir().unwrap()
}

/// The folders of PATH, the one of the server program first.
pub fn path() -> String {
    format!("{}:/usr/bin:/bin", program().parent().unwrap().display())
}

/// The binary where it finds the server program, before it runs.
pub fn command(home: &Path, words: &[&str]) -> Command {
    let mut command = idemctl(home);
    command.env("PATH", path()).env("TMPDIR", home).args(words);
    command
}

/// The binary where it finds the server program.
pub fn run(home: &Path, words: &[&str]) -> Run {
    command(home, words).run()
}
