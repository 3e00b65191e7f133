//! Where the master of a service is: the Sentinels know.
//!
//! A Sentinel may be behind: what it names is believed when the server itself says that it is a master. After a failover
//! the old master goes on taking changes until it hears of it, and they are lost. So the Sentinels are asked again after
//! changes, and whoever they name then is looked at.

use std::fmt;
use std::time::Duration;

use super::client_options::Manners;
use super::connection::{Wire, pack};
use super::target::{Address, Target};
use crate::domain::step::reply::StepReply;
use crate::store::error::{Place, StoreError};

/// How often all Sentinels are asked: an election takes a moment.
const ROUNDS: usize = 10;

/// How long they are left alone in between.
const PAUSE: Duration = Duration::from_millis(300);

/// Where a service's Sentinels are, and what it is called there.
#[derive(Clone, PartialEq, Eq)]
pub struct Sentinels {
    /// Host and port of each, in the order they are asked.
    pub addresses: Vec<(String, u16)>,
    /// The service's name, Sentinel's `master-name`.
    pub service: String,
    /// The user at the Sentinels.
    pub user: Option<String>,
    /// The password at the Sentinels, which need not be the servers'.
    pub password: Option<String>,
}

impl Sentinels {
    /// Parses the part of `redis-sentinel://host:port,host:port/service` behind the scheme and the log-in.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let (hosts, service) = text.split_once('/').unwrap_or((text, ""));
        if service.is_empty() {
            return Err("the URL names no service: redis-sentinel://host:26379,host:26379/SERVICE".to_owned());
        }
        // The text is not repeated: a log-in whose `@` was forgotten is a part of it.
        let which = |(index, text)| {
            address(text).ok_or_else(|| format!("address {} is no Sentinel's: write host:26379", index + 1))
        };
        let addresses = hosts.split(',').enumerate().map(which).collect::<Result<_, _>>()?;
        Ok(Self { addresses, service: service.to_owned(), user: None, password: None })
    }

    /// The service's master: named by a Sentinel, and of the same mind.
    ///
    /// # Errors
    /// No Sentinel can be reached, none knows the service, or no master is to be had just now.
    pub(in crate::store) async fn master(&self, like: &Target) -> Result<Target, StoreError> {
        let mut last = self.unknown();
        for round in 0..ROUNDS {
            if round > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let mut passes = false;
            for (host, port) in &self.addresses {
                match self.ask(host, *port, like).await {
                    Ok(Some(master)) => return Ok(master),
                    // It does not know the service: time will not change that.
                    Ok(None) => last = self.unknown(),
                    Err(error) => {
                        passes |= is_passing(&error);
                        last = error;
                    }
                }
            }
            if !passes {
                break;
            }
        }
        Err(last)
    }

    /// Asks one Sentinel, and the server that it names; `None` when it does not know the service.
    async fn ask(&self, host: &str, port: u16, like: &Target) -> Result<Option<Target>, StoreError> {
        let (user, password) = (self.user.clone(), self.password.clone());
        let address = Address::Tcp(host.to_owned(), port);
        let sentinel = Target { address, db: 0, user, password, manners: Manners::default(), ..like.clone() };
        let mut wire = Wire::dial(&sentinel).await.map_err(of_sentinel)?;
        let named = wire.ask(&pack(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.service])).await;
        let named = named.map_err(of_sentinel)?;
        let StepReply::Array(parts) = named else { return Ok(None) };
        let [StepReply::Text(host), StepReply::Text(port)] = parts.as_slice() else { return Ok(None) };
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let port = text(port).parse().unwrap_or(0);
        let master = Target { address: Address::Tcp(text(host), port), ..like.clone() };
        let role = Wire::dial(&master).await?.ask(&pack(["ROLE"])).await;
        match role {
            Ok(StepReply::Array(parts)) if parts.first() == Some(&StepReply::Text(b"master".to_vec())) => {
                Ok(Some(master))
            }
            // Where ROLE is not permitted the Sentinel has to be believed.
            Ok(StepReply::Error { .. }) => Ok(Some(master)),
            Err(error) if error.is_permission() => Ok(Some(master)),
            Err(error) => Err(error),
            Ok(_) => Err(StoreError::Refused {
                target: master.to_string(),
                code: "READONLY".to_owned(),
                why: format!("the Sentinel at {sentinel} names it as master of {}, but it is none", self.service),
                place: Place::Command,
            }),
        }
    }

    fn unknown(&self) -> StoreError {
        let target = self.to_string();
        StoreError::Unreachable { target, why: format!("no service is called `{}` there", self.service) }
    }
}

impl fmt::Debug for Sentinels {
    /// Without the log-in.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Sentinels({self})")
    }
}

impl fmt::Display for Sentinels {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<_> = self.addresses.iter().map(|(host, port)| format!("{host}:{port}")).collect();
        write!(f, "{} of the Sentinels {}", self.service, names.join(","))
    }
}

/// Its log-in is not that of the servers.
fn of_sentinel(error: StoreError) -> StoreError {
    match error {
        StoreError::Authentication { target, why } => StoreError::SentinelLogIn { target, why },
        error => error,
    }
}

/// True for what a failover looks like while it is under way.
fn is_passing(error: &StoreError) -> bool {
    error.lost_the_reply()
        || matches!(error, StoreError::Refused { code, .. } if code == "READONLY" || code == "LOADING")
}

fn address(text: &str) -> Option<(String, u16)> {
    let (host, port) = text.rsplit_once(':')?;
    let bare = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_name = !host.is_empty() && !host.contains([':', '%', '@', '[', ']']);
    let host = bare.filter(|host| !host.is_empty()).or(is_name.then_some(host))?;
    Some((host.to_owned(), port.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_sentinels_and_a_name() {
        let sentinels = Sentinels::parse("a:26379,[::1]:26380/payments").unwrap();
        assert_eq!(sentinels.addresses, [("a".to_owned(), 26_379), ("::1".to_owned(), 26_380)]);
        assert_eq!(sentinels.service, "payments");
    }

    #[test]
    fn what_is_missing_is_said() {
        for (wrong, why) in [
            ("a:1", "no service"),
            ("a:1/", "no service"),
            ("a/s", "address 1"),
            (":1/s", "address 1"),
            ("a:1,/s", "address 2"),
            ("ops:s3cret/s", "address 1"),
            (":s3cret%40host:1/s", "address 1"),
        ] {
            let told = Sentinels::parse(wrong).unwrap_err();
            assert!(told.contains(why) && !told.contains("s3cret"), "{wrong}: {told}");
        }
        let sentinels = Sentinels { password: Some("s3cret".to_owned()), ..Sentinels::parse("a:1/s").unwrap() };
        assert!(!format!("{sentinels:?}").contains("s3cret"));
    }
}
