//! The house rules of `src/`: which room may import which, who prints, who reads the clock, how large files are. Each
//! rule is a function from a source file to what breaks it, and is shown a file that does.

use std::fs;
use std::path::Path;

use super::rust_source::Source;

/// What breaks a rule, as `file:line: what`.
type Broken = Vec<String>;

/// Files that are longer have to be looked at again: what do they hold?
const LONGEST_FILE: usize = 400;

/// Commands that only read: nothing in them can change a record.
const READING: [&str; 9] = ["inspect", "list", "audit", "schema", "sandbox", "context", "config", "completions", "man"];

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut sources = Vec::new();
    let mut folders = vec![root.join("src")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                sources.push(Source::new(&name, &fs::read_to_string(&path).unwrap()));
            }
        }
    }
    assert!(sources.len() > 40, "src/ is read");
    let for_tests: Vec<_> = sources.iter().flat_map(Source::test_modules).collect();
    sources.retain(|source| !for_tests.contains(&source.module()));
    sources
}

/// Holds every file to a rule, then shows the rule a file that breaks it.
#[track_caller]
fn keep(rule: fn(&Source) -> Broken, advice: &str, offender: (&str, &str)) {
    let broken: Broken = sources().iter().flat_map(rule).collect();
    assert!(broken.is_empty(), "{advice}\n{}", broken.join("\n"));
    let (file, text) = offender;
    assert!(!rule(&Source::new(file, text)).is_empty(), "the rule does not notice: {text}");
}

/// Rooms that a room may import, besides itself; rooms that are not here may import any.
fn may_import(room: &str) -> Option<&'static [&'static str]> {
    match room {
        "domain" => Some(&[]),
        "render" => Some(&["domain"]),
        "store" => Some(&["domain", "files"]),
        "sim" => Some(&["domain", "store", "interrupt"]),
        _ => None,
    }
}

fn imports(source: &Source) -> Broken {
    let Some(allowed) = may_import(source.room()) else { return Vec::new() };
    let strays = source.imports().into_iter().filter(|(_, path)| {
        let room = path.split("::").next().unwrap_or_default();
        room != source.room() && !allowed.contains(&room)
    });
    strays.map(|(line, path)| source.at(line, &format!("imports crate::{path}"))).collect()
}

fn foreign_words(source: &Source) -> Broken {
    let words: &[&str] = match source.room() {
        "domain" => &["redis", "tokio", "clap", "comfy_table", "std::fs", "std::env", "std::net", "std::process"],
        "render" => &["redis", "tokio", "clap", "std::fs", "std::env", "std::net", "std::process", "terminal_size"],
        "store" => &["clap", "comfy_table", "dialoguer", "indicatif"],
        "sim" => &["clap", "comfy_table", "dialoguer", "indicatif", "std::fs", "std::net"],
        "commands" => &["redis"],
        _ => &[],
    };
    let uses = words.iter().flat_map(|word| source.lines_with_path(word).into_iter().map(move |line| (line, word)));
    uses.map(|(line, word)| source.at(line, &format!("uses {word}"))).collect()
}

fn commands_apart(source: &Source) -> Broken {
    let module = source.module();
    let own = module.strip_prefix("commands::").and_then(|path| path.split("::").next());
    let is_other = |path: &str| match path.strip_prefix("commands::") {
        Some(path) => path.split("::").next() != own,
        None => path == "commands" || path.split("::").next() == Some("cli"),
    };
    if source.room() == "cli" || source.room() == "main" || source.file.ends_with("commands/mod.rs") {
        return Vec::new();
    }
    let strays = source.imports().into_iter().filter(|(_, path)| is_other(path));
    strays.map(|(line, path)| source.at(line, &format!("imports crate::{path}"))).collect()
}

fn printing(source: &Source) -> Broken {
    let words = ["println!", "eprintln!", "print!", "eprint!", "dbg!", "io::stdout", "io::stderr"];
    if source.file == "src/terminal/ui.rs" {
        return Vec::new();
    }
    source.mentions(&words)
}

fn clock_and_environment(source: &Source) -> Broken {
    if ["src/settings/environment.rs", "src/context.rs", "src/main.rs"].contains(&source.file.as_str()) {
        return Vec::new();
    }
    source.mentions(&["std::env", "env::var", "env::args", "env::temp_dir", "env::current_dir", "SystemTime::now"])
}

fn reading(source: &Source) -> Broken {
    let is_reading = READING.iter().any(|command| {
        source.module() == format!("commands::{command}")
            || source.module().starts_with(&format!("commands::{command}::"))
    });
    if is_reading { source.mentions(&["Writer", "writer(", "Writable", "arena(", "Permit"]) } else { Vec::new() }
}

/// The leave to change records is made at two places, and asked for where it is used: nothing else may make one.
fn permits(source: &Source) -> Broken {
    let made_at = [
        ("Access::of(", "src/settings/effective.rs"),
        ("Permit::of_sandbox(", "src/store/sandbox/server.rs"),
        ("Access::Full(", "src/settings/effective.rs"),
        ("Permit(())", "src/store/connection/permit.rs"),
        ("permit: Permit", "src/store/connection/permit.rs"),
        ("Writer::new(", "src/store/change/writer.rs"),
    ];
    let strays = made_at.iter().filter(|(_, file)| source.file != *file);
    // Where it is looked at, it is a pattern: `Access::Full(permit) =>`.
    let found = strays.flat_map(|(text, _)| source.mentions(&[text]));
    let asks = source.file == "src/context.rs";
    let mut broken: Broken = found.filter(|found| !(asks && found.contains("Access::Full("))).collect();
    if source.room() != "store" {
        broken.extend(source.mentions(&["Wire::dial(", "Sandbox::fill("]));
    }
    broken
}

fn empty_mod_files(source: &Source) -> Broken {
    if !source.file.ends_with("/mod.rs") && source.file != "src/lib.rs" {
        return Vec::new();
    }
    let allowed = [
        "mod ",
        "pub mod ",
        "pub(crate) mod ",
        "pub(super) mod ",
        "use ",
        "pub use ",
        "pub(crate) use ",
        "pub(super) use ",
    ];
    let statements = source.statements().into_iter();
    let strays = statements.filter(|(_, statement)| !allowed.iter().any(|start| statement.starts_with(start)));
    strays.map(|(line, statement)| source.at(line, &format!("holds `{statement}`"))).collect()
}

fn short_files(source: &Source) -> Broken {
    let lines = source.length;
    if lines > LONGEST_FILE { vec![source.at(lines, &format!("has {lines} lines"))] } else { Vec::new() }
}

fn no_schema_by_name(source: &Source) -> Broken {
    let lua = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let folders = fs::read_dir(lua).unwrap().map(|entry| entry.unwrap().path());
    let names = folders.filter(|folder| folder.join("schema.toml").is_file());
    let names: Vec<_> = names.map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let strings = source.strings().into_iter().filter(|(_, text)| names.iter().any(|name| text.contains(name)));
    strings.map(|(line, text)| source.at(line, &format!("names a schema: {text}"))).collect()
}

#[test]
fn imports_run_one_way() {
    keep(
        imports,
        "domain imports nothing but domain, render only domain, store only domain and files, sim only domain and store: \
         move what is needed down, or pass it as an argument",
        ("src/domain/x.rs", "use crate::{domain::age, store::Reader};"),
    );
    let offenders = [
        ("src/render/x.rs", "use crate::ui::Ui;"),
        ("src/store/x.rs", "fn f() { crate::render::escape::text(b\"\"); }"),
        ("src/sim/deep/x.rs", "use super::super::super::context::Context;"),
        ("src/domain/mod.rs", "use super::store;"),
    ];
    for (file, text) in offenders {
        assert!(!imports(&Source::new(file, text)).is_empty(), "{text}");
    }
    let sound = Source::new("src/domain/x/y.rs", "use super::super::age;\nuse super::z; // crate::store\n");
    assert_eq!(imports(&sound), [""; 0]);
}

#[test]
fn rooms_keep_to_their_crates() {
    keep(
        foreign_words,
        "domain and render do no I/O and know neither Redis, tokio nor clap; only store knows Redis: \
         move the code to the room that may, or pass a value instead",
        ("src/domain/x.rs", "use tokio::sync::mpsc;"),
    );
    for (file, text) in [
        ("src/render/x.rs", "fn f() -> redis::Value { todo() }"),
        ("src/domain/x.rs", "let file = std::fs::read(\"x\");"),
        ("src/domain/x.rs", "use std::{env, fmt};"),
        ("src/commands/x.rs", "use redis::Cmd;"),
    ] {
        assert!(!foreign_words(&Source::new(file, text)).is_empty(), "{text}");
    }
    let sound = Source::new("src/domain/x.rs", "let redis_key = 1; // redis::Cmd\nlet url = \"redis://x\";");
    assert_eq!(foreign_words(&sound), [""; 0]);
}

#[test]
fn no_command_imports_another() {
    keep(
        commands_apart,
        "what two commands share belongs in domain, store, sim, render, args or a room of its own; \
         nothing but main imports cli, nothing but cli imports commands",
        ("src/commands/list.rs", "use crate::commands::inspect;"),
    );
    for (file, text) in [
        ("src/commands/list.rs", "use super::inspect::Args;"),
        ("src/commands/inspect/watch.rs", "use super::super::list;"),
        ("src/context.rs", "use crate::cli::Root;"),
    ] {
        assert!(!commands_apart(&Source::new(file, text)).is_empty(), "{text}");
    }
    assert_eq!(commands_apart(&Source::new("src/commands/inspect.rs", "use self::watch;\nmod watch;")), [""; 0]);
    assert_eq!(commands_apart(&Source::new("src/commands/inspect/watch.rs", "use super::Args;")), [""; 0]);
}

#[test]
fn only_ui_prints() {
    keep(
        printing,
        "only src/terminal/ui.rs prints: return the text, or hand it to context.ui",
        ("src/commands/x.rs", "fn f() { println!(\"x\"); }"),
    );
    assert!(!printing(&Source::new("src/store/x.rs", "let mut out = std::io::stdout();")).is_empty());
    assert_eq!(printing(&Source::new("src/store/x.rs", "// println!\nlet a = \"print!\";")), [""; 0]);
}

#[test]
fn clock_and_environment_are_arguments() {
    keep(
        clock_and_environment,
        "only settings/environment.rs reads the environment and only context.rs the clock: take them as arguments",
        ("src/store/x.rs", "let now = std::time::SystemTime::now();"),
    );
    assert!(
        !clock_and_environment(&Source::new("src/terminal/ui.rs", "if std::env::var(\"X\").is_ok() {}")).is_empty()
    );
}

#[test]
fn reading_commands_cannot_write() {
    keep(
        reading,
        "a command that only reads takes context.reader(), never a writer",
        ("src/commands/inspect/watch.rs", "let writer = context.writer().await?;"),
    );
}

#[test]
fn leave_to_change_is_given_at_two_places() {
    keep(
        permits,
        "whether a server may be changed is decided where settings are put together, and by a throw-away server: take \
         a Permit, a Writable or a Writer, which a read-only context has none of",
        ("src/commands/x.rs", "let access = Access::of(false);"),
    );
    for (file, text) in [
        ("src/sim/x.rs", "let permit = Permit(());"),
        ("src/change/x.rs", "let wire = Wire::dial(target).await?;"),
        ("src/store/x.rs", "let writer = Writer::new(link);"),
        ("src/store/x.rs", "let server = Permit::of_sandbox().over(target);"),
    ] {
        assert!(!permits(&Source::new(file, text)).is_empty(), "{text}");
    }
}

#[test]
fn mod_files_hold_no_code() {
    keep(
        empty_mod_files,
        "mod.rs and lib.rs hold a doc comment, `mod` lines and re-exports: give the code a file with a name",
        ("src/domain/mod.rs", "mod age;\npub use age::{\n    Age,\n};\nfn f() {}\n"),
    );
}

#[test]
fn files_stay_short() {
    keep(
        short_files,
        "past 400 lines a file holds more than one thing: split it by what it holds",
        ("src/domain/x.rs", &"\n".repeat(LONGEST_FILE + 1)),
    );
}

#[test]
fn no_code_knows_a_schema_by_name() {
    keep(
        no_schema_by_name,
        "a schema is data: extend what schema.toml can say instead",
        ("src/domain/x.rs", "if schema.name == \"go-chi\" {}"),
    );
    let tests = Source::new("src/domain/x.rs", "#[cfg(test)]\nmod tests {\n const N: &str = \"go-chi\";\n}\n");
    assert_eq!(no_schema_by_name(&tests), [""; 0]);
    let file = Source::new("src/domain/mod.rs", "mod age;\n#[cfg(test)]\nmod samples;\nfn f() { \"express\" }\n");
    assert_eq!(file.test_modules(), ["domain::samples"]);
    assert_eq!(no_schema_by_name(&file), [r#"src/domain/mod.rs:4: names a schema: "express""#]);
}
