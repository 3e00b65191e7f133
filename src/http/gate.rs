//! A gate that holds back the last byte of several requests' header sections, and then releases
//! them together.
//!
//! A service acts on a request when its header section is complete, and many take their lock before
//! they read the body. A gate in the body would let such a service see the requests one by one.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

/// A gate for a number of connections.
#[derive(Debug)]
pub(crate) struct Gate(Mutex<GateState>);

#[derive(Debug)]
struct GateState {
    /// How many connections have not arrived yet.
    missing: usize,
    waiting: Vec<Waker>,
}

impl Gate {
    /// A gate that opens when this many connections have arrived or left.
    pub(crate) fn new(connections: usize) -> Arc<Self> {
        Arc::new(Self(Mutex::new(GateState { missing: connections, waiting: Vec::new() })))
    }

    /// One place at the gate. The gate waits until each place has arrived or is dropped.
    pub(crate) fn place(self: &Arc<Self>) -> GatePlace {
        GatePlace { gate: Arc::clone(self), has_arrived: false }
    }

    fn state(&self) -> MutexGuard<'_, GateState> {
        // A panic elsewhere leaves the numbers as they were.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn arrive(&self) {
        let mut state = self.state();
        state.missing = state.missing.saturating_sub(1);
        if state.missing == 0 {
            for waker in state.waiting.drain(..) {
                waker.wake();
            }
        }
    }
}

/// The place of one connection at a gate.
#[derive(Debug)]
pub(crate) struct GatePlace {
    gate: Arc<Gate>,
    has_arrived: bool,
}

impl GatePlace {
    /// Ready when all connections have arrived. The first call is the arrival of this one.
    pub(super) fn poll_open(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if !self.has_arrived {
            self.has_arrived = true;
            self.gate.arrive();
        }
        let mut state = self.gate.state();
        if state.missing == 0 {
            return Poll::Ready(());
        }
        state.waiting.push(context.waker().clone());
        Poll::Pending
    }
}

impl Drop for GatePlace {
    fn drop(&mut self) {
        // A connection that failed must not hold back the others.
        if !self.has_arrived {
            self.gate.arrive();
        }
    }
}

/// Finds the last byte of a header section in what is written.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct HeaderEnd {
    /// How many bytes of the empty line and the line end before it were written last.
    matched: usize,
}

impl HeaderEnd {
    const END: &'static [u8] = b"\r\n\r\n";

    /// How many of these bytes come before the last byte of the header section.
    pub(super) fn before_last(self, bytes: &[u8]) -> usize {
        let mut state = self;
        for (place, byte) in bytes.iter().enumerate() {
            state.take(*byte);
            if state.matched == Self::END.len() {
                return place;
            }
        }
        bytes.len()
    }

    /// Notes that these bytes were written.
    pub(super) fn advance(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.take(*byte);
        }
    }

    fn take(&mut self, byte: u8) {
        self.matched = if byte == Self::END[self.matched % Self::END.len()] {
            self.matched + 1
        } else {
            usize::from(byte == b'\r')
        };
    }
}

#[cfg(test)]
mod tests {
    use super::HeaderEnd;

    #[test]
    fn finds_the_last_byte_of_the_header_section() {
        let request = b"POST / HTTP/1.1\r\nhost: x\r\n\r\n{}";
        assert_eq!(HeaderEnd::default().before_last(request), request.len() - 3);
        assert_eq!(HeaderEnd::default().before_last(b"a\r\r\n\r\n"), 5);
        assert_eq!(HeaderEnd::default().before_last(b"host: x\r\n"), 9);
    }

    #[test]
    fn finds_it_in_two_parts() {
        let mut end = HeaderEnd::default();
        end.advance(b"host: x\r\n\r");
        assert_eq!(end.before_last(b"\n{}"), 0);
    }
}
