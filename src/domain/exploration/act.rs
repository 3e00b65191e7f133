//! The possible elements of a schedule.

use super::fault::Fault;

/// The most writes that one failover loses. If it lost only one, a renewal would seem to protect
/// its lock, because the failover would lose the renewal alone.
pub(crate) const MAX_LOST_WRITES: usize = 3;

/// The largest number of a worker, a key or a service in an act.
const MAX_NUMBER: u8 = 15;

/// One element of a schedule. Workers, keys and services count from 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Act {
    /// A worker sends its next call and gets the reply.
    Call(u8),
    /// A worker sends its next call, which Redis executes, and gets no reply.
    Lost(u8),
    /// A worker has its effect.
    Effect(u8),
    /// A worker's handler fails before its effect.
    Fail(u8),
    /// A worker crashes.
    Crash(u8),
    /// The TTL of a Redis key elapses.
    Expiry(u8),
    /// Redis evicts a Redis key.
    Evict(u8),
    /// A failover loses the last write; with a number above 0, this many writes before it, too.
    Failover(u8),
    /// A Redis key loses its TTL.
    Persist(u8),
    /// One more request of a service begins, when everything else has ended.
    Next(u8),
    /// One more request of a service begins, with another payload.
    Other(u8),
    /// A worker gives its request up, and releases its lock.
    GiveUp(u8),
    /// The value of a Redis key expires by its own time, before its TTL ends.
    Lapse(u8),
    /// A worker's handler fails after its effect.
    LateFail(u8),
    /// A worker sends its next call, which Redis executes, and gets no reply. Its client library
    /// will send the same call again.
    Resend(u8),
    /// Redis restarts, and no Redis key exists any more.
    Restart,
    /// Half of the time passes until the first of the Redis keys expires.
    Delay,
}

impl Act {
    const LETTERS: [char; 17] =
        ['s', 'l', 'e', 'f', 'c', 'x', 'v', 'o', 'p', 'n', 'm', 'g', 't', 'a', 'r', 'b', 'd'];

    /// The worker that acts; `None` if no worker does.
    pub fn worker(self) -> Option<u8> {
        match self {
            Self::Call(worker)
            | Self::Lost(worker)
            | Self::Resend(worker)
            | Self::Effect(worker)
            | Self::Fail(worker)
            | Self::LateFail(worker)
            | Self::GiveUp(worker)
            | Self::Crash(worker) => Some(worker),
            _ => None,
        }
    }

    /// The fault that the act is; `None` if the act is not a fault.
    pub fn fault(self) -> Option<Fault> {
        match self {
            Self::Lost(_) => Some(Fault::Lost),
            Self::Resend(_) => Some(Fault::Resend),
            Self::Fail(_) => Some(Fault::Fail),
            Self::LateFail(_) => Some(Fault::LateFail),
            Self::GiveUp(_) => Some(Fault::GiveUp),
            Self::Crash(_) => Some(Fault::Crash),
            Self::Expiry(_) | Self::Lapse(_) => Some(Fault::Expiry),
            Self::Evict(_) => Some(Fault::Evict),
            Self::Restart => Some(Fault::Restart),
            Self::Delay => Some(Fault::Delay),
            Self::Failover(_) => Some(Fault::Failover),
            Self::Persist(_) => Some(Fault::Persist),
            Self::Call(_) | Self::Effect(_) | Self::Next(_) | Self::Other(_) => None,
        }
    }

    /// The act as a number: its kind in the upper byte, its number in the lower.
    pub fn code(self) -> u16 {
        let (kind, number) = match self {
            Self::Call(worker) => (0, worker),
            Self::Lost(worker) => (1, worker),
            Self::Effect(worker) => (2, worker),
            Self::Fail(worker) => (3, worker),
            Self::Crash(worker) => (4, worker),
            Self::Expiry(key_index) => (5, key_index),
            Self::Evict(key_index) => (6, key_index),
            Self::Failover(more) => (7, more),
            Self::Persist(key_index) => (8, key_index),
            Self::Next(service) => (9, service),
            Self::Other(service) => (10, service),
            Self::GiveUp(worker) => (11, worker),
            Self::Lapse(key_index) => (12, key_index),
            Self::LateFail(worker) => (13, worker),
            Self::Resend(worker) => (14, worker),
            Self::Restart => (15, 0),
            Self::Delay => (16, 0),
        };
        u16::from_be_bytes([kind, number])
    }

    /// The act that [`Act::code`] encoded; `None` for a number that encodes none.
    pub fn from_code(code: u16) -> Option<Self> {
        let [kind, number] = code.to_be_bytes();
        Self::from_kind(kind, number)
    }

    fn from_kind(kind: u8, number: u8) -> Option<Self> {
        // Workers, services and keys are fewer than sixteen.
        if number > MAX_NUMBER {
            return None;
        }
        Some(match kind {
            0 => Self::Call(number),
            1 => Self::Lost(number),
            2 => Self::Effect(number),
            3 => Self::Fail(number),
            4 => Self::Crash(number),
            5 => Self::Expiry(number),
            6 => Self::Evict(number),
            7 if usize::from(number) < MAX_LOST_WRITES => Self::Failover(number),
            8 => Self::Persist(number),
            9 => Self::Next(number),
            10 => Self::Other(number),
            11 => Self::GiveUp(number),
            12 => Self::Lapse(number),
            13 => Self::LateFail(number),
            14 => Self::Resend(number),
            15 if number == 0 => Self::Restart,
            16 if number == 0 => Self::Delay,
            _ => return None,
        })
    }

    /// The act in a token: a letter and a number.
    pub fn word(self) -> String {
        let [kind, number] = self.code().to_be_bytes();
        format!("{}{number}", Self::LETTERS[usize::from(kind)])
    }

    /// The act that [`Act::word`] wrote; `None` for any other text.
    pub fn from_word(word: &str) -> Option<Self> {
        let mut letters = word.chars();
        let letter = letters.next()?;
        let kind = Self::LETTERS.iter().position(|known| *known == letter)?;
        let kind = u8::try_from(kind).ok()?;
        Self::from_kind(kind, letters.as_str().parse().ok()?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_act_is_found_again_by_its_code_and_by_its_word() {
        let acts = (0..=u16::MAX).filter_map(Act::from_code);
        let mut count = 0;
        for act in acts {
            assert_eq!(Act::from_code(act.code()), Some(act));
            assert_eq!(Act::from_word(&act.word()), Some(act));
            count += 1;
        }
        assert_eq!(count, 14 * 16 + MAX_LOST_WRITES + 2);
        for wrong in ["", "s", "s16", "z1", "s-1", "o3", "sx", "b1", "d1"] {
            assert_eq!(Act::from_word(wrong), None, "{wrong}");
        }
    }
}
