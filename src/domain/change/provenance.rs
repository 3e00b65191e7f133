//! Where a backup was taken, and whether a restore would write to the same server.

use std::fmt;
use std::time::{Duration, SystemTime};

use serde::{Deserialize, Serialize};

/// The hexadecimal digits of a run id.
const RUN_ID_DIGITS: usize = 40;

/// An uptime must exceed the age of a backup by this much. A server computes its uptime from two
/// times in whole seconds, so it may report almost a second too much.
const MARGIN: Duration = Duration::from_secs(1);

/// The server and database from which Redis keys were taken.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Provenance {
    pub(crate) address: String,
    pub(crate) db: i64,
    /// The service whose master the server was, if Sentinels named it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) service: Option<Service>,
    /// The ids of the cluster's nodes, masters and replicas; empty if the server is not in a
    /// cluster.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(crate) cluster: Vec<String>,
    /// The id that a server chooses when it starts; `None` if the Redis user may not ask for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) run_id: Option<String>,
    /// How long the server has been up, as it reports now; never stored.
    #[serde(skip)]
    pub(crate) uptime: Option<Uptime>,
    /// When the backup was taken, in RFC 3339; stored beside the place.
    #[serde(skip)]
    pub(crate) taken_at: Option<String>,
}

/// How long a server has been up, and the time by its own clock if the server reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Uptime {
    pub(crate) up_for: Duration,
    pub(crate) server_time: Option<SystemTime>,
}

impl Uptime {
    /// True if the server was surely up at `then`, by a clock that shows `now`.
    fn covers(self, then: SystemTime, now: SystemTime) -> bool {
        match now.duration_since(then) {
            Ok(age) => self.up_for > age.saturating_add(MARGIN),
            // A clock that is behind the backup shows nothing.
            Err(_) => false,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Service {
    /// The name, which is Sentinel's `master-name`.
    pub(crate) name: String,
    /// Host and port of each Sentinel that was given.
    pub(crate) sentinels: Vec<String>,
}

/// How two places compare.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Likeness {
    Same,
    /// The address is the same, but another server process answers there now. The server was
    /// restarted, a failover replaced it, or the address now leads to another server.
    OtherProcess,
    /// The places differ, or there is no evidence that they are the same.
    Elsewhere,
}

impl Provenance {
    /// Compares the place where a backup was taken with the current place.
    ///
    /// A restart gives a server a new run id, and a failover gives a service or a cluster a new
    /// master; the place stays the same in both cases. Many services are called `mymaster`, so a
    /// name counts only if a Sentinel matches as well.
    pub(crate) fn likeness(&self, now: &Self) -> Likeness {
        // The databases of one server hold different keys, so no id is compared then.
        if self.db != now.db {
            return Likeness::Elsewhere;
        }
        let same_server = self.is_same_server(now);
        if same_server == Some(true) || self.has_service_of(now) {
            return Likeness::Same;
        }
        // A cluster is known by its nodes alone.
        let has_nodes = !self.cluster.is_empty() || !now.cluster.is_empty();
        if self.address != now.address || has_nodes {
            return Likeness::Elsewhere;
        }
        // Without an answer, the address is the only evidence.
        if same_server == Some(false) { Likeness::OtherProcess } else { Likeness::Same }
    }

    /// True if both are one server process, or one cluster, whichever of its nodes answers. `None`
    /// if a server does not report its run id.
    pub(crate) fn is_same_server(&self, other: &Self) -> Option<bool> {
        if !self.cluster.is_empty() || !other.cluster.is_empty() {
            return Some(meet(&self.cluster, &other.cluster));
        }
        Some(self.run_id.as_ref()? == other.run_id.as_ref()?)
    }

    /// True if both places are masters of the same service of the same Sentinels.
    fn has_service_of(&self, now: &Self) -> bool {
        match (&self.service, &now.service) {
            (Some(then), Some(now)) => {
                then.name == now.name && meet(&then.sentinels, &now.sentinels)
            }
            _ => false,
        }
    }

    /// True if the current server (`now`) was already up when the backup was taken, so that it
    /// cannot be a restarted instance of the backup's server. The clocks of this machine and of the
    /// server may differ, so both must agree.
    pub(crate) fn was_taken_while_up(&self, now: &Self, time: SystemTime) -> bool {
        let Some(taken_at) = &self.taken_at else { return false };
        let Ok(taken_at) = humantime::parse_rfc3339(taken_at) else { return false };
        let Some(uptime) = now.uptime else { return false };
        if !uptime.covers(taken_at, time) {
            return false;
        }
        match uptime.server_time {
            Some(server_time) => uptime.covers(taken_at, server_time),
            None => true,
        }
    }
}

/// A run id as `INFO` reports it. `None` for the placeholder of a proxy or a managed service, which
/// does not distinguish servers.
fn run_id(reported: &str) -> Option<String> {
    let first = reported.bytes().next()?;
    let is_hex = reported.bytes().all(|byte| byte.is_ascii_hexdigit());
    // A placeholder may be 40 zeros.
    let varies = reported.bytes().any(|byte| byte != first);
    if reported.len() == RUN_ID_DIGITS && is_hex && varies {
        Some(reported.to_owned())
    } else {
        None
    }
}

fn meet(these: &[String], those: &[String]) -> bool {
    these.iter().any(|this| those.contains(this))
}

impl fmt::Display for Provenance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Service { name, sentinels }) = &self.service {
            write!(f, "{name} of the Sentinels {} at ", sentinels.join(","))?;
        }
        write!(f, "{}/{}", self.address, self.db)?;
        match (self.cluster.first(), &self.run_id) {
            (Some(id), _) => {
                write!(f, " (a cluster of {} nodes, {id} among them)", self.cluster.len())
            }
            (None, Some(id)) => write!(f, " (run id {id})"),
            (None, None) => write!(f, " (run id unknown)"),
        }
    }
}

/// What a server reports of its process; empty if the Redis user may not ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) run_id: Option<String>,
    pub(crate) uptime: Option<Uptime>,
}

/// The value of a field in the text of INFO.
fn field<'a>(info: &'a str, name: &str) -> Option<&'a str> {
    for line in info.lines() {
        if let Some(rest) = line.strip_prefix(name)
            && let Some(value) = rest.strip_prefix(':')
        {
            return Some(value);
        }
    }
    None
}

/// The value of a field in the text of INFO, if it is a number.
fn number(info: &str, name: &str) -> Option<u64> {
    field(info, name)?.trim().parse().ok()
}

impl Process {
    /// Reads the section `server` of INFO.
    pub(crate) fn of(info: &str) -> Self {
        let mut process = Self::default();
        if let Some(id) = field(info, "run_id") {
            process.run_id = run_id(id);
        }
        if let Some(seconds) = number(info, "uptime_in_seconds") {
            // Redis reports it since version 7.
            let server_time = match number(info, "server_time_usec") {
                Some(micros) => SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros)),
                None => None,
            };
            process.uptime = Some(Uptime { up_for: Duration::from_secs(seconds), server_time });
        }
        process
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::change::provenance::Likeness::{Elsewhere, OtherProcess, Same};

    fn server(address: &str, run_id: &str) -> Provenance {
        let run_id = (!run_id.is_empty()).then(|| run_id.to_owned());
        Provenance {
            address: address.to_owned(),
            db: 0,
            service: None,
            cluster: Vec::new(),
            run_id,
            uptime: None,
            taken_at: None,
        }
    }

    /// Rule: only a server that was surely up before the backup was taken is told from a restart.
    #[test]
    fn a_server_that_was_up_before_is_no_restart() {
        let time = |seconds| SystemTime::UNIX_EPOCH + Duration::from_secs(seconds);
        let then =
            Provenance { taken_at: Some("1970-01-01T00:16:40Z".to_owned()), ..server("a:1", "x") };
        let was_up = |up_for, server_time: Option<u64>| {
            let uptime =
                Uptime { up_for: Duration::from_secs(up_for), server_time: server_time.map(time) };
            then.was_taken_while_up(
                &Provenance { uptime: Some(uptime), ..server("a:1", "y") },
                time(1_100),
            )
        };
        assert!(was_up(102, None) && was_up(102, Some(1_100)) && was_up(9_000, Some(1_090)));
        assert!(!was_up(101, None) && !was_up(99, Some(1_100)), "a restart since");
        assert!(!was_up(9_000, Some(20_000)) && !was_up(9_000, Some(900)), "clocks that disagree");
        assert!(!then.was_taken_while_up(&server("a:1", "y"), time(1_100)), "who may not ask");
        let unknown = Provenance { taken_at: None, ..then.clone() };
        let uptime = Some(Uptime { up_for: Duration::from_secs(9_000), server_time: None });
        assert!(!unknown.was_taken_while_up(&Provenance { uptime, ..then.clone() }, time(1_100)));
    }

    fn service(name: &str, sentinels: &[&str], of: Provenance) -> Provenance {
        let sentinels = sentinels.iter().map(ToString::to_string).collect();
        Provenance { service: Some(Service { name: name.to_owned(), sentinels }), ..of }
    }

    fn cluster(ids: &[&str], of: Provenance) -> Provenance {
        Provenance { cluster: ids.iter().map(ToString::to_string).collect(), ..of }
    }

    #[track_caller]
    fn are(then: &Provenance, now: &Provenance, expected: Likeness) {
        assert_eq!(
            (then.likeness(now), now.likeness(then)),
            (expected, expected),
            "{then} and {now}"
        );
    }

    #[test]
    fn one_address_is_one_place_and_another_process_there_is_said() {
        are(&server("a:1", "x"), &server("a:1", "x"), Same);
        are(&server("a:1", "x"), &server("a:1", "y"), OtherProcess);
        are(&server("a:1", ""), &server("a:1", "y"), Same);
        are(&server("a:1", ""), &server("b:1", ""), Elsewhere);
        are(&server("a:1", "x"), &server("b:1", ""), Elsewhere);
        are(&server("a:1", "x"), &server("b:1", "y"), Elsewhere);
    }

    #[test]
    fn a_run_id_tells_one_server_behind_two_addresses_and_a_database_of_it_from_another() {
        are(&server("a:1", "x"), &server("/run/redis.sock", "x"), Same);
        are(&server("a:1", "x"), &Provenance { db: 1, ..server("a:1", "x") }, Elsewhere);
    }

    #[test]
    fn a_failover_of_a_service_is_no_other_place_and_another_service_of_that_name_is() {
        let then = service("mymaster", &["s:1", "s:2"], server("a:1", "x"));
        are(&then, &service("mymaster", &["s:2"], server("b:1", "y")), Same);
        are(&then, &service("mymaster", &["t:1"], server("b:1", "y")), Elsewhere);
        are(&then, &service("orders", &["s:1"], server("b:1", "y")), Elsewhere);
        are(&then, &server("a:1", "x"), Same);
        are(&then, &server("b:1", "y"), Elsewhere);
    }

    #[test]
    fn a_cluster_is_known_by_its_nodes_wherever_they_are_now() {
        let then = cluster(&["n1", "n2"], server("a:1", ""));
        are(&then, &cluster(&["n2", "n3"], server("b:1", "")), Same);
        are(&then, &cluster(&["n4"], server("a:1", "")), Elsewhere);
    }

    #[test]
    fn what_stands_for_a_run_id_is_none() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(run_id(id).as_deref(), Some(id));
        for other in ["", "0", &"0".repeat(40), &id[1..], &id.replace('f', "g")] {
            assert_eq!(run_id(other), None, "{other}");
        }
    }

    #[test]
    fn run_id_and_uptime_stand_on_lines_of_their_own() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let info = format!(
            "# Server\r\nrun_id:{id}\r\nserver_time_usec:2000000\r\nuptime_in_seconds:7\r\n"
        );
        let server_time = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(2));
        let uptime = Some(Uptime { up_for: Duration::from_secs(7), server_time });
        assert_eq!(Process::of(&info), Process { run_id: Some(id.to_owned()), uptime });
        assert_eq!(
            Process::of("# Server\r\nrun_id:0\r\nuptime_in_seconds:x\r\n"),
            Process::default()
        );
        assert_eq!(Process::of(""), Process::default());
    }
}
