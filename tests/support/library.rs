//! The library's own connection to a server, without the binary.

use std::time::Duration;

use idemctl::domain::record::observation::Observation;
use idemctl::store::{self, Access, Address, Client, ReadLimit, Target, Writer};
use tokio::runtime::Runtime;

use crate::support::Server;

/// The library's own way to a server, with a runtime to wait in.
pub struct Library {
    runtime: Runtime,
    link: Client,
}

impl Library {
    /// Connects.
    pub fn on(server: &Server) -> Self {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        let mut target = Target::new(Address::Unix(server.socket()));
        // A busy machine is slow.
        target.timeout = Duration::from_secs(20);
        let link = runtime.block_on(store::connect(&target)).unwrap();
        Self { runtime, link }
    }

    /// The connection.
    pub fn client(&self) -> &Client {
        &self.link
    }

    /// What may change.
    pub fn writer(&self) -> Writer {
        let Access::Full(permit) = Access::of(false) else { unreachable!("it is not read-only") };
        self.link.writer(&permit)
    }

    /// Waits for what the store does.
    pub fn wait<F: Future>(&self, work: F) -> F::Output {
        self.runtime.block_on(work)
    }

    /// Reads records whole, the Redis keys of each with the lock's first.
    pub fn observe(&self, records: &[Vec<Vec<u8>>]) -> Vec<Observation> {
        let mut reader = self.link.reader();
        let mut seen = Vec::with_capacity(records.len());
        for page in records.chunks(200) {
            let page = self.wait(reader.read_or_fail(page, ReadLimit::Whole)).unwrap();
            seen.extend(page.into_iter().map(Result::unwrap));
        }
        seen
    }
}
