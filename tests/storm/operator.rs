//! Operators and cron jobs: each runs one command of idemctl over and over, and tells the oracle what it told.

use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use rexpect::process::WaitStatus;
use rexpect::session::{PtySession, spawn_command};

use crate::backups::Dumps;
use crate::callers::OPERATOR;
use crate::event::What;
use crate::judge::{Reason, Rule};
use crate::run::Ended;
use crate::shared::{Herald, Shared};
use crate::stage::PASSWORD;
use crate::support::{Run, Runs, idemctl};

/// What an operator does over and over.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Duty {
    SweepOrphaned,
    SweepOld,
    SweepDeadOwners,
    PurgeResults,
    PurgeLocks,
    ForceUnlock,
    Restore,
}

/// All who are on duty in a storm.
pub const ON_DUTY: [Duty; 9] = [
    Duty::SweepOrphaned,
    Duty::SweepOld,
    Duty::SweepDeadOwners,
    Duty::PurgeResults,
    Duty::PurgeLocks,
    Duty::ForceUnlock,
    Duty::ForceUnlock,
    Duty::ForceUnlock,
    Duty::Restore,
];

/// Longer than any command takes, in milliseconds.
const LIMIT: u64 = 60_000;

const OLD: Duration = Duration::from_secs(3);

/// One on duty.
pub struct Operator {
    pub number: usize,
    pub duty: Duty,
    pub shared: Arc<Shared>,
    pub herald: Herald,
    pub rng: fastrand::Rng,
    dumps: Dumps,
    runs: usize,
}

impl Operator {
    /// Comes on duty.
    pub fn new(
        number: usize,
        duty: Duty,
        (shared, herald): (Arc<Shared>, Herald),
        seed: u64,
    ) -> Self {
        Self {
            number,
            duty,
            shared,
            herald,
            rng: fastrand::Rng::with_seed(seed),
            dumps: Dumps::new(),
            runs: 0,
        }
    }

    /// Is on duty until the storm is over.
    pub fn serve(mut self) {
        self.shared.pause(Duration::from_millis(300));
        while !self.shared.is_over() {
            self.runs += 1;
            match self.duty {
                Duty::ForceUnlock => self.unlock_one(),
                Duty::Restore => self.restore_one(),
                _ => self.run_once(),
            }
            let pause = Duration::from_millis(self.rng.u64(20..400));
            self.shared.pause(pause);
        }
    }

    /// The command of this run, with what it may do.
    fn order(&self) -> (Rule, Vec<String>) {
        let alive = self.shared.folder.join("alive").display().to_string();
        // Of some it takes its time to find out, and the others of the batch wait for these.
        let lookup = format!("case $1 in *-slow) sleep 1;; esac; test -e {alive}/\"$1\"");
        let (rule, words): (_, &[&str]) = match (self.duty, self.runs % 3) {
            (Duty::SweepOrphaned, 0) => (
                Rule::Expire { grace: Duration::from_millis(200) },
                &["sweep", "--orphaned", "--grace", "200ms", "--action", "expire"],
            ),
            (Duty::SweepOrphaned, _) => {
                (sweep(200, Reason::Orphaned), &["sweep", "--orphaned", "--grace", "200ms"])
            }
            (Duty::SweepOld, _) => {
                (sweep(2_000, Reason::Age), &["sweep", "--older-than", "5s", "--grace", "2s"])
            }
            (Duty::SweepDeadOwners, _) => (
                sweep(500, Reason::DeadOwner),
                &["sweep", "--older-than", "2s", "--grace", "500ms", "--owner-alive", &lookup],
            ),
            (Duty::PurgeResults, 0) => {
                (Rule::OldResults(OLD), &["purge", "--older-than", "3s", "--rate", "40/s"])
            }
            (Duty::PurgeResults, _) => {
                (Rule::HotResults, &["purge", "--match", "*.hot.*", "--rate", "30/s"])
            }
            (_, 0) => (
                Rule::HotLocks,
                &["purge", "--state", "in-progress", "--match", "*.hot.*", "--rate", "10/s"],
            ),
            _ => (
                Rule::LocksForEver,
                &["purge", "--state", "in-progress", "--finding", "no-expiry", "--rate", "10/s"],
            ),
        };
        let words = words.iter().map(|word| (*word).to_owned());
        (rule, words.chain(["--yes", "-o", "json"].map(str::to_owned)).collect())
    }

    fn run_once(&mut self) {
        let (rule, words) = self.order();
        let backup = self.backup();
        let mut command = self.command();
        command.args(&words).arg("--backup").arg(&backup);
        self.herald.say(What::Begins { operator: self.number, rule });
        let ended = self.told(command.run(), Some(&backup));
        let is_purged = matches!(rule, Rule::OldResults(_) | Rule::HotResults | Rule::LocksForEver);
        if is_purged && !ended.held.is_empty() {
            self.shared.backups.lock().unwrap().push(backup);
        }
        self.herald.say(What::Ends { operator: self.number, ended });
    }

    fn restore_one(&mut self) {
        self.shared.pause(Duration::from_millis(500));
        let Some(backup) = self.shared.backups.lock().unwrap().pop() else { return };
        let mut command = self.command();
        command.arg("restore").arg(&backup).args(["--yes", "-o", "json"]);
        self.herald.say(What::Begins { operator: self.number, rule: Rule::Restore });
        let ended = self.told(command.run(), None);
        self.herald.say(What::Ends { operator: self.number, ended });
    }

    fn told(&mut self, run: Run, backup: Option<&PathBuf>) -> Ended {
        let report = serde_json::from_slice(&run.stdout).ok();
        let held = backup.map(|backup| self.dumps.held(backup)).unwrap_or_default();
        Ended { code: run.code, report, held, said: run.stderr }
    }

    /// Looks at a lock, thinks about it, and says yes.
    fn unlock_one(&mut self) {
        let Some((schema, key)) = self.shared.any_taken(&mut self.rng) else { return };
        let backup = self.backup();
        let mut command = self.command();
        command
            .args(["force-unlock", &key, "--schema", &schema, "--backup"])
            .arg(&backup)
            .env("TERM", "xterm");
        self.herald.say(What::Begins { operator: self.number, rule: Rule::Unlock });
        let mut session = spawn_command(command, Some(LIMIT)).unwrap();
        let (code, said) = self.answer(&mut session);
        let held = self.dumps.held(&backup);
        let ended = Ended { code, report: None, held, said };
        self.herald.say(What::Ends { operator: self.number, ended });
    }

    fn answer(&mut self, session: &mut PtySession) -> (i32, String) {
        let mut said = String::new();
        // Where there is nothing to ask about it ends.
        if session.exp_string("[y/N]").is_ok() {
            self.herald.say(What::Asks { operator: self.number });
            std::thread::sleep(Duration::from_millis(self.rng.u64(100..1_800)));
            session.send("y\r").unwrap();
            session.flush().unwrap();
            said = session.exp_eof().unwrap_or_default();
        }
        match session.process().wait().unwrap() {
            WaitStatus::Exited(_, code) => (code, said),
            other => (-1, format!("{other:?} {said}")),
        }
    }

    fn backup(&self) -> PathBuf {
        self.shared.folder.join(format!("{}-{}.jsonl", self.number, self.runs))
    }

    fn command(&self) -> Command {
        let mut command = idemctl(&self.shared.folder);
        command
            .arg("--config")
            .arg(self.shared.folder.join("config.toml"))
            .args(["--context", "storm"]);
        command.args([
            "--no-auth-warning",
            "--user",
            &format!("{OPERATOR}{}", self.number),
            "--pass",
            PASSWORD,
        ]);
        command
    }
}

fn sweep(grace_ms: u64, by: Reason) -> Rule {
    Rule::Sweep { grace: Duration::from_millis(grace_ms), by }
}
