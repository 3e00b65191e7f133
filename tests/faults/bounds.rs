//! Files without end, folders, pipes that nobody writes to: whatever a setting names, reading it ends, and takes little
//! memory. So does a value of many megabytes.

use std::fs::File;
use std::io::Write as _;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::fault::{Hook, hooked};
use crate::support::memory::peak_of;
use crate::support::{Run, Runs, Server, backup, binary, idemctl};

/// More than idemctl takes for itself, far less than what is offered to it.
const LITTLE: u64 = 48 * 1024 * 1024;

/// A file in every sense but that of a regular file of sensible size.
fn strange_files(folder: &Path) -> Vec<(String, &'static str)> {
    let (pipe, huge) = (folder.join("pipe"), folder.join("huge"));
    assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
    // Sparse: it takes no room on the disk.
    File::create(&huge).unwrap().set_len(1024 * 1024 * 1024).unwrap();
    let name = |path: &Path| path.to_str().unwrap().to_owned();
    vec![
        ("/dev/zero".to_owned(), "a device"),
        (name(&pipe), "a pipe"),
        (name(folder), "a folder"),
        (name(&huge), "larger than"),
    ]
}

#[track_caller]
fn is_refused(command: &mut Command, says: &str) {
    let started = Instant::now();
    let (run, peak): (Run, u64) = peak_of(command);
    let run = run.exits(2);
    run.says(says);
    assert!(peak < LITTLE, "{peak} bytes; {}", run.all());
    assert!(started.elapsed() < Duration::from_secs(60), "{}", run.all());
}

#[test]
fn a_config_file_is_a_regular_file_of_sensible_size() {
    let folder = tempfile::tempdir().unwrap();
    for (file, is) in strange_files(folder.path()) {
        let says = format!("cannot read the config file {file}: it is {is}");
        is_refused(
            idemctl(folder.path()).env("IDEMCTL_CONFIG", &file).args(["context", "list"]),
            &says,
        );
        is_refused(idemctl(folder.path()).args(["--config", &file, "context", "list"]), &says);
    }
}

#[test]
fn the_config_file_at_its_usual_place_is_looked_at_as_closely() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join(".config/idemctl/config.toml")).unwrap();
    is_refused(
        idemctl(folder.path()).args(["context", "list"]),
        "it is a folder, not a regular file",
    );
}

#[test]
fn schemas_and_their_scripts_are_regular_files_of_sensible_size() {
    let folder = tempfile::tempdir().unwrap();
    let own = folder.path().join("schemas/own");
    std::fs::create_dir_all(&own).unwrap();
    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/lua/express/schema.toml");
    let strange = strange_files(folder.path());
    for name in ["schema.toml", "begin.lua"] {
        // Only a folder with a regular `schema.toml` holds a schema at all.
        for (file, is) in
            strange.iter().filter(|(_, is)| name != "schema.toml" || *is == "larger than")
        {
            let _ = std::fs::remove_file(own.join("schema.toml"));
            std::fs::copy(schema, own.join("schema.toml")).unwrap();
            let _ = std::fs::remove_file(own.join(name));
            std::os::unix::fs::symlink(file, own.join(name)).unwrap();
            let (run, peak) =
                peak_of(idemctl(folder.path()).args(["schema", "check", own.to_str().unwrap()]));
            let run = run.exits(1);
            let says = format!("{name}:1: error: cannot be read: it is {is}");
            assert!(run.text().contains(&says) && peak < LITTLE, "{}", run.all());
        }
    }
}

#[test]
fn passwords_and_certificates_are_bounded() {
    let folder = tempfile::tempdir().unwrap();
    // Certificates are read once somebody is there.
    let somebody = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = somebody.local_addr().unwrap().port().to_string();
    let strange = strange_files(folder.path());
    for (file, is) in strange.iter().filter(|(_, is)| *is != "a pipe") {
        is_refused(idemctl(folder.path()).args(["-p", &port, "--pass-file", file, "list"]), is);
        is_refused(
            idemctl(folder.path()).args(["-p", &port, "--tls", "--cacert", file, "list"]),
            is,
        );
    }
}

#[test]
fn a_password_comes_out_of_a_pipe() {
    let server = Server::start_with(&["requirepass s3cret"]);
    let script = format!(
        "'{}' -s '{}' --pass-file <(sleep 0.2; echo s3cret) list",
        binary().display(),
        server.socket().display()
    );
    Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .env("HOME", server.folder())
        .env("PATH", "/usr/bin:/bin")
        .run()
        .exits(0);
}

/// Bytes of a large value: more than what is read of a value that is not wanted whole. As a tree its JSON would take
/// thirty times as many.
const LARGE: usize = 18_000_000;

/// What a buffer may take beyond the bytes it is for.
const SLACK: u64 = 8 * 1024 * 1024;

/// Asserts that a command takes at most so many times the memory of the value of `idem:k`, beside what it takes for a value
/// of a few bytes.
#[track_caller]
fn takes_at_most(server: &Server, times: u64, value: &[u8], words: &[&str]) {
    let peak_with = |value: &[u8]| {
        server.send::<()>(&[b"SET", b"idem:k", value, b"EX", b"80000"]);
        let (run, peak) = peak_of(server.command().args(words));
        // 3: a list leaves out a value of which the beginning does not tell the format.
        assert!([0, 3].contains(&run.code), "{words:?}: {}", run.stderr);
        peak
    };
    let allowed = peak_with(&large_json(HEAD, 2, "1]}")) + times * value.len() as u64 + SLACK;
    let peak = peak_with(value);
    assert!(peak < allowed, "{words:?}: {peak} bytes of memory for a value of {}", value.len());
}

#[test]
fn a_line_without_end_is_no_key_and_no_change() {
    let server = Server::start();
    let huge = server.folder().join("huge");
    File::create(&huge).unwrap().set_len(1024 * 1024 * 1024).unwrap();
    for file in ["/dev/zero", huge.to_str().unwrap()] {
        let says = format!("cannot read keys from {file}: a line is larger than 4 MiB");
        is_refused(server.command().args(["purge", "--key-file", file, "--yes"]), &says);
    }
    std::fs::create_dir_all(server.audit()).unwrap();
    std::fs::rename(&huge, server.audit().join("log.jsonl")).unwrap();
    is_refused(server.command().args(["log", "--records"]), "a line is larger than 16 MiB");
}

/// The head of a result that is stored, up to its body.
const HEAD: &str = r#"{"status":"COMPLETED","statusCode":200,"headers":{},"body":["#;

/// JSON that would take many times its bytes as a tree, whatever stands in front of it and behind.
fn large_json(before: &str, bytes: usize, after: &str) -> Vec<u8> {
    [before.as_bytes(), "1,".repeat(bytes / 2).as_bytes(), after.as_bytes()].concat()
}

/// The values: what a value is stands in front of a large body, behind one, beside bytes that are not UTF-8, or nowhere.
fn large_values() -> [Vec<u8>; 4] {
    let mut odd = large_json(HEAD, LARGE, "\"?\"]}");
    let mark = odd.len() - 4;
    odd[mark] = 0xff;
    let behind = r#"1],"status":"COMPLETED","statusCode":200,"headers":{}}"#;
    [
        large_json(HEAD, LARGE, "1]}"),
        large_json(r#"{"body":["#, LARGE, behind),
        odd,
        large_json(HEAD, LARGE, "1]"),
    ]
}

#[test]
fn a_large_value_takes_little_memory_where_it_is_not_wanted_whole() {
    let server = Server::start();
    for value in large_values() {
        // What inspect reads further grows in a buffer, and the static binary's allocator holds the old one and the new one.
        for (words, times) in
            [(&["inspect", "k"][..], 5), (&["list"], 3), (&["list", "-o", "json"], 3)]
        {
            takes_at_most(&server, times, &value, words);
        }
    }
}

#[test]
fn a_large_value_that_is_wanted_whole_takes_a_few_times_its_memory() {
    let server = Server::start();
    let value = large_json(HEAD, LARGE / 6, "1]}");
    // The client's buffer, the value, the body in it; and what is written of it.
    for (words, times) in
        [(&["--body", "-"][..], 4), (&["--full", "-o", "json"], 7), (&["--full"], 6)]
    {
        takes_at_most(&server, times, &value, &[&["inspect", "k"], words].concat());
    }
}

/// Rule: a backup is read a line at a time, and no value of it is kept while the rest is checked.
#[test]
fn a_backup_of_many_large_values_takes_little_memory() {
    let server = Server::start_with(&["rdbcompression no"]);
    server.set("idem:b", format!("{HEAD}\"{}\"]}}", "x".repeat(1 << 20)), 50_000_000);
    let line = backup::line(&server, "idem:b");
    let numbered = |number: i32| {
        let mut line = line.clone();
        line["keys"][0]["redis_key_base64"] = STANDARD.encode(format!("idem:b{number}")).into();
        line["key"] = format!("b{number}").into();
        line
    };
    let file = backup::write(&server, &(0..100).map(numbered).collect::<Vec<_>>());
    let folder = server.state("backups");
    std::fs::create_dir_all(&folder).unwrap();
    let file_there = folder.join("2026-01-01T000000.000Z-purge-1.jsonl");
    std::fs::rename(file, &file_there).unwrap();
    for words in [&["backup", "list"][..], &["restore", file_there.to_str().unwrap(), "--dry-run"]]
    {
        let (run, peak) = peak_of(server.command().args(words));
        let run = run.exits(0);
        assert!(run.all().contains("100"), "{}", run.all());
        assert!(peak < LITTLE, "{words:?}: {peak} bytes of memory");
    }
}

/// Rule: a duration is checked where it is read. No later step adds one to a moment that cannot hold the sum.
#[test]
fn a_duration_beyond_a_hundred_years_is_refused_and_nothing_panics() {
    let server = Server::start();
    server.set("idem:n", r#"{"status":"IN_PROGRESS"}"#, 50_000_000);
    for words in [
        &["sweep", "--orphaned", "--yes", "--grace"][..],
        &["sweep", "--older-than"],
        &["list", "--until", "completed", "--within"],
        &["inspect", "n", "--schema", "express", "--until", "completed", "--within"],
        &["list", "-w"],
        &["inspect", "n", "-w"],
        &["stats", "--watch"],
        &["list", "--older-than"],
        &["list", "--newer-than"],
        &["list", "--ttl-below"],
        &["list", "--ttl-above"],
        &["list", "--lock-ttl"],
        &["list", "--result-ttl"],
        &["list", "--timeout"],
        &["list", "--connect-timeout"],
        &["log", "--since"],
        &["backup", "prune", "--older-than"],
        &["force-unlock", "n", "--yes", "--wait-replicas", "1", "--wait-timeout"],
    ] {
        for long in ["292277026596y", "584542046090y", "101y"] {
            let run = server.idemctl(&[words, &[long]].concat()).exits(2);
            assert!(!run.stderr.contains("panicked"), "{}", run.all());
        }
        let (option, longest) = (words.last().unwrap(), "longer than 100y");
        server
            .idemctl(&[words, &["101y"]].concat())
            .exits(2)
            .says(longest)
            .says(option.trim_start_matches('-'));
    }
}

/// Rule: no file that the operator names is waited for without end, and none is read without end.
#[test]
fn backups_and_moments_are_files_that_are_opened_without_waiting() {
    let server = Server::start();
    let moment = server.folder().join("moment");
    std::fs::write(&moment, "{\"format\":1,\"records\":[],\"complete\":true}\n").unwrap();
    let moment = moment.to_str().unwrap();
    let strange = strange_files(server.folder());
    for (file, is) in strange.iter().filter(|(_, is)| *is != "larger than") {
        is_refused(
            server.command().args(["restore", file, "--dry-run"]),
            &format!("it is {is}, not a regular file"),
        );
        let of_first = if *is == "a folder" {
            "it is a folder"
        } else {
            "must be a regular file, because it is read twice"
        };
        is_refused(server.command().args(["diff", file]), of_first);
        // What the shell's <(…) names is a pipe, so the second moment may be one.
        if *is != "a pipe" {
            is_refused(server.command().args(["diff", moment, file]), &format!("it is {is}"));
        }
    }
    let script = format!("'{}' diff '{moment}' <(sleep 0.2; cat '{moment}')", binary().display());
    Command::new("bash")
        .args(["-c", &script])
        .env_clear()
        .env("PATH", "/usr/bin:/bin")
        .run()
        .exits(0);
}

#[test]
fn keys_come_out_of_a_pipe_and_a_folder_holds_none() {
    let server = Server::start();
    server.set(
        "idem:n",
        r#"{"status":"COMPLETED","statusCode":200,"headers":{},"body":""}"#,
        50_000_000,
    );
    let script = format!(
        "'{}' -s '{}' purge --schema express --yes --key-file <(sleep 0.2; echo n)",
        binary().display(),
        server.socket().display()
    );
    let mut bash = Command::new("bash");
    bash.args(["-c", &script])
        .env_clear()
        .env("HOME", server.folder())
        .env("PATH", "/usr/bin:/bin")
        .run()
        .exits(0);
    let folder = server.folder().to_str().unwrap().to_owned();
    let words = ["purge", "--schema", "express", "--yes", "--key-file", &folder];
    server.idemctl(&words).exits(2).says("it is a folder, not a regular file");
}

/// Rule: a value of a few kilobytes takes little memory, whatever it expands to.
#[test]
fn a_small_value_that_expands_to_millions_of_items_is_unreadable_and_takes_little_memory() {
    let server = Server::start();
    let items = (16 << 20) - 30;
    let document =
        [&b"\x93\xcc\xc8\x80\xdd"[..], &u32::to_be_bytes(items), &vec![0xa0; items as usize]]
            .concat();
    let mut zlib = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    zlib.write_all(&document).unwrap();
    let value = [&zlib.finish().unwrap()[..], b":1"].concat();
    assert!(value.len() < 20_000, "{}", value.len());
    server.send::<()>(&[b"SET", b"idempo:response:k", &value]);
    for words in [&["inspect", "k", "--schema", "idempo"][..], &["list", "--full"], &["detect"]] {
        let (run, peak) = peak_of(server.command().args(words));
        assert!(run.code < 2, "{words:?}: {}", run.all());
        // The bytes that come out, in a buffer that grows, and the tree.
        assert!(peak < 128 * 1024 * 1024, "{words:?}: {peak} bytes of memory; {}", run.all());
    }
    let run = server.idemctl(&["inspect", "k", "--schema", "idempo"]);
    assert!(run.all().contains("expands beyond 262144 items"), "{}", run.all());
}

/// Rule: one write never asks for the checksums of many large values, for the server serves nobody else until it has them all.
#[test]
fn a_purge_looks_at_few_large_values_at_a_time() {
    let server = Server::start();
    let value = format!(
        r#"{{"status":"COMPLETED","statusCode":200,"headers":{{}},"body":"{}"}}"#,
        "x".repeat(1 << 20)
    );
    for number in 0..30 {
        server.set(&format!("idem:b{number}"), &value, 50_000_000);
    }
    let most = Arc::new(AtomicUsize::new(0));
    let seen = Arc::clone(&most);
    let port = hooked(&server, move |sent| {
        let scripts = sent.windows(5).filter(|part| part == b"\nEVAL").count();
        seen.fetch_max(scripts, Ordering::SeqCst);
        Hook::Pass
    });
    let port = port.to_string();
    let words = ["-p", &port, "purge", "--schema", "express", "--yes"];
    idemctl(server.folder()).args(words).run().exits(0).says("30 of 30 records purged");
    let most = most.load(Ordering::SeqCst);
    assert!((1..=4).contains(&most), "{most} scripts in one write");
}

/// Rule: a purge reads large values whole to tell whose they are, and holds few of them at a time.
#[test]
fn a_purge_holds_few_large_values_at_a_time() {
    let server = Server::start();
    let value = format!("{HEAD}\"{}\"]}}", "x".repeat(8 << 20));
    for number in 0..16 {
        server.set(&format!("idem:b{number}"), &value, 50_000_000);
    }
    let (run, peak) = peak_of(server.command().args([
        "--timeout",
        "60s",
        "purge",
        "--schema",
        "express",
        "--yes",
    ]));
    run.exits(0).says("16 of 16 records purged");
    assert!(peak < LITTLE + LITTLE, "{peak} bytes of memory");
}
