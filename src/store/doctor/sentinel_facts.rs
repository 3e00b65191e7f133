//! The replies of a service's Sentinels.

use std::collections::BTreeMap;

use redis::Value;

use super::refused::{is_fatal, not_understood, refused};
use crate::domain::doctor::{FactResult, SentinelFacts};
use crate::store::connection::sentinels::Sentinels;
use crate::store::connection::{Address, Connection, Target, pack, reply};
use crate::store::error::StoreError;

/// Asks one Sentinel about the service.
pub(super) async fn read_sentinel(sentinel: Target, sentinels: &Sentinels) -> SentinelFacts {
    let name = match &sentinel.address {
        Address::Tcp(host, port) => format!("Sentinel {host}:{port}"),
        _ => format!("Sentinel {sentinel}"),
    };
    let mut connection = Connection::dial(&sentinel).await;
    let master = ask(&mut connection, "MASTER", &sentinels.service).await;
    let quorum = ask(&mut connection, "CKQUORUM", &sentinels.service).await;
    SentinelFacts { name, master: master_fields(master), quorum: quorum_reply(quorum) }
}

/// Asks a question. A Sentinel that does not answer one is not asked the next, so that the run waits
/// for it once.
async fn ask(
    connection: &mut Result<Connection, StoreError>,
    question: &str,
    service: &str,
) -> Result<Value, StoreError> {
    let open = connection.as_mut().map_err(|error| error.clone())?;
    let reply = open.call_ok(&pack(["SENTINEL", question, service])).await;
    if let Err(error) = &reply
        && is_fatal(error)
    {
        *connection = Err(error.clone());
    }
    reply
}

fn master_fields(reply: Result<Value, StoreError>) -> FactResult<BTreeMap<String, String>> {
    let command = "SENTINEL MASTER";
    let reply = reply.map_err(|error| refused(command, "+sentinel|master", &error))?;
    let words = reply::array(reply).ok_or_else(|| not_understood(command))?;
    let mut fields = BTreeMap::new();
    let mut words = words.into_iter();
    while let (Some(name), Some(value)) = (words.next(), words.next()) {
        if let (Some(name), Some(value)) = (reply::word(name), reply::word(value)) {
            fields.insert(name, value);
        }
    }
    Ok(fields)
}

/// The inner error is the Sentinel's reason why there is no quorum or no majority.
fn quorum_reply(reply: Result<Value, StoreError>) -> FactResult<Result<String, String>> {
    let command = "SENTINEL CKQUORUM";
    match reply {
        Ok(reply) => match reply::word(reply) {
            Some(words) => Ok(Ok(words)),
            None => Err(not_understood(command)),
        },
        Err(StoreError::ErrorReply { code, why, .. }) if code == "NOQUORUM" => Ok(Err(why)),
        Err(error) => Err(refused(command, "+sentinel|ckquorum", &error)),
    }
}
