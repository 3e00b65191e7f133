//! Collects what records contain while they are read. The texts themselves are dropped at once; of
//! numbers, only hashes are kept, to count each once.

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::hash::{BuildHasher as _, RandomState};

use super::card_number::CardFit;
use super::client_key::KeyCounter;
use super::data_sample::{DataPlace, DataSample, FoundData, NumberCounts, SchemaData};
use super::masked_pointer::{MaskedPointer, PathStep};
use super::sensitive::SensitiveKind;
use super::text_findings::{self, TextFindings};
use super::walk::{self, LookedAt, WalkSink};
use crate::domain::record::Record;
use crate::domain::schema::Schema;

/// The most different numbers at a place that are counted. Their hashes are in memory.
const MAX_NUMBERS: usize = 100_000;

/// The most different places of one schema that are counted separately. Services may use
/// identifiers as names of members, which gives each record places of its own.
const MAX_PLACES: usize = 5_000;

/// A sample while it is read. It has no `Debug`, because it holds names of members.
#[derive(Default)]
pub(crate) struct DataCollector {
    hasher: RandomState,
    /// The counts of the sample as a whole.
    pub(crate) sample: DataSample,
    /// The number of the record that is looked at.
    record: u64,
    schemas: BTreeMap<String, SchemaCollector>,
}

#[derive(Default)]
struct SchemaCollector {
    /// The names in the schema's file.
    names: HashSet<String>,
    template: String,
    are_hashed: bool,
    records: u64,
    found: HashMap<(SensitiveKind, RawPlace), RecordList>,
    numbers: HashMap<(SensitiveKind, bool, RawPlace), NumberCollector>,
    keys: KeyCounter,
}

/// A place before its names are masked.
#[derive(Clone, PartialEq, Eq, Hash)]
enum RawPlace {
    Key,
    At(Vec<PathStep>),
}

/// The numbers of the records that have something, in ascending order.
#[derive(Default)]
struct RecordList(Vec<u64>);

/// Different numbers by their hashes, and the records that have a valid one.
#[derive(Default)]
struct NumberCollector {
    known: HashMap<u64, CardFit>,
    records: RecordList,
}

impl RecordList {
    fn add(&mut self, record: u64) {
        if self.0.last() != Some(&record) {
            self.0.push(record);
        }
    }
}

impl DataCollector {
    /// Looks at a record.
    pub(crate) fn add(&mut self, record: &Record) {
        self.record += 1;
        let schema = self.schemas.entry(record.schema.name.clone()).or_default();
        if schema.records == 0 {
            schema.template = template_of(&record.schema);
            schema.are_hashed = record.schema.key_hash.is_some();
            schema.names = names_of(&record.schema);
        }
        schema.records += 1;
        schema.keys.add(&record.key, self.hasher.hash_one(&record.key));
        let text = String::from_utf8_lossy(&record.key);
        let findings = text_findings::of(&text);
        let number = self.record;
        schema.note(RawPlace::Key, &findings, number, &self.hasher);
        let mut sink = RecordSink { schema, hasher: &self.hasher, record: number };
        match walk::record(record, &mut sink) {
            LookedAt::Whole => self.sample.whole += 1,
            LookedAt::InPart => self.sample.in_part += 1,
            LookedAt::NotDecoded => self.sample.not_decoded += 1,
        }
    }

    /// A key of the schema was looked for in other places.
    pub(crate) fn was_looked_for(&mut self, schema: &str) {
        if let Some(schema) = self.schemas.get_mut(schema) {
            schema.keys.looked_for += 1;
        }
    }

    /// A key of the schema also exists with or without quotation marks.
    pub(crate) fn exists_in_other_form(&mut self, schema: &str) {
        if let Some(schema) = self.schemas.get_mut(schema) {
            schema.keys.in_both_forms += 1;
        }
    }

    /// A key of the schema also exists under the template of another one.
    pub(crate) fn exists_elsewhere(&mut self, schema: &str, other: &str) {
        if let Some(schema) = self.schemas.get_mut(schema) {
            *schema.keys.elsewhere.entry(other.to_owned()).or_default() += 1;
        }
    }

    /// The facts: counts and masked places.
    pub(crate) fn finish(self) -> DataSample {
        let Self { mut sample, schemas, .. } = self;
        for (name, schema) in schemas {
            sample.schemas.push(schema.finish(name));
        }
        sample
    }
}

/// The template of the schema's first Redis key, without the groups of the key.
fn template_of(schema: &Schema) -> String {
    schema.templates().into_iter().next().unwrap_or_default()
}

/// The names of fields in the schema's file, which are no data.
fn names_of(schema: &Schema) -> HashSet<String> {
    let mut names = HashSet::new();
    for format in &schema.values {
        for (_, pointer) in format.fields.pointers() {
            names.extend(pointer.split('/').skip(1).map(str::to_owned));
        }
    }
    names
}

struct RecordSink<'a> {
    schema: &'a mut SchemaCollector,
    hasher: &'a RandomState,
    record: u64,
}

impl WalkSink for RecordSink<'_> {
    fn found(&mut self, path: &[PathStep], findings: &TextFindings) {
        let place = RawPlace::At(path.to_vec());
        self.schema.note(place, findings, self.record, self.hasher);
    }
}

impl SchemaCollector {
    fn note(
        &mut self,
        place: RawPlace,
        findings: &TextFindings,
        record: u64,
        hasher: &RandomState,
    ) {
        // Beyond the limit, all places are one.
        let is_full = self.found.len() + self.numbers.len() >= MAX_PLACES;
        let place = if is_full { RawPlace::At(vec![PathStep::Any]) } else { place };
        for kind in &findings.kinds {
            self.found.entry((*kind, place.clone())).or_default().add(record);
        }
        for card in &findings.cards {
            let key = (SensitiveKind::CardNumber, card.is_grouped, place.clone());
            let counts = self.numbers.entry(key).or_default();
            counts.add(hasher.hash_one(card.digits), card.fit, record);
        }
        for iban in &findings.ibans {
            let key = (SensitiveKind::Iban, false, place.clone());
            let fit = if iban.is_valid { CardFit::Valid } else { CardFit::WrongCheckDigit };
            let counts = self.numbers.entry(key).or_default();
            counts.add(hasher.hash_one(iban.digest), fit, record);
        }
    }

    /// The facts. Places that are alike once their names are masked are one place, at which each
    /// record and each number counts once.
    fn finish(self, name: String) -> SchemaData {
        let known = self.names;
        let mut found: BTreeMap<(SensitiveKind, DataPlace), BTreeSet<u64>> = BTreeMap::new();
        for ((kind, place), list) in self.found {
            found.entry((kind, masked(&place, &known))).or_default().extend(list.0);
        }
        let mut found_data = Vec::with_capacity(found.len());
        for ((kind, place), records) in found {
            found_data.push(FoundData { kind, place, records: records.len() as u64 });
        }
        let mut merged: BTreeMap<(SensitiveKind, DataPlace, bool), NumberCollector> =
            BTreeMap::new();
        for ((kind, is_grouped, place), numbers) in self.numbers {
            let all = merged.entry((kind, masked(&place, &known), is_grouped)).or_default();
            all.known.extend(numbers.known);
            all.records.0.extend(numbers.records.0);
        }
        let mut numbers = Vec::with_capacity(merged.len());
        for ((kind, place, is_grouped), collected) in merged {
            numbers.push(collected.finish(kind, place, is_grouped));
        }
        SchemaData {
            schema: name,
            template: self.template,
            records: self.records,
            found: found_data,
            numbers,
            keys: self.keys.finish(self.are_hashed),
        }
    }
}

fn masked(place: &RawPlace, known: &HashSet<String>) -> DataPlace {
    match place {
        RawPlace::Key => DataPlace::Key,
        RawPlace::At(path) => DataPlace::At(MaskedPointer::new(path, |name| known.contains(name))),
    }
}

impl NumberCollector {
    fn add(&mut self, hash: u64, fit: CardFit, record: u64) {
        if fit >= CardFit::Valid {
            self.records.add(record);
        }
        if self.known.len() < MAX_NUMBERS {
            self.known.insert(hash, fit);
        }
    }

    fn finish(self, kind: SensitiveKind, place: DataPlace, is_grouped: bool) -> NumberCounts {
        let fitting =
            |least: CardFit| self.known.values().filter(|fit| **fit >= least).count() as u64;
        let records: BTreeSet<u64> = self.records.0.iter().copied().collect();
        NumberCounts {
            kind,
            place,
            is_grouped,
            numbers: self.known.len() as u64,
            fitting: fitting(CardFit::WrongCheckDigit),
            valid: fitting(CardFit::Valid),
            test_numbers: fitting(CardFit::KnownTestNumber),
            records: records.len() as u64,
        }
    }
}
