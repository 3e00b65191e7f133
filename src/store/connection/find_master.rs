//! Finds the master of a service by asking its Sentinels.
//!
//! A Sentinel may be out of date, so idemctl accepts its answer only if the server itself reports
//! that it is a master. After a failover, the old master accepts changes until it learns of the new
//! one (11 s as measured), and these changes are lost. idemctl therefore asks the Sentinels again
//! after changes, and checks the server that they name. The client crate's Sentinel client asks
//! them only before it connects.

use std::time::Duration;

use super::client_options::ClientOptions;
use super::connection::{Connection, pack};
use super::sentinels::Sentinels;
use super::target::{Address, Target};
use crate::domain::step::StepReply;
use crate::store::error::{RefusedAt, StoreError};

/// How many times all Sentinels are asked, because an election takes a moment. With the pauses, the
/// rounds take about three seconds.
const ROUNDS: usize = 10;

/// The pause between two rounds.
const PAUSE: Duration = Duration::from_millis(300);

impl Sentinels {
    /// The service's master, as named by a Sentinel and confirmed by the server.
    ///
    /// # Errors
    /// No Sentinel is reachable, none knows the service, or there is no master at the moment.
    pub(in crate::store) async fn master(&self, like: &Target) -> Result<Target, StoreError> {
        let mut last = self.unknown();
        let mut sentinels = self.targets(like);
        for round in 0..ROUNDS {
            if round > 0 {
                tokio::time::sleep(PAUSE).await;
            }
            let mut passes = false;
            let mut timed_out = Vec::new();
            // The error of the server that a Sentinel named in this round, so that idemctl does not
            // wait for it twice.
            let mut turned_down: Option<(Target, StoreError)> = None;
            for sentinel in &sentinels {
                let error = match self.named_by(sentinel, like).await {
                    Ok(Some(named)) => {
                        let refusal = match &turned_down {
                            Some((known, error)) if *known == named => Some(error.clone()),
                            _ => self.agrees(&named, sentinel).await.err(),
                        };
                        let Some(error) = refusal else { return Ok(named) };
                        turned_down = Some((named, error.clone()));
                        error
                    }
                    // An unknown service is not a temporary condition, so it does not justify
                    // another round.
                    Ok(None) => {
                        last = self.unknown();
                        continue;
                    }
                    Err(error) => {
                        if matches!(error, StoreError::TimedOut { .. }) {
                            timed_out.push(sentinel.clone());
                            last = error;
                            continue;
                        }
                        error
                    }
                };
                passes |= is_passing(&error);
                last = error;
            }
            // Drop unresponsive Sentinels, because each further round would wait for their timeouts
            // again.
            sentinels.retain(|sentinel| !timed_out.contains(sentinel));
            if !passes {
                break;
            }
        }
        Err(last)
    }

    /// The Sentinels, in the order in which they are asked.
    pub(in crate::store) fn targets(&self, like: &Target) -> Vec<Target> {
        let mut targets = Vec::with_capacity(self.addresses.len());
        for (host, port) in &self.addresses {
            targets.push(Target {
                address: Address::Tcp(host.clone(), *port),
                db: 0,
                user: self.user.clone(),
                password: self.password.clone(),
                credentials: None,
                client_options: ClientOptions::default(),
                ..like.clone()
            });
        }
        targets
    }

    /// The server that a Sentinel names; `None` if the Sentinel does not know the service.
    async fn named_by(
        &self,
        sentinel: &Target,
        like: &Target,
    ) -> Result<Option<Target>, StoreError> {
        let mut connection = Connection::dial(sentinel).await.map_err(of_sentinel)?;
        let named =
            connection.ask(&pack(["SENTINEL", "GET-MASTER-ADDR-BY-NAME", &self.service])).await;
        let named = named.map_err(of_sentinel)?;
        let StepReply::Array(parts) = named else { return Ok(None) };
        let [StepReply::Text(host), StepReply::Text(port)] = parts.as_slice() else {
            return Ok(None);
        };
        let host = String::from_utf8_lossy(host).into_owned();
        let port = String::from_utf8_lossy(port).parse().unwrap_or(0);
        Ok(Some(Target { address: Address::Tcp(host, port), ..like.clone() }))
    }

    /// Checks that the server named by a Sentinel reports that it is a master.
    async fn agrees(&self, master: &Target, sentinel: &Target) -> Result<(), StoreError> {
        let role = Connection::dial(master).await?.ask(&pack(["ROLE"])).await;
        match role {
            Ok(StepReply::Array(parts))
                if parts.first() == Some(&StepReply::Text(b"master".to_vec())) =>
            {
                Ok(())
            }
            // Without the right to ROLE, idemctl has to trust the Sentinel.
            Ok(StepReply::Error { .. }) => Ok(()),
            Err(error) if error.is_permission() => Ok(()),
            Err(error) => Err(error),
            Ok(_) => Err(StoreError::ErrorReply {
                target: master.to_string(),
                code: "READONLY".to_owned(),
                why: format!(
                    "the Sentinel at {sentinel} names it as master of {}, but it is none",
                    self.service
                ),
                refused_at: RefusedAt::Command,
            }),
        }
    }

    fn unknown(&self) -> StoreError {
        let target = self.to_string();
        StoreError::UnknownService { target, service: self.service.clone() }
    }
}

/// Marks a log-in error as one of a Sentinel, whose log-in differs from that of the servers.
fn of_sentinel(error: StoreError) -> StoreError {
    match error {
        StoreError::Authentication { target, why } => StoreError::SentinelLogIn { target, why },
        error => error,
    }
}

/// True for errors that occur while a failover is in progress.
fn is_passing(error: &StoreError) -> bool {
    match error {
        // The named server is still a replica, or is starting.
        StoreError::ErrorReply { code, .. } => code == "READONLY" || code == "LOADING",
        StoreError::NoPassword { .. } => false,
        error => error.lost_the_reply(),
    }
}
