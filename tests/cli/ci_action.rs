//! The GitHub action in `contrib/action/`: its steps run with a schema of a scratch folder, and its inputs are documented.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use crate::simulate::variant::{MINE, Variant, home, reference, run};
use crate::support;

fn action() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/contrib/action"))
}

/// Runs the commands of the action with the schema of a variant.
fn run_action(variant: &Variant, simulate: &str) -> Output {
    let binary = support::binary();
    let path = std::env::var("PATH").unwrap();
    let server = support::program();
    let programs = [binary.parent().unwrap(), server.parent().unwrap()];
    let programs = programs.map(|folder| folder.to_str().unwrap());
    let mut command = Command::new(action().join("run.sh"));
    command
        .env_clear()
        .env("PATH", format!("{}:{path}", programs.join(":")))
        .env("HOME", variant.folder())
        .env("SCHEMA", MINE)
        .env("SCHEMA_DIR", variant.folder())
        .env("SIMULATE_ARGS", simulate)
        .env("RACE_ARGS", "--rounds 3")
        .env("GITHUB_STEP_SUMMARY", variant.folder().join("summary.md"))
        .current_dir(variant.folder());
    command.output().unwrap()
}

#[test]
fn the_commands_of_the_action_pass_and_fail_with_the_scripts() {
    let sound = reference();
    let folder = sound.folder().to_str().unwrap();
    let words = ["simulate", "--all", "--schema", MINE, "--schema-dir", folder, "--sandbox"];
    let accepted = run(home().path(), &[&words[..], &["-o", "json"]].concat()).exits(0).text();
    let passed = run_action(&sound, "");
    let output = String::from_utf8_lossy(&passed.stdout);
    assert!(passed.status.success(), "{output}{}", String::from_utf8_lossy(&passed.stderr));
    let reports = sound.folder().join("idemctl-reports");
    let report = fs::read_to_string(reports.join("explore.xml")).unwrap();
    assert!(report.contains(" failures=\"0\""), "{report}");
    let summary = fs::read_to_string(sound.folder().join("summary.md")).unwrap();
    for name in ["schema-check", "explore", "simulate", "race"] {
        assert!(summary.contains(&format!("### {name}: exit status 0\n")), "{summary}");
    }
    // Without an owner check, schema check, explore and simulate fail, and race is run all the same.
    let broken =
        reference().with("complete.lua", "if (holder or author) ~= owner then", "if false then");
    fs::write(broken.folder().join("accepted.json"), accepted).unwrap();
    let failed = run_action(&broken, "--expect accepted.json");
    let errors = String::from_utf8_lossy(&failed.stderr).into_owned();
    assert_eq!(failed.status.code(), Some(1), "{errors}");
    for command in ["schema-check", "explore", "simulate"] {
        assert!(errors.contains(&format!("failed: {command} (exit status 1)\n")), "{errors}");
    }
    assert!(!errors.contains("race"), "{errors}");
    assert!(broken.folder().join("idemctl-reports/race.txt").exists());
}

#[test]
fn every_input_is_used_and_documented() {
    let yaml = fs::read_to_string(action().join("action.yml")).unwrap();
    let readme = fs::read_to_string(action().join("README.md")).unwrap();
    let (inputs, runs) = yaml.split_once("\noutputs:").unwrap();
    let (_, inputs) = inputs.split_once("\ninputs:\n").unwrap();
    let mut count = 0;
    for line in inputs.lines() {
        let Some(input) = line.strip_prefix("  ").and_then(|line| line.strip_suffix(':')) else {
            continue;
        };
        assert!(runs.contains(&format!("inputs.{input} ")), "{input} is not used");
        assert!(readme.contains(&format!("`{input}`")), "{input} is not documented");
        count += 1;
    }
    assert_eq!(count, 9);
}
