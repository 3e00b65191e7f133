//! The oracle: replays what every node executed, and judges each change of idemctl's by what truly stood there.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, HashSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use crate::attempt::Attempt;
use crate::backups::Dumps;
use crate::command::{Command, Expiry, Who};
use crate::deployment::Deployments;
use crate::event::{self, Event, What};
use crate::judge::Wrong;
use crate::keyspace::{Entry, Keyspace};
use crate::looks::Looks;
use crate::order::InOrder;
use crate::run::Run;
use crate::verdict::Verdict;

/// How long an event may take from where it happens to the oracle.
const LAG: u64 = 1_000_000;

/// How often what has ended is forgotten, in microseconds.
const FORGETS: u64 = 2_000_000;

/// What the oracle knows.
pub struct Oracle {
    pub(crate) deployments: Arc<Deployments>,
    /// The other node of each node's pair.
    pub(crate) peers: Vec<usize>,
    pub spaces: Vec<Keyspace>,
    pub(crate) attempts: HashMap<(usize, Who), Attempt>,
    pub(crate) dead: HashSet<(usize, Vec<u8>)>,
    /// When a worker was done with a Redis key.
    pub(crate) done: HashMap<(usize, Vec<u8>), u64>,
    pub(crate) runs: HashMap<usize, Run>,
    /// What idemctl removed last, by its Redis key.
    pub(crate) graves: HashMap<Vec<u8>, Entry>,
    /// Redis keys of which nobody knows for sure what a node holds.
    pub unsure: HashSet<(usize, Vec<u8>)>,
    /// A master is being replaced.
    pub(crate) failing: bool,
    pub(crate) looks: Looks,
    dumps: Dumps,
    pub verdict: Verdict,
}

impl Oracle {
    /// Before anything happens.
    pub fn new(deployments: Arc<Deployments>, peers: Vec<usize>) -> Self {
        Self {
            spaces: vec![Keyspace::default(); peers.len()],
            peers,
            deployments,
            attempts: HashMap::new(),
            dead: HashSet::new(),
            done: HashMap::new(),
            runs: HashMap::new(),
            graves: HashMap::new(),
            unsure: HashSet::new(),
            failing: false,
            looks: Looks::default(),
            dumps: Dumps::new(),
            verdict: Verdict::default(),
        }
    }

    /// Takes in all that happens, in the order of the clock, until every node is silent.
    pub fn watch(mut self, events: &Receiver<Event>) -> Self {
        let (mut waiting, mut number, mut forgotten) = (BinaryHeap::new(), 0_u64, 0);
        let mut heard = vec![0; self.spaces.len()];
        loop {
            match events.recv_timeout(Duration::from_millis(20)) {
                Ok(event) => {
                    match event.what {
                        What::Command { node, .. } => heard[node] = event.at,
                        What::Silent { node } => heard[node] = u64::MAX,
                        _ => {}
                    }
                    number += 1;
                    waiting.push(Reverse(InOrder { event, number }));
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => break,
            }
            let known = heard.iter().copied().min().unwrap_or(0).min(event::now() - LAG);
            while waiting.peek().is_some_and(|Reverse(next)| next.event.at <= known) {
                let Some(Reverse(next)) = waiting.pop() else { break };
                self.take(next.event);
            }
            if known > forgotten + FORGETS && known < u64::MAX {
                forgotten = known;
                self.spaces.iter_mut().for_each(|space| space.forget_ended(known - FORGETS));
            }
        }
        waiting.into_sorted_vec().into_iter().rev().for_each(|Reverse(last)| self.take(last.event));
        self.close()
    }

    fn close(mut self) -> Self {
        let (too_few, changed) = self.looks.too_few();
        too_few
            .into_iter()
            .for_each(|(by, said)| self.verdict.wrong(Wrong::NotWhatWasSeen, by, said));
        self.verdict.count(
            "looks",
            "removals of what changed since the first look",
            changed as u64,
        );
        let expired = self.spaces.iter().map(|space| space.expired).sum();
        self.verdict.count("disappeared", "expired", expired);
        self
    }

    fn take(&mut self, Event { at, what }: Event) {
        match what {
            What::Command { node, who, command } => {
                let is_got = matches!(&command, Command::Echo(_));
                self.settle((node, who), is_got);
                self.command(node, who, command, at);
            }
            What::Silent { .. } => {}
            What::Dead { worker, key } => drop(self.dead.insert((worker, key))),
            What::Done { worker, key } => drop(self.done.insert((worker, key), at)),
            What::Begins { operator, rule } => {
                let run = Run { is_unsure: self.failing, ..Run::new(rule) };
                self.runs.insert(operator, run);
            }
            What::Asks { operator } => {
                if let Some(run) = self.runs.get_mut(&operator) {
                    run.asked = Some(at);
                }
            }
            What::Ends { operator, ended } => self.end(operator, &ended),
            What::Missed { node } => self.miss(node, at),
            What::FailsOver => {
                self.failing = true;
                self.attempts.clear();
                self.runs.values_mut().for_each(|run| run.is_unsure = true);
            }
            What::Follows { master, replica } => {
                self.failing = false;
                self.attempts.clear();
                self.resync(master, replica, at);
            }
        }
    }

    fn command(&mut self, node: usize, who: Who, command: Command, at: u64) {
        let who = if who == Who::Gone { self.whose(&command) } else { who };
        match command {
            Command::Read(key) => {
                if let Who::Operator(operator) = who
                    && let Some(run) = self.runs.get_mut(&operator)
                {
                    run.reads.entry(key).or_default().push(at);
                }
            }
            Command::Set { key, value, if_absent, expiry } => {
                self.set((node, who, at), key, value.into(), (if_absent, expiry));
            }
            Command::Remove(keys) => keys.iter().for_each(|key| self.remove((node, who, at), key)),
            Command::Expire(key, expiry) => {
                let Some(before) = self.spaces[node].expire(&key, expiry, (at, who)) else {
                    return;
                };
                match who {
                    Who::Operator(operator) => {
                        self.gave_expiry(operator, &key, &before, (node, at))
                    }
                    _ => self.is_allowed_to_write(who, || {
                        format!("{} got another expiry", key.escape_ascii())
                    }),
                }
            }
            Command::Restore { key, dump, expiry, replaces } => {
                self.restore((node, who, at), &key, (&dump, expiry, replaces));
            }
            Command::Echo(_) | Command::Script => {}
        }
    }

    fn set(
        &mut self,
        (node, who, at): (usize, Who, u64),
        key: Vec<u8>,
        value: Arc<[u8]>,
        (if_absent, expiry): (bool, Expiry),
    ) {
        match who {
            Who::Worker(_) => {
                let before = self.spaces[node].last(&key).cloned();
                let is_there = self.spaces[node].get(&key, at).is_some();
                let applied = !(if_absent && is_there);
                if applied {
                    self.spaces[node].set(&key, Arc::clone(&value), expiry, (at, who));
                }
                let attempt = Attempt { key, value, expiry, at, before, applied, if_absent };
                self.attempts.insert((node, who), attempt);
            }
            Who::Master => self.replicate(node, &key, (value, expiry), at),
            Who::Operator(_) | Who::Gone | Who::UnclaimedKey => {
                self.is_allowed_to_write(who, || format!("{} was set", key.escape_ascii()));
                self.spaces[node].set(&key, value, expiry, (at, who));
            }
        }
    }

    /// A replica writes what its master wrote, which knows whose it is.
    fn replicate(
        &mut self,
        node: usize,
        key: &[u8],
        (value, expiry): (Arc<[u8]>, Expiry),
        at: u64,
    ) {
        self.spaces[node].set(key, value, expiry, (at, Who::Master));
        let here = self.spaces[node].last(key);
        let there = self.spaces[self.peers[node]].last(key);
        if let (Some(here), Some(there)) = (here, there)
            && here.is_like(there)
        {
            let there = there.clone();
            self.spaces[node].put(key, Some(there));
        }
    }

    fn restore(
        &mut self,
        (node, who, at): (usize, Who, u64),
        key: &[u8],
        what: (&[u8], Expiry, bool),
    ) {
        let (dump, expiry, replaces) = what;
        let is_there =
            self.spaces[node].get(key, at).is_some_and(|entry| !entry.is_about_to_end(at));
        if is_there && !replaces {
            return;
        }
        let value = self.dumps.value(dump);
        if who == Who::Master {
            return self.replicate(node, key, (value, expiry), at);
        }
        if is_there {
            self.verdict.wrong(
                Wrong::Touched,
                "restore",
                format!("{} was restored over", key.escape_ascii()),
            );
        }
        self.spaces[node].set(key, value, expiry, (at, who));
        let back = self.spaces[node].last(key);
        let is_late = back.is_some_and(|back| back.has_ended(at) || back.is_about_to_end(at));
        self.is_as_before(node, key);
        match who {
            Who::Operator(operator) => {
                if let Some(run) = self.runs.get_mut(&operator) {
                    *(if is_late { &mut run.restored_late } else { &mut run.restored }) += 1;
                }
            }
            _ => self.is_allowed_to_write(who, || format!("{} was restored", key.escape_ascii())),
        }
    }

    /// What comes back as it was is not another: who looked at it before saw this one.
    fn is_as_before(&mut self, node: usize, key: &[u8]) {
        let Some(grave) = self.graves.get(key) else { return };
        if let Some(back) = self.spaces[node].last(key).filter(|back| back.is_like(grave)) {
            let back = Entry { written: grave.written, ..back.clone() };
            self.spaces[node].put(key, Some(back));
        }
    }

    /// Only workers write, and whom a node follows.
    fn is_allowed_to_write(&mut self, who: Who, said: impl FnOnce() -> String) {
        match who {
            Who::Worker(_) | Who::Master => {}
            Who::Operator(operator) => {
                let by = self.runs.get(&operator).map_or("idemctl", |run| run.rule.word());
                self.verdict.wrong(Wrong::Touched, by, said());
            }
            Who::Gone => self.is_unsure_of_all(),
            Who::UnclaimedKey => self.verdict.wrong(Wrong::UnclaimedKey, "a stranger", said()),
        }
    }
}
