//! The place to which a client is connected. A backup stores it, and a restore compares it.

use crate::domain::change::provenance::{Process, Provenance, Service};
use crate::store::change::Writer;
use crate::store::cluster::client::Client;
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl Client {
    /// The current place. A cluster is identified by its nodes. Any other server is asked once for
    /// its run id.
    ///
    /// # Errors
    /// The errors of any read. A missing right to ask for the run id is not an error.
    pub async fn provenance(&self) -> Result<Provenance, StoreError> {
        self.masters().await?;
        let target = self.target();
        let mut cluster = Vec::new();
        if let Some(map) = self.slot_map() {
            cluster.extend(map.ids().map(str::to_owned));
        }
        let mut service = None;
        if let Some(sentinels) = &target.sentinels {
            let mut addresses = Vec::with_capacity(sentinels.addresses.len());
            for (host, port) in &sentinels.addresses {
                addresses.push(format!("{host}:{port}"));
            }
            service = Some(Service { name: sentinels.service.clone(), sentinels: addresses });
        }
        // The run id would be that of only one node of a cluster.
        let process = if cluster.is_empty() { self.process().await? } else { Process::default() };
        let Process { run_id, uptime } = process;
        let address = target.address.to_string();
        Ok(Provenance { address, db: target.db, service, cluster, run_id, uptime, taken_at: None })
    }

    async fn process(&self) -> Result<Process, StoreError> {
        self.process.get_or_try_init(|| self.ask_for_process()).await.cloned()
    }

    async fn ask_for_process(&self) -> Result<Process, StoreError> {
        match self.ask(redis::cmd("INFO").arg("server")).await {
            Ok(info) => match reply::word(info) {
                Some(info) => Ok(Process::of(&info)),
                None => Ok(Process::default()),
            },
            Err(error) if error.lost_the_reply() => Err(error),
            // The Redis user may not ask, or the server does not report it. TIME shows whether the
            // server refuses everything.
            Err(_) => {
                self.ask(&redis::cmd("TIME")).await?;
                Ok(Process::default())
            }
        }
    }
}

impl Writer {
    /// The place where changes are made now.
    pub async fn provenance(&self) -> Result<Provenance, StoreError> {
        self.client().provenance().await
    }
}
