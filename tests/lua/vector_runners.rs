//! The programs in `contrib/vectors/` that run the vectors with a Redis client of another language. `scripts/vectors.sh` installs
//! the clients; a program without its client is skipped, with a line that says so.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::support::Server;
use crate::support::wire;

/// A language in which the vectors are run.
#[derive(Debug, Clone, Copy)]
enum Language {
    Python,
    TypeScript,
}

/// A mistake in one of the scripts.
#[derive(Debug, Clone, Copy)]
struct Mistake {
    script: &'static str,
    right: &'static str,
    wrong: &'static str,
    /// The beginning of a line in which the programs tell of it.
    told: &'static str,
}

const MISTAKES: [Mistake; 5] = [
    Mistake {
        script: "begin",
        right: "return {'MISMATCH'}",
        wrong: "return {'ACQUIRED'}",
        told: "another payload under the same key, while the first executes: step 1 (begin) replied ",
    },
    Mistake {
        script: "begin",
        right: "local now = string.format('%d', time[1] * 1000 + math.floor(time[2] / 1000))",
        wrong: "local now = time[1]",
        told: "a first request takes the lock: idemkey:order-1 differs afterwards",
    },
    Mistake {
        script: "complete",
        right: "return 'ALREADY'",
        wrong: "return 'STORED'",
        told: "complete twice: the first result stays: step 3 (complete) replied ",
    },
    Mistake {
        script: "release",
        right: "redis.call('DEL', record)",
        wrong: "redis.call('GET', record)",
        told: "release frees the lock at once: idemkey:order-1 differs afterwards",
    },
    Mistake {
        script: "renew",
        right: "'PEXPIRE', record, string.format('%d', math.ceil(lock_ttl * 1000))",
        wrong: "'PERSIST', record",
        told: "renew gives a lock without TTL one: idemkey:order-1 differs afterwards",
    },
];

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The command that runs the vectors in this language; `None` if its client is not installed.
#[expect(clippy::print_stderr, reason = "a skipped test says so")]
fn program(language: Language) -> Option<Command> {
    let installed = repository().join(".libraries/vectors");
    let (interpreter, program) = match language {
        Language::Python => {
            (installed.join("python/bin/python"), repository().join("contrib/vectors/vectors.py"))
        }
        Language::TypeScript => {
            // tsx runs TypeScript on every Node.js that is in use; Node.js itself since 22.18.
            let tsx = installed.join("node/node_modules/.bin/tsx");
            (tsx, installed.join("node/vectors.ts"))
        }
    };
    if !interpreter.exists() {
        eprintln!("skipped: scripts/vectors.sh has not installed the client for {language:?}");
        return None;
    }
    if matches!(language, Language::TypeScript) {
        // Node.js looks for packages beside the file that imports them.
        fs::copy(repository().join("contrib/vectors/vectors.ts"), &program).unwrap();
    }
    let mut command = Command::new(interpreter);
    command.arg(program);
    Some(command)
}

/// Runs the vectors on a server of their own, with the scripts of a folder.
fn run(language: Language, scripts: &Path) -> Option<Output> {
    let mut command = program(language)?;
    let server = Server::start();
    let socket = server.socket();
    let url = match language {
        Language::Python => format!("unix://{}", socket.display()),
        Language::TypeScript => socket.display().to_string(),
    };
    command.arg(wire::lua().join("reference/vectors.json")).arg(scripts).env("REDIS_URL", url);
    // Where tsx keeps what it compiled.
    command.env("TMPDIR", server.folder());
    Some(command.output().unwrap())
}

/// A folder of the scripts with this mistake.
fn broken(folder: &Path, mistake: Mistake) -> PathBuf {
    let Mistake { script, right, wrong, .. } = mistake;
    let scripts = folder.join(script);
    fs::create_dir_all(&scripts).unwrap();
    for name in ["begin", "complete", "release", "renew"] {
        let mut text = wire::source(&format!("reference/{name}"));
        if name == script {
            assert_eq!(text.matches(right).count(), 1, "{name}: {right}");
            text = text.replace(right, wrong);
        }
        fs::write(scripts.join(format!("{name}.lua")), text).unwrap();
    }
    scripts
}

fn passes_and_notices_mistakes(language: Language) {
    let Some(sound) = run(language, &wire::lua().join("reference")) else { return };
    let text = String::from_utf8_lossy(&sound.stdout);
    assert!(sound.status.success(), "{text}{}", String::from_utf8_lossy(&sound.stderr));
    assert!(text.ends_with(" cases, 0 failed\n"), "{text}");
    let folder = tempfile::tempdir().unwrap();
    for mistake in MISTAKES {
        let found = run(language, &broken(folder.path(), mistake)).unwrap();
        let text = String::from_utf8_lossy(&found.stdout);
        assert_eq!(found.status.code(), Some(1), "{mistake:?}: {text}");
        assert!(!text.contains(" cases, 0 failed"), "{mistake:?}: {text}");
        assert!(text.lines().any(|line| line.starts_with(mistake.told)), "{mistake:?}: {text}");
    }
}

#[test]
fn python_runs_the_vectors() {
    passes_and_notices_mistakes(Language::Python);
}

#[test]
fn typescript_runs_the_vectors() {
    passes_and_notices_mistakes(Language::TypeScript);
}
