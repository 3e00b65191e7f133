//! Where a client leads, as a backup tells it and a restore compares it.

use std::time::{Duration, SystemTime};

use crate::domain::change::provenance::{Provenance, Service, Uptime, run_id};
use crate::store::change::Writer;
use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl Client {
    /// The place of now. A cluster is known by its nodes; another server is asked for its run id, once.
    ///
    /// # Errors
    /// As every read; that nobody may ask for the run id is none.
    pub async fn provenance(&self) -> Result<Provenance, StoreError> {
        self.masters().await?;
        let target = self.target();
        let cluster: Vec<_> = self.slot_map().iter().flat_map(|map| map.ids()).map(str::to_owned).collect();
        let service = target.sentinels.as_ref().map(|sentinels| Service {
            name: sentinels.service.clone(),
            sentinels: sentinels.addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect(),
        });
        let process = if cluster.is_empty() { self.process().await? } else { Process::default() };
        let Process { run_id, uptime } = process;
        let address = target.address.to_string();
        Ok(Provenance { address, db: target.db, service, cluster, run_id, uptime, taken_at: None })
    }

    async fn process(&self) -> Result<Process, StoreError> {
        let asked = self.process.get_or_try_init(|| async {
            match self.ask(redis::cmd("INFO").arg("server")).await {
                Ok(info) => Ok(reply::word(info).as_deref().map(Process::of).unwrap_or_default()),
                Err(error) if error.lost_the_reply() => Err(error),
                // The user may not ask, or the server does not tell: unless whatever is asked is refused.
                Err(_) => self.ask(&redis::cmd("TIME")).await.map(|_| Process::default()),
            }
        });
        asked.await.cloned()
    }
}

impl Writer {
    /// The place where changes are made now.
    pub async fn provenance(&self) -> Result<Provenance, StoreError> {
        self.client().provenance().await
    }
}

/// What a server tells of its process; nothing where nobody may ask.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(in crate::store) struct Process {
    run_id: Option<String>,
    uptime: Option<Uptime>,
}

impl Process {
    fn of(info: &str) -> Self {
        let told = |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        let number = |name: &str| told(name)?.trim().parse::<u64>().ok();
        // Since Redis 7.
        let server_time = number("server_time_usec")
            .and_then(|micros| SystemTime::UNIX_EPOCH.checked_add(Duration::from_micros(micros)));
        let up_for = number("uptime_in_seconds").map(Duration::from_secs);
        let uptime = up_for.map(|up_for| Uptime { up_for, server_time });
        Self { run_id: told("run_id").and_then(run_id), uptime }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn run_id_and_uptime_stand_on_lines_of_their_own() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        let info = format!("# Server\r\nrun_id:{id}\r\nserver_time_usec:2000000\r\nuptime_in_seconds:7\r\n");
        let server_time = Some(SystemTime::UNIX_EPOCH + Duration::from_secs(2));
        let uptime = Some(Uptime { up_for: Duration::from_secs(7), server_time });
        assert_eq!(Process::of(&info), Process { run_id: Some(id.to_owned()), uptime });
        assert_eq!(Process::of("# Server\r\nrun_id:0\r\nuptime_in_seconds:x\r\n"), Process::default());
        assert_eq!(Process::of(""), Process::default());
    }
}
