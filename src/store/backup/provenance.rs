//! Where a client leads, as a backup tells it and a restore compares it.

use crate::domain::change::provenance::{Provenance, Service, run_id};
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
        let run_id = if cluster.is_empty() { self.run_id().await? } else { None };
        Ok(Provenance { address: target.address.to_string(), db: target.db, service, cluster, run_id })
    }

    async fn run_id(&self) -> Result<Option<String>, StoreError> {
        let asked = self.run_id.get_or_try_init(|| async {
            match self.ask(redis::cmd("INFO").arg("server")).await {
                Ok(info) => Ok(reply::word(info).as_deref().and_then(told)),
                Err(error) if error.lost_the_reply() => Err(error),
                // The user may not ask, or the server does not tell: unless whatever is asked is refused.
                Err(_) => self.ask(&redis::cmd("TIME")).await.map(|_| None),
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

fn told(info: &str) -> Option<String> {
    info.lines().find_map(|line| line.strip_prefix("run_id:")).and_then(run_id)
}

#[cfg(test)]
mod tests {
    use super::told;

    #[test]
    fn the_run_id_stands_on_a_line_of_its_own() {
        let id = "0123456789abcdef0123456789abcdef01234567";
        assert_eq!(
            told(&format!("# Server\r\nredis_version:7.0.15\r\nrun_id:{id}\r\ntcp_port:0\r\n")).as_deref(),
            Some(id)
        );
        assert_eq!(told("# Server\r\nrun_id:0\r\n"), None);
        assert_eq!(told(""), None);
    }
}
