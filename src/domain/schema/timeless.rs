//! What a schema's steps and values cannot do where the deployment states that there is no TTL.

use super::forms::Timestamp;
use super::model::Schema;
use super::steps::{Call, Step};
use super::ttl::TtlOf;
use super::value_template::{Place, Template};

impl Schema {
    /// Why a step cannot be made: it sends a TTL, and the deployment states that there is none. A schema.toml that contradicts
    /// itself so is not read at all.
    pub(crate) fn untimed_because(&self, step: &Step) -> Option<String> {
        let words = || step.calls.iter().flat_map(Call::words);
        let sends = |place| words().any(|word| word.has(&[place]));
        let is_sent = |name: &str| sends(if name == "lock_value" { Place::LockValue } else { Place::ResultValue });
        let values = self.write.values().filter(|(name, _)| is_sent(name)).map(|(_, value)| value);
        self.lacking(words().chain(values))
    }

    /// Why no value can be made up: one of them ends with a TTL that the deployment states there is none of.
    pub(super) fn endless_because(&self) -> Option<String> {
        self.lacking(self.write.values().map(|(_, value)| value))
    }

    /// Why the steps cannot be played, by any of them.
    pub(super) fn untimed_anywhere_because(&self) -> Option<String> {
        self.steps().find_map(|step| self.untimed_because(step))
    }

    fn lacking<'a>(&self, mut words: impl Iterator<Item = &'a Template>) -> Option<String> {
        let none = [TtlOf::Lock, TtlOf::Result].into_iter().filter(|of| self.ttl(*of).is_none());
        let none: Vec<_> = none.map(|of| (of, places(of))).collect();
        let needs = |word: &Template| none.iter().find(|(_, places)| word.has(places)).map(|(of, _)| of.as_str());
        words
            .find_map(needs)
            .map(|of| format!("it sends or writes a {of} TTL, and this deployment states that its {of}s have none"))
    }
}

/// The placeholders that stand for such a TTL, or for a moment that follows from one.
fn places(of: TtlOf) -> Vec<Place> {
    let ttl = match of {
        TtlOf::Lock => Place::LockTtl,
        TtlOf::Result => Place::ResultTtl,
    };
    Timestamp::ALL.into_iter().map(|unit| Place::Expires(of, unit)).chain([ttl]).collect()
}
