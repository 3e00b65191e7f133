//! The table in CHANGELOG.md of what was removed has the rows of `src/domain/removed.toml`. `IDEMCTL_BLESS=1` (`make generate`) writes it anew.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use idemctl::domain::removed;

const BEGIN: &str =
    "<!-- What follows is written by `make generate` from src/domain/removed.toml. -->\n";
const END: &str = "<!-- Here it ends. -->";

#[test]
fn the_table_of_the_changelog_is_fresh() {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("CHANGELOG.md");
    let document = fs::read_to_string(&file).unwrap();
    let (before, rest) =
        document.split_once(BEGIN).expect("the changelog has a place for the table");
    let (_, after) = rest.split_once(END).expect("the table has an end");
    let mut table = "\n| removed | what it was | use instead |\n|---|---|---|\n".to_owned();
    for row in removed::all() {
        let kind: &str = row.kind.into();
        writeln!(table, "| `{}` | {kind} | {} |", row.name, row.instead).unwrap();
    }
    let wanted = format!("{before}{BEGIN}{table}\n{END}{after}");
    if std::env::var_os("IDEMCTL_BLESS").is_some() {
        fs::write(&file, &wanted).unwrap();
    }
    assert!(fs::read_to_string(&file).unwrap() == wanted, "`make generate` writes it again");
}
