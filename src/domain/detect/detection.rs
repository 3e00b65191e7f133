//! Turns samples into groups: Redis keys of one type with similar names, each group matched against
//! every schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::evidence_of::{lock_guess, of as evidence};
use super::group::{Confidence, Guess, KeyGroup, Other};
use super::pattern::{Pattern, patterns};
use super::placing::SchemaSet;
use super::schema_match::{SampleSet, SchemaMatch, match_schemas, near_misses, share};
use crate::domain::diagnosis::excess_ttl::YEAR_MS;
use crate::domain::diagnosis::{Finding, Thresholds, findings};
use crate::domain::record::{Content, Deadline, KeyState, Observation, Record, TimeLeft, locate};
use crate::domain::schema::{Schema, State, TtlOf};

/// The share of a group that one schema must read before the whole group is attributed to it. The
/// few others are then likely damaged records of the same service.
const NEARLY_ALL: f64 = 0.95;

/// The fewest points with which a schema is named at all. A field that must exist gives one point,
/// and many services have a field of the same name.
const LEAST: f64 = 2.0;

/// The fewest points for certainty if the key names give no points: many services write
/// `{"status":0}`, which gives at most three.
const MIN_OF_VALUES: f64 = 4.0;

/// Points that a value does not reach by accident: as many as a word of the service in the value
/// and its words in the Redis key give together. Only such values are separated from others in a
/// mixed group.
const STRONG: f64 = 5.0;

/// How many keys without expiry of a group are named.
const MAX_ENDLESS: usize = 2;

/// A schema is the only candidate if every other one has less than this share of its points.
const HALF: f64 = 0.5;

/// Groups these Redis keys; the largest group comes first.
pub fn detect(samples: &[KeyState], schema_set: &dyn SchemaSet) -> Vec<KeyGroup> {
    let mut by_type: BTreeMap<&str, Vec<usize>> = BTreeMap::new();
    for (index, sample) in samples.iter().enumerate() {
        // A key that expired before its value was read has no type.
        if !sample.content.is_absent() {
            by_type.entry(kind(&sample.content)).or_default().push(index);
        }
    }
    let mut patterned = Vec::new();
    for (kind, members) in by_type {
        let keys: Vec<_> = members.iter().map(|sample| &samples[*sample].redis_key[..]).collect();
        for mut pattern in patterns(&keys) {
            // The pattern counts the keys of one type; the groups count all samples.
            for member in &mut pattern.members {
                *member = members[*member];
            }
            pattern.members.sort_unstable();
            patterned.push((kind, pattern));
        }
    }
    let mut groups = Vec::new();
    for (kind, pattern) in &patterned {
        groups.extend(PatternJudge { samples, schema_set, kind, pattern }.judge());
    }
    make_sure(&mut groups);
    let mut groups = together(groups);
    groups.sort_by(|a, b| b.sampled.cmp(&a.sampled).then_with(|| a.pattern.cmp(&b.pattern)));
    groups
}

/// Values that are any text identify no schema by themselves, but they do if another group shows
/// that the keyspace uses the schema. So do the keys of its parts.
fn make_sure(groups: &mut [KeyGroup]) {
    let mut named = Vec::new();
    for group in groups.iter() {
        if let (Confidence::Is, Some(guess)) = (group.confidence, &group.guess) {
            named.push(guess.clone());
        }
    }
    for group in groups {
        for known in &named {
            let Some(guess) = &group.guess else { continue };
            if guess.has_schema_of(known) && group.others.is_empty() {
                group.confidence = Confidence::Is;
            }
        }
    }
}

/// The type of a value, as Redis names it.
fn kind(content: &Content) -> &str {
    content.other_type().unwrap_or("string")
}

/// Divides the keys of one pattern among the schemas that read their values.
struct PatternJudge<'a> {
    samples: &'a [KeyState],
    schema_set: &'a dyn SchemaSet,
    kind: &'a str,
    pattern: &'a Pattern,
}

/// The samples that one schema match takes.
struct Attribution {
    schema_match: usize,
    taken: Vec<usize>,
}

impl PatternJudge<'_> {
    /// Returns one group for each schema that reads a part of the samples, and one group for the
    /// remaining samples.
    fn judge(&self) -> Vec<KeyGroup> {
        let among = &self.pattern.members;
        let matches = match_schemas(self.schema_set, self.sample_set(among));
        let (mut attributions, mut rest) = attributions(&matches, among);
        let mut parts = Vec::new();
        if !attributions.is_empty() && self.are_covered(&matches, &rest) {
            // The few remaining samples are likely damaged records of the same service.
            attributions[0].taken.append(&mut rest);
        } else {
            // A few points may be chance. A mixed group is split only if the values are
            // unmistakable.
            let weak: Vec<_> = attributions
                .extract_if(.., |attribution| {
                    matches[attribution.schema_match].points(&attribution.taken) < STRONG
                })
                .collect();
            for attribution in weak {
                let best = &matches[attribution.schema_match];
                // Without words in the keys, the values may be anybody's.
                if best.points_of_keys() > 0.0 {
                    parts.push(other(best, &attribution.taken, among));
                }
                rest.extend(attribution.taken);
            }
        }
        rest.sort_unstable();
        let mut groups = Vec::new();
        for attribution in attributions {
            groups.push(self.attributed(&matches, attribution));
        }
        if !rest.is_empty() {
            groups.push(self.unattributed(&rest, parts));
        }
        groups
    }

    /// True if schemas read nearly all samples. `rest` lists those that no schema reads.
    fn are_covered(&self, matches: &[SchemaMatch], rest: &[usize]) -> bool {
        // A value of which too few bytes were read does not count against the schemas.
        let mut unread = rest.len();
        for sample in rest {
            if matches.iter().any(|schema_match| schema_match.undecided.contains(sample)) {
                unread -= 1;
            }
        }
        share(unread, self.pattern.members.len()) <= 1.0 - NEARLY_ALL
    }

    fn sample_set<'b>(&'b self, among: &'b [usize]) -> SampleSet<'b> {
        SampleSet { samples: self.samples, among, leader: &self.pattern.leader }
    }

    /// The group of the samples that are attributed to one schema.
    fn attributed(&self, matches: &[SchemaMatch], mut attribution: Attribution) -> KeyGroup {
        attribution.taken.sort_unstable();
        let best = &matches[attribution.schema_match];
        let own = best.own_among(&attribution.taken);
        let points = best.points(&own);
        let points_of_keys = best.points_of_keys();

        let mut others = Vec::new();
        for other in matches {
            if other.schema().name == best.schema().name {
                continue;
            }
            let other_points = other.points(&own);
            if other_points >= points * HALF && other_points >= LEAST {
                others.push(self::other(other, &other.own_among(&own), &own));
            }
        }
        let mut cases = BTreeSet::new();
        for (sample, case) in &best.own {
            if own.binary_search(sample).is_ok() {
                cases.insert(*case);
            }
        }
        let guess = Guess {
            schema: Arc::clone(best.schema()),
            key_index: best.key_index,
            is_default: best.placed.is_default,
            cases,
        };

        // The names of keys alone never identify a library whose values are any text.
        let values_give_points = points - points_of_keys > 0.0;
        let is_sure = values_give_points && (points_of_keys > 0.0 || points >= MIN_OF_VALUES);
        let confidence =
            if others.is_empty() && is_sure { Confidence::Is } else { Confidence::Perhaps };
        let (states, stuck) = self.states(&guess, &attribution.taken);
        KeyGroup {
            confidence,
            others,
            evidence: evidence(&guess),
            states,
            stuck,
            guess: Some(guess),
            ..self.group(&attribution.taken)
        }
    }

    /// The group of the samples that are attributed to no schema. `others` lists the schemas that
    /// read a part of them.
    fn unattributed(&self, among: &[usize], others: Vec<Other>) -> KeyGroup {
        let guess = lock_guess(&self.pattern.text, self.sample_set(among));
        let near = near_misses(self.schema_set, self.sample_set(among));
        KeyGroup { others, evidence: guess.into_iter().chain(near).collect(), ..self.group(among) }
    }

    /// A group of these samples, as long as nothing is known about their schema.
    fn group(&self, among: &[usize]) -> KeyGroup {
        let mut no_expiry = 0;
        let mut endless_keys = Vec::new();
        let mut over_a_year = 0;
        for sample in among {
            match self.samples[*sample].time_left {
                TimeLeft::NoExpiry => {
                    no_expiry += 1;
                    if endless_keys.len() < MAX_ENDLESS {
                        endless_keys.push(self.samples[*sample].redis_key.clone());
                    }
                }
                TimeLeft::Millis(left) if left > YEAR_MS => over_a_year += 1,
                TimeLeft::Millis(_) => {}
            }
        }
        let example = match among.first() {
            Some(sample) => self.samples[*sample].redis_key.clone(),
            None => Vec::new(),
        };
        KeyGroup {
            pattern: self.pattern.text.clone(),
            kind: self.kind.to_owned(),
            sampled: among.len(),
            confidence: Confidence::Unknown,
            guess: None,
            others: Vec::new(),
            evidence: Vec::new(),
            states: BTreeMap::new(),
            stuck: None,
            no_expiry,
            endless_keys,
            over_a_year,
            example,
        }
    }

    /// Counts the samples by state, and the locks without expiry among them. Their number is unknown
    /// if the expiry of a sample in progress is.
    fn states(
        &self,
        guess: &Guess,
        among: &[usize],
    ) -> (BTreeMap<&'static str, usize>, Option<usize>) {
        let mut states = BTreeMap::new();
        let mut stuck = 0;
        let mut is_known = tells_stuck(&guess.schema);
        for sample in among {
            let record = record(guess, &self.samples[*sample]);
            // The beginning of a long value is not a damaged value, nor one of another program.
            let word = if record.readings[guess.key_index].is_undecided() {
                "undecided"
            } else if record.author.is_foreign() {
                "foreign"
            } else {
                record.state.as_str()
            };
            *states.entry(word).or_default() += 1;
            if record.findings.iter().any(Finding::blocks_for_good) {
                stuck += 1;
            } else if word == State::InProgress.as_str() && !has_expiry(&record, guess.key_index) {
                is_known = false;
            }
        }
        (states, if is_known { Some(stuck) } else { None })
    }
}

/// True if the Redis key has a TTL, or its value contains its expiry.
fn has_expiry(record: &Record, key_index: usize) -> bool {
    let contains_expiry =
        record.readings[key_index].decoded().is_some_and(|value| value.expires_ms.is_some());
    contains_expiry || record.seen.keys[key_index].time_left != TimeLeft::NoExpiry
}

/// False for a service whose locks have no TTL by design: such a lock looks the same whether it is
/// held or stuck.
fn tells_stuck(schema: &Schema) -> bool {
    !schema.has_locks() || schema.ttl(TtlOf::Lock).is_some()
}

/// Assigns each sample to one schema match, the best match first. The second list holds the samples
/// that no match takes.
fn attributions(matches: &[SchemaMatch], among: &[usize]) -> (Vec<Attribution>, Vec<usize>) {
    let mut attributions = Vec::new();
    let mut rest = among.to_vec();
    while !rest.is_empty() {
        // `b.cmp(a)` prefers the earlier schema if the points are equal, so that the operator's own
        // schemas come first.
        let best = (0..matches.len()).max_by(|a, b| {
            matches[*a].points(&rest).total_cmp(&matches[*b].points(&rest)).then(b.cmp(a))
        });
        let Some(schema_match) = best else { break };
        let taken = matches[schema_match].own_among(&rest);
        if taken.is_empty() || matches[schema_match].points(&taken) < LEAST {
            break;
        }
        rest.retain(|sample| taken.binary_search(sample).is_err());
        attributions.push(Attribution { schema_match, taken });
    }
    (attributions, rest)
}

/// A schema that reads these samples among others, and is not the likeliest for all of them.
fn other(schema_match: &SchemaMatch, read: &[usize], among: &[usize]) -> Other {
    Other {
        schema: schema_match.schema().name.clone(),
        why: format!("reads {} of these {}", read.len(), among.len()),
    }
}

/// The record of a Redis key, as far as this one key shows it.
fn record(guess: &Guess, seen: &KeyState) -> Record {
    let template = &guess.schema.keys[guess.key_index].template;
    let key = template.idempotency_key(&seen.redis_key).unwrap_or(&seen.redis_key);
    let mut keys = Vec::new();
    for (key_index, redis_key) in guess.schema.redis_keys(key).into_iter().enumerate() {
        keys.push(if key_index == guess.key_index {
            seen.clone()
        } else {
            // A sample is a single Redis key. The record's other key was not read, so it counts as
            // absent.
            KeyState::new(&redis_key, Content::Absent, TimeLeft::Millis(0), Deadline::Unknown)
        });
    }
    let seen = Observation { server_ms: None, keys, atomic: true };
    let mut record = locate::undiagnosed_record(&guess.schema, key, seen);
    record.findings = findings(&record, &Thresholds::default(), None);
    record
}

/// Joins the groups that have the same role in the same schema, because idempotency keys are named
/// in many ways.
fn together(groups: Vec<KeyGroup>) -> Vec<KeyGroup> {
    let mut all: Vec<KeyGroup> = Vec::new();
    for group in groups {
        match all.iter_mut().find(|other| is_one(other, &group)) {
            Some(same) => same.take_in(group),
            None => all.push(group),
        }
    }
    all
}

fn is_one(a: &KeyGroup, b: &KeyGroup) -> bool {
    let (Some(one), Some(other)) = (&a.guess, &b.guess) else { return false };
    one.has_schema_of(other)
        && one.key_index == other.key_index
        && a.kind == b.kind
        && a.confidence == b.confidence
}

impl KeyGroup {
    /// Adds a group of the same records whose keys are named differently.
    fn take_in(&mut self, other: Self) {
        if self.pattern != other.pattern
            && let Some(guess) = &self.guess
        {
            // Two patterns have no common text. The schema's own template covers both.
            self.pattern = guess.schema.keys[guess.key_index].template.pattern();
        }
        self.sampled += other.sampled;
        self.no_expiry += other.no_expiry;
        self.over_a_year += other.over_a_year;
        for (state, count) in other.states {
            *self.states.entry(state).or_default() += count;
        }
        // An unknown number makes the sum unknown as well.
        self.stuck = match (self.stuck, other.stuck) {
            (Some(one), Some(more)) => Some(one + more),
            _ => None,
        };
        if let (Some(guess), Some(more)) = (&mut self.guess, other.guess) {
            guess.cases.extend(more.cases);
            self.evidence = evidence(guess);
        }
    }
}
