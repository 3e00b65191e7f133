//! Compiles the schema folders in: each `lua/<name>/schema.toml` with the scripts beside it, so that adding a schema
//! is adding a folder and no Rust code names one. Those of `lua/libraries/` go into a list of their own: a run reads those alone
//! that somebody names.
//!
//! Every run of idemctl reads all of them, and JSON takes a fraction of the time TOML does: so each schema goes in as
//! JSON too, with the hash of its files.
//!
//! Says as well which commit is built: `IDEMCTL_COMMIT` (the Makefile sets it), or what a packaged crate says of itself. No other way:
//! with git asked here, each commit would compile everything anew.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::{env, fs, io};

#[path = "src/domain/schema/files_hash.rs"]
mod files_hash;

fn main() -> io::Result<()> {
    let lua = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("lua");
    println!("cargo::rerun-if-changed=lua");
    println!("cargo::rerun-if-changed=src/domain/schema/files_hash.rs");
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    fs::write(out.join("built_in.rs"), schemas(&lua, "lua")?)?;
    fs::write(out.join("libraries.rs"), schemas(&lua.join("libraries"), "lua/libraries")?)?;
    let scenarios = Path::new("src/domain/simulation/scenarios.toml");
    println!("cargo::rerun-if-changed={}", scenarios.display());
    fs::write(out.join("scenarios.json"), json(scenarios)?)?;
    fs::write(out.join("commands.rs"), commands()?)?;
    fs::write(out.join("doctor_checks.rs"), doctor_checks()?)?;
    fs::write(out.join("probe_checks.rs"), probe_checks()?)?;
    let (commit, target) = (commit(), env::var("TARGET").unwrap_or_default());
    println!("cargo::rustc-env=IDEMCTL_VERSION={}", version(commit.as_deref(), &target));
    println!("cargo::rustc-env=IDEMCTL_BUILT_FROM={}", commit.as_deref().unwrap_or("unknown"));
    println!("cargo::rustc-env=IDEMCTL_TARGET={target}");
    Ok(())
}

/// The list of the schemas in a folder of folders, as code; `place` is where the folder stands in the project.
fn schemas(root: &Path, place: &str) -> io::Result<String> {
    let mut code = String::from("&[\n");
    for folder in sorted(root)? {
        let schema = folder.join("schema.toml");
        if !schema.is_file() {
            continue;
        }
        let place = format!("{place}/{}", name(&folder));
        let toml = include(&place, &schema);
        let json = json(&schema)?;
        let mut scripts = Vec::new();
        for script in sorted(&folder)? {
            if script.extension().is_some_and(|ext| ext == "lua") {
                scripts.push(script);
            }
        }
        let files_hash = hash(&schema, &scripts)?;
        let _ = writeln!(
            code,
            "BuiltIn {{ folder: {:?}, file: \"{place}/schema.toml\", toml: {toml},",
            name(&folder)
        );
        let _ = writeln!(code, "json: {json:?}, files_hash: {files_hash:?}, scripts: &[");
        for script in scripts {
            let _ = writeln!(code, "({:?}, {}),", name(&script), include(&place, &script));
        }
        code.push_str("] },\n");
    }
    code.push(']');
    Ok(code)
}

/// The rows of the commands, as code. A word that names no group or choice does not compile.
fn commands() -> io::Result<String> {
    let fields = ["name", "group", "repeats", "stdout", "named", "examples"];
    let mut code = String::from("&[\n");
    for row in rows("src/cli/commands.toml", "command", &fields)? {
        let (name, examples) = (&row["name"], &row["examples"]);
        let group = row["group"].as_str().unwrap_or_default();
        let repeats = row["repeats"].as_str().unwrap_or("Nothing");
        let stdout = row["stdout"].as_str().unwrap_or("GoesOn");
        let is_named = row["named"].as_bool().unwrap_or(false);
        let _ = writeln!(code, "CommandRow {{ name: {name}, group: CommandGroup::{group},");
        let _ = writeln!(code, "repeats: Repeats::{repeats}, stdout: WhenStdoutCloses::{stdout},");
        let _ = writeln!(code, "is_named: {is_named}, examples: &{examples} }},");
    }
    Ok(code + "]")
}

/// The checks of `doctor`, as code. A check without its function does not compile.
fn doctor_checks() -> io::Result<String> {
    let documented = ["title", "reads", "rule", "source", "consequence", "remedy"];
    let fields = [&["code", "group", "needs", "each_node", "whole"], &documented[..]].concat();
    let mut code = String::from("&[\n");
    for row in rows("src/domain/doctor/checks/checks.toml", "check", &fields)? {
        for field in documented {
            if !row[field].is_string() {
                return Err(io::Error::other(format!("the check {} has no {field}", row["code"])));
            }
        }
        let (name, title) = (&row["code"], &row["title"]);
        let (consequence, remedy) = (&row["consequence"], &row["remedy"]);
        let group = row["group"].as_str().unwrap_or_default();
        let needs = row["needs"].as_str().unwrap_or("Nothing");
        let judge = match (row["each_node"].as_str(), row["whole"].as_str()) {
            (Some(function), None) => format!("EachNode({function})"),
            (None, Some(function)) => format!("Whole({function})"),
            _ => return Err(io::Error::other(format!("the check {name} needs one function"))),
        };
        let _ = writeln!(code, "DoctorCheck {{ code: {name}, group: CheckGroup::{group},");
        let _ = writeln!(code, "needs: SampleNeed::{needs}, title: {title},");
        let _ = writeln!(code, "consequence: {consequence}, remedy: {remedy},");
        let _ = writeln!(code, "judge: CheckJudge::{judge} }},");
    }
    Ok(code + "]")
}

/// The checks of `probe`, as code. A check without its functions does not compile.
fn probe_checks() -> io::Result<String> {
    let fields = ["id", "group", "title", "needs", "shown", "steps", "judge"];
    let mut code = String::from("&[\n");
    for row in rows("src/domain/probe/checks/checks.toml", "check", &fields)? {
        let (id, title, shown) = (&row["id"], &row["title"], &row["shown"]);
        let of = |field: &str| row[field].as_str().unwrap_or("Nothing").to_owned();
        let _ = writeln!(code, "ProbeCheck {{ id: {id}, group: ProbeGroup::{},", of("group"));
        let _ = writeln!(code, "title: {title}, needs: ProbeNeed::{},", of("needs"));
        let _ = writeln!(code, "shown: &{shown}, steps: {},", of("steps"));
        let _ = writeln!(code, "judge: {} }},", of("judge"));
    }
    Ok(code + "]")
}

/// The rows of a TOML file, which have these fields and no others.
fn rows(file: &str, name: &str, fields: &[&str]) -> io::Result<Vec<serde_json::Value>> {
    println!("cargo::rerun-if-changed={file}");
    let mut read: serde_json::Value = serde_json::from_str(&json(Path::new(file))?)?;
    let rows: Vec<serde_json::Value> = serde_json::from_value(read[name].take())?;
    for row in &rows {
        for field in row.as_object().into_iter().flat_map(|row| row.keys()) {
            if !fields.contains(&field.as_str()) {
                return Err(io::Error::other(format!("{file}: unknown field {field}")));
            }
        }
    }
    Ok(rows)
}

/// "0.1.0 (commit 1234567, x86_64-unknown-linux-gnu)".
fn version(commit: Option<&str>, target: &str) -> String {
    let commit = commit.map_or_else(String::new, |commit| format!("commit {commit}, "));
    format!("{} ({commit}{target})", env::var("CARGO_PKG_VERSION").unwrap_or_default())
}

fn commit() -> Option<String> {
    println!("cargo::rerun-if-env-changed=IDEMCTL_COMMIT");
    let given = env::var("IDEMCTL_COMMIT").ok().filter(|commit| !commit.is_empty());
    given.or_else(packaged_commit)
}

/// The commit that `cargo package` wrote down.
fn packaged_commit() -> Option<String> {
    let file = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR")?).join(".cargo_vcs_info.json");
    let told: serde_json::Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    told["git"]["sha1"].as_str().map(|sha1| sha1.chars().take(12).collect())
}

fn sorted(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut paths =
        fs::read_dir(folder)?.map(|entry| Ok(entry?.path())).collect::<io::Result<Vec<_>>>()?;
    paths.sort();
    Ok(paths)
}

/// The code that compiles a schema's file in. Not by its absolute path, with which a moved checkout would no longer build.
fn include(place: &str, path: &Path) -> String {
    let inside = format!("/{place}/{}", path.file_name().unwrap_or_default().to_string_lossy());
    format!("include_str!(concat!(env!(\"CARGO_MANIFEST_DIR\"), {inside:?}))")
}

/// A TOML file as JSON on one line.
fn json(path: &Path) -> io::Result<String> {
    let wrong = |error: toml::de::Error| io::Error::other(format!("{}: {error}", path.display()));
    let value: serde_json::Value = toml::from_str(&fs::read_to_string(path)?).map_err(wrong)?;
    Ok(value.to_string())
}

/// The hash of a schema's files, see `files_hash.rs`.
fn hash(schema: &Path, scripts: &[PathBuf]) -> io::Result<String> {
    let toml = fs::read_to_string(schema)?;
    let mut texts = Vec::new();
    for script in scripts {
        texts.push((name(script), fs::read_to_string(script)?));
    }
    texts.sort();
    Ok(files_hash::of(&toml, texts.iter().map(|(name, text)| (name.as_str(), text.as_str()))))
}

fn name(path: &Path) -> String {
    path.file_stem().unwrap_or_default().to_string_lossy().into_owned()
}
