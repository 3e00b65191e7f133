//! A cluster of three masters beside one server with the same records, on the same machine.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use crate::goal::Goal;
use crate::measure::{self, Run};
use crate::resp::{Connection, pack};
use crate::server::{self, Lives, Server};
use crate::{Setup, words};

/// Masters of the cluster.
const MASTERS: usize = 3;

/// Slots of a cluster.
const SLOTS: usize = 16_384;

/// How far from its port a node has its bus.
const BUS: u16 = 10_000;

/// What is run: its name, the words behind the server, how many times as long the cluster may take, and whether records
/// are there no more afterwards.
const COMMANDS: [(&str, &[&str], f64, bool); 3] = [
    ("list -o jsonl", &["list", "-o", "jsonl"], 1.0, false),
    ("sweep --orphaned --dry-run", &["sweep", "--orphaned", "--dry-run"], 1.0, false),
    (
        "purge --no-backup",
        &[
            "purge",
            "--schema",
            "go-middleware",
            "--state",
            "completed,in-progress",
            "--yes",
            "--no-backup",
        ],
        1.5,
        true,
    ),
];

/// Runs everything on both in turn, and prints a table.
pub fn beside_one_server(setup: &Setup) -> io::Result<Vec<Goal>> {
    let one = [alone(setup)?];
    let cluster = start(setup)?;
    println!(
        "\n{:<36} {:>12} {:>12} {:>9}",
        "A cluster of three masters", "one server s", "cluster s", "x"
    );
    let mut goals = Vec::new();
    for (name, command, limit, removes) in COMMANDS {
        let (mut on_one, mut on_all) = (Vec::new(), Vec::new());
        for round in 0..setup.rounds {
            for (servers, runs) in [(&one[..], &mut on_one), (&cluster, &mut on_all)] {
                if round == 0 || removes {
                    seed(servers, setup.records)?;
                }
                runs.push(run(setup, servers, command)?);
            }
        }
        let seconds = |runs: &[Run]| measure::median(runs).wall.as_secs_f64();
        let ratio = measure::ratio(&on_all, &on_one);
        println!(
            "idemctl {name:<28} {:>12.3} {:>12.3} {ratio:>9.2}",
            seconds(&on_one),
            seconds(&on_all)
        );
        goals.push(Goal::ratio(format!("{name}, three masters: one server"), limit, ratio));
    }
    Ok(goals)
}

fn run(setup: &Setup, servers: &[(Server, u16)], command: &[&str]) -> io::Result<Run> {
    let mut all = words(&[&setup.idemctl, "-p", &servers[0].1.to_string()]);
    all.extend(words(command));
    measure::program(&all, &servers[0].0.socket())
}

fn seed(servers: &[(Server, u16)], records: usize) -> io::Result<()> {
    servers
        .iter()
        .try_for_each(|(server, _)| server::seed(&server.socket(), records, Lives::Minutes))
}

/// A server with a port.
pub fn alone(setup: &Setup) -> io::Result<(Server, u16)> {
    let port = free_port()?;
    Ok((Server::start(&setup.server, port, &[])?, port))
}

/// A cluster.
pub fn start(setup: &Setup) -> io::Result<Vec<(Server, u16)>> {
    let mut nodes = Vec::new();
    for index in 0..MASTERS {
        let port = free_port()?;
        let options = ["--cluster-enabled", "yes", "--cluster-config-file", "nodes.conf"];
        nodes.push((Server::start(&setup.server, port, &options)?, port));
        let first = nodes[0].1.to_string();
        let mut connection = Connection::open(&nodes[index].0.socket())?;
        let slots: Vec<_> = (index * SLOTS / MASTERS..(index + 1) * SLOTS / MASTERS)
            .map(|slot| slot.to_string())
            .collect();
        tell(
            &mut connection,
            &[&["CLUSTER", "ADDSLOTS"], &*slots.iter().map(String::as_str).collect::<Vec<_>>()]
                .concat(),
        )?;
        tell(&mut connection, &["CLUSTER", "SET-CONFIG-EPOCH", &(index + 1).to_string()])?;
        tell(&mut connection, &["CLUSTER", "MEET", "127.0.0.1", &first])?;
    }
    for (node, _) in &nodes {
        wait_until_whole(&mut Connection::open(&node.socket())?)?;
    }
    Ok(nodes)
}

fn wait_until_whole(connection: &mut Connection) -> io::Result<()> {
    for _ in 0..400 {
        let info = tell(connection, &["CLUSTER", "INFO"])?;
        if info.contains("cluster_state:ok")
            && info.contains(&format!("cluster_known_nodes:{MASTERS}"))
        {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    Err(io::Error::other("the cluster does not come up"))
}

fn tell(connection: &mut Connection, command: &[&str]) -> io::Result<String> {
    let mut out = Vec::new();
    pack(&mut out, &command.iter().map(|word| word.as_bytes()).collect::<Vec<_>>());
    connection.send(&out)?;
    connection.text()
}

/// A port whose bus is free too.
fn free_port() -> io::Result<u16> {
    loop {
        let port = TcpListener::bind(("127.0.0.1", 0))?.local_addr()?.port();
        if port.checked_add(BUS).is_some_and(|bus| TcpListener::bind(("127.0.0.1", bus)).is_ok()) {
            return Ok(port);
        }
    }
}
