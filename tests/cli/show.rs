//! How `list` shows records: for people, spreadsheets and programs.

use crate::support::terminal::{ends, on_terminal, plain, shown_on};
use crate::support::{FOREVER, PENDING, Runs as _, Server};

fn seeded() -> Server {
    Server::holding(&[
        ("idem:started:a", "worker-7-with-a-name-that-is-longer-than-any-column", 20_000),
        ("idem:result:b,\"c\"", r#"{"statusCode":201,"body":"paid"}"#, 80_000_000),
        ("idem:started:stuck", "worker-8", FOREVER),
    ])
}

fn sorted(server: &Server, options: &[&str]) -> String {
    server
        .idemctl(&[&["list", "--schema", "event-driven", "--sort", "key"], options].concat())
        .exits(0)
        .text()
}

#[test]
fn each_record_is_one_whole_line_where_stdout_is_no_terminal() {
    let server = seeded();
    let text = sorted(&server, &[]);
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines.len(), 4, "{text}");
    assert!(lines[0].starts_with("KEY ") && lines[0].ends_with(" FINDINGS"), "{text}");
    assert!(
        text.contains(" worker-7-with-a-name-that-is-longer-than-any-column "),
        "nothing is cut: {text}"
    );
    assert!(lines[3].starts_with("stuck  ") && lines[3].ends_with(" no-expiry"), "{text}");
    server.idemctl(&["list"]).exits(0).says("3 records among 3 keys of");
}

/// Rule: a cell of a table is one line on a terminal of 120 columns or more, and no line is longer than any terminal.
#[test]
fn no_table_is_wider_than_the_terminal_and_no_cell_breaks() {
    let server = Server::start();
    let key = |number: u8| format!("6e3ca9a3-5d9d-48c6-b6ed-1a88aa7864f{number}");
    let owner = "0d3f6f2e-58f5-4c0b-9d6c-1f1f8f2a7b11";
    let lock = format!(
        r#"{{"state":"in-progress","owner":"{owner}","fingerprint":"{}","created_at":1000}}"#,
        "ab".repeat(32)
    );
    server.put(&format!("idemkey:{}", key(1)), &lock);
    server.set(&format!("idem:started:{}", key(2)), "worker-7", 20_000);
    server.put(&format!("idem:lock:{}", key(3)), "1");
    server.set(&format!("idem:done:{}", key(3)), "1", 80_000_000);
    for columns in [80, 100, 120, 150, 200, 400] {
        for words in [&["list"][..], &["list", "-o", "wide"]] {
            let shown = shown_on(columns, &server.command(), words).exits(0);
            let text = plain(&shown);
            let table = text.split("\n").take_while(|line| !line.starts_with("note:"));
            let rows: Vec<_> = table.take_while(|line| !line.contains("records among")).collect();
            for line in &rows {
                assert!(
                    line.chars().count() <= usize::from(columns),
                    "{columns} {words:?}: {text}"
                );
            }
            assert_eq!(rows.len(), 4, "{columns} {words:?}: {text}");
            assert!(text.contains("no-expiry leftover-lock"), "{columns} {words:?}: {text}");
            let is_shortened = text.contains("-o name prints them whole");
            assert_eq!(is_shortened, text.contains('…'), "{columns} {words:?}: {text}");
            for (number, state) in [(1, "in-progress"), (2, "in-progress"), (3, "completed")] {
                // A narrow terminal shows both ends of a key.
                let key = key(number);
                let is_of = |row: &&&str| row.starts_with(&key[..8]) && row.contains(&key[28..]);
                let row = rows.iter().find(is_of).unwrap();
                assert!(row.contains(state), "{columns} {words:?}: {text}");
            }
            let is_cut = text.contains("no room for ");
            assert_eq!(is_cut, words.len() == 3 && columns < 400, "{columns} {words:?}: {text}");
        }
    }
    let narrow = plain(&shown_on(120, &server.command(), &["list", "-o", "wide"]));
    assert!(narrow.contains("FINDINGS") && narrow.contains("no-expiry leftover-lock"), "{narrow}");
    assert!(narrow.contains("REDIS KEYS; pipe the output into `less -S`"), "{narrow}");
}

/// Rule: a table has no column in which no record has a value. A file for programs has every column.
#[test]
fn a_column_without_any_value_is_left_out_of_a_table() {
    let server = Server::holding(&[("idempotency:a", PENDING, 200_000)]);
    let heading = |words: &[&str]| {
        let run = server.idemctl(&[&["list"], words].concat()).exits(0);
        run.text().lines().next().unwrap().to_owned()
    };
    let columns = |words: &[&str]| {
        heading(words).split("  ").map(str::trim).filter(|name| !name.is_empty()).count()
    };
    assert!(!heading(&[]).contains("OWNER"), "{}", heading(&[]));
    assert!(heading(&[]).ends_with("FINDINGS"), "nothing found is an answer: {}", heading(&[]));
    let shown = plain(&shown_on(200, &server.command(), &["list"]));
    assert!(!shown.contains("OWNER"), "{shown}");
    for missing in ["OWNER", "STATUS", "FINGERPRINT", "CREATED AT"] {
        assert!(!heading(&["-o", "wide"]).contains(missing), "{}", heading(&["-o", "wide"]));
    }
    assert_eq!(columns(&["--columns", "key,owner"]), 2, "named columns are shown");
    assert_eq!(heading(&["-o", "csv"]).split(',').count(), 13);
    server.set("idem:started:b", "worker-7", 20_000);
    assert!(heading(&[]).contains("OWNER"), "{}", heading(&[]));
    assert!(!heading(&["--schema", "go-middleware"]).contains("OWNER"));
}

#[test]
fn a_spreadsheet_gets_numbers_and_moments() {
    let server = seeded();
    let columns = ["--columns", "key,state,ttl_ms,owner,status,expires_at,findings"];
    let text = sorted(&server, &[&columns[..], &["-o", "csv"]].concat());
    // The names that tables show do as well.
    let shorter = ["--columns", "key,state,ttl,owner,status,expires-at,findings", "-o", "csv"];
    assert_eq!(sorted(&server, &shorter).lines().next(), text.lines().next());
    let lines: Vec<Vec<&str>> = text.lines().map(|line| line.split(',').collect()).collect();
    assert_eq!(lines[0], ["key", "state", "ttl_ms", "owner", "status", "expires_at", "findings"]);
    assert_eq!((lines[1][0], lines[1][1]), ("a", "in-progress"));
    assert!((1..=20_000).contains(&lines[1][2].parse::<u64>().unwrap()), "{text}");
    assert!(lines[1][5].starts_with("20") && lines[1][5].ends_with('Z'), "{text}");
    assert!(text.contains("\n\"b,\"\"c\"\"\",completed,"), "{text}");
    assert_eq!(lines[3], ["stuck", "in-progress", "", "worker-8", "", "", "no-expiry"]);
    let text = sorted(&server, &[&columns[..], &["-o", "tsv"]].concat());
    assert_eq!(text.lines().next().unwrap().split('\t').next(), Some("key"));
    assert_eq!(text.lines().count(), 4);
}

#[test]
fn names_are_what_purge_reads() {
    let server = seeded();
    let names = sorted(&server, &["-o", "name"]);
    assert_eq!(names, "event-driven/\"a\"\nevent-driven/\"b,\\\"c\\\"\"\nevent-driven/\"stuck\"\n");
    let run = server
        .idemctl_fed(&["purge", "-", "--state", "in-progress,completed", "--yes"], names.as_bytes())
        .exits(0);
    run.says("3 of 3 records purged");
}

#[test]
fn every_column_has_its_place_and_the_other_end_may_come_first() {
    let server = seeded();
    let wide = sorted(&server, &["-o", "wide", "--lock-ttl", "30s"]);
    for heading in ["STATE", "CREATED AT", "EXPIRES AT", "REDIS KEYS", "STATUS"] {
        assert!(wide.lines().next().unwrap().contains(heading), "{wide}");
    }
    assert_eq!(
        sorted(&server, &["-o", "name", "--reverse"]),
        "event-driven/\"stuck\"\nevent-driven/\"b,\\\"c\\\"\"\nevent-driven/\"a\"\n"
    );
    assert_eq!(
        sorted(&server, &["-o", "name", "--reverse", "--limit", "1"]),
        "event-driven/\"stuck\"\n"
    );
    server.idemctl(&["list", "--reverse"]).exits(2);
    server.idemctl(&["list", "--columns", "nosuch"]).exits(2).says("expires_at");
}

#[test]
fn json_has_the_moments_beside_the_times() {
    let server = seeded();
    let words =
        ["list", "--schema", "event-driven", "--lock-ttl", "30s", "--sort", "key", "-o", "jsonl"];
    let lines = server.idemctl(&words).exits(0).json_lines();
    let moment = |line: usize, field: &str| {
        lines[line][field].as_str().map(|text| humantime::parse_rfc3339(text).unwrap())
    };
    let (created, expires) = (moment(0, "created_at").unwrap(), moment(0, "expires_at").unwrap());
    let lives = expires.duration_since(created).unwrap().as_millis();
    assert!((29_900..=30_100).contains(&lives), "{lives}: {}", lines[0]);
    assert_eq!((moment(2, "created_at"), moment(2, "expires_at")), (None, None));
    let estimated =
        server.idemctl(&["inspect", "a", "--schema", "event-driven", "-o", "json"]).exits(0).json();
    assert_eq!(
        estimated["records"][0]["created_at"],
        serde_json::Value::Null,
        "an estimate is no moment"
    );
}

/// Rule: a terminal that speaks no UTF-8 is shown none of idemctl's own signs; data stays as it is.
#[test]
fn without_utf8_all_signs_are_ascii() {
    let server = Server::holding(&[("idempotency:k", PENDING, FOREVER)]);
    let shown = |locale: (&str, &str), words: &[&str]| {
        server.command().env(locale.0, locale.1).args(words).run().exits(0)
    };
    for words in [&["inspect", "k"][..], &["list"], &["stats"], &["simulate", "list"]] {
        for locale in [("LC_ALL", "C"), ("LANG", "POSIX"), ("LC_CTYPE", "de_DE.ISO-8859-1")] {
            let run = shown(locale, words);
            assert!(run.all().is_ascii(), "{words:?}: {}", run.all());
        }
    }
    shown(("LC_ALL", "C"), &["inspect", "k"]).shows("-> make sure");
    shown(("LC_ALL", "C.UTF-8"), &["inspect", "k"]).shows("→ make sure");
    server.put("idempotency:é", PENDING);
    shown(("LC_ALL", "C"), &["list", "-o", "csv"]).shows("é");
}

/// Rule: every command paints with the first six colours of the terminal, which its owner chose to be readable.
#[test]
fn all_commands_paint_with_the_colours_of_the_terminal() {
    let server = Server::holding(&[("idempotency:k", PENDING, FOREVER)]);
    server.put("idempotency:bad", "{{{");
    let socket = server.socket().display().to_string();
    let race =
        ["race", "--schema", "express", "--rounds", "2", "--concurrency", "2", "-s", &socket];
    for words in [
        &["list"][..],
        &["inspect", "k"],
        &["list", "-o", "wide"],
        &["purge", "--all", "--dry-run"],
        &race,
    ] {
        let shown = server.idemctl(&[words, &["--color", "always"]].concat()).text();
        let codes = shown.split("\x1b[").skip(1).map(|rest| rest.split('m').next().unwrap());
        let own = ["0", "1", "2", "31", "32", "33", "34", "35", "36", "39", "22"];
        codes.for_each(|code| {
            assert!(own.contains(&code), "{words:?} paints with {code}: {shown:?}")
        });
    }
}

/// Fifty healthy locks, and between them one that has no expiry.
fn many() -> Server {
    let server = Server::start();
    server.fill((0..50).map(|number| (format!("idempotency:k{number:02}"), PENDING)), 200_000);
    server.send::<()>(&[b"SET", b"idempotency:k25", PENDING.as_bytes()]);
    server
}

#[test]
fn a_terminal_shows_problems_first_and_a_file_shows_what_is_found() {
    let server = many();
    let shown = ends(on_terminal(server.command(), &["list"])).text();
    let first = shown.lines().nth(1).unwrap();
    assert!(first.contains("k25") && shown.lines().next().unwrap().contains("KEY"), "{shown}");
    // Only what is wrong has a colour.
    let painted: Vec<_> = shown.lines().skip(1).filter(|line| line.contains("\u{1b}[3")).collect();
    assert_eq!(painted.len(), 1, "{shown}");
    let sorted = ends(on_terminal(server.command(), &["list", "--sort", "key"])).text();
    assert!(sorted.lines().nth(1).unwrap().contains("k00"), "{sorted}");
    let limited = ends(on_terminal(server.command(), &["list", "--limit", "12"])).text();
    assert!(
        limited.contains("12 shown (limit 12), about ") && limited.contains(" keys scanned"),
        "{limited}"
    );
    let run = server.idemctl(&["list", "--limit", "12"]).exits(0);
    assert_eq!(run.text().lines().count(), 13);
    run.says("12 shown (limit 12), ");
}

#[test]
fn quiet_leaves_data_and_errors_and_verbose_tells_more() {
    let server = many();
    let quiet = server.idemctl(&["-q", "list"]).exits(0);
    assert_eq!((quiet.text().lines().count(), quiet.stderr.as_str()), (51, ""));
    let failed = server.idemctl(&["-q", "force-unlock", "nosuch", "--yes"]).exits(1);
    assert!(
        failed.stderr.starts_with("error: ") && !failed.stderr.contains("hint:"),
        "{}",
        failed.all()
    );
    let verbose = server.idemctl(&["-v", "list"]).exits(0);
    verbose.says("server: ").says("schemas: ").says("took ").says("50 records among");
    server.idemctl(&["-q", "-v", "list"]).exits(2);
}
