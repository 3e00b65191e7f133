//! The command streams of the nodes, as MONITOR tells them: every command, in order, with who sent it.
//!
//! Of each node one thread hears who speaks, and does no more, so that a new client is asked for while it is still there;
//! another makes out what was said.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{Receiver, Sender as To, channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::callers::Callers;
use crate::command::{Line, Sender, Who};
use crate::event::{Event, What};
use crate::stage::{self, Stage};
use crate::support::Server;

/// How often every node is made to say something.
const TICK: Duration = Duration::from_millis(40);

const TICKS: &[u8] = b"tick";
const OVER: &[u8] = b"over";

/// The streams of all nodes, as long as it lives.
pub struct Monitors {
    over: Arc<AtomicBool>,
    ticker: JoinHandle<()>,
    followers: Vec<JoinHandle<()>>,
}

impl Monitors {
    /// Follows every node.
    pub fn start(stage: &Arc<Stage>, events: &To<Event>) -> Self {
        let followers = (0..stage.nodes())
            .flat_map(|node| follow(stage.node(node), node, events.clone()))
            .collect();
        let over = Arc::new(AtomicBool::new(false));
        let ticker = thread::spawn({
            let (stage, over) = (Arc::clone(stage), Arc::clone(&over));
            move || tick(&stage, &over)
        });
        Self { over, ticker, followers }
    }

    /// Ends the streams behind what the nodes have executed so far.
    pub fn end(self) {
        self.over.store(true, Ordering::Relaxed);
        self.ticker.join().unwrap();
        self.followers.into_iter().for_each(|follower| follower.join().unwrap());
    }
}

/// A node that has nothing to do would tell nobody how far the time is.
fn tick(stage: &Stage, over: &AtomicBool) {
    let mut nodes: Vec<_> = (0..stage.nodes()).map(|node| stage.node(node).connect()).collect();
    let mut last = false;
    while !last {
        last = over.load(Ordering::Relaxed);
        for (node, connection) in nodes.iter_mut().enumerate() {
            let word = if last { OVER } else { TICKS };
            while redis::cmd("ECHO").arg(word).exec(connection).is_err() {
                if let Ok(anew) = stage::by_socket(&stage.node(node).socket()) {
                    *connection = anew;
                }
            }
        }
        thread::sleep(TICK);
    }
}

/// Follows a node until it is told that the storm is over.
fn follow(server: &Server, node: usize, events: To<Event>) -> [JoinHandle<()>; 2] {
    let socket = server.socket();
    let mut lines = attach(&socket).unwrap();
    let (heard, hearing) = channel();
    let mut ear =
        Ear { callers: Callers::of(server), script_of: Who::UnclaimedKey, last: 0, heard };
    let ear = thread::spawn(move || {
        // Sentinel ends the connections of whom it gives another role. Nobody writes there in that moment.
        while ear.hear(lines) {
            lines = until_attached(&socket);
            ear.heard.send(Heard::BrokenOff).unwrap();
        }
    });
    [ear, thread::spawn(move || make_out(node, &hearing, &events))]
}

type Lines = BufReader<UnixStream>;

fn attach(socket: &Path) -> std::io::Result<Lines> {
    let mut stream = UnixStream::connect(socket)?;
    stream.write_all(b"MONITOR\r\n")?;
    let mut lines = BufReader::with_capacity(1 << 20, stream);
    lines.read_until(b'\n', &mut Vec::new())?;
    Ok(lines)
}

fn until_attached(socket: &Path) -> Lines {
    loop {
        match attach(socket) {
            Ok(lines) => return lines,
            Err(_) => thread::sleep(Duration::from_millis(1)),
        }
    }
}

/// What was heard of a node.
enum Heard {
    Line { at: u64, who: Who, line: Vec<u8> },
    BrokenOff,
    Over,
}

/// Who hears a node.
struct Ear {
    callers: Callers,
    /// Who sent the script whose commands come.
    script_of: Who,
    last: u64,
    heard: To<Heard>,
}

impl Ear {
    /// Passes on what comes; true when it broke off, false when the storm is over.
    fn hear(&mut self, mut lines: Lines) -> bool {
        loop {
            let mut line = Vec::new();
            if !lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                return true;
            }
            let Some(said) = Line::parse(&line) else { continue };
            // In the node's own order, whatever its clock does.
            self.last = said.at.max(self.last);
            let who = match said.sender {
                Sender::Script => self.script_of,
                Sender::Client(address) => self.callers.who(address, &said),
            };
            if said.is_script() {
                self.script_of = who;
            }
            let is_over = said.is("ECHO") && said.ends_with(OVER) && who == Who::UnclaimedKey;
            self.heard.send(Heard::Line { at: self.last, who, line }).unwrap();
            if is_over {
                self.heard.send(Heard::Over).unwrap();
                return false;
            }
        }
    }
}

fn make_out(node: usize, hearing: &Receiver<Heard>, events: &To<Event>) {
    let mut last = 0;
    for heard in hearing {
        let what = match heard {
            Heard::Line { at, who, line } => {
                last = at;
                let Some(command) = Line::parse(&line).and_then(|line| line.command()) else {
                    continue;
                };
                What::Command { node, who, command }
            }
            Heard::BrokenOff => {
                let _ = events.send(Event::now(What::Missed { node }));
                continue;
            }
            Heard::Over => What::Silent { node },
        };
        // An oracle that failed fails the storm at its end.
        let _ = events.send(Event { at: last, what });
    }
}
