//! What all who take part in a storm have in common.

use std::collections::{BTreeMap, VecDeque};
use std::fs;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use crate::deployment::Deployments;
use crate::event::{Event, What};
use crate::stage::Stage;

/// How long the same keys are fought for: a lock of eight hours, left by a crash, would end the fight for its key.
const ROUND: Duration = Duration::from_secs(3);

/// Locks taken last, among which somebody looks for one to unlock.
const REMEMBERED: usize = 40;

/// What all have in common.
pub struct Shared {
    pub stage: Arc<Stage>,
    pub deployments: Arc<Deployments>,
    pub folder: PathBuf,
    began: Instant,
    over: AtomicBool,
    counts: Mutex<BTreeMap<&'static str, u64>>,
    /// Schema and idempotency key of the locks taken last.
    taken: Mutex<VecDeque<(String, String)>>,
    /// Backups that wait to be restored.
    pub backups: Mutex<Vec<PathBuf>>,
}

impl Shared {
    /// Before anybody takes part.
    pub fn new(stage: Arc<Stage>, deployments: Arc<Deployments>) -> Self {
        let folder = stage.node(0).folder().join("storm");
        fs::create_dir_all(folder.join("alive")).unwrap();
        Self {
            stage,
            deployments,
            folder,
            began: Instant::now(),
            over: AtomicBool::new(false),
            counts: Mutex::default(),
            taken: Mutex::default(),
            backups: Mutex::default(),
        }
    }

    /// True when everybody is to come to an end.
    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    /// Lets everybody come to an end.
    pub fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Waits, but no longer than the storm lasts.
    pub fn pause(&self, pause: Duration) {
        let until = Instant::now() + pause;
        while !self.is_over() && Instant::now() < until {
            std::thread::sleep((until - Instant::now()).min(Duration::from_millis(50)));
        }
    }

    /// Counts something that workers do.
    pub fn count(&self, what: &'static str) {
        *self.counts.lock().unwrap().entry(what).or_default() += 1;
    }

    /// All that was counted.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        self.counts.lock().unwrap().clone()
    }

    /// The round of keys that are fought for now.
    pub fn round(&self) -> u128 {
        self.began.elapsed().as_millis() / ROUND.as_millis()
    }

    /// Remembers a lock that was taken.
    pub fn took(&self, schema: &str, key: &str) {
        let mut taken = self.taken.lock().unwrap();
        taken.push_back((schema.to_owned(), key.to_owned()));
        while taken.len() > REMEMBERED {
            taken.pop_front();
        }
    }

    /// One of the locks taken last.
    pub fn any_taken(&self, rng: &mut fastrand::Rng) -> Option<(String, String)> {
        let taken = self.taken.lock().unwrap();
        (!taken.is_empty()).then(|| taken[rng.usize(taken.len() / 2..taken.len())].clone())
    }

    /// The file that is there while an owner lives.
    pub fn life(&self, owner: &str) -> PathBuf {
        self.folder.join("alive").join(owner)
    }
}

/// Says what happens, to the oracle.
#[derive(Clone)]
pub struct Herald(pub Sender<Event>);

impl Herald {
    /// Says that something happens now.
    pub fn say(&self, what: What) {
        // An oracle that failed fails the storm at its end.
        let _ = self.0.send(Event::now(what));
    }
}
