//! A server, a payment service on it, and probes of that service.

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::support::probe_service::{Config, ProbeService, Variant};
use crate::support::{Run, Runs as _, Server, idemctl, wire};

/// How long the handler takes. On a busy machine, requests are released within this time.
pub const DELAY: Duration = Duration::from_millis(150);

/// A payment.
pub const PAYMENT: &str = r#"{"order":"order-1","amount":500}"#;

/// A payment that fails once for each key, before the money is taken.
const FAILING: &str = r#"{"order":"order-1","amount":500,"fail":"before"}"#;

/// The same after the money is taken. Four of the services would take it again.
const FAILING_LATE: &str = r#"{"order":"order-1","amount":500,"fail":"after"}"#;

/// A profile that judges nearly every check.
pub const STRICT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/probe/strict.toml");

/// A service on a server of its own.
pub struct Stage {
    pub server: Server,
    pub service: ProbeService,
    pub schema: &'static str,
    variant: Option<Variant>,
}

impl Stage {
    /// The service with this schema, and with this mistake if there is one.
    pub fn new(schema: &'static str, variant: Option<Variant>) -> Self {
        Self::with(schema, |config| config.variant = variant)
    }

    /// The service with this schema and these settings.
    pub fn with(schema: &'static str, set: impl FnOnce(&mut Config)) -> Self {
        let server = Server::start();
        let mut config = Config::correct(wire::schema(schema), server.url(), DELAY);
        set(&mut config);
        let variant = config.variant;
        let service = ProbeService::start(config).unwrap();
        Self { server, service, schema, variant }
    }

    /// Probes it with all that a probe can use: effects, another caller, a payment that fails, and the
    /// records in Redis.
    pub fn probe(&self, words: &[&str]) -> Run {
        self.probe_as("json", words)
    }

    /// The same with this form of output.
    pub fn probe_as(&self, output: &str, words: &[&str]) -> Run {
        self.probe_counting(&self.service.url("/effects"), output, words)
    }

    /// The same with effects from another URL.
    pub fn probe_counting(&self, effects: &str, output: &str, words: &[&str]) -> Run {
        self.command(effects, output, words).run()
    }

    /// The command of this probe.
    pub fn command(&self, effects: &str, output: &str, words: &[&str]) -> Command {
        self.by(self.server.command(), effects, output, words)
    }

    /// The same on the way of this socket, which may be slow, with JSON.
    pub fn through(&self, socket: &Path, words: &[&str]) -> Command {
        let mut command = idemctl(self.server.folder());
        command.arg("-s").arg(socket).args(["--timeout", "20s"]);
        self.by(command, &self.service.url("/effects"), "json", words)
    }

    fn by(&self, mut command: Command, effects: &str, output: &str, words: &[&str]) -> Command {
        let failing = match self.variant {
            Some(Variant::ReleasesAfterFailure) => FAILING_LATE,
            _ => FAILING,
        };
        command.args(["probe", &self.service.url("/payments"), "-d", PAYMENT]);
        command.args(["-H", "Content-Type: application/json", "-H", "Authorization: Bearer one"]);
        command.args(["--as", "Authorization: Bearer two", "--effects", effects]);
        command.args(["--failing-data", failing, "--other-path", "/refunds"]);
        command.args(["--schema", self.schema, "-o", output]);
        command.args(words);
        command
    }
}

/// The verdict and the message of each check, by its ID.
pub fn verdicts(run: &Run) -> BTreeMap<String, (String, String)> {
    let document = run.json();
    let checks = document["checks"].as_array().unwrap_or_else(|| panic!("{}", run.all()));
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let mut verdicts = BTreeMap::new();
    for check in checks {
        let found = (text(&check["verdict"]), text(&check["message"]));
        verdicts.insert(text(&check["id"]), found);
    }
    verdicts
}

/// The IDs of the checks with this verdict.
pub fn with_verdict(run: &Run, wanted: &str) -> Vec<String> {
    let mut ids = Vec::new();
    for (id, (verdict, _)) in verdicts(run) {
        if verdict == wanted {
            ids.push(id);
        }
    }
    ids
}
