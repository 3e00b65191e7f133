//! The invariants: properties that must hold in every schedule.

use std::fmt;
use std::sync::Arc;

use serde::{Serialize, Serializer};

use super::act::Act;
use super::transition::{AttributedReply, ResponseAuthor, Transition};
use crate::domain::schema::{Meaning, Schema};

/// A property that must hold after every transition of every schedule.
#[derive(Clone, Copy)]
pub struct Invariant {
    pub name: &'static str,
    /// The property in words.
    pub(crate) sentence: &'static str,
    /// Its place in the order of harm to clients, from 0.
    pub(crate) rank: usize,
    /// The change that usually helps.
    pub(crate) remedy: &'static str,
    /// Whether a schema has what the invariant is about.
    pub(crate) applies_to: fn(&Schema) -> bool,
    /// The request after the transition that shows the violation; `None` if the transition itself
    /// shows it.
    pub(crate) shown_by: fn(&Transition) -> Option<Act>,
    pub(crate) is_violated: fn(&Transition) -> bool,
}

impl fmt::Debug for Invariant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl Invariant {
    /// True if an operation is executed twice in a history that violates it.
    pub(crate) fn executes_twice(&self) -> bool {
        self.rank < 2
    }
}

/// Invariants are told apart by their names.
impl PartialEq for Invariant {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Invariant {}

impl Serialize for Invariant {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// The invariants in the order in which violations are reported.
pub(crate) const ALL: [Invariant; 12] = [
    ONE_EFFECT,
    ONE_HOLDER,
    EFFECT_NOT_LOST,
    TRUE_REPLAY,
    NO_FALSE_DONE,
    RESULT_KEPT,
    RESULT_NOT_REPLACED,
    LOCK_ENDS,
    OWNER_ONLY,
    REPLAYS_AFTER_SUCCESS,
    PAYLOADS_APART,
    TTL_AS_STATED,
];

/// The invariants about what one of these services has.
pub(super) fn of(services: &[Arc<Schema>]) -> Vec<&'static Invariant> {
    let mut all = Vec::new();
    for invariant in &ALL {
        if services.iter().any(|schema| (invariant.applies_to)(schema)) {
            all.push(invariant);
        }
    }
    all
}

pub(crate) const ONE_EFFECT: Invariant = Invariant {
    name: "one-effect",
    sentence: "the effect happens at most once",
    rank: 0,
    remedy: "let begin take the lock only if no lock and no result exists, give it a TTL longer than the \
        longest run, and pass the key on to the system that has the effect",
    applies_to: |schema| !schema.is_lock_alone(),
    shown_by: |_| None,
    is_violated: one_effect_is_violated,
};

fn one_effect_is_violated(transition: &Transition) -> bool {
    // Each operation may have one effect.
    for of_operation in [transition.other_payload, !transition.other_payload] {
        // Only the transition to the second effect counts, or every later transition would be a
        // violation as well.
        let before = transition.effects_before & of_operation;
        let after = transition.effects & of_operation;
        if after.count_ones() > 1 && before.count_ones() < 2 {
            return true;
        }
    }
    false
}

/// For a lock without a result, the effects of a transition are the workers inside the section.
const ONE_HOLDER: Invariant = Invariant {
    name: "one-holder",
    sentence: "at most one worker is inside the section that the lock protects",
    rank: 0,
    remedy: "take the lock in one command, with a TTL longer than the longest run, and let what it \
        protects refuse an older fencing token",
    applies_to: Schema::is_lock_alone,
    shown_by: |_| None,
    is_violated: one_effect_is_violated,
};

const EFFECT_NOT_LOST: Invariant = Invariant {
    name: "effect-not-lost",
    sentence: "no request is answered as done after every worker ended without the effect",
    rank: 2,
    remedy: "claim the key as in progress with a short TTL, and store that it is done after the effect",
    applies_to: Schema::claims_as_done,
    shown_by: |transition| transition.after.replays.map(Act::Next),
    is_violated: effect_not_lost_is_violated,
};

fn effect_not_lost_is_violated(transition: &Transition) -> bool {
    transition.quiet && transition.effects == 0 && transition.after.replays.is_some()
}

pub(crate) const TRUE_REPLAY: Invariant = Invariant {
    name: "true-replay",
    sentence: "a replay is the response of an effect, or of a failure before any effect",
    rank: 3,
    remedy: "let only the worker whose lock exists store a response, and only after its effect",
    applies_to: |schema| schema.complete.is_some(),
    shown_by: |_| None,
    is_violated: true_replay_is_violated,
};

fn true_replay_is_violated(transition: &Transition) -> bool {
    let Some(AttributedReply { meaning: Some(Meaning::Replay), author }) = transition.reply else {
        return false;
    };
    match author {
        ResponseAuthor::Nobody => true,
        ResponseAuthor::Effect(worker) => transition.effects_before & 1 << worker == 0,
        ResponseAuthor::Failure(_) => transition.effects_before != 0,
        ResponseAuthor::Untold => false,
    }
}

const NO_FALSE_DONE: Invariant = Invariant {
    name: "no-false-done",
    sentence: "no client is told that an operation is done if it was not done",
    rank: 4,
    remedy: "let begin replay nothing but a stored result",
    applies_to: |schema| schema.complete.is_some(),
    shown_by: |_| None,
    is_violated: no_false_done_is_violated,
};

fn no_false_done_is_violated(transition: &Transition) -> bool {
    let Some(AttributedReply { meaning: Some(Meaning::Replay), author }) = transition.reply else {
        return false;
    };
    // The response of a failure reports correctly that the operation was not done.
    transition.effects_before == 0 && !matches!(author, ResponseAuthor::Failure(_))
}

const RESULT_KEPT: Invariant = Invariant {
    name: "result-kept",
    sentence: "no worker removes a stored result before its TTL ends",
    rank: 4,
    remedy: "check in a script that no result is stored before a step changes the record",
    applies_to: |schema| schema.complete.is_some(),
    shown_by: |_| None,
    is_violated: result_kept_is_violated,
};

fn result_kept_is_violated(transition: &Transition) -> bool {
    // Without a caller the TTL of the result elapsed, or a fault happened.
    transition.caller.is_some() && transition.before.result && !transition.after.result
}

const RESULT_NOT_REPLACED: Invariant = Invariant {
    name: "result-not-replaced",
    sentence: "no worker replaces a stored result by a different one",
    rank: 4,
    remedy: "let complete store a result only if the worker's own lock still exists",
    applies_to: |schema| schema.complete.is_some(),
    shown_by: |_| None,
    is_violated: result_not_replaced_is_violated,
};

fn result_not_replaced_is_violated(transition: &Transition) -> bool {
    let remains = transition.before.result && transition.after.result;
    // Without a caller a TTL elapsed or a fault happened. No step of the service did it.
    transition.caller.is_some() && remains && transition.result_rewritten
}

const LOCK_ENDS: Invariant = Invariant {
    name: "lock-ends",
    sentence: "a request after all workers have ended is not rejected indefinitely",
    rank: 2,
    remedy: "set the lock and its TTL in one command or script, and let no later write remove or \
        prolong the TTL",
    applies_to: |schema| !schema.claims_as_done(),
    shown_by: |transition| transition.after.stuck.map(Act::Next),
    is_violated: lock_ends_is_violated,
};

fn lock_ends_is_violated(transition: &Transition) -> bool {
    // A worker that is still running may still end the lock.
    transition.quiet && transition.after.stuck.is_some()
}

pub(crate) const OWNER_ONLY: Invariant = Invariant {
    name: "owner-only",
    sentence: "only its owner removes a lock",
    rank: 4,
    remedy: "take a lock only if none exists, store an owner token in it, and compare the owner in every \
        script that changes the lock",
    applies_to: |schema| !schema.claims_as_done(),
    shown_by: |_| None,
    is_violated: owner_only_is_violated,
};

fn owner_only_is_violated(transition: &Transition) -> bool {
    // Without a caller a TTL elapsed or a fault happened. No worker removed the lock.
    let Some(caller) = transition.caller else { return false };
    let Some(holder) = transition.holder else { return false };
    caller != holder && transition.lock_gone
}

const REPLAYS_AFTER_SUCCESS: Invariant = Invariant {
    name: "replays-after-success",
    sentence: "once a result is stored and all workers have ended, no request fails or is rejected \
        indefinitely",
    rank: 1,
    remedy: "let begin understand every value that the steps of the releases in use can store at the \
        Redis keys",
    applies_to: |schema| schema.complete.is_some(),
    shown_by: |transition| transition.after.fails.or(transition.after.stuck).map(Act::Next),
    is_violated: replays_after_success_is_violated,
};

fn replays_after_success_is_violated(transition: &Transition) -> bool {
    transition.quiet
        && transition.succeeded
        && transition.after.fails.or(transition.after.stuck).is_some()
}

pub(crate) const PAYLOADS_APART: Invariant = Invariant {
    name: "payloads-apart",
    sentence: "a request with a different payload is not served as if its payload were the same",
    rank: 4,
    remedy: "store a fingerprint of the payload with every lock and result, and let begin compare it \
        first",
    applies_to: |schema| schema.complete.is_some(),
    shown_by: |transition| transition.after.mistaken.map(Act::Other),
    is_violated: payloads_apart_is_violated,
};

fn payloads_apart_is_violated(transition: &Transition) -> bool {
    let other = transition.other_payload;
    let has_both = |effects: u8| effects & other != 0 && effects & !other != 0;
    let executes_both = has_both(transition.effects) && !has_both(transition.effects_before);
    transition.after.mistaken.is_some()
        || executes_both
        || gets_response_of_other_payload(transition)
}

/// True if a worker gets the response of a worker with another payload.
fn gets_response_of_other_payload(transition: &Transition) -> bool {
    let (Some(caller), Some(reply)) = (transition.caller, transition.reply) else { return false };
    if transition.other_payload == 0 || reply.meaning != Some(Meaning::Replay) {
        return false;
    }
    let same = transition.same_payload(caller);
    match reply.author {
        ResponseAuthor::Effect(author) | ResponseAuthor::Failure(author) => same & 1 << author == 0,
        // Without a response, the effect that the client is told of is one that has happened.
        ResponseAuthor::Untold => {
            transition.effects_before != 0 && transition.effects_before & same == 0
        }
        ResponseAuthor::Nobody => false,
    }
}

const TTL_AS_STATED: Invariant = Invariant {
    name: "ttl-as-stated",
    sentence: "a step gives each lock and result the TTL that the schema states",
    rank: 4,
    remedy: "set the TTL that `[ttl]` states, with EX for seconds and PX for milliseconds, or correct \
        `[ttl]`",
    applies_to: |_| true,
    shown_by: |_| None,
    is_violated: |transition| transition.sets_other_ttl,
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::exploration::StateFacts;

    /// A transition in which nothing happens.
    fn transition() -> Transition {
        let facts = StateFacts {
            lock: false,
            owner: None,
            result: false,
            replays: None,
            fails: None,
            stuck: None,
            mistaken: None,
        };
        Transition {
            caller: None,
            reply: None,
            before: facts,
            after: facts,
            sets_other_ttl: false,
            result_rewritten: false,
            lock_gone: false,
            holder: None,
            effects_before: 0,
            effects: 0,
            other_payload: 0,
            quiet: false,
            succeeded: false,
        }
    }

    #[test]
    fn a_violation_of_one_effect_is_found() {
        for (effects_before, effects, broken) in
            [(0b01, 0b11, true), (0b00, 0b01, false), (0b11, 0b111, false)]
        {
            assert_eq!(
                one_effect_is_violated(&Transition { effects_before, effects, ..transition() }),
                broken
            );
        }
    }

    #[test]
    fn two_operations_may_have_an_effect_each_but_not_with_one_key() {
        let both = Transition {
            effects_before: 0b001,
            effects: 0b101,
            other_payload: 0b100,
            ..transition()
        };
        assert!(!one_effect_is_violated(&both) && payloads_apart_is_violated(&both));
        let later = Transition { effects_before: 0b101, ..both };
        assert!(!payloads_apart_is_violated(&later), "it was a violation before");
        let twice = Transition { effects_before: 0b101, effects: 0b111, ..both };
        assert!(one_effect_is_violated(&twice) && !payloads_apart_is_violated(&twice));
    }

    #[test]
    fn a_replay_for_another_payload_is_found() {
        for (caller, author, effects_before, broken) in [
            (2, ResponseAuthor::Effect(0), 0b001, true),
            (2, ResponseAuthor::Failure(1), 0, true),
            (0, ResponseAuthor::Effect(2), 0b100, true),
            (1, ResponseAuthor::Effect(0), 0b001, false),
            (2, ResponseAuthor::Effect(2), 0b100, false),
            (2, ResponseAuthor::Untold, 0b001, true),
            (2, ResponseAuthor::Untold, 0b100, false),
            (1, ResponseAuthor::Untold, 0b001, false),
        ] {
            let reply = Some(AttributedReply { meaning: Some(Meaning::Replay), author });
            let caller = Some(caller);
            let replay = Transition { caller, reply, effects_before, ..transition() };
            let replay = Transition { effects: effects_before, other_payload: 0b100, ..replay };
            assert_eq!(payloads_apart_is_violated(&replay), broken, "{caller:?} {author:?}");
            let alone = Transition { other_payload: 0, ..replay };
            assert!(!payloads_apart_is_violated(&alone));
        }
    }

    #[test]
    fn a_violation_of_true_replay_is_found() {
        for (author, effects_before, broken) in [
            (ResponseAuthor::Nobody, 1, true),
            (ResponseAuthor::Effect(1), 0b01, true),
            (ResponseAuthor::Effect(1), 0b10, false),
            (ResponseAuthor::Failure(0), 0b10, true),
            (ResponseAuthor::Failure(0), 0, false),
            (ResponseAuthor::Untold, 0, false),
        ] {
            let reply = Some(AttributedReply { meaning: Some(Meaning::Replay), author });
            assert_eq!(
                true_replay_is_violated(&Transition { reply, effects_before, ..transition() }),
                broken,
                "{author:?}"
            );
        }
    }

    #[test]
    fn a_violation_of_no_false_done_is_found() {
        for (author, effects_before, broken) in [
            (ResponseAuthor::Untold, 0, true),
            (ResponseAuthor::Untold, 1, false),
            (ResponseAuthor::Failure(0), 0, false),
        ] {
            let reply = Some(AttributedReply { meaning: Some(Meaning::Replay), author });
            assert_eq!(
                no_false_done_is_violated(&Transition { reply, effects_before, ..transition() }),
                broken,
                "{author:?}"
            );
        }
    }

    #[test]
    fn a_violation_of_result_kept_is_found() {
        let stands = StateFacts { result: true, ..transition().before };
        let gone = Transition { caller: Some(0), before: stands, ..transition() };
        assert!(result_kept_is_violated(&gone));
        assert!(!result_kept_is_violated(&Transition { caller: None, ..gone }), "its TTL ended");
        assert!(!result_kept_is_violated(&Transition { after: stands, ..gone }));
    }

    #[test]
    fn a_violation_of_result_not_replaced_is_found() {
        let stands = StateFacts { result: true, ..transition().before };
        let replaced = Transition {
            caller: Some(0),
            before: stands,
            after: stands,
            result_rewritten: true,
            ..transition()
        };
        assert!(result_not_replaced_is_violated(&replaced));
        assert!(!result_not_replaced_is_violated(&Transition {
            result_rewritten: false,
            ..replaced
        }));
        assert!(
            !result_not_replaced_is_violated(&Transition {
                before: transition().before,
                ..replaced
            }),
            "it is the first"
        );
    }

    #[test]
    fn a_violation_of_lock_ends_is_found() {
        let stuck = Transition {
            quiet: true,
            after: StateFacts { stuck: Some(0), ..transition().after },
            ..transition()
        };
        assert!(lock_ends_is_violated(&stuck));
        assert!(
            !lock_ends_is_violated(&Transition { quiet: false, ..stuck }),
            "somebody may still end it"
        );
    }

    #[test]
    fn a_violation_of_owner_only_is_found() {
        let taken =
            Transition { caller: Some(0), holder: Some(1), lock_gone: true, ..transition() };
        assert!(owner_only_is_violated(&taken));
        assert!(!owner_only_is_violated(&Transition { holder: Some(0), ..taken }), "it is its own");
        assert!(!owner_only_is_violated(&Transition { caller: None, ..taken }), "its TTL ended");
        assert!(!owner_only_is_violated(&Transition { lock_gone: false, ..taken }));
    }

    #[test]
    fn a_violation_of_replays_after_success_is_found() {
        let fails = StateFacts { fails: Some(0), ..transition().after };
        let failing = Transition { quiet: true, succeeded: true, after: fails, ..transition() };
        assert!(replays_after_success_is_violated(&failing));
        assert!(!replays_after_success_is_violated(&Transition { succeeded: false, ..failing }));
        assert!(!replays_after_success_is_violated(&Transition {
            after: transition().after,
            ..failing
        }));
    }

    #[test]
    fn a_violation_of_payloads_apart_is_found() {
        let mistaken = StateFacts { mistaken: Some(0), ..transition().after };
        assert!(payloads_apart_is_violated(&Transition { after: mistaken, ..transition() }));
        assert!(!payloads_apart_is_violated(&transition()));
    }
}
