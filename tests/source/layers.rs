//! The house rules of `src/`: which room may import which, who prints, who reads the clock, how large files are. Each
//! rule is a function from a source file to what breaks it, and is shown a file that does.

use std::fs;
use std::path::Path;

use crate::rust_source::{Name, Source};

/// What breaks a rule, as `file: what`.
type Broken = Vec<String>;

/// Commands that only read: nothing in them can change a record.
const READING: &str = "inspect list stats log backup diff duplicates detect doctor schema sandbox context config completions man";

/// Holds every file to a rule, then shows the rule files that break it.
#[track_caller]
fn keep(rule: fn(&Source) -> Broken, advice: &str, offenders: &[(&str, &str)]) {
    let broken: Broken = Source::of_crate().iter().flat_map(rule).collect();
    assert!(broken.is_empty(), "{advice}\n{}", broken.join("\n"));
    for (file, text) in offenders {
        assert!(!rule(&Source::new(file, text)).is_empty(), "the rule does not notice: {text}");
    }
}

/// Rooms that a room may import, besides itself; rooms that are not here may import any.
fn may_import(room: &str) -> Option<&'static [&'static str]> {
    match room {
        "domain" => Some(&[]),
        "render" => Some(&["domain"]),
        "store" => Some(&["domain", "files"]),
        "explore" => Some(&["domain"]),
        "http" => Some(&["domain", "store"]),
        "sim" => Some(&["domain", "store", "interrupt", "explore"]),
        _ => None,
    }
}

fn at(source: &Source, what: &str, found: &[String]) -> String {
    format!("{}: {what} {}", source.file, found.join("::"))
}

/// Where a file names one of these paths, or anything in them.
fn named(source: &Source, wanted: &[&str]) -> Broken {
    let is_in = |path: &Name, wanted: &str| {
        let wanted: Vec<_> = wanted.split("::").collect();
        path.len() >= wanted.len() && path.iter().zip(wanted).all(|(is, wanted)| is == wanted)
    };
    let found = source.all_paths().filter(|path| wanted.iter().any(|wanted| is_in(path, wanted)));
    found.map(|path| at(source, "uses", path)).collect()
}

/// Where a file calls one of these.
fn called(source: &Source, wanted: &[&str]) -> Broken {
    let is = |call: &String| {
        wanted.iter().any(|wanted| call == wanted || call.ends_with(&format!("::{wanted}")))
    };
    source
        .calls
        .iter()
        .filter(|call| is(call))
        .map(|call| at(source, "calls", std::slice::from_ref(call)))
        .collect()
}

fn imports(source: &Source) -> Broken {
    let (room, imports) = (source.room(), source.imports());
    let Some(allowed) = may_import(&room) else { return Vec::new() };
    let is_stray = |path: &&Name| {
        path.first().is_some_and(|first| *first != room && !allowed.contains(&first.as_str()))
    };
    imports.iter().filter(is_stray).map(|path| at(source, "imports", path)).collect()
}

fn foreign_words(source: &Source) -> Broken {
    let words: &[&str] = match source.room().as_str() {
        "domain" => &[
            "redis",
            "tokio",
            "clap",
            "comfy_table",
            "std::fs",
            "std::env",
            "std::net",
            "std::process",
        ],
        "explore" => &[
            "redis",
            "tokio",
            "clap",
            "comfy_table",
            "std::fs",
            "std::env",
            "std::net",
            "std::process",
        ],
        "render" => &[
            "redis",
            "tokio",
            "clap",
            "std::fs",
            "std::env",
            "std::net",
            "std::process",
            "terminal_size",
        ],
        "store" => &["clap", "comfy_table", "indicatif"],
        "sim" => &["clap", "comfy_table", "indicatif", "std::fs", "std::net"],
        "commands" => &["redis"],
        _ => &[],
    };
    named(source, words)
}

fn commands_apart(source: &Source) -> Broken {
    if ["cli", "main"].contains(&source.room().as_str()) || source.file.ends_with("commands/mod.rs")
    {
        return Vec::new();
    }
    let (module, imports) = (source.module(), source.imports());
    let own = module.get(1).filter(|_| module[0] == "commands");
    let is_other = |path: &&Name| match path.first().map(String::as_str) {
        Some("commands") => path.get(1) != own || own.is_none(),
        first => first == Some("cli"),
    };
    imports.iter().filter(is_other).map(|path| at(source, "imports", path)).collect()
}

fn printing(source: &Source) -> Broken {
    if source.file == "src/terminal/ui.rs" {
        return Vec::new();
    }
    let macros = ["println!", "eprintln!", "print!", "eprint!", "dbg!"];
    called(source, &[&macros[..], &["io::stdout", "io::stderr"]].concat())
}

fn clock_and_environment(source: &Source) -> Broken {
    if ["src/settings/environment.rs", "src/session.rs", "src/main.rs"]
        .contains(&source.file.as_str())
    {
        return Vec::new();
    }
    let calls = ["env::var", "env::args", "env::temp_dir", "env::current_dir", "SystemTime::now"];
    [named(source, &["std::env"]), called(source, &calls)].concat()
}

fn reading(source: &Source) -> Broken {
    let module = source.module();
    if !module.get(1).is_some_and(|command| {
        module[0] == "commands" && READING.split(' ').any(|reads| reads == command)
    }) {
        return Vec::new();
    }
    let writes = |path: &&Name| {
        path.iter().any(|word| ["Writer", "Writable", "Permit"].contains(&word.as_str()))
    };
    let mut broken: Broken =
        source.all_paths().filter(writes).map(|path| at(source, "uses", path)).collect();
    broken.extend(called(source, &["writer", "arena"]));
    broken
}

/// The leave to change records is made at two places, and asked for where it is used: nothing else may make one.
fn permits(source: &Source) -> Broken {
    let made_at = [
        ("Access::of", "src/settings/effective.rs"),
        ("Permit::of_sandbox", "src/store/sandbox/server.rs"),
        ("Access::Full", "src/settings/effective.rs"),
        ("Permit", "src/store/connection/permit.rs"),
        ("Writer::new", "src/store/change/writer.rs"),
    ];
    let strays = made_at.iter().filter(|(_, file)| source.file != *file);
    let mut broken: Broken = strays.flat_map(|(call, _)| called(source, &[call])).collect();
    if source.file != "src/store/connection/permit.rs" {
        let taken =
            source.taken.iter().filter(|taken| taken.last().is_some_and(|name| name == "Permit"));
        broken.extend(taken.map(|taken| at(source, "takes", taken)));
    }
    if source.room() != "store" {
        broken.extend(called(source, &["Connection::dial", "Sandbox::fill"]));
    }
    broken
}

fn empty_mod_files(source: &Source) -> Broken {
    let is_mod = source.file.ends_with("/mod.rs") || source.file == "src/lib.rs";
    (is_mod && source.holds_code).then(|| at(source, "holds code", &[])).into_iter().collect()
}

fn no_schema_by_name(source: &Source) -> Broken {
    let lua = Path::new(env!("CARGO_MANIFEST_DIR")).join("lua");
    let folders = fs::read_dir(lua).unwrap().map(|entry| entry.unwrap().path());
    let names = folders.filter(|folder| folder.join("schema.toml").is_file());
    let names: Vec<_> =
        names.map(|folder| folder.file_name().unwrap().to_str().unwrap().to_owned()).collect();
    let strings = source.strings.iter().filter(|text| names.iter().any(|name| text.contains(name)));
    strings.map(|text| at(source, "names a schema:", std::slice::from_ref(text))).collect()
}

#[test]
fn imports_run_one_way() {
    keep(
        imports,
        "domain imports nothing but domain, render only domain, store only domain and files, explore only \
         domain, sim only domain, explore and store: move what is needed down, or pass it as an argument",
        &[
            ("src/domain/x.rs", "use crate::{domain::age, store::Reader};"),
            ("src/render/x.rs", "use crate::ui::Ui;"),
            ("src/store/x.rs", "fn f() { crate::render::escape::text(b\"\"); }"),
            ("src/explore/x.rs", "use crate::store::Connection;"),
            ("src/sim/deep/x.rs", "use super::super::super::session::Session;"),
            ("src/domain/mod.rs", "use super::store;"),
            ("src/domain/x.rs", "fn f() { select! { () = crate::store::look() => 1 } }"),
        ],
    );
    let sound =
        Source::new("src/domain/x/y.rs", "use super::super::age;\nuse super::z; // crate::store\n");
    assert_eq!(imports(&sound), [""; 0]);
}

#[test]
fn rooms_keep_to_their_crates() {
    keep(
        foreign_words,
        "domain and render do no I/O and know neither Redis, tokio nor clap; only store knows Redis: \
         move the code to the room that may, or pass a value instead",
        &[
            ("src/domain/x.rs", "use tokio::sync::mpsc;"),
            ("src/render/x.rs", "fn f() -> redis::Value { todo() }"),
            ("src/domain/x.rs", "fn f() { let file = std::fs::read(\"x\"); }"),
            ("src/domain/x.rs", "use std::{env, fmt};"),
            ("src/commands/x.rs", "use redis::Cmd;"),
            ("src/domain/x.rs", "fn f() { format!(\"{}\", redis::cmd(\"GET\")); }"),
        ],
    );
    let sound = "fn f() { let redis_key = 1; // redis::Cmd\nlet url = \"redis://x\"; }";
    assert_eq!(foreign_words(&Source::new("src/domain/x.rs", sound)), [""; 0]);
}

#[test]
fn no_command_imports_another() {
    keep(
        commands_apart,
        "what two commands share belongs in domain, store, sim, render, args or a room of its own; \
         nothing but main imports cli, nothing but cli imports commands",
        &[
            ("src/commands/list.rs", "use crate::commands::inspect;"),
            ("src/commands/list.rs", "use super::inspect::Args;"),
            ("src/commands/inspect/watch.rs", "use super::super::list;"),
            ("src/session.rs", "use crate::cli::Root;"),
        ],
    );
    assert_eq!(
        commands_apart(&Source::new("src/commands/inspect.rs", "use self::watch;\nmod watch;")),
        [""; 0]
    );
    assert_eq!(
        commands_apart(&Source::new("src/commands/inspect/watch.rs", "use super::Args;")),
        [""; 0]
    );
}

#[test]
fn only_ui_prints() {
    keep(
        printing,
        "only src/terminal/ui.rs prints: return the text, or hand it to session.ui",
        &[
            ("src/commands/x.rs", "fn f() { println!(\"x\"); }"),
            ("src/store/x.rs", "fn f() { let mut out = std::io::stdout(); }"),
        ],
    );
    assert_eq!(
        printing(&Source::new("src/store/x.rs", "// println!\nconst A: &str = \"print!\";")),
        [""; 0]
    );
}

#[test]
fn clock_and_environment_are_arguments() {
    keep(
        clock_and_environment,
        "only settings/environment.rs reads the environment and only session.rs the clock: take them as arguments",
        &[
            ("src/store/x.rs", "fn f() { let now = std::time::SystemTime::now(); }"),
            ("src/terminal/ui.rs", "fn f() { if std::env::var(\"X\").is_ok() {} }"),
        ],
    );
}

#[test]
fn reading_commands_cannot_write() {
    keep(
        reading,
        "a command that only reads takes session.reader(), never a writer",
        &[(
            "src/commands/inspect/watch.rs",
            "async fn f() { let writer = session.writer().await; }",
        )],
    );
}

#[test]
fn leave_to_change_is_given_at_two_places() {
    keep(
        permits,
        "whether a server may be changed is decided where settings are put together, and by a throw-away server: take \
         a Permit, a Writable or a Writer, which a read-only context has none of",
        &[
            ("src/commands/x.rs", "fn f() { let access = Access::of(false); }"),
            ("src/sim/x.rs", "fn f() { let permit = Permit(()); }"),
            ("src/sim/x.rs", "struct Holder { permit: Permit }"),
            ("src/change/x.rs", "async fn f() { let wire = Connection::dial(target).await; }"),
            ("src/store/x.rs", "fn f() { let writer = Writer::new(link); }"),
            ("src/store/x.rs", "fn f() { let server = Permit::of_sandbox().over(target); }"),
        ],
    );
    // Where the leave is looked at, `Access::Full` is a pattern.
    let sound = "fn f() { match access { Access::Full(permit) => 1 } }";
    assert_eq!(permits(&Source::new("src/session.rs", sound)), [""; 0]);
}

#[test]
fn mod_files_hold_no_code() {
    keep(
        empty_mod_files,
        "mod.rs and lib.rs hold a doc comment, `mod` lines and re-exports: give the code a file with a name",
        &[("src/domain/mod.rs", "mod age;\npub use age::{\n    Age,\n};\nfn f() {}\n")],
    );
}

#[test]
fn no_code_knows_a_schema_by_name() {
    keep(
        no_schema_by_name,
        "a schema is data: extend what schema.toml can say instead",
        &[
            ("src/domain/x.rs", "fn f() { if schema.name == \"go-chi\" {} }"),
            ("src/domain/x.rs", "fn f() { format!(\"go-chi {x}\"); }"),
        ],
    );
    let tests = Source::new(
        "src/domain/x.rs",
        "#[cfg(test)]\nmod tests {\n const N: &str = \"go-chi\";\n}\n",
    );
    assert_eq!(no_schema_by_name(&tests), [""; 0]);
}
