//! A gate that holds back the last byte of several requests' header sections, and then releases
//! them together.
//!
//! A service acts on a request when its header section is complete, and many take their lock before
//! they read the body. A gate in the body would let such a service see the requests one by one.

use std::pin::Pin;
use std::sync::Arc;

use tokio::sync::watch;

/// The place of one connection at a gate. Its first poll is the arrival of the connection, and it is
/// ready when all have arrived. A place that is dropped does not hold back the others.
pub(super) type GatePlace = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The places at a gate for this many connections.
pub(super) fn places(connections: usize) -> Vec<GatePlace> {
    // The gate is closed as long as it has receivers, one for each place that has not arrived.
    let (gate, _) = watch::channel(());
    let gate = Arc::new(gate);
    let mut places: Vec<GatePlace> = Vec::with_capacity(connections);
    for _ in 0..connections {
        let (gate, arrival) = (Arc::clone(&gate), gate.subscribe());
        places.push(Box::pin(async move {
            drop(arrival);
            gate.closed().await;
        }));
    }
    places
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
