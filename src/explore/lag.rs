//! What a failover can lose: the states of the Redis keys before the last writes.

use std::collections::HashMap;

use crate::domain::exploration::MAX_LOST_WRITES;

/// The numbers of the states before the last writes, the latest first; `None` if there were fewer
/// writes.
type Lag = [Option<u32>; MAX_LOST_WRITES];

/// Every lag that was met. A state of the search holds only its number, so that it stays small.
pub(super) struct Lags {
    lags: Vec<Lag>,
    numbers: HashMap<Lag, u32>,
}

impl Lags {
    /// The number of the lag without any write.
    pub(super) const NONE: u32 = 0;

    /// Knows only the lag without any write.
    pub(super) fn new() -> Self {
        let none = [None; MAX_LOST_WRITES];
        Self { lags: vec![none], numbers: HashMap::from([(none, Self::NONE)]) }
    }

    /// The lag with this number.
    pub(super) fn get(&self, number: u32) -> Lag {
        self.lags[number as usize]
    }

    /// The number of a lag, which is added if it is new.
    pub(super) fn number(&mut self, lag: Lag) -> u32 {
        if let Some(number) = self.numbers.get(&lag) {
            return *number;
        }
        let number = u32::try_from(self.lags.len()).unwrap_or(u32::MAX);
        self.lags.push(lag);
        self.numbers.insert(lag, number);
        number
    }

    /// The lag after one more write, which changed the state `before`.
    pub(super) fn after_write(&mut self, number: u32, before: u32) -> u32 {
        let mut lag = self.get(number);
        lag.rotate_right(1);
        lag[0] = Some(before);
        self.number(lag)
    }

    /// The state after a failover that loses this many writes, and the lag that remains; `None` if
    /// there were fewer writes.
    pub(super) fn lose(&mut self, number: u32, writes: usize) -> Option<(u32, u32)> {
        let mut lag = self.get(number);
        let keys = lag[writes - 1]?;
        lag.rotate_left(writes);
        lag[MAX_LOST_WRITES - writes..].fill(None);
        Some((keys, self.number(lag)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failover_loses_up_to_three_writes() {
        let mut lags = Lags::new();
        let mut lag = Lags::NONE;
        for before in [10, 11, 12, 13] {
            lag = lags.after_write(lag, before);
        }
        assert_eq!(lags.get(lag), [Some(13), Some(12), Some(11)]);
        let (keys, rest) = lags.lose(lag, 2).unwrap();
        assert_eq!((keys, lags.get(rest)), (12, [Some(11), None, None]));
        assert_eq!(lags.lose(rest, 2), None);
        assert_eq!(lags.lose(rest, 1), Some((11, Lags::NONE)));
    }
}
