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
    /// Half of the time passes until the next TTL elapses.
    Delay,
    /// A worker dies, at any point of its program.
    Crash,
    /// Redis executes a call, and the worker gets no reply and stops.
    Lost,
    /// Redis executes a call, the reply is lost, and the client library sends the call again.
    Resend,
    /// A worker's handler fails before its effect.
    Fail,
    /// A worker's handler fails after its effect.
    LateFail,
    /// A worker gives its request up before its effect, and releases the lock. It happens only if
    /// the schema describes a release that a failing handler does not call.
    GiveUp,
    /// Redis evicts a key because memory is short.
    Evict,
    /// Redis restarts without its data.
    Restart,
    /// The master fails before its last writes reached the replica that takes over.
    Failover,
    /// An operator or another program removes a lock's TTL.
    Persist,
}

as_str!(Fault);

/// The faults of an exploration that names none, with their counts. The others do not happen.
const USUAL_COUNTS: [(Fault, u64); 7] = [
    (Fault::Expiry, 2),
    (Fault::Crash, 1),
    (Fault::Lost, 1),
    (Fault::Resend, 1),
    (Fault::Fail, 1),
    (Fault::LateFail, 1),
    (Fault::GiveUp, 1),
];

impl Fault {
    /// The noun for this fault after a number: `1 expiry`, `2 expiries`.
    pub fn noun(self, count: u8) -> &'static str {
        let (one, many) = match self {
            Self::Expiry => ("expiry", "expiries"),
            Self::Delay => ("delay", "delays"),
            Self::Crash => ("crash", "crashes"),
            Self::Lost => ("lost reply", "lost replies"),
            Self::Resend => ("call sent again", "calls sent again"),
            Self::Fail => ("failing handler", "failing handlers"),
            Self::LateFail => ("late failing handler", "late failing handlers"),
            Self::GiveUp => ("give-up", "give-ups"),
            Self::Evict => ("eviction", "evictions"),
            Self::Restart => ("restart", "restarts"),
            Self::Failover => ("failover", "failovers"),
            Self::Persist => ("lost lock TTL", "lost lock TTLs"),
        };
        if count == 1 { one } else { many }
    }
}

/// How often each fault happens, or may happen. Each count has four bits, so that a state of the
/// search stays small.
///
/// The first fault has the highest bits. Budgets are therefore ordered by the count of the first
/// fault, then of the second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct FaultBudget(u64);

/// The number of faults.
const FAULTS: usize = Fault::VARIANTS.len();

/// The bits of one count.
const COUNT_BITS: usize = 4;

/// The largest count that fits in these bits.
const LARGEST_COUNT: u8 = 15;

impl FaultBudget {
    /// The most that the operator can allow of one fault.
    pub const MOST: u8 = 9;

    /// The faults that an exploration allows by default.
    pub const USUAL: Self = Self::default_counts();

    /// The faults that an exploration allows by default if the steps depend on the time.
    pub(crate) fn usual_with_delay() -> Self {
        Self::USUAL.with_count(Fault::Delay, 1)
    }

    /// A budget that no schedule exceeds.
    pub const ANY: Self = Self(Self::BITS);

    /// The bits of all counts. A state of the search keeps other things in the bits below.
    pub(crate) const BITS: u64 = u64::MAX << (u64::BITS as usize - COUNT_BITS * FAULTS);

    const fn default_counts() -> Self {
        let mut budget = 0;
        let mut index = 0;
        while index < USUAL_COUNTS.len() {
            let (fault, count) = USUAL_COUNTS[index];
            budget |= count << shift(fault);
            index += 1;
        }
        Self(budget)
    }

    /// The counts as a number that uses no bits other than [`FaultBudget::BITS`].
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// The budget with these counts. Bits that no count uses are ignored.
    pub(crate) fn of_bits(bits: u64) -> Self {
        Self(bits & Self::BITS)
    }

    /// How often a fault happens.
    pub fn of(self, fault: Fault) -> u8 {
        // The mask leaves only the four bits of the count.
        (self.0 >> shift(fault)) as u8 & LARGEST_COUNT
    }

    /// The same budget with this count of a fault.
    fn with_count(self, fault: Fault, count: u8) -> Self {
        let mask = u64::from(LARGEST_COUNT) << shift(fault);
        Self(self.0 & !mask | u64::from(count.min(LARGEST_COUNT)) << shift(fault))
    }

    /// The same budget with one more of a fault; `None` if `most` does not allow it.
    ///
    /// A schedule that the operator writes may have more faults than a count can hold. Within
    /// [`FaultBudget::ANY`], the count then keeps its largest value.
    pub fn with(self, fault: Fault, most: Self) -> Option<Self> {
        if self.of(fault) >= most.of(fault) && most.of(fault) < LARGEST_COUNT {
            return None;
        }
        if matches!(fault, Fault::Expiry | Fault::Delay) && !self.lets_time_pass(most) {
            return None;
        }
        Some(self.with_count(fault, self.of(fault) + 1))
    }

    /// True if time may pass once more. A delay costs an expiry, so `most` limits both together.
    fn lets_time_pass(self, most: Self) -> bool {
        let allowed = most.of(Fault::Expiry);
        let passed = self.of(Fault::Expiry) + self.of(Fault::Delay);
        allowed == LARGEST_COUNT || passed < allowed
    }

    /// True if no fault happens more often than in `other`.
    pub fn is_within(self, other: Self) -> bool {
        Fault::VARIANTS.iter().all(|fault| self.of(*fault) <= other.of(*fault))
    }

    /// The number of all faults together.
    pub fn total(self) -> usize {
        Fault::VARIANTS.iter().map(|fault| usize::from(self.of(*fault))).sum()
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
}

/// The position of a fault's count in a budget.
const fn shift(fault: Fault) -> usize {
    u64::BITS as usize - COUNT_BITS * (fault as usize + 1)
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
                Ok(count) if count <= Self::MOST => budget = budget.with_count(fault, count),
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
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, EnumString, VariantArray)]
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

    /// The names of the assumptions that are made, in their usual order.
    pub fn names(self) -> Vec<&'static str> {
        let mut names = Vec::new();
        for (assumption, is_made) in [
            (Assumption::CriticalSection, self.critical_section),
            (Assumption::ResultsOutliveRetries, self.results_outlive_retries),
        ] {
            if is_made {
                names.push(assumption.as_str());
            }
        }
        names
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
            (Fault::Resend, 1),
            (Fault::Fail, 1),
            (Fault::LateFail, 1),
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
    fn each_fault_has_a_count_of_its_own() {
        let mut budget = FaultBudget::default();
        for fault in Fault::VARIANTS {
            let more = budget.with(*fault, FaultBudget::ANY).unwrap();
            assert!(budget.is_within(more) && !more.is_within(budget) && budget < more);
            assert_eq!(budget.with(*fault, budget), None, "{fault:?}");
            budget = more;
        }
        let two: FaultBudget = "expiry=2,delay=2".parse().unwrap();
        let one_each = "expiry=1,delay=1".parse::<FaultBudget>().unwrap();
        assert_eq!(one_each.with(Fault::Expiry, two), None, "a delay costs an expiry");
        assert_eq!(one_each.with(Fault::Delay, two), None);
        assert_eq!(budget.total(), Fault::VARIANTS.len());
        let mut many = FaultBudget::default();
        for _ in 0..100 {
            many = many.with(Fault::Crash, FaultBudget::ANY).unwrap();
        }
        assert_eq!(many.faults().collect::<Vec<_>>(), [(Fault::Crash, LARGEST_COUNT)]);
    }

    #[test]
    fn reads_as_words() {
        assert_eq!(FaultBudget::default().to_string(), "no fault");
        assert_eq!(
            FaultBudget::USUAL.to_string(),
            "2 expiries + 1 crash + 1 lost reply + 1 call sent again + 1 failing handler \
            + 1 late failing handler + 1 give-up"
        );
    }
}
