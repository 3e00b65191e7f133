//! What an exploration may take for granted.

use strum::{IntoStaticStr, VariantArray};

use crate::domain::as_str::as_str;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, IntoStaticStr, VariantArray)]
#[strum(serialize_all = "kebab-case")]
pub enum Assumption {
    CriticalSection,
    ResultsOutliveRetries,
}

as_str!(Assumption);

impl Assumption {
    pub fn meaning(self) -> &'static str {
        match self {
            Self::CriticalSection => {
                "no fault, expiry included, between a worker's last check of its lock and its stored result"
            }
            Self::ResultsOutliveRetries => "no result's TTL ends",
        }
    }
}

/// The assumptions that are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Assumptions {
    pub critical_section: bool,
    pub results_outlive_retries: bool,
}

impl Assumptions {
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
