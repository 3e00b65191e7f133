//! How many Redis keys a server holds, whether they can be read or not.

use super::gaps::Gaps;
use super::reader::RecordReader;
use crate::store::cluster::client::connect;
use crate::store::connection::reply;
use crate::store::connection::target::Target;
use crate::store::error::StoreError;

impl RecordReader {
    /// The Redis keys that all masters hold together, by DBSIZE.
    ///
    /// # Errors
    /// The errors of any read; slots of a cluster that no node serves.
    pub async fn keys_on_server(&self) -> Result<u64, StoreError> {
        let mut held = 0;
        let (masters, _, gaps) = Gaps::open(self.client()).await?;
        // A sum without the keys of these slots would be too small.
        if let Some(unserved) = gaps.error() {
            return Err(unserved);
        }
        for master in masters {
            let client = connect(&master).await?;
            let size = client.ask(&redis::cmd("DBSIZE")).await?;
            let Some(size) = reply::integer(&size) else {
                return Err(client.unexpected("DBSIZE"));
            };
            held += u64::try_from(size).map_err(|_| client.unexpected("DBSIZE"))?;
        }
        Ok(held)
    }

    /// Readers of all databases of the server that hold Redis keys, by number. If none does, only
    /// the current one.
    ///
    /// # Errors
    /// The server does not say which databases there are, or one of them cannot be reached.
    pub async fn of_all_databases(&self) -> Result<Vec<(i64, Self)>, StoreError> {
        let own = self.client().target();
        let info = self.client().ask(redis::cmd("INFO").arg("keyspace")).await?;
        let text = reply::bytes(info).ok_or_else(|| self.client().unexpected("INFO"))?;
        let mut numbers = Vec::new();
        for line in String::from_utf8_lossy(&text).lines() {
            if let Some(database) = database(line) {
                numbers.push(database.number);
            }
        }
        if numbers.is_empty() {
            numbers.push(own.db);
        }
        let mut readers = Vec::new();
        for db in numbers {
            let client = connect(&Target { db, ..own.clone() }).await?;
            readers.push((db, client.reader().scanning(self.scan_options())));
        }
        Ok(readers)
    }

    /// The other databases of the server that hold Redis keys, and how many each; empty if the
    /// server does not report it.
    pub async fn keys_elsewhere(&self) -> Vec<(i64, u64)> {
        let own = self.client().target().db;
        let mut others = Vec::new();
        let info = self.client().ask(redis::cmd("INFO").arg("keyspace")).await;
        let Ok(info) = info else { return others };
        let Some(text) = reply::bytes(info) else { return others };
        for line in String::from_utf8_lossy(&text).lines() {
            if let Some(Database { number, keys, .. }) = database(line)
                && number != own
                && keys > 0
            {
                others.push((number, keys));
            }
        }
        others
    }

    /// How many Redis keys of this database never expire, on all masters together; `None` if a
    /// server does not report it.
    pub async fn keys_without_expiry(&self) -> Option<u64> {
        let own = self.client().target().db;
        let (masters, _, gaps) = Gaps::open(self.client()).await.ok()?;
        if gaps.error().is_some() {
            return None;
        }
        let mut endless = 0;
        for master in masters {
            let client = connect(&master).await.ok()?;
            let info = client.ask(redis::cmd("INFO").arg("keyspace")).await.ok()?;
            let text = reply::bytes(info)?;
            // A server does not list a database without keys.
            for line in String::from_utf8_lossy(&text).lines() {
                if let Some(Database { number, keys, expires }) = database(line)
                    && number == own
                {
                    endless += keys.saturating_sub(expires);
                }
            }
        }
        Some(endless)
    }
}

/// A database as INFO keyspace reports it.
#[derive(Debug, PartialEq, Eq)]
struct Database {
    number: i64,
    keys: u64,
    /// How many of the keys expire.
    expires: u64,
}

/// A line of INFO keyspace, such as `db3:keys=4102,expires=0,avg_ttl=0`.
fn database(line: &str) -> Option<Database> {
    let (number, counts) = line.strip_prefix("db")?.split_once(":keys=")?;
    let (keys, expires) = counts.split_once(",expires=")?;
    let expires = expires.split(',').next()?;
    Some(Database {
        number: number.parse().ok()?,
        keys: keys.parse().ok()?,
        expires: expires.parse().ok()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_database_is_a_number_and_its_keys() {
        let third = Database { number: 3, keys: 4_102, expires: 7 };
        assert_eq!(database("db3:keys=4102,expires=7,avg_ttl=0"), Some(third));
        assert_eq!(database("# Keyspace"), None);
        assert_eq!(database("db3:keys=many"), None);
    }
}
