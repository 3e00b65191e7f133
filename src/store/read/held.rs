//! How much a server holds, whatever of it can be read.

use super::reader::Reader;
use crate::store::cluster::client::connect;
use crate::store::connection::reply;
use crate::store::error::StoreError;

impl Reader {
    /// The Redis keys that all masters hold together, by DBSIZE.
    pub async fn keys_held(&self) -> Result<u64, StoreError> {
        let mut held = 0;
        for master in self.link().masters().await? {
            let link = connect(&master).await?;
            let size = link.ask(&redis::cmd("DBSIZE")).await?;
            held += reply::integer(&size)
                .and_then(|size| u64::try_from(size).ok())
                .ok_or_else(|| link.unexpected("DBSIZE"))?;
        }
        Ok(held)
    }
}
