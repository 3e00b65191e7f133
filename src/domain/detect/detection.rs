//! Turns samples into groups: Redis keys of one type with similar names, each group matched against
//! every schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::evidence_of::{ASKED, lock_guess, nearest, of as evidence, parting, with_members};
use super::group::{Confidence, Guess, KeyGroup, Other};
use super::pattern::{Pattern, is_separator, patterns};
use super::placing::{NamedSchemas, SchemaSet};
use super::schema_match::{SampleSet, SchemaMatch, match_schemas, share};
use super::token::ANY;
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

/// A schema is the only candidate if every other one has less than this share of its points.
const HALF: f64 = 0.5;

/// The share of a group that a schema must read if another group already proves that the keyspace
/// uses it. The remaining records may be damaged ones.
const MOST: f64 = 0.5;

/// The share of a group that a schema must read to be mentioned as a possible match.
const SOME: f64 = 0.2;

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
    let first_pass = judge_patterns(samples, schema_set, &patterned, &NamedSchemas::new());
    // A second pass, because the first one shows which schemas the rest of the keyspace uses.
    let second_pass = judge_patterns(samples, schema_set, &patterned, &named(&first_pass));
    let mut groups = tenants_together(together(second_pass));
    groups.sort_by(|a, b| b.sampled.cmp(&a.sampled).then_with(|| a.pattern.cmp(&b.pattern)));
    groups
}

/// Divides the keys of each pattern among the schemas. `named` lists the schemas that the keyspace
/// certainly uses.
fn judge_patterns(
    samples: &[KeyState],
    schema_set: &dyn SchemaSet,
    patterned: &[(&str, Pattern)],
    named: &NamedSchemas,
) -> Vec<KeyGroup> {
    let mut groups = Vec::new();
    for (kind, pattern) in patterned {
        groups.extend(PatternJudge { samples, schema_set, kind, pattern, named }.judge());
    }
    groups
}

/// The field names of these hashes and JSON objects; empty if one of them is anything else.
fn fields(samples: &[KeyState], among: &[usize]) -> BTreeSet<Vec<u8>> {
    let mut names = BTreeSet::new();
    // The beginning of a longer JSON value is not valid JSON, so only whole values are read.
    let whole = among.iter().filter(|sample| samples[**sample].content.is_whole());
    for sample in whole.take(ASKED) {
        match &samples[*sample].content {
            Content::Hash(hash) => {
                for field in &hash.fields {
                    names.insert(field.name.clone());
                }
            }
            Content::Text { head, .. } => {
                let Ok(serde_json::Value::Object(members)) = serde_json::from_slice(head) else {
                    return BTreeSet::new();
                };
                for (name, _) in members {
                    names.insert(name.into_bytes());
                }
            }
            Content::Absent | Content::Other(_) => return BTreeSet::new(),
        }
    }
    names
}

/// Joins unclaimed groups whose values have the same fields and whose patterns differ in one part.
/// That part is often the name of a tenant.
fn tenants_together(mut groups: Vec<KeyGroup>) -> Vec<KeyGroup> {
    let mut index = 0;
    while index < groups.len() {
        let mut same = None;
        for other in index + 1..groups.len() {
            if let Some(pattern) = common_pattern(&groups[index], &groups[other]) {
                same = Some((other, pattern));
                break;
            }
        }
        match same {
            // The joined group is compared again, because its pattern may now fit further groups.
            Some((other, pattern)) => {
                let other = groups.remove(other);
                groups[index].take_in(other);
                groups[index].pattern = pattern;
            }
            None => index += 1,
        }
    }
    groups
}

/// The pattern that two unclaimed groups have in common; `None` if they are not alike.
fn common_pattern(one: &KeyGroup, other: &KeyGroup) -> Option<String> {
    if one.guess.is_some() || other.guess.is_some() || one.kind != other.kind {
        return None;
    }
    // Without fields, nothing but the names suggests that two groups are alike.
    if one.fields.is_empty() || one.fields != other.fields {
        return None;
    }
    let mut common = pattern_parts(one);
    let others = pattern_parts(other);
    if common.len() != others.len() {
        return None;
    }
    let mut names_that_differ = 0;
    for (index, (part, other)) in common.iter_mut().zip(&others).enumerate() {
        if part == other {
            continue;
        }
        let separator = last_separator(part);
        if last_separator(other) != separator {
            return None;
        }
        if !is_any(part) && !is_any(other) {
            names_that_differ += 1;
        }
        // The first part of a key is the best sign of its service, so two groups that differ there
        // stay apart.
        if index == 0 || names_that_differ > 1 {
            return None;
        }
        *part = ANY.to_owned();
        part.extend(separator);
    }
    Some(common.concat())
}

/// The parts of a group's pattern, each with the separator after it.
fn pattern_parts(group: &KeyGroup) -> Vec<String> {
    group.pattern.split_inclusive(is_separator).map(str::to_owned).collect()
}

/// The separator at the end of a part; `None` for the last part of a pattern.
fn last_separator(part: &str) -> Option<char> {
    part.chars().next_back().filter(|last| is_separator(*last))
}

/// True for a part that stands for any text.
fn is_any(part: &str) -> bool {
    part.trim_end_matches(is_separator) == ANY
}

/// The schemas that these groups identify with certainty.
fn named(groups: &[KeyGroup]) -> NamedSchemas {
    let mut named = NamedSchemas::new();
    for group in groups {
        if group.confidence != Confidence::Is {
            continue;
        }
        if let Some(guess) = &group.guess {
            named.insert((guess.schema.name.clone(), guess.schema.prefix.text.clone()));
        }
    }
    named
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
    named: &'a NamedSchemas,
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
        if self.are_covered(&matches, &attributions, &rest) {
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
                parts.extend(in_part(
                    &matches[attribution.schema_match],
                    &attribution.taken,
                    among,
                ));
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

    /// True if schemas read so many samples that the whole group is attributed to them. `rest`
    /// lists the samples that no schema reads.
    fn are_covered(
        &self,
        matches: &[SchemaMatch],
        attributions: &[Attribution],
        rest: &[usize],
    ) -> bool {
        if attributions.is_empty() {
            return false;
        }
        let are_named = attributions
            .iter()
            .all(|attribution| self.is_named(&matches[attribution.schema_match]));
        let must_read = if are_named { MOST } else { NEARLY_ALL };
        // A value of which too few bytes were read does not count against the schemas.
        let mut undecided = 0;
        for sample in rest {
            if matches.iter().any(|schema_match| schema_match.undecided.contains(sample)) {
                undecided += 1;
            }
        }
        let all = self.pattern.members.len();
        share(rest.len(), all) - share(undecided, all) <= 1.0 - must_read
    }

    fn sample_set<'b>(&'b self, among: &'b [usize]) -> SampleSet<'b> {
        SampleSet { samples: self.samples, among, leader: &self.pattern.leader, named: self.named }
    }

    fn is_named(&self, schema_match: &SchemaMatch) -> bool {
        let schema = schema_match.schema();
        self.named.contains(&(schema.name.clone(), schema.prefix.text.clone()))
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
                others.push(Other {
                    schema: other.schema().name.clone(),
                    why: parting(best.schema(), other.schema()),
                });
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

        // The names of keys alone never identify a library whose values are any text, unless
        // another group shows that the keyspace uses it.
        let values_give_points = points - points_of_keys > 0.0;
        let is_sure = self.is_named(best)
            || values_give_points && (points_of_keys > 0.0 || points >= MIN_OF_VALUES);
        let confidence =
            if others.is_empty() && is_sure { Confidence::Is } else { Confidence::Perhaps };
        let (states, stuck, unended) = self.states(&guess, &attribution.taken);
        KeyGroup {
            confidence,
            others,
            evidence: evidence(&guess),
            states,
            stuck,
            unended,
            guess: Some(guess),
            ..self.group(&attribution.taken)
        }
    }

    /// The group of the samples that are attributed to no schema. `others` lists the schemas that
    /// read a part of them.
    fn unattributed(&self, among: &[usize], mut others: Vec<Other>) -> KeyGroup {
        let mut guess = None;
        match with_members(self.schema_set, self.sample_set(among)) {
            // That says more than a guess.
            Some(schema) => others.push(schema),
            None => {
                others.extend(nearest(self.schema_set, self.sample_set(among)));
                guess = lock_guess(&self.pattern.text, self.sample_set(among));
            }
        }
        let fields = fields(self.samples, among);
        KeyGroup { others, evidence: guess.into_iter().collect(), fields, ..self.group(among) }
    }

    /// A group of these samples, as long as nothing is known about their schema.
    fn group(&self, among: &[usize]) -> KeyGroup {
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
            unended: 0,
            example,
            fields: BTreeSet::new(),
        }
    }

    /// Counts the samples by state, the locks without expiry among them, and the other samples in
    /// progress of which no expiry is known. The number of such locks is unknown if there are any.
    fn states(
        &self,
        guess: &Guess,
        among: &[usize],
    ) -> (BTreeMap<&'static str, usize>, Option<usize>, usize) {
        let mut states = BTreeMap::new();
        let mut stuck = 0;
        let mut unended = 0;
        for sample in among {
            let record = record(guess, &self.samples[*sample]);
            // The beginning of a long value is not a damaged value, nor one of another program.
            let word = if record.readings[guess.key_index].is_undecided() {
                "undecided"
            } else if record.author.is_foreign() {
                "foreign"
            } else if is_part(guess, &self.samples[*sample]) {
                "part"
            } else {
                record.state.as_str()
            };
            *states.entry(word).or_default() += 1;
            if record.findings.iter().any(Finding::blocks_for_good) {
                stuck += 1;
            } else if word == State::InProgress.as_str() && !has_expiry(&record, guess.key_index) {
                unended += 1;
            }
        }
        if !tells_stuck(&guess.schema) {
            return (states, None, 0);
        }
        let stuck = if unended == 0 || stuck > 0 { Some(stuck) } else { None };
        (states, stuck, unended)
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

/// A schema that reads only a part of the samples, too small for a group of its own.
fn in_part(schema_match: &SchemaMatch, taken: &[usize], among: &[usize]) -> Option<Other> {
    if share(taken.len(), among.len()) < SOME || schema_match.points_of_keys() <= 0.0 {
        return None;
    }
    Some(Other {
        schema: schema_match.schema().name.clone(),
        why: format!("reads {} of these {}", taken.len(), among.len()),
    })
}

/// True for the Redis key of a part, which may also fit the template of the result.
fn is_part(guess: &Guess, seen: &KeyState) -> bool {
    let key_index = match guess.schema.key_index_of(&seen.redis_key) {
        Some((key_index, _)) => key_index,
        None => guess.key_index,
    };
    guess.schema.is_part(key_index)
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
    let is_same = one.schema.name == other.schema.name && one.key_index == other.key_index;
    is_same
        && one.schema.prefix.text == other.schema.prefix.text
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
        for (state, count) in other.states {
            *self.states.entry(state).or_default() += count;
        }
        self.unended += other.unended;
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
