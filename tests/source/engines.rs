//! `scripts/engines.sh`, on a machine that has one server program and no way to get another.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;
use std::process::Command;

use crate::support::{self, Run, Runs};

/// What the script needs of a machine, and nothing that could get a server program.
const TOOLS: [&str; 12] = [
    "bash", "basename", "cat", "cmp", "dirname", "grep", "id", "ln", "mkdir", "mktemp", "sed",
    "uname",
];

/// Runs a copy of the scripts in a folder of its own.
fn engines(environment: &[(&str, &str)]) -> Run {
    let folder = tempfile::tempdir().unwrap();
    let bin = folder.path().join("bin");
    let scripts = folder.path().join("scripts");
    fs::create_dir_all(scripts.join("engines")).unwrap();
    fs::create_dir(&bin).unwrap();
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for script in ["engines.sh", "apt.sh"] {
        fs::copy(root.join("scripts").join(script), scripts.join(script)).unwrap();
    }
    for tool in TOOLS {
        let path = ["/usr/bin", "/bin"].map(|folder| Path::new(folder).join(tool));
        symlink(path.iter().find(|path| path.exists()).unwrap(), bin.join(tool)).unwrap();
    }
    symlink(support::program(), bin.join("redis-server")).unwrap();
    Command::new("bash")
        .arg(scripts.join("engines.sh"))
        .env_clear()
        .env("PATH", &bin)
        .envs(environment.iter().copied())
        .run()
}

#[test]
fn what_a_machine_cannot_have_is_left_out_and_said() {
    let run = engines(&[]).exits(0);
    let lines = run.text();
    assert!(lines.starts_with("redis-system\t/"), "{}", run.all());
    for name in ["redis-6.2", "redis-8", "valkey-9"] {
        assert!(lines.contains(&format!("\n{name}\t-\tnot to be had\n")), "{}", run.all());
        run.says(format!("going on WITHOUT {name}"));
    }
}

#[test]
fn with_ci_an_engine_that_cannot_be_had_fails_the_run() {
    engines(&[("CI", "true")])
        .exits(1)
        .says("redis-6.2 cannot be had on this machine, and CI=true asks for every");
    engines(&[("CI", "false")]).exits(0);
}

#[test]
fn engines_that_are_named_are_enough_and_all_have_to_be_there() {
    engines(&[("CI", "true"), ("IDEMCTL_ENGINES", "redis-system")]).exits(0);
    for named in ["redis-8", "redis-system valkey-9", "redis-9"] {
        engines(&[("IDEMCTL_ENGINES", named)]).exits(1).says("was asked for (IDEMCTL_ENGINES)");
    }
}
