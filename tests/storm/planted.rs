//! The oracle itself: what is wrong on purpose is found, each by its name.

use std::sync::Arc;
use std::time::Duration;

use redis::Connection;

use crate::callers::{OPERATOR, WORKER};
use crate::deployment::PREFIX;
use crate::event::{What, now};
use crate::judge::{Reason, Rule, Wrong};
use crate::run::{Ended, Held};
use crate::shared::{Herald, Shared};
use crate::stage::Mode;
use crate::storm::{Plan, extra_worker, rage};

const PENDING: &[u8] = br#"{"status":"PENDING"}"#;
const DONE: &[u8] = br#"{"status":"COMPLETED","code":201,"headers":{},"body":""}"#;

/// Somebody who plays a worker and an operator, and gets it wrong.
struct Villain<'a> {
    worker: Connection,
    operator: Connection,
    herald: &'a Herald,
    planted: u32,
}

impl Villain<'_> {
    /// A worker's write; gives the Redis key.
    fn plant(&mut self, value: &[u8]) -> String {
        self.planted += 1;
        let key = format!("{PREFIX}idempotency:go-middleware.planted.{}", self.planted);
        redis::cmd("SET").arg(&key).arg(value).arg("PX").arg(9_000).exec(&mut self.worker).unwrap();
        redis::cmd("ECHO").arg(&key).exec(&mut self.worker).unwrap();
        key
    }

    /// A run of idemctl by this rule that does one thing and tells this.
    fn run(&mut self, rule: Rule, command: &[&str], (done, held): (u64, Vec<Held>)) {
        self.herald.say(What::Begins { operator: 0, rule });
        let mut sent = redis::Cmd::new();
        for word in command {
            sent.arg(word);
        }
        sent.exec(&mut self.operator).unwrap();
        let report = Some(serde_json::json!({ "done": done }));
        self.herald
            .say(What::Ends { operator: 0, ended: Ended { report, held, ..Ended::default() } });
    }
}

fn get_it_wrong(shared: &Arc<Shared>, herald: &Herald) {
    let stage = &shared.stage;
    let worker =
        stage.connect(0, &format!("{WORKER}{}", extra_worker(&shared.deployments))).unwrap();
    let operator = stage.connect(0, &format!("{OPERATOR}0")).unwrap();
    let mut villain = Villain { worker, operator, herald, planted: 0 };
    let by = Reason::Orphaned;
    let sweep = Rule::Sweep { grace: Duration::ZERO, by };

    // A live lock goes, and neither report nor backup says a word of it.
    let lock = villain.plant(PENDING);
    villain.run(sweep, &["UNLINK", &lock], (0, Vec::new()));
    // A result that is not old, in the backup as it was.
    let result = villain.plant(DONE);
    let ends_at = Some(now() / 1_000 + 45_000);
    redis::cmd("PEXPIRE").arg(&result).arg(45_000).exec(&mut villain.worker).unwrap();
    let held = Held { key: result.clone().into_bytes(), value: DONE.into(), ends_at };
    villain.run(
        Rule::OldResults(Duration::from_secs(3_600)),
        &["UNLINK", &result],
        (1, vec![held]),
    );
    // An expiry that nobody asked for.
    let lock = villain.plant(PENDING);
    villain.run(sweep, &["PEXPIRE", &lock, "5"], (0, Vec::new()));
    // A lock that was taken after the question.
    herald.say(What::Begins { operator: 0, rule: Rule::Unlock });
    herald.say(What::Asks { operator: 0 });
    let lock = villain.plant(PENDING);
    redis::cmd("UNLINK").arg(&lock).exec(&mut villain.operator).unwrap();
    herald.say(What::Ends { operator: 0, ended: Ended { code: 7, ..Ended::default() } });
    // Somebody else.
    let lock = villain.plant(PENDING);
    redis::cmd("DEL").arg(&lock).exec(&mut stage.node(0).connect()).unwrap();
    // Something that the oracle does not see at all.
    shared.pause(Duration::from_secs(1));
    redis::cmd("FLUSHALL").exec(&mut stage.node(0).connect()).unwrap();
}

#[test]
fn what_is_wrong_on_purpose_is_found() {
    let plan = Plan { mode: Mode::One, seed: 7, lasts: Duration::from_secs(2), on_duty: &[] };
    let over = rage(&plan, get_it_wrong);
    let found = |wrong| over.verdict.count_of(wrong);
    for (wrong, count) in [
        (Wrong::LiveLock, 1),
        (Wrong::Result, 1),
        (Wrong::Touched, 1),
        (Wrong::NotWhatWasSeen, 1),
        (Wrong::UnclaimedKey, 1),
        // Of the live lock the count and the backup, of the one unlocked the backup, and the audit log of all.
        (Wrong::Told, 4),
    ] {
        assert_eq!(found(wrong), count, "{wrong:?}: {}", over.table());
    }
    assert!(found(Wrong::Unattributed) > 0, "{}", over.table());
}
