//! A system with fencing: it refuses the effect of a worker whose token is older than one that it
//! has seen.

use super::protocol::MAX_WORKERS;

/// The tokens of the workers, and the newest one that the system has seen. The first token is 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fence {
    tokens: [u8; MAX_WORKERS],
    newest_seen: u8,
}

impl Fence {
    /// The worker gets a token that is newer than all others.
    pub fn hand_out(&mut self, worker: u8) {
        let newest = self.tokens.iter().max().unwrap();
        self.tokens[usize::from(worker)] = newest + 1;
    }

    /// The worker sends its token; false if the system refuses it.
    pub fn accepts(&mut self, worker: u8) -> bool {
        let token = self.tokens[usize::from(worker)];
        self.newest_seen = self.newest_seen.max(token);
        token == self.newest_seen
    }
}
