//! Turns samples into groups: Redis keys of one type with similar names, each group matched against
//! every schema.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::evidence_of::{ASKED, look, nearest, of as evidence, parting};
use super::group::{Confidence, Guess, KeyGroup, Other};
use super::pattern::{Pattern, is_separator, patterns};
use super::placing::{NamedSchemas, SchemaSet};
use super::schema_match::{SampleSet, SchemaMatch, bids, share};
use super::token::ANY;
use crate::domain::diagnosis::{FindingCode, Thresholds, findings};
use crate::domain::record::{Content, Deadline, Expiry, KeyState, Observation, Record, locate};
use crate::domain::schema::{Schema, TtlOf};

/// The share of a group that one schema must read before the whole group is attributed to it.
const NEARLY_ALL: f64 = 0.95;

/// The fewest points with which a schema is named at all.
const LEAST: f64 = 2.0;

/// The fewest points for certainty if the key names give no points: many services write
/// `{"status":0}`.
const LEAST_OF_VALUES: f64 = 4.0;

/// Points that a value does not reach by accident. Only such values are separated from others in a
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
    for (sample, seen) in
        samples.iter().enumerate().filter(|(_, seen)| seen.content != Content::Absent)
    {
        by_type.entry(kind(&seen.content)).or_default().push(sample);
    }
    let mut patterned = Vec::new();
    for (kind, members) in by_type {
        let keys: Vec<_> = members.iter().map(|sample| &samples[*sample].redis_key[..]).collect();
        for mut pattern in patterns(&keys) {
            pattern.members.iter_mut().for_each(|member| *member = members[*member]);
            pattern.members.sort_unstable();
            patterned.push((kind, pattern));
        }
    }
    let judged = |named: &NamedSchemas| -> Vec<KeyGroup> {
        let panel = |(kind, pattern)| PatternJudge { samples, schema_set, kind, pattern, named };
        patterned.iter().flat_map(|(kind, pattern)| panel((*kind, pattern)).judge()).collect()
    };
    // A second pass, because the first one shows which schemas the rest of the keyspace uses.
    let mut groups = tenants_together(together(judged(&named(&judged(&NamedSchemas::new())))));
    groups.sort_by(|a, b| b.sampled.cmp(&a.sampled).then_with(|| a.pattern.cmp(&b.pattern)));
    groups
}

/// The field names of these hashes and JSON objects; empty if one of them is anything else.
fn fields(samples: &[KeyState], among: &[usize]) -> BTreeSet<Vec<u8>> {
    let mut names = BTreeSet::new();
    for sample in among.iter().filter(|sample| samples[**sample].content.is_whole()).take(ASKED) {
        match &samples[*sample].content {
            Content::Hash(hash) => names.extend(hash.fields.iter().map(|field| field.name.clone())),
            Content::Text { head, .. } => match serde_json::from_slice(head) {
                Ok(serde_json::Value::Object(members)) => {
                    names.extend(members.into_iter().map(|(name, _)| name.into()))
                }
                _ => return BTreeSet::new(),
            },
            Content::Absent | Content::Other(_) => return BTreeSet::new(),
        }
    }
    names
}

/// Joins unclaimed groups whose values have the same fields and whose patterns differ in one part.
/// That part is often the name of a tenant.
fn tenants_together(mut groups: Vec<KeyGroup>) -> Vec<KeyGroup> {
    let mut at = 0;
    while at < groups.len() {
        let same = (at + 1..groups.len())
            .find_map(|other| Some((other, common_pattern(&groups[at], &groups[other])?)));
        match same {
            Some((other, pattern)) => {
                let other = groups.remove(other);
                groups[at].take_in(other);
                groups[at].pattern = pattern;
            }
            None => at += 1,
        }
    }
    groups
}

/// The pattern that two unclaimed groups have in common; `None` if they are not alike.
fn common_pattern(one: &KeyGroup, other: &KeyGroup) -> Option<String> {
    let is_unclaimed = one.guess.is_none() && other.guess.is_none();
    if !is_unclaimed
        || one.kind != other.kind
        || one.fields.is_empty()
        || one.fields != other.fields
    {
        return None;
    }
    let parts = |group: &KeyGroup| -> Vec<String> {
        group.pattern.split_inclusive(is_separator).map(str::to_owned).collect()
    };
    let (mut common, other) = (parts(one), parts(other));
    if common.len() != other.len() {
        return None;
    }
    let mut names_that_differ = 0;
    for (part, (one, other)) in common.iter_mut().zip(&other).enumerate() {
        if one == other {
            continue;
        }
        let separator = one.chars().next_back().filter(|last| is_separator(*last));
        if other.chars().next_back().filter(|last| is_separator(*last)) != separator {
            return None;
        }
        let is_any = |text: &str| text.trim_end_matches(is_separator) == ANY;
        if !is_any(one) && !is_any(other) {
            names_that_differ += 1;
        }
        // The first part of a key is the best sign of its service, so two groups that differ there
        // stay apart.
        if part == 0 || names_that_differ > 1 {
            return None;
        }
        *one = ANY.to_owned();
        one.extend(separator);
    }
    Some(common.concat())
}

/// The schemas that these groups identify with certainty.
fn named(groups: &[KeyGroup]) -> NamedSchemas {
    let sure = groups.iter().filter(|group| group.confidence == Confidence::Is);
    let guesses = sure.filter_map(|group| group.guess.as_ref());
    guesses.map(|guess| (guess.schema.name.clone(), guess.schema.prefix.text.clone())).collect()
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
struct SampleClaim {
    schema_match: usize,
    taken: Vec<usize>,
}

impl PatternJudge<'_> {
    /// Returns one group for each schema that reads a part of the samples, and one group for the
    /// remaining samples.
    fn judge(&self) -> Vec<KeyGroup> {
        let among = &self.pattern.members;
        let bids = bids(self.schema_set, self.sample_set(among));
        let (mut claims, mut rest) = claims(&bids, among);
        let left = |rest: &[usize]| share(rest.len(), among.len());
        let open = |rest: &[usize]| {
            rest.iter()
                .filter(|sample| bids.iter().any(|schema_match| schema_match.open.contains(sample)))
                .count()
        };
        let read = if claims.iter().all(|claim| self.is_named(&bids[claim.schema_match])) {
            MOST
        } else {
            NEARLY_ALL
        };
        // A value of which too few bytes were read does not count against the schemas.
        let is_covered =
            !claims.is_empty() && left(&rest) - share(open(&rest), among.len()) <= 1.0 - read;
        let mut parts = Vec::new();
        if is_covered {
            // The few remaining samples are likely damaged records of the same service.
            claims[0].taken.append(&mut rest);
        } else {
            // A few points may be chance. A mixed group is split only if the values are
            // unmistakable.
            let weak = claims
                .extract_if(.., |claim| bids[claim.schema_match].points(&claim.taken) < STRONG);
            for claim in weak.collect::<Vec<_>>() {
                parts.extend(in_part(&bids[claim.schema_match], &claim.taken, among));
                rest.extend(claim.taken);
            }
        }
        rest.sort_unstable();
        let mut groups: Vec<_> =
            claims.into_iter().map(|claim| self.claimed(&bids, claim)).collect();
        if !rest.is_empty() {
            groups.push(self.unclaimed(&rest, parts));
        }
        groups
    }

    fn sample_set<'b>(&'b self, among: &'b [usize]) -> SampleSet<'b> {
        SampleSet { samples: self.samples, among, leader: &self.pattern.leader, named: self.named }
    }

    fn is_named(&self, schema_match: &SchemaMatch) -> bool {
        let schema = schema_match.schema();
        self.named.contains(&(schema.name.clone(), schema.prefix.text.clone()))
    }

    fn claimed(&self, bids: &[SchemaMatch], mut claim: SampleClaim) -> KeyGroup {
        claim.taken.sort_unstable();
        let schema_match = &bids[claim.schema_match];
        let own = schema_match.own_among(&claim.taken);
        let points = |schema_match: &&SchemaMatch| schema_match.points(&own);
        let is_other = |other: &&SchemaMatch| {
            other.schema().name != schema_match.schema().name
                && points(other) >= points(&schema_match) * HALF
        };
        let others =
            bids.iter().filter(is_other).filter(|other| points(other) >= LEAST).map(|other| {
                Other {
                    schema: other.schema().name.clone(),
                    why: parting(schema_match.schema(), other.schema()),
                }
            });
        let others: Vec<_> = others.collect();
        let cases = schema_match
            .own
            .iter()
            .filter(|(sample, _)| own.binary_search(sample).is_ok())
            .map(|(_, case)| *case);
        let guess = Guess {
            schema: Arc::clone(schema_match.schema()),
            key_index: schema_match.key_index,
            is_default: schema_match.placed.is_default,
            cases: cases.collect(),
        };
        // The names of keys alone never identify a library whose values are any text, unless
        // another group shows that the keyspace uses it.
        let points_of_values = points(&schema_match) - schema_match.points_of_keys();
        let is_sure = self.is_named(schema_match)
            || points_of_values > 0.0
                && (schema_match.points_of_keys() > 0.0
                    || points(&schema_match) >= LEAST_OF_VALUES);
        let (states, stuck) = self.states(&guess, &claim.taken);
        KeyGroup {
            confidence: if others.is_empty() && is_sure {
                Confidence::Is
            } else {
                Confidence::Perhaps
            },
            others,
            evidence: evidence(&guess),
            states,
            stuck,
            guess: Some(guess),
            ..self.group(&claim.taken)
        }
    }

    fn unclaimed(&self, among: &[usize], others: Vec<Other>) -> KeyGroup {
        let near = nearest(self.schema_set, self.sample_set(among));
        let others = others.into_iter().chain(near).collect();
        let look = look(&self.pattern.text, self.sample_set(among));
        let fields = fields(self.samples, among);
        KeyGroup { others, evidence: look.into_iter().collect(), fields, ..self.group(among) }
    }

    fn group(&self, among: &[usize]) -> KeyGroup {
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
            example: among
                .first()
                .map(|sample| self.samples[*sample].redis_key.clone())
                .unwrap_or_default(),
            fields: BTreeSet::new(),
        }
    }

    /// Counts the samples by state, and the locks without expiry among them.
    fn states(
        &self,
        guess: &Guess,
        among: &[usize],
    ) -> (BTreeMap<&'static str, usize>, Option<usize>) {
        let (mut states, mut stuck) = (BTreeMap::new(), 0);
        for sample in among {
            let record = record(guess, &self.samples[*sample]);
            let word =
                if record.claim.is_unrecognised() { "foreign" } else { record.state.as_str() };
            *states.entry(word).or_default() += 1;
            stuck += usize::from(
                record.findings.iter().any(|finding| finding.code == FindingCode::NoExpiry),
            );
        }
        (states, tells_stuck(&guess.schema).then_some(stuck))
    }
}

/// False for a service whose locks have no TTL by design: such a lock looks the same whether it is
/// held or stuck.
fn tells_stuck(schema: &Schema) -> bool {
    !schema.has_locks() || schema.ttl(TtlOf::Lock).is_some()
}

/// Assigns each sample to one schema match, the best match first. The second list holds the samples
/// that no match takes.
fn claims(bids: &[SchemaMatch], among: &[usize]) -> (Vec<SampleClaim>, Vec<usize>) {
    let (mut claims, mut rest) = (Vec::new(), among.to_vec());
    while !rest.is_empty() {
        // `b.cmp(a)` prefers the earlier schema if the points are equal, so that the operator's own
        // schemas come first.
        let best = (0..bids.len()).max_by(|a, b| {
            bids[*a].points(&rest).total_cmp(&bids[*b].points(&rest)).then(b.cmp(a))
        });
        let Some(schema_match) = best else { break };
        let taken = bids[schema_match].own_among(&rest);
        if taken.is_empty() || bids[schema_match].points(&taken) < LEAST {
            break;
        }
        rest.retain(|sample| taken.binary_search(sample).is_err());
        claims.push(SampleClaim { schema_match, taken });
    }
    (claims, rest)
}

/// A schema that reads only a part of the samples, too small for a group of its own.
fn in_part(schema_match: &SchemaMatch, taken: &[usize], among: &[usize]) -> Option<Other> {
    let is_some = share(taken.len(), among.len()) >= SOME && schema_match.points_of_keys() > 0.0;
    is_some.then(|| Other {
        schema: schema_match.schema().name.clone(),
        why: format!("reads {} of these {}", taken.len(), among.len()),
    })
}

/// The record of a Redis key, as far as this one key shows it.
fn record(guess: &Guess, seen: &KeyState) -> Record {
    let key = guess.schema.keys[guess.key_index]
        .template
        .idempotency_key(&seen.redis_key)
        .unwrap_or(&seen.redis_key);
    let keys =
        guess.schema.redis_keys(key).into_iter().enumerate().map(|(key_index, redis_key)| {
            match key_index {
                key_index if key_index == guess.key_index => seen.clone(),
                // A sample is a single Redis key. The record's other key was not read, so it counts as
                // absent.
                _ => KeyState::new(&redis_key, Content::Absent, Expiry::In(0), Deadline::Unknown),
            }
        });
    let seen = Observation { server_ms: None, keys: keys.collect(), atomic: true };
    let mut record = locate::read_as(&guess.schema, key, seen);
    record.findings = findings(&record, &Thresholds::default(), None);
    record
}

/// Joins the groups that have the same role in the same schema, because idempotency keys are named
/// in many ways.
fn together(groups: Vec<KeyGroup>) -> Vec<KeyGroup> {
    let mut all: Vec<KeyGroup> = Vec::new();
    for group in groups {
        let same = all.iter_mut().find(|other| is_one(other, &group));
        match same {
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
        self.stuck = self.stuck.zip(other.stuck).map(|(one, more)| one + more);
        if let (Some(guess), Some(more)) = (&mut self.guess, other.guess) {
            guess.cases.extend(more.cases);
            self.evidence = evidence(guess);
        }
    }
}
