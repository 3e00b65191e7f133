//! Waiting for something to happen, however long that takes on a busy machine.

use std::time::{Duration, Instant};

/// Waits until something holds; panics after a minute and a half.
#[track_caller]
pub fn until(what: &str, mut holds: impl FnMut() -> bool) {
    let began = Instant::now();
    while !holds() {
        assert!(began.elapsed() < Duration::from_secs(90), "waited in vain until {what}");
        std::thread::sleep(Duration::from_millis(3));
    }
}
