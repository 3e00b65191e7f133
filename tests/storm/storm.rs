//! A storm from beginning to end.

use std::fs;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::callers::{OPERATOR, WORKER};
use crate::deployment::Deployments;
use crate::event::{self, Event, What};
use crate::monitor::Monitors;
use crate::operator::{Duty, Operator};
use crate::oracle::Oracle;
use crate::shared::{Herald, Shared};
use crate::stage::{Mode, Stage};
use crate::verdict::Verdict;
use crate::worker::Worker;
use crate::{account, keyspace};

/// Workers of each service.
const WORKERS: usize = 2;

/// Between two failovers; behind Sentinel it takes another 11 seconds until the old master follows.
const FAILS_OVER: Duration = Duration::from_secs(9);

/// What is wanted of a storm.
pub struct Plan<'a> {
    pub mode: Mode,
    pub seed: u64,
    pub lasts: Duration,
    pub on_duty: &'a [Duty],
}

/// What a storm leaves.
pub struct Over {
    pub verdict: Verdict,
    pub seed: u64,
    pub mode: Mode,
}

/// Lets a storm rage; `besides` does what else is to happen meanwhile.
pub fn rage(plan: &Plan<'_>, besides: impl FnOnce(&Arc<Shared>, &Herald)) -> Over {
    let mut rng = fastrand::Rng::with_seed(plan.seed);
    let on_cluster = matches!(plan.mode, Mode::Cluster | Mode::ClusterWithReplicas);
    let deployments = Arc::new(Deployments::deal(&mut rng, on_cluster));
    let workers = extra_worker(&deployments);
    let users = (0..=workers).map(|number| format!("{WORKER}{number}"));
    let users: Vec<_> =
        users.chain((0..=plan.on_duty.len()).map(|number| format!("{OPERATOR}{number}"))).collect();
    let stage = Arc::new(Stage::start(plan.mode, &users));
    let shared = Arc::new(Shared::new(Arc::clone(&stage), Arc::clone(&deployments)));
    fs::write(shared.folder.join("config.toml"), deployments.config(&stage.url())).unwrap();

    let (events, happening) = channel();
    let peers = (0..stage.nodes()).map(|node| stage.peer(node)).collect();
    let oracle = Oracle::new(Arc::clone(&deployments), peers);
    let oracle = thread::spawn(move || oracle.watch(&happening));
    let monitors = Monitors::start(&stage, &events);
    let (operators, others) = everybody(plan, &shared, &events, (workers, &mut rng));
    besides(&shared, &Herald(events.clone()));
    shared.pause(plan.lasts);
    shared.end();
    operators.into_iter().chain(others).for_each(|thread| thread.join().unwrap());
    monitors.end();
    drop(events);
    let mut oracle = oracle.join().unwrap();
    compare(&stage, &mut oracle);
    account::audited(&shared, &mut oracle.verdict);
    for (what, count) in shared.counts() {
        oracle.verdict.count("services", what, count);
    }
    Over { verdict: oracle.verdict, seed: plan.seed, mode: plan.mode }
}

/// The number of a worker that may log in, and does nothing: whoever wants may play it.
pub fn extra_worker(deployments: &Deployments) -> usize {
    WORKERS * deployments.all().len()
}

type Threads = Vec<JoinHandle<()>>;

fn everybody(
    plan: &Plan<'_>,
    shared: &Arc<Shared>,
    events: &Sender<Event>,
    (workers, rng): (usize, &mut fastrand::Rng),
) -> (Threads, Threads) {
    let part = || (Arc::clone(shared), Herald(events.clone()));
    let services = shared.deployments.all().len();
    let mut others: Threads = (0..workers)
        .map(|number| Worker::new(number, number % services, part(), rng.u64(..)))
        .map(|worker| thread::spawn(move || worker.work()))
        .collect();
    let operators = plan.on_duty.iter().enumerate();
    let operators = operators
        .map(|(number, duty)| Operator::new(number, *duty, part(), rng.u64(..)))
        .map(|operator| thread::spawn(move || operator.serve()))
        .collect();
    if matches!(plan.mode, Mode::ClusterWithReplicas | Mode::Sentinel) {
        let (shared, herald) = part();
        others.push(thread::spawn(move || replace_masters(&shared, &herald)));
    }
    (operators, others)
}

fn replace_masters(shared: &Shared, herald: &Herald) {
    for part in 0.. {
        shared.pause(FAILS_OVER);
        if shared.is_over() {
            break;
        }
        herald.say(What::FailsOver);
        let (master, replica) = shared.stage.fail_over(part);
        herald.say(What::Follows { master, replica });
        shared.count("failovers");
    }
}

/// What the oracle takes to be there is there, and nothing else: else it missed something.
fn compare(stage: &Stage, oracle: &mut Oracle) {
    for node in stage.masters() {
        let mut connection = stage.node(node).connect();
        let keys: Vec<Vec<u8>> = redis::cmd("KEYS").arg("*").query(&mut connection).unwrap();
        let mut there = std::collections::HashMap::new();
        for key in keys {
            let mut pipeline = redis::pipe();
            pipeline.cmd("GET").arg(&key).cmd("PTTL").arg(&key);
            let (value, left): (Option<Vec<u8>>, i64) = pipeline.query(&mut connection).unwrap();
            let ends_at = u64::try_from(left).ok().map(|left| event::now() / 1_000 + left);
            there.extend(value.map(|value| (key, (value, ends_at))));
        }
        let is_sure = |key: &Vec<u8>| !oracle.unsure.contains(&(node, key.clone()));
        there.retain(|key, _| is_sure(key));
        let soon = event::now() + keyspace::TOLERANCE_MS * 1_000;
        account::compared(&there, (&oracle.spaces[node], is_sure), soon, &mut oracle.verdict);
    }
}
