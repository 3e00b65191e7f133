//! The command streams of the nodes, as MONITOR tells them: every command, in order, with who sent it.
//!
//! A storm's clients log in as users of their own, so that CLIENT LIST tells whose an address is. It is asked as soon as an
//! address is new, while the client is still there.

use std::collections::HashMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender as Events;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use redis::Connection;

use crate::command::{Command, Line, Sender, Who};
use crate::event::{Event, What};
use crate::stage::Stage;
use crate::support::Server;

/// The users of workers and of idemctl, each with a number behind.
pub const WORKER: &str = "worker-";
pub const OPERATOR: &str = "operator-";

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
    pub fn start(stage: &Arc<Stage>, events: &Events<Event>) -> Self {
        let followers = (0..stage.nodes()).map(|node| follow(stage.node(node), node, events.clone())).collect();
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
            // A node that changes its role ends its clients' connections.
            while redis::cmd("ECHO").arg(word).exec(connection).is_err() {
                *connection = stage.node(node).connect();
            }
        }
        thread::sleep(TICK);
    }
}

/// Follows a node until it is told that the storm is over.
fn follow(server: &Server, node: usize, events: Events<Event>) -> JoinHandle<()> {
    let lines = attach(&server.socket()).unwrap();
    let callers = Callers { node: server.connect(), socket: server.socket(), known: HashMap::new() };
    let mut follower = Follower { node, callers, script_of: Who::Stranger, last: 0, events };
    thread::spawn(move || {
        let mut lines = Some(lines);
        while let Some(broken_off) = lines.take().map(|lines| follower.hear(lines)) {
            if broken_off {
                // Sentinel ends the connections of whom it gives another role. Nobody writes there in that moment.
                lines = Some(until_attached(&follower.callers.socket));
                follower.events.send(Event::now(What::Missed { node })).unwrap();
            }
        }
    })
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

/// Who follows a node.
struct Follower {
    node: usize,
    callers: Callers,
    /// Who sent the script whose commands come.
    script_of: Who,
    last: u64,
    events: Events<Event>,
}

impl Follower {
    /// Tells what comes; true when it broke off, false when the storm is over.
    fn hear(&mut self, mut lines: Lines) -> bool {
        let mut line = Vec::new();
        loop {
            line.clear();
            if !lines.read_until(b'\n', &mut line).is_ok_and(|read| read > 0) {
                return true;
            }
            let Some(what) = Line::parse(&line).and_then(|line| self.what(&line)) else { continue };
            let is_over = matches!(what, What::Silent { .. });
            self.events.send(Event { at: self.last, what }).unwrap();
            if is_over {
                return false;
            }
        }
    }

    fn what(&mut self, line: &Line<'_>) -> Option<What> {
        // In the node's own order, whatever its clock does.
        self.last = line.at.max(self.last);
        let who = match line.sender {
            Sender::Script => self.script_of,
            Sender::Client(address) => self.callers.who(address, line),
        };
        let (node, command) = (self.node, line.command()?);
        if command == Command::Script {
            self.script_of = who;
        }
        let is_over = command == Command::Echo(OVER.to_vec()) && who == Who::Stranger;
        Some(if is_over { What::Silent { node } } else { What::Command { node, who, command } })
    }
}

/// Whose the addresses are.
struct Callers {
    node: Connection,
    socket: PathBuf,
    known: HashMap<String, Who>,
}

impl Callers {
    fn who(&mut self, address: &str, line: &Line<'_>) -> Who {
        if address.starts_with("unix:") {
            return Who::Stranger;
        }
        // An address may be another client's by now, which logs in first.
        if line.is("AUTH") || line.is("HELLO") {
            self.known.remove(address);
            return Who::Stranger;
        }
        if let Some(who) = self.known.get(address) {
            return *who;
        }
        self.ask();
        *self.known.entry(address.to_owned()).or_insert(Who::Stranger)
    }

    fn ask(&mut self) {
        let list = || redis::cmd("CLIENT").arg("LIST").clone();
        let list: String = match list().query(&mut self.node) {
            Ok(list) => list,
            Err(_) => {
                let url = format!("unix://{}", self.socket.display());
                self.node = redis::Client::open(url).unwrap().get_connection().unwrap();
                list().query(&mut self.node).unwrap()
            }
        };
        for client in list.lines() {
            let field = |name: &str| client.split(' ').find_map(|field| field.strip_prefix(name)).unwrap_or_default();
            let number = |user: &str| field("user=").strip_prefix(user)?.parse().ok();
            let who = match (number(WORKER), number(OPERATOR)) {
                (Some(worker), _) => Who::Worker(worker),
                (_, Some(operator)) => Who::Operator(operator),
                _ if field("flags=").contains('M') => Who::Master,
                _ => Who::Stranger,
            };
            // Who has not logged in yet is nobody yet.
            if who != Who::Stranger {
                self.known.insert(field("addr=").to_owned(), who);
            }
        }
    }
}
