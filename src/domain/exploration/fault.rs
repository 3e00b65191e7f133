//! The faults, how often an exploration allows each, and the assumptions that an exploration may
//! make.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;

use strum::{EnumString, IntoStaticStr, VariantArray};

use crate::domain::as_str::as_str;

/// A fault. Every list of faults uses this order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Fault {
    /// Time passes until a TTL elapses.
    Expiry,
    /// A worker dies, at any point of its program.
    Crash,
    /// Redis executes a call, and the worker gets no reply and stops.
    Lost,
    /// A worker's handler fails before its effect.
    Fail,
    /// A worker gives its request up before its effect, and releases the lock. It happens only if
    /// the schema describes a release that a failing handler does not call.
    GiveUp,
    /// Redis evicts a key because memory is short.
    Evict,
    /// The master fails before its last writes reached the replica that takes over.
    Failover,
    /// An operator or another program removes a lock's TTL.
    Persist,
}

as_str!(Fault);

/// The number of kinds of faults.
pub const FAULTS: usize = Fault::VARIANTS.len();

impl Fault {
    /// The noun for this fault after a number: `1 expiry`, `2 expiries`.
    pub fn noun(self, count: u8) -> &'static str {
        match (self, count) {
            (Self::Expiry, 1) => "expiry",
            (Self::Expiry, _) => "expiries",
            (Self::Crash, 1) => "crash",
            (Self::Crash, _) => "crashes",
            (Self::Lost, 1) => "lost reply",
            (Self::Lost, _) => "lost replies",
            (Self::Fail, 1) => "failing handler",
            (Self::Fail, _) => "failing handlers",
            (Self::GiveUp, 1) => "give-up",
            (Self::GiveUp, _) => "give-ups",
            (Self::Evict, 1) => "eviction",
            (Self::Evict, _) => "evictions",
            (Self::Failover, 1) => "failover",
            (Self::Failover, _) => "failovers",
            (Self::Persist, 1) => "lost lock TTL",
            (Self::Persist, _) => "lost lock TTLs",
        }
    }
}

/// How often each fault happens, or may happen.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct FaultBudget([u8; FAULTS]);

impl FaultBudget {
    /// The most that the operator can allow of one fault.
    pub const MOST: u8 = 9;

    /// The faults that an exploration allows by default.
    pub const USUAL: Self = Self([2, 1, 1, 1, 1, 0, 0, 0]);

    /// A budget that no schedule exceeds.
    pub const ANY: Self = Self([u8::MAX; FAULTS]);

    /// How often a fault happens.
    pub fn of(self, fault: Fault) -> u8 {
        self.0[fault as usize]
    }

    /// The same budget with one more of a fault; `None` if `most` does not allow it.
    pub fn with(self, fault: Fault, most: Self) -> Option<Self> {
        let mut more = self;
        let count = &mut more.0[fault as usize];
        *count = count.checked_add(1)?;
        if *count > most.of(fault) {
            return None;
        }
        Some(more)
    }

    /// True if no fault happens more often than in `other`.
    pub fn is_within(self, other: Self) -> bool {
        self.0.iter().zip(other.0).all(|(own, other)| *own <= other)
    }

    /// The number of all faults together.
    pub fn total(self) -> usize {
        self.0.iter().map(|count| usize::from(*count)).sum()
    }

    /// The faults that happen, with their counts.
    pub fn faults(self) -> impl Iterator<Item = (Fault, u8)> {
        Fault::VARIANTS
            .iter()
            .map(move |fault| (*fault, self.of(*fault)))
            .filter(|(_, count)| *count > 0)
    }

    /// The faults that happen, by name.
    pub(crate) fn by_name(self) -> BTreeMap<String, u8> {
        let mut counts = BTreeMap::new();
        for (fault, count) in self.faults() {
            counts.insert(fault.as_str().to_owned(), count);
        }
        counts
    }

    /// How often the fault with this name happens; `None` if there is no such fault.
    pub(crate) fn of_name(self, name: &str) -> Option<u8> {
        name.parse().ok().map(|fault: Fault| self.of(fault))
    }

    /// The number of budgets within this one.
    pub fn count(self) -> usize {
        self.0.iter().map(|count| usize::from(*count) + 1).product()
    }

    /// The index of `used` among those budgets, from 0. [`FaultBudget::at`] is the inverse.
    pub fn place(self, used: Self) -> usize {
        // The counts are the digits of the index. Each digit has its own base, because each fault
        // has its own limit.
        let mut place = 0;
        for (most, used) in self.0.iter().zip(used.0) {
            place = place * (usize::from(*most) + 1) + usize::from(used);
        }
        place
    }

    /// The budget with this index.
    pub fn at(self, mut place: usize) -> Self {
        let mut used = [0; FAULTS];
        // The last digit is split off first, because `place` adds it last.
        for (used, most) in used.iter_mut().zip(self.0).rev() {
            let size = usize::from(most) + 1;
            *used = u8::try_from(place % size).unwrap_or(u8::MAX);
            place /= size;
        }
        Self(used)
    }
}

/// Parses `expiry=2,crash=1`. Faults that are not named keep their count in [`FaultBudget::USUAL`].
impl FromStr for FaultBudget {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if text == "none" {
            return Ok(Self::default());
        }
        let mut budget = Self::USUAL;
        for part in text.split(',') {
            if part.is_empty() {
                continue;
            }
            let Some((name, count)) = part.split_once('=') else {
                return Err(format!("`{part}` has no number; write, for example, expiry=2"));
            };
            let Ok(fault) = Fault::from_str(name) else { return Err(unknown_fault(name)) };
            match count.parse() {
                Ok(count) if count <= Self::MOST => budget.0[fault as usize] = count,
                _ => {
                    return Err(format!(
                        "`{part}`: the number of times must be from 0 to {}",
                        Self::MOST
                    ));
                }
            }
        }
        Ok(budget)
    }
}

fn unknown_fault(name: &str) -> String {
    let names: Vec<_> = Fault::VARIANTS.iter().map(Fault::as_str).collect();
    format!("there is no fault `{name}`; faults: {}", names.join(", "))
}

/// `1 expiry + 1 failing handler`, or `no fault`.
impl fmt::Display for FaultBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        for (fault, count) in self.faults() {
            parts.push(format!("{count} {}", fault.noun(count)));
        }
        if parts.is_empty() { f.write_str("no fault") } else { f.write_str(&parts.join(" + ")) }
    }
}

/// A condition that an exploration may assume.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Assumption {
    CriticalSection,
    ResultsOutliveRetries,
}

as_str!(Assumption);

impl Assumption {
    /// The assumption as a phrase for reports.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::CriticalSection => {
                "no fault, expiry included, between a worker's last check of its lock and its \
                stored result"
            }
            Self::ResultsOutliveRetries => "no stored result that begin replays expires",
        }
    }
}

/// The assumptions of one exploration.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assumptions {
    pub critical_section: bool,
    pub results_outlive_retries: bool,
}

impl Assumptions {
    /// Every assumption.
    pub(crate) const ALL: Self = Self { critical_section: true, results_outlive_retries: true };

    /// The assumptions that are made, in their usual order.
    pub fn all(self) -> impl Iterator<Item = Assumption> {
        Assumption::VARIANTS.iter().copied().filter(move |assumption| self.has(*assumption))
    }

    fn has(self, assumption: Assumption) -> bool {
        match assumption {
            Assumption::CriticalSection => self.critical_section,
            Assumption::ResultsOutliveRetries => self.results_outlive_retries,
        }
    }
}

impl FromIterator<Assumption> for Assumptions {
    fn from_iter<I: IntoIterator<Item = Assumption>>(made: I) -> Self {
        let mut assumptions = Self::default();
        for assumption in made {
            match assumption {
                Assumption::CriticalSection => assumptions.critical_section = true,
                Assumption::ResultsOutliveRetries => assumptions.results_outlive_retries = true,
            }
        }
        assumptions
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_that_are_not_named_keep_their_default() {
        let budget: FaultBudget = "expiry=0,evict=3".parse().unwrap();
        let expected = [
            (Fault::Crash, 1),
            (Fault::Lost, 1),
            (Fault::Fail, 1),
            (Fault::GiveUp, 1),
            (Fault::Evict, 3),
        ];
        assert_eq!(budget.faults().collect::<Vec<_>>(), expected);
        assert_eq!("none".parse(), Ok(FaultBudget::default()));
        for wrong in ["expiry", "meteor=1", "crash=x", "crash=-1", "crash=10", "crash=256"] {
            assert!(wrong.parse::<FaultBudget>().is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_budget_within_another_has_its_own_index() {
        let most: FaultBudget = "evict=1".parse().unwrap();
        for place in 0..most.count() {
            assert!(most.at(place).is_within(most));
            assert_eq!(most.place(most.at(place)), place);
        }
    }

    #[test]
    fn reads_as_words() {
        assert_eq!(FaultBudget::default().to_string(), "no fault");
        assert_eq!(
            FaultBudget::USUAL.to_string(),
            "2 expiries + 1 crash + 1 lost reply + 1 failing handler + 1 give-up"
        );
    }
}
