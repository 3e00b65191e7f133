//! One run of idemctl: what it did, as the servers saw it, beside what it told.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::Value;

use crate::deployment::{Deployments, Role};
use crate::judge::Rule;

/// How far apart a Redis key's end may be in a backup and in the stream, in milliseconds.
const APART_MS: u64 = 1_000;

/// A Redis key with what it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    pub key: Vec<u8>,
    pub value: Arc<[u8]>,
    pub ends_at: Option<u64>,
}

impl Held {
    /// True when both are one.
    fn is_like(&self, other: &Self) -> bool {
        let same_end = match (self.ends_at, other.ends_at) {
            (Some(one), Some(other)) => one.abs_diff(other) <= APART_MS,
            (one, other) => one == other,
        };
        self.key == other.key && self.value == other.value && same_end
    }
}

/// What a run told at its end.
#[derive(Debug, Default)]
pub struct Ended {
    pub code: i32,
    pub report: Option<Value>,
    /// What its backup says that it removed.
    pub held: Vec<Held>,
    /// The last it said to people.
    pub said: String,
}

impl Ended {
    /// A number of the report; nothing where there is none.
    pub fn number(&self, field: &str) -> u64 {
        self.report.as_ref().and_then(|report| report[field].as_u64()).unwrap_or(0)
    }

    /// True when it says itself that it does not know.
    pub fn is_unknown(&self) -> bool {
        self.code == 7 || self.number("unknown") > 0
    }
}

/// What a run did.
#[derive(Debug)]
pub struct Run {
    pub rule: Rule,
    pub asked: Option<u64>,
    /// A master was replaced meanwhile, or what it changed is not known for sure.
    pub is_unsure: bool,
    /// When each Redis key was read.
    pub reads: HashMap<Vec<u8>, Vec<u64>>,
    pub removed: Vec<Held>,
    pub restored: u64,
    /// Redis keys that came back at the end of their time, or a moment too late.
    pub restored_late: u64,
    /// Locks that got an expiry.
    pub expired: u64,
}

impl Run {
    /// A run that begins.
    pub fn new(rule: Rule) -> Self {
        Self {
            rule,
            asked: None,
            is_unsure: false,
            reads: HashMap::new(),
            removed: Vec::new(),
            restored: 0,
            restored_late: 0,
            expired: 0,
        }
    }

    /// What it told wrong.
    pub fn told_wrong(&self, ended: &Ended, deployments: &Deployments) -> Vec<String> {
        let mut wrong = Vec::new();
        let expected: &[i32] = match self.rule {
            Rule::Unlock => &[0, 1, 2, 8],
            Rule::Restore => &[0, 1, 3],
            // 3 where records were skipped of which too little is known.
            _ if ended.said.contains("Skipped ") => &[0, 3],
            _ => &[0],
        };
        if !expected.contains(&ended.code)
            && (!self.is_unsure && ended.code != 7 || ended.code == 70)
        {
            wrong.push(format!("exit status {}: {}", ended.code, ended.said));
        }
        for removed in self
            .removed
            .iter()
            .filter(|removed| !ended.held.iter().any(|held| held.is_like(removed)))
        {
            let of_key = ended
                .held
                .iter()
                .filter(|held| held.key == removed.key)
                .map(shown)
                .collect::<Vec<_>>();
            wrong.push(format!("the backup lacks {}, and has {of_key:?}", shown(removed)));
        }
        // Where a master was replaced, what was done there may be lost, and is done once more on the next.
        if self.is_unsure
            || ended.is_unknown()
            || ended.report.is_none() && self.rule != Rule::Unlock
        {
            return wrong;
        }
        for held in ended
            .held
            .iter()
            .filter(|held| !self.removed.iter().any(|removed| removed.is_like(held)))
        {
            wrong.push(format!("the backup names {}, which was not removed", shown(held)));
        }
        let (least, most) = self.counts(deployments);
        let told = match self.rule {
            Rule::Unlock => u64::from(ended.code == 0),
            Rule::Restore => ended.number("restored"),
            _ => ended.number("done"),
        };
        if told < least || told > most {
            wrong.push(format!("{told} told as done, {least} to {most} were"));
        }
        wrong
    }

    /// How many records were dealt with, at least and at most: of a record with a result it is the result's removal that
    /// makes it done, unless that is gone by itself.
    fn counts(&self, deployments: &Deployments) -> (u64, u64) {
        match self.rule {
            Rule::Restore => (self.restored, self.restored + self.restored_late),
            Rule::Expire { .. } => (self.expired, self.expired),
            Rule::OldResults(_) | Rule::HotResults => {
                let whole = |held: &&Held| {
                    deployments.find(&held.key).is_some_and(|(_, role)| role != Role::Lock)
                };
                (self.removed.iter().filter(whole).count() as u64, self.removed.len() as u64)
            }
            _ => (self.removed.len() as u64, self.removed.len() as u64),
        }
    }
}

fn shown(held: &Held) -> String {
    let ends = held.ends_at.map_or_else(|| "never".to_owned(), |end| format!("at {end}"));
    format!("{} = {} (ends {ends})", held.key.escape_ascii(), held.value.escape_ascii())
}
