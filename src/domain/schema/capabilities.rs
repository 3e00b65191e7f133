//! What idemctl can do with a schema: write records, execute the service's steps, explore them.
//! Each method returns the reason why it cannot.

use super::model::Schema;
use super::steps::{Call, Meaning, Step};
use super::ttl::TtlOf;
use super::value_format::State;
use super::value_template::{Placeholder, Template};

impl Schema {
    /// Why idemctl cannot write records of this schema from scratch; `None` if it can.
    pub(crate) fn unwritten_because(&self) -> Option<String> {
        if let Some(why) = self.no_written_strings_because() {
            return Some(why);
        }
        if let Some(why) = missing(&self.unwritten_values()) {
            return Some(why);
        }
        self.needs_missing_ttl(self.write.values().map(|(_, value)| value))
    }

    /// True for a lock without a result, such as a mutex: no step completes it, and no value is a
    /// result.
    pub(crate) fn is_lock_alone(&self) -> bool {
        self.complete.is_none() && !self.values.iter().any(|format| format.state.is_result())
    }

    /// True if begin itself stores what later requests take as done: no step completes it, and no
    /// value is a lock.
    pub(crate) fn claims_as_done(&self) -> bool {
        let has_lock = self.values.iter().any(|format| format.state == State::InProgress);
        self.begin.is_some() && self.complete.is_none() && !has_lock
    }

    /// Why workers cannot race for the lock; `None` if they can.
    pub(crate) fn unraceable_because(&self) -> Option<String> {
        if !self.is_lock_alone() {
            return self.unplayable_because();
        }
        self.no_written_strings_because().or_else(|| self.unexplorable_steps_because())
    }

    /// Why workers cannot execute the service's steps in a simulation; `None` if they can.
    pub(crate) fn unplayable_because(&self) -> Option<String> {
        if let Some(why) = self.no_written_strings_because() {
            return Some(why);
        }
        if self.is_lock_alone() || self.claims_as_done() {
            return Some("its workers store no result".to_owned());
        }
        let [lock_value, result_value] = self.unwritten_values();
        let parts = [
            ("[begin]", self.begin.is_none()),
            ("[complete]", self.complete.is_none()),
            lock_value,
            result_value,
        ];
        missing(&parts).or_else(|| self.some_step_untimed_because())
    }

    /// Why the steps cannot be explored; `None` if they can. Only the steps change Redis during an
    /// exploration. Values that the service's own scripts write therefore need no template.
    pub(crate) fn unexplorable_because(&self) -> Option<String> {
        let stores = !self.is_lock_alone() && !self.claims_as_done();
        if stores && self.no_written_strings_because().is_none() {
            return self.unplayable_because();
        }
        // A step cannot send a value that idemctl cannot write. A script may write it by itself.
        let sends_values = self.steps().flat_map(|step| &step.calls).any(|call| {
            let values = [Placeholder::LockValue, Placeholder::ResultValue];
            call.words().any(|word| word.has(&values))
        });
        if sends_values && let Some(why) = self.read_only_because() {
            return Some(why);
        }
        self.unexplorable_steps_because()
    }

    /// Which step is missing, or has no TTL to send.
    fn unexplorable_steps_because(&self) -> Option<String> {
        let is_lock = self.is_lock_alone();
        let stores = !is_lock && !self.claims_as_done();
        let parts = [
            ("[begin]", self.begin.is_none()),
            ("[complete]", stores && self.complete.is_none()),
            ("[release]", is_lock && self.release.is_none()),
            ("`response` (the reply of a replay)", stores && self.write.response.is_none()),
        ];
        missing(&parts).or_else(|| self.some_step_untimed_because())
    }

    /// True if the call reads or writes the lock's Redis key, as far as its words show it. A script
    /// that is sent no Redis key of the record, or the bare key, may build any of them.
    pub(crate) fn touches_lock(&self, call: &Call) -> bool {
        self.touches(call, self.lock_key_index())
    }

    /// The same for the Redis key with this index.
    pub(crate) fn touches(&self, call: &Call, key_index: usize) -> bool {
        let role = self.keys[key_index].role;
        let mut names_another = false;
        for word in call.words() {
            match self.key_index_in(word) {
                Some(named) if named == key_index => return true,
                Some(_) => names_another = true,
                None => {
                    let bare =
                        [Placeholder::RedisKey(role), Placeholder::Key, Placeholder::ClientKey];
                    if word.has(&bare) {
                        return true;
                    }
                    names_another |= word.roles().next().is_some();
                }
            }
        }
        !names_another
    }

    /// True if a word of a call stands for the names and values of a hash.
    pub(crate) fn is_words_of_hash(&self, word: &Template) -> bool {
        let key_index = match word.only_place() {
            Some(Placeholder::LockValue) => self.lock_key_index(),
            Some(Placeholder::ResultValue) => self.result_key_index(),
            _ => return false,
        };
        self.hash_key_indexes().contains(&key_index)
    }

    /// True if begin sends a Redis key that `[keys]` does not name, such as `{record}:lock`.
    pub(crate) fn begins_with_other_keys(&self) -> bool {
        for word in self.begin_calls().iter().flat_map(Call::words) {
            if word.roles().next().is_some() && self.key_index_in(word).is_none() {
                return true;
            }
        }
        false
    }

    /// The index of the Redis key that a word of a call is, such as `{lock}`. `None` if it is not one of the record's Redis keys.
    fn key_index_in(&self, word: &Template) -> Option<usize> {
        word.roles().next()?;
        // A word that is a Redis key for one idempotency key is so for all of them.
        let key = b"idemctl";
        let filled = word.fill(|placeholder| match placeholder {
            Placeholder::RedisKey(role) => match self.index_of(role) {
                Some(key_index) => self.keys[key_index].template.redis_key(key),
                None => Vec::new(),
            },
            // No Redis key contains this byte.
            _ => vec![0],
        });
        self.redis_keys(key).iter().position(|redis_key| *redis_key == filled)
    }

    /// True if begin lists a replay of values of this format.
    pub(crate) fn replays(&self, format: usize) -> bool {
        for reply in self.begin_calls().iter().flat_map(|call| &call.replies) {
            let is_for_format = reply.value == Some(format)
                || reply.when.iter().any(|condition| condition.is_about(format));
            if reply.means == Meaning::Replay && is_for_format {
                return true;
            }
        }
        false
    }

    /// True if a lock without TTL stays until somebody removes it, because the service gives its
    /// locks a TTL, and no value holds an expiry of its own.
    pub(crate) fn locks_need_ttl(&self) -> bool {
        // The next request gives such a lock a TTL.
        if self.begin.as_ref().is_some_and(|begin| begin.gives_ttl) {
            return false;
        }
        let mut locks = self.values.iter().filter(|format| format.state == State::InProgress);
        self.ttl(TtlOf::Lock).is_some() && !locks.any(|format| format.expires_at.is_some())
    }

    /// True if the begin step is described, and writes no Redis key beside those of the record, whose
    /// value may decide the answer, too.
    pub(crate) fn answers_by_record(&self) -> bool {
        match &self.begin {
            Some(begin) => self.keys_beside_record(&begin.calls, b"idemctl").is_empty(),
            None => false,
        }
    }

    /// The step that a command of idemctl executes; `None` if it executes none.
    pub(crate) fn step_of_command(&self, command: &str) -> Option<&Step> {
        match command {
            "begin" => self.begin.as_ref(),
            "complete" => self.complete.as_ref(),
            "release" => self.release.as_ref(),
            _ => None,
        }
    }

    /// The Redis keys that calls may write beside those of the record with this idempotency key.
    /// idemctl does not read them, and keeps no copy of them.
    pub(crate) fn keys_beside_record(&self, calls: &[Call], key: &[u8]) -> Vec<Vec<u8>> {
        let mut beside = Vec::new();
        // Most schemas name only the record's own Redis keys. Lists ask for each record.
        if calls.iter().flat_map(Call::written_keys).all(Template::is_redis_key) {
            return beside;
        }
        let own = self.redis_keys(key);
        for call in calls {
            for word in call.written_keys() {
                // Scripts build Redis keys from the idempotency key alone.
                if word.fill(|_| Vec::new()).is_empty() && word.roles().next().is_none() {
                    continue;
                }
                let redis_key = word.fill(|placeholder| match placeholder {
                    Placeholder::RedisKey(role) => match self.index_of(role) {
                        Some(key_index) => own[key_index].clone(),
                        None => Vec::new(),
                    },
                    Placeholder::Key | Placeholder::ClientKey => key.to_vec(),
                    Placeholder::Prefix => self.prefix.text.as_bytes().to_vec(),
                    // An owner or a time, which differs for each request.
                    _ => b"*".to_vec(),
                });
                if !own.contains(&redis_key) && !beside.contains(&redis_key) {
                    beside.push(redis_key);
                }
            }
        }
        beside
    }

    /// Why idemctl executes no steps of the service: it cannot write the values of one value
    /// format. `None` if it can write all of them.
    pub(crate) fn read_only_because(&self) -> Option<String> {
        let mut formats = self.values.iter();
        let format = formats.find(|format| !format.decoding.is_written())?;
        Some(format!(
            "it stores `{}` in a format that idemctl reads but does not write",
            format.name
        ))
    }

    /// Why a step cannot be executed: it sends a TTL, but the deployment states that this TTL does
    /// not exist. The parser already rejects a schema.toml that contradicts itself in this way.
    pub(crate) fn untimed_because(&self, step: &Step) -> Option<String> {
        let words: Vec<_> = step.calls.iter().flat_map(Call::words).collect();
        let mut sent = words.clone();
        for (name, value) in self.write.values() {
            // A failed result is sent through the same placeholder as a result.
            let placeholder = if name == "lock_value" {
                Placeholder::LockValue
            } else {
                Placeholder::ResultValue
            };
            if words.iter().any(|word| word.has(&[placeholder])) {
                sent.push(value);
            }
        }
        self.needs_missing_ttl(sent.into_iter())
    }

    fn some_step_untimed_because(&self) -> Option<String> {
        self.steps().find_map(|step| self.untimed_because(step))
    }

    /// Why idemctl neither writes records nor executes steps: it cannot write the values, or they
    /// are not strings.
    fn no_written_strings_because(&self) -> Option<String> {
        if let Some(why) = self.read_only_because() {
            return Some(why);
        }
        if !self.keeps_collections() {
            return None;
        }
        Some(
            "it stores hashes, which only `explore`, `begin`, `complete` and `release` support"
                .to_owned(),
        )
    }

    fn unwritten_values(&self) -> [(&'static str, bool); 2] {
        let write = &self.write;
        [
            ("`lock_value`", write.lock_value.is_none()),
            ("`result_value`", write.result_value.is_none()),
        ]
    }

    /// Which TTL one of the words needs although this deployment states that the TTL does not
    /// exist; `None` if no word needs one.
    fn needs_missing_ttl<'a>(&self, words: impl Iterator<Item = &'a Template>) -> Option<String> {
        for word in words {
            for of in [TtlOf::Lock, TtlOf::Result] {
                let sent = match of {
                    TtlOf::Lock => [Placeholder::LockTtl, Placeholder::LockTtlMilliseconds],
                    TtlOf::Result => [Placeholder::ResultTtl, Placeholder::ResultTtlMilliseconds],
                };
                if self.ttl(of).is_none() && (word.has(&sent) || word.has_expiry(of)) {
                    let of = of.as_str();
                    return Some(format!(
                        "it sends or writes a {of} TTL, but this deployment has {of}s without TTL"
                    ));
                }
            }
        }
        None
    }
}

/// Names the parts that schema.toml lacks; `None` if it lacks none of them.
fn missing(parts: &[(&str, bool)]) -> Option<String> {
    let mut missing = Vec::new();
    for (name, is_missing) in parts {
        if *is_missing {
            missing.push(*name);
        }
    }
    if missing.is_empty() {
        return None;
    }
    Some(format!("its schema.toml has no {}", missing.join(" and no ")))
}
