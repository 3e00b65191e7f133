//! What the checks of records and keys have in common: how much was looked at, and where something
//! was found.

use super::data::{DataPlace, DataSample, MemberCounts, SchemaData, SensitiveKind};
use super::facts::DeploymentFacts;
use super::judgement::{CheckJudgement, FactEvidence};
use super::refusal::RefusedFact;

/// The fewest keys of a schema about which a statement is made.
pub(super) const MIN_KEYS: u64 = 20;

/// The places that a line names.
const MAX_PLACES: usize = 4;

/// The sample, or what a check says without one: nothing if no sample was wanted.
pub(super) fn sample_of(facts: &DeploymentFacts) -> Result<&DataSample, Vec<CheckJudgement>> {
    match &facts.data {
        None => Err(Vec::new()),
        Some(Err(refusal)) => Err(vec![CheckJudgement::unknown(refusal.clone())]),
        Some(Ok(sample)) => Ok(sample),
    }
}

/// The judgement if nothing was found. `nothing` says what, e.g. `no card number`.
pub(super) fn nothing_found(sample: &DataSample, nothing: &str) -> Vec<CheckJudgement> {
    let records = sample.records();
    if records == 0 {
        return without_records(sample);
    }
    let text = format!("{nothing} in {}", coverage(sample));
    // What was not looked at may contain what the rest does not.
    if sample.has_gaps() {
        return vec![unknown(text, remedy(sample))];
    }
    vec![CheckJudgement::ok(text).with_evidence(evidence(sample))]
}

/// What helps to look at the rest.
fn remedy(sample: &DataSample) -> String {
    let mut advice = Vec::new();
    for (count, text) in [
        (
            sample.unread,
            "Allow the user to read the Redis keys, with the ACL rule ~PATTERN, and start the nodes \
             that do not answer.",
        ),
        (sample.in_part, "Look at the values that are larger than 1 MiB yourself."),
        (
            sample.not_decoded,
            "Look at the values and bodies that idemctl cannot decode yourself, such as images and \
             pickled objects.",
        ),
        (
            sample.left_out,
            "Name fewer schemas with --schema, or run doctor again, which takes another sample.",
        ),
    ] {
        if count > 0 {
            advice.push(text);
        }
    }
    if !sample.unread_members.is_empty() {
        advice.push(MEMBERS);
    }
    advice.join(" ")
}

/// What helps with members that the Redis user may not read.
const MEMBERS: &str = "Allow the user to read the Redis keys with these members, with the ACL rules \
                       ~PATTERN and +@read.";

/// The names of the schemas whose members could not be read.
fn names_of_unread(sample: &DataSample) -> String {
    let names: Vec<_> = sample.unread_members.iter().map(String::as_str).collect();
    names.join(", ")
}

/// The judgement without any record; nothing if there are no Redis keys either.
pub(super) fn without_records(sample: &DataSample) -> Vec<CheckJudgement> {
    if sample.redis_keys == 0 {
        return Vec::new();
    }
    if !sample.unread_members.is_empty() {
        let names = names_of_unread(sample);
        let fact = format!("the members of the Redis key of {names} could not be read");
        return vec![unknown(fact, MEMBERS)];
    }
    let keys = sample.redis_keys;
    let fact = format!("none of the {keys} Redis keys in the sample belongs to a known schema");
    vec![unknown(fact, LARGER)]
}

/// What a check of keys says: the judgement of each schema that `of_schema` finds fault with, and
/// the sentence `fine` about the others. Nothing is said of hashed keys, which look random whatever
/// the client sent.
pub(super) fn judge_keys(
    facts: &DeploymentFacts,
    of_schema: impl Fn(&SchemaData) -> Option<CheckJudgement>,
    fine: &str,
) -> Vec<CheckJudgement> {
    let sample = match sample_of(facts) {
        Ok(sample) => sample,
        Err(judgements) => return judgements,
    };
    if sample.schemas.is_empty() {
        return without_records(sample);
    }
    let mut judgements = Vec::new();
    let mut few = Vec::new();
    let mut sound = Vec::new();
    for data in &sample.schemas {
        if data.keys.are_hashed {
            continue;
        }
        let keys = data.keys.keys;
        if let Some(judgement) = of_schema(data) {
            judgements.push(judgement);
        } else if keys < MIN_KEYS {
            few.push((data.schema.as_str(), keys));
        } else {
            sound.push(format!("{} ({keys} keys)", data.schema));
        }
    }
    judgements.extend(too_few(&few));
    // Keys that were not read may be what the others are not.
    if let Some(gap) = unread_keys(sample) {
        if judgements.is_empty() {
            judgements.push(gap);
        }
        return judgements;
    }
    if !sound.is_empty() {
        let fact = format!("{fine}: {}", sound.join(", "));
        judgements.push(CheckJudgement::ok(fact).with_evidence(evidence(sample)));
    }
    judgements
}

/// The judgement if keys of the sample could not be read; `None` if all were.
pub(super) fn unread_keys(sample: &DataSample) -> Option<CheckJudgement> {
    let names = names_of_unread(sample);
    let fact = match (sample.unread, names.as_str()) {
        (0, "") => return None,
        (0, names) => format!("the members of {names} could not be read"),
        (1, _) => "1 record in the sample could not be read".to_owned(),
        (unread, _) => format!("{unread} records in the sample could not be read"),
    };
    Some(unknown(fact, remedy(sample)))
}

/// What helps if the sample has too few records.
pub(super) const LARGER: &str =
    "Pass a larger --sample, or name the schema of the records with --schema.";

/// The check could not be made, for this reason.
pub(super) fn unknown(fact: impl Into<String>, instead: impl Into<String>) -> CheckJudgement {
    let fact = fact.into();
    let refusal = RefusedFact {
        command: "reading the records".to_owned(),
        rule: None,
        why: fact.clone(),
        instead: Some(instead.into()),
    };
    CheckJudgement { fact, ..CheckJudgement::unknown(refusal) }
}

/// The check says nothing of schemas with few keys; `None` if there is none.
pub(super) fn too_few(schemas: &[(&str, u64)]) -> Option<CheckJudgement> {
    if schemas.is_empty() {
        return None;
    }
    let mut counts = Vec::new();
    for (schema, keys) in schemas {
        let noun = if *keys == 1 { "key" } else { "keys" };
        counts.push(format!("{schema} ({keys} {noun})"));
    }
    let fact = format!(
        "too few keys in the sample to judge them: {}; {MIN_KEYS} are needed for each schema",
        counts.join(", ")
    );
    Some(unknown(fact, LARGER))
}

/// How far the sample proves that something is not there.
pub(super) fn evidence(sample: &DataSample) -> FactEvidence {
    let is_proof = sample.has_all_records() && !sample.has_gaps();
    if is_proof { FactEvidence::Measured } else { FactEvidence::Estimated }
}

/// `480 of 500 records, from a sample of 500 of 1000000 Redis keys; 20 not decoded`.
pub(super) fn coverage(sample: &DataSample) -> String {
    let records = sample.records();
    let whole = sample.whole;
    let noun = if records == 1 { "record" } else { "records" };
    let mut text = match (whole == records, sample.has_all_records()) {
        (true, true) => format!("all {records} {noun}"),
        (true, false) => format!("{records} {noun}"),
        (false, _) => format!("{whole} of {records} {noun}"),
    };
    let mut samples = Vec::new();
    if !sample.is_all {
        let keys = sample.redis_keys;
        samples.push(match sample.there {
            Some(there) => format!("{keys} of {there} Redis keys"),
            None => format!("{keys} Redis keys"),
        });
    }
    for members in &sample.members {
        let MemberCounts { schema, looked_at, there, are_all } = members;
        if !are_all {
            samples.push(format!("{looked_at} of {there} members of {schema}"));
        }
    }
    if !samples.is_empty() {
        text.push_str(&format!(", from a sample of {}", samples.join(" and of ")));
    }
    for (count, why) in [
        (sample.in_part, "too large to be read as a whole"),
        (sample.not_decoded, "not decoded"),
        (sample.unread, "not readable"),
        (sample.left_out, "left out, because the run had read 32 MiB"),
    ] {
        if count > 0 {
            text.push_str(&format!("; {count} {why}"));
        }
    }
    if !sample.unread_members.is_empty() {
        let names = names_of_unread(sample);
        text.push_str(&format!("; the members of {names} could not be read"));
    }
    text
}

/// A kind of data at some places, with the records that have it there.
pub(super) struct PlacesOf {
    pub(super) kind: SensitiveKind,
    /// The places in words, and how many records have it there.
    places: Vec<(String, u64)>,
}

impl PlacesOf {
    pub(super) fn new(kind: SensitiveKind) -> Self {
        Self { kind, places: Vec::new() }
    }

    pub(super) fn add(&mut self, place: &DataPlace, records: u64) {
        let place = match place {
            DataPlace::Key => "in the key".to_owned(),
            DataPlace::At(pointer) => format!("at {pointer}"),
        };
        self.places.push((place, records));
    }

    /// Adds a place at which numbers are written in groups of digits.
    pub(super) fn add_grouped(&mut self, place: &DataPlace, records: u64) {
        self.add(place, records);
        if let Some((place, _)) = self.places.last_mut() {
            place.push_str(" in groups");
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.places.is_empty()
    }

    /// `card numbers at /body/card (12 of 480 records), in the key (2)`.
    pub(super) fn sentence(&mut self, records: u64) -> String {
        self.places.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
        let mut shown = Vec::new();
        for (place, count) in self.places.iter().take(MAX_PLACES) {
            let noun = if records == 1 { "record" } else { "records" };
            let count = if shown.is_empty() {
                format!("{count} of {records} {noun}")
            } else {
                count.to_string()
            };
            shown.push(format!("{place} ({count})"));
        }
        let more = self.places.len().saturating_sub(MAX_PLACES);
        if more > 0 {
            let noun = if more == 1 { "place" } else { "places" };
            shown.push(format!("at {more} other {noun}"));
        }
        format!("{} {}", self.kind.plural(), shown.join(", "))
    }
}
