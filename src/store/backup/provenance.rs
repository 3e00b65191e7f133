//! Where a client leads, as a backup tells it and a restore compares it.

use crate::domain::change::provenance::{Process, Provenance, Service};
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
        let cluster: Vec<_> =
            self.slot_map().iter().flat_map(|map| map.ids()).map(str::to_owned).collect();
        let service = target.sentinels.as_ref().map(|sentinels| Service {
            name: sentinels.service.clone(),
            sentinels: sentinels
                .addresses
                .iter()
                .map(|(host, port)| format!("{host}:{port}"))
                .collect(),
        });
        let process = if cluster.is_empty() { self.process().await? } else { Process::default() };
        let Process { run_id, uptime } = process;
        let address = target.address.to_string();
        Ok(Provenance { address, db: target.db, service, cluster, run_id, uptime, taken_at: None })
    }

    /// The id of this run of the server; `None` where nobody may ask for it, and of a cluster.
    ///
    /// # Errors
    /// As every read.
    pub async fn run_id(&self) -> Result<Option<String>, StoreError> {
        self.masters().await?;
        if self.is_cluster() { Ok(None) } else { Ok(self.process().await?.run_id) }
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
