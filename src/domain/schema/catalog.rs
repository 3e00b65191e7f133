//! The schemas that idemctl knows, the ones that a command works on, and the schema that owns a
//! Redis key.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::key_template::KeyTemplate;
use super::{Schema, Shipped, State, ValueFormat};
use crate::domain::covered::Covered;
use crate::domain::record::decode::{self, DistinctiveValue};
use crate::domain::record::{Content, Extended};
use crate::domain::select::glob;

/// How many bytes of each value a scan reads when it searches for locks. The locks of all known
/// services are shorter.
pub(crate) const LOCK_BYTES: usize = 128;

/// Every known schema, and the chosen ones among them.
#[derive(Debug, Clone)]
pub struct Catalog {
    all: Vec<Arc<Schema>>,
    chosen: Vec<Arc<Schema>>,
    /// The chosen schemas. Each is followed by copies of itself under its other prefixes.
    prefixed: Vec<Arc<Schema>>,
    /// True if the operator or the context named the schemas.
    named: bool,
    /// True if the context did, and not the operator.
    is_of_context: bool,
    /// True if a scan includes schemas without a fixed prefix, to which any Redis key may belong.
    includes_unprefixed: bool,
    /// Every Redis key of every schema, ordered from the most specific template to the least.
    keys: Vec<KeyOfSchema>,
    /// The words that are results in some schema.
    result_words: Vec<Vec<u8>>,
    /// True if some schema recognises its results by more than the beginning of a JSON object.
    has_wrapped_results: bool,
    /// The locks whose TTL operators extended.
    pub(crate) extended: Extended,
    /// The schemas that idemctl ships, which explain a value of another library.
    pub(crate) shipped: Shipped,
    /// The names of schemas that belong to the chosen ones, but that idemctl cannot read. A scan
    /// cannot find their records.
    pub(crate) unreadable: Vec<String>,
    /// The names of drafts. idemctl does not read a draft unless it is named.
    pub(crate) drafts: Vec<String>,
}

/// One Redis key of a schema, as the catalog searches for it.
#[derive(Debug, Clone)]
pub(crate) struct KeyOfSchema {
    pub(crate) schema: Arc<Schema>,
    /// The index in [`Schema::keys`].
    pub(crate) key_index: usize,
    /// The scanned schemas with exactly the same templates, including this one. Computed once,
    /// because a scan needs them for every Redis key.
    pub(crate) with_same_templates: Arc<[Arc<Schema>]>,
    scanned: bool,
    /// Indexes in [`Catalog::keys`] of other schemas' keys that a scan includes. Their templates
    /// are less specific, and only the bytes of their values distinguish these from this key's.
    records_of_less_specific_schemas: Arc<[usize]>,
}

impl KeyOfSchema {
    fn template(&self) -> &KeyTemplate {
        &self.schema.keys[self.key_index].template
    }

    /// True if this Redis key can be the schema's.
    fn fits(&self, redis_key: &[u8]) -> bool {
        self.template().idempotency_key(redis_key).is_some()
    }

    /// The formats of the values at this Redis key.
    fn formats(&self) -> impl Iterator<Item = &ValueFormat> {
        self.schema.values.iter().filter(|format| format.key_index == self.key_index)
    }
}

impl Catalog {
    /// Creates a catalog of all known schemas, and chooses the named ones; no names means all.
    ///
    /// # Errors
    /// The first name that is not known.
    pub fn new(all: Vec<Schema>, names: &[String]) -> Result<Self, String> {
        Self::of(all.into_iter().map(Arc::new).collect(), names)
    }

    /// The same schemas, with all of them chosen.
    pub(crate) fn with_all_chosen(&self) -> Self {
        // Without names, no name can be unknown.
        let mut all = Self::of(self.all.clone(), &[]).unwrap_or_else(|_| self.clone());
        // Any Redis key may belong to a schema without a fixed prefix. Such a schema is read only
        // if it was named.
        all.includes_unprefixed =
            self.includes_unprefixed && self.chosen.iter().any(|schema| !schema.has_fixed_prefix());
        all.keys = keys_of_schemas(&everywhere(&all.all), &all.prefixed, all.includes_unprefixed);
        Self {
            extended: self.extended.clone(),
            shipped: self.shipped.clone(),
            unreadable: self.unreadable.clone(),
            ..all
        }
    }

    fn of(all: Vec<Arc<Schema>>, names: &[String]) -> Result<Self, String> {
        let mut chosen = Vec::new();
        for name in names {
            let Some(found) = all.iter().find(|schema| &schema.name == name) else {
                return Err(name.clone());
            };
            if !chosen.iter().any(|schema| Arc::ptr_eq(schema, found)) {
                chosen.push(Arc::clone(found));
            }
        }
        let named = !names.is_empty();
        // Any Redis key may belong to a schema without a fixed prefix, so only a name includes
        // it.
        let includes_unprefixed = named;
        if !named {
            chosen.clone_from(&all);
            chosen.retain(|schema| !schema.only_by_name);
        }
        let everywhere = everywhere(&all);
        let mut prefixed = everywhere.clone();
        prefixed.retain(|schema| !schema.only_by_name && has_name_of(&chosen, schema));
        // Collected once, because a scan needs it for every lock: see `may_be_result`.
        let mut result_words = Vec::new();
        let mut has_wrapped_results = false;
        for format in all.iter().flat_map(|schema| &schema.values) {
            if !format.state.is_result() && format.state != State::Released {
                continue;
            }
            result_words.extend(format.tests.equals.clone());
            if format.closed.is_some() && !format.reads_json_as_it_stands() {
                has_wrapped_results = true;
            }
        }
        Ok(Self {
            keys: keys_of_schemas(&everywhere, &prefixed, includes_unprefixed),
            result_words,
            has_wrapped_results,
            prefixed,
            chosen,
            all,
            named,
            includes_unprefixed,
            extended: Extended::default(),
            shipped: Shipped::default(),
            is_of_context: false,
            unreadable: Vec::new(),
            drafts: Vec::new(),
        })
    }

    /// The same for schemas that the context names and the operator did not. It omits schemas
    /// without a fixed prefix, unless the context names no others.
    pub(crate) fn of_context(mut self) -> Self {
        self.is_of_context = true;
        self.includes_unprefixed =
            self.named && self.chosen.iter().all(|schema| !schema.has_fixed_prefix());
        self.keys =
            keys_of_schemas(&everywhere(&self.all), &self.prefixed, self.includes_unprefixed);
        self
    }

    /// True if the operator says that the schema is that of the service: --schema names this one
    /// alone.
    pub(crate) fn is_only_named(&self, schema: &Schema) -> bool {
        self.named
            && !self.is_of_context
            && self.chosen.iter().all(|chosen| chosen.name == schema.name)
    }

    /// True if the context names the schema.
    pub(crate) fn is_named_by_context(&self, schema: &Schema) -> bool {
        self.named
            && self.is_of_context
            && self.chosen.iter().any(|chosen| chosen.name == schema.name)
    }

    /// What no command covers, because it cannot read these schemas.
    pub(crate) fn covered(&self) -> Covered {
        let mut covered = Covered::default();
        for name in &self.unreadable {
            covered.leave_out(format!("schema {name}"), "its files are invalid");
        }
        covered
    }

    /// Every known schema.
    pub fn all(&self) -> &[Arc<Schema>] {
        &self.all
    }

    /// The schemas that a command works on.
    pub fn chosen(&self) -> &[Arc<Schema>] {
        &self.chosen
    }

    /// The chosen schemas under each of their prefixes: a schema is listed once per prefix, and
    /// once if it has none.
    pub(crate) fn chosen_under_each_prefix(&self) -> &[Arc<Schema>] {
        &self.prefixed
    }

    /// The schemas to which a record's name may lead, each under each of its prefixes.
    pub(crate) fn by_name(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.keys.iter().filter(|key| key.key_index == 0).map(|key| &key.schema)
    }

    /// True if the operator named schemas on the command line, and not this one.
    pub(crate) fn excludes(&self, schema: &str) -> bool {
        let is_chosen = self.chosen.iter().any(|chosen| chosen.name == schema);
        self.named && !self.is_of_context && !is_chosen
    }

    /// True if the operator or the context named the schemas to work on.
    pub(crate) fn names_schemas(&self) -> bool {
        self.named
    }

    /// True if idemctl may treat a Redis key as a record of a schema without a fixed prefix.
    pub(crate) fn includes_unprefixed(&self) -> bool {
        self.includes_unprefixed
    }

    /// The schemas that a scan includes. Chosen schemas without a fixed prefix are included only
    /// if they were named.
    pub(crate) fn scanned(&self) -> Vec<Arc<Schema>> {
        self.prefixed
            .iter()
            .filter(|schema| is_scanned(schema, self.includes_unprefixed))
            .cloned()
            .collect()
    }

    /// True if one of these schemas has locks with Redis keys of their own.
    pub(crate) fn have_separate_locks(&self, names: &BTreeSet<String>) -> bool {
        let mut named = self.all().iter().filter(|schema| names.contains(&schema.name));
        named.any(|schema| schema.has_locks() && schema.has_separate_result())
    }

    /// True if each of the schemas with these names describes the begin step, and the answer to the
    /// next request depends on the record alone.
    pub(crate) fn describe_begin(&self, names: &BTreeSet<String>) -> bool {
        self.all.iter().all(|schema| schema.answers_by_record() || !names.contains(&schema.name))
    }

    /// The names of the schemas that a scan includes, without duplicates.
    pub(crate) fn scanned_names(&self) -> Vec<String> {
        let mut names: Vec<_> = self.scanned().iter().map(|schema| schema.name.clone()).collect();
        // `prefixed` lists a schema once for each of its prefixes, one after the other.
        names.dedup();
        names
    }

    /// The chosen schemas that a scan omits: any Redis key may belong to them, and they were not
    /// named.
    pub(crate) fn left_out(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.chosen.iter().filter(|schema| !is_scanned(schema, self.includes_unprefixed))
    }

    /// The schemas that a scan omits although the context names them.
    pub(crate) fn skipped(&self) -> impl Iterator<Item = &Arc<Schema>> {
        self.left_out().filter(|_| self.named)
    }

    /// One `MATCH` pattern that includes every Redis key of the scanned schemas. It is their
    /// longest common literal beginning and a star, so that one scan of the keyspace serves all of
    /// them.
    pub(crate) fn scan_pattern(&self) -> Vec<u8> {
        let scanned = self.scanned();
        let mut common: Option<&[u8]> = None;
        for key in scanned.iter().flat_map(|schema| &schema.keys) {
            let prefix = key.template.prefix();
            common = Some(match common {
                Some(common) => common_beginning(common, prefix),
                None => prefix,
            });
        }
        // A prefix may contain characters that are special in a pattern.
        let mut pattern = glob::escape(common.unwrap_or_default());
        pattern.push(b'*');
        pattern
    }

    /// The schemas to which a Redis key belongs by its name, each with the key's index there. Only
    /// the most specific of the matching templates count. There are several if schemas share one.
    pub(crate) fn schemas_of_key(
        &self,
        redis_key: &[u8],
    ) -> impl Iterator<Item = (&Arc<Schema>, usize)> {
        self.most_specific_keys(redis_key).map(|key| (&key.schema, key.key_index))
    }

    /// Those of [`Self::schemas_of_key`] that a scan includes.
    pub(crate) fn scanned_keys(&self, redis_key: &[u8]) -> impl Iterator<Item = &KeyOfSchema> {
        self.most_specific_keys(redis_key).filter(|key| key.scanned)
    }

    /// The schema to which a Redis key belongs but that this command does not read, because other
    /// schemas were named. A schema without a fixed prefix does not count, because any Redis key
    /// would belong to it.
    pub(crate) fn unselected_schema(&self, redis_key: &[u8]) -> Option<&Arc<Schema>> {
        // Without names, every schema is read.
        if !self.named {
            return None;
        }
        let key = self.most_specific_keys(redis_key).next()?;
        if key.scanned || !key.schema.has_fixed_prefix() {
            return None;
        }
        Some(&key.schema)
    }

    /// The first other schema that reads the value at a Redis key as a result. Only value formats
    /// that list their fields count.
    pub(crate) fn result_of_another(
        &self,
        schema: &Schema,
        redis_key: &[u8],
        content: &Content,
    ) -> Option<&Arc<Schema>> {
        // A scan asks this for every lock, and almost no lock resembles a result.
        if !self.may_be_result(content) {
            return None;
        }
        for key in &self.keys {
            if key.schema.name == schema.name || !key.fits(redis_key) {
                continue;
            }
            // Neither a failure nor a released record is a lock of the given schema.
            for state in [State::Completed, State::Failed, State::Released] {
                let reads = decode::distinctive_value(&key.schema, key.key_index, content, state);
                if reads == DistinctiveValue::Yes {
                    return Some(&key.schema);
                }
            }
        }
        None
    }

    /// The first other schema that reads the content of a Redis key as a lock, by a value format
    /// that lists its fields. A schema without a fixed prefix counts only if a scan includes it.
    /// Any Redis key may belong to such a schema, and a result may look like its lock.
    pub(crate) fn lock_of_another(
        &self,
        schema: &Schema,
        redis_key: &[u8],
        content: &Content,
    ) -> Option<&Arc<Schema>> {
        for key in &self.keys {
            if self.distinctive_lock_of(key, schema, redis_key, content) == DistinctiveValue::Yes {
                return Some(&key.schema);
            }
        }
        None
    }

    /// True if the unread rest of the content decides whether another schema reads it as a lock.
    pub(crate) fn may_be_lock_of_another(
        &self,
        schema: &Schema,
        redis_key: &[u8],
        content: &Content,
    ) -> bool {
        if content.is_whole() {
            return false;
        }
        self.keys.iter().any(|key| {
            self.distinctive_lock_of(key, schema, redis_key, content) == DistinctiveValue::Undecided
        })
    }

    fn distinctive_lock_of(
        &self,
        key: &KeyOfSchema,
        schema: &Schema,
        redis_key: &[u8],
        content: &Content,
    ) -> DistinctiveValue {
        let may_be_its = key.schema.name != schema.name
            && (key.scanned || key.schema.has_fixed_prefix())
            && key.fits(redis_key);
        if !may_be_its {
            return DistinctiveValue::No;
        }
        decode::distinctive_value(&key.schema, key.key_index, content, State::InProgress)
    }

    /// The scanned less specific schemas whose records may be at a Redis key of another schema, each
    /// with the key's index there. Such a record belongs to them only if its bytes identify it.
    pub(crate) fn records_of_less_specific_schemas(
        &self,
        redis_key: &[u8],
    ) -> impl Iterator<Item = (&Arc<Schema>, usize)> {
        let specific = self
            .most_specific_keys(redis_key)
            .find(|key| !key.records_of_less_specific_schemas.is_empty());
        let less_specific = match specific {
            Some(specific) => &specific.records_of_less_specific_schemas[..],
            None => &[],
        };
        let keys = less_specific.iter().map(|index| &self.keys[*index]);
        keys.filter(|key| key.fits(redis_key)).map(|key| (&key.schema, key.key_index))
    }

    /// True if the schema of a Redis key takes any bytes there for a result, because of its name
    /// alone.
    pub(crate) fn is_result_by_key_name(&self, redis_key: &[u8]) -> bool {
        let mut keys = self.most_specific_keys(redis_key);
        keys.any(|key| key.formats().any(ValueFormat::is_result_by_key_name))
    }

    /// False if the content is certainly not a result of any schema. Decoding every lock by every
    /// schema would slow a scan.
    fn may_be_result(&self, content: &Content) -> bool {
        let Content::Text { head, .. } = content else { return self.has_wrapped_results };
        let is_object = head.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'{');
        is_object || self.has_wrapped_results || self.result_words.iter().any(|word| word == head)
    }

    fn most_specific_keys(&self, redis_key: &[u8]) -> impl Iterator<Item = &KeyOfSchema> {
        let mut keys = self.keys.iter();
        let first = keys.find(|key| key.fits(redis_key));
        let best = first.map_or(0, |key| key.template().specificity());
        // `keys` is ordered by specificity: every later key is less specific.
        let as_specific = keys.take_while(move |key| key.template().specificity() == best);
        first.into_iter().chain(as_specific.filter(move |key| key.fits(redis_key)))
    }
}

/// The only rule for what a scan includes. A schema without a fixed prefix is included only if it
/// was named, because any Redis key may belong to it.
fn is_scanned(schema: &Schema, includes_unprefixed: bool) -> bool {
    !schema.only_by_name && (includes_unprefixed || schema.has_fixed_prefix())
}

/// Every schema, followed by copies of itself under its other prefixes.
fn everywhere(all: &[Arc<Schema>]) -> Vec<Arc<Schema>> {
    let mut everywhere = Vec::new();
    for schema in all {
        everywhere.push(Arc::clone(schema));
        everywhere.extend(schema.elsewhere().map(Arc::new));
    }
    everywhere
}

/// True if one of the schemas has the name of this one. A copy under another prefix has the same
/// name.
fn has_name_of(schemas: &[Arc<Schema>], schema: &Schema) -> bool {
    schemas.iter().any(|other| other.name == schema.name)
}

/// The bytes with which both texts begin.
fn common_beginning<'a>(one: &'a [u8], other: &[u8]) -> &'a [u8] {
    let length = one.iter().zip(other).take_while(|(a, b)| a == b).count();
    &one[..length]
}

/// Every Redis key of every schema, ordered from the most specific template to the least.
fn keys_of_schemas(
    all: &[Arc<Schema>],
    chosen: &[Arc<Schema>],
    includes_unprefixed: bool,
) -> Vec<KeyOfSchema> {
    let mut scanned = Vec::new();
    for schema in all {
        if is_scanned(schema, includes_unprefixed) && has_name_of(chosen, schema) {
            scanned.push(schema);
        }
    }
    let mut keys = Vec::new();
    for schema in all {
        let mut with_same_templates = Vec::new();
        for other in &scanned {
            if other.has_templates_of(schema) {
                with_same_templates.push(Arc::clone(other));
            }
        }
        let with_same_templates: Arc<[_]> = with_same_templates.into();
        for key_index in 0..schema.keys.len() {
            keys.push(KeyOfSchema {
                schema: Arc::clone(schema),
                key_index,
                with_same_templates: Arc::clone(&with_same_templates),
                scanned: scanned.iter().any(|scanned| Arc::ptr_eq(scanned, schema)),
                records_of_less_specific_schemas: Arc::from([]),
            });
        }
    }
    // The sort is stable: schemas with equal specificity keep their order.
    keys.sort_by_key(|key| std::cmp::Reverse(key.template().specificity()));
    // After sorting, because `records_of_less_specific_schemas` contains indexes in the sorted list.
    let less_specific: Vec<_> =
        keys.iter().map(|key| records_of_less_specific_schemas(key, &keys)).collect();
    for (key, less_specific) in keys.iter_mut().zip(less_specific) {
        key.records_of_less_specific_schemas = less_specific;
    }
    keys
}

/// The keys whose locks may be at a Redis key of this key, as
/// [`KeyOfSchema::records_of_less_specific_schemas`] describes.
fn records_of_less_specific_schemas(specific: &KeyOfSchema, keys: &[KeyOfSchema]) -> Arc<[usize]> {
    let mut less_specific = Vec::new();
    for (index, key) in keys.iter().enumerate() {
        if !key.scanned || key.schema.name == specific.schema.name {
            continue;
        }
        if key.template().specificity() >= specific.template().specificity() {
            continue;
        }
        if key.formats().any(ValueFormat::is_distinctive) {
            less_specific.push(index);
        }
    }
    less_specific.into()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::domain::samples::{self, any_key, catalog, schemas};

    /// Rule: the schemas that a scan includes are those that its keys may belong to. An operator's
    /// schema with another prefix widens the scan to all Redis keys. None of them belongs to a
    /// schema without a prefix until it is named.
    #[test]
    fn without_a_prefix_nothing_is_scanned_or_claimed_unless_named() {
        let of = |names: &[&str]| {
            let mut all = schemas();
            all.push(samples::schema("timed"));
            Catalog::new(all, &names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>())
                .unwrap()
        };
        let claimed = |catalog: &Catalog, redis_key: &[u8]| catalog.scanned_keys(redis_key).count();
        let unnamed = of(&[]);
        assert_eq!(unnamed.scan_pattern(), b"*");
        assert_eq!((claimed(&unnamed, b"user:42"), claimed(&unnamed, b"timed:k")), (0, 1));
        assert_eq!(
            unnamed.left_out().map(|schema| schema.name.as_str()).collect::<Vec<_>>(),
            ["go-chi"]
        );
        let named = of(&["go-chi", "timed"]);
        assert_eq!((claimed(&named, b"user:42"), claimed(&named, b"timed:k")), (1, 1));
        assert_eq!(named.left_out().count(), 0);
    }

    #[test]
    fn an_unknown_name_is_named_and_a_repeated_one_counts_once() {
        assert_eq!(Catalog::new(schemas(), &["expres".to_owned()]).unwrap_err(), "expres");
        assert_eq!(catalog(&["express", "express"], None).chosen().len(), 1);
        assert_eq!(catalog(&[], None).chosen().len(), 7);
    }

    #[test]
    fn a_schema_without_prefix_is_scanned_only_when_named() {
        let names = |catalog: &Catalog| {
            catalog.scanned().iter().map(|schema| schema.name.clone()).collect::<Vec<_>>()
        };
        assert!(!names(&catalog(&[], None)).contains(&"go-chi".to_owned()));
        assert!(names(&catalog(&[], Some("pay:"))).contains(&"go-chi".to_owned()));
        assert_eq!(names(&catalog(&["go-chi"], None)), ["go-chi"]);
    }

    #[test]
    fn the_scan_pattern_is_as_narrow_as_the_schemas_allow() {
        let pattern =
            |names: &[&str]| String::from_utf8(catalog(names, None).scan_pattern()).unwrap();
        assert_eq!(pattern(&[]), "idem*");
        assert_eq!(pattern(&["express"]), "idem:*");
        assert_eq!(pattern(&["event-driven"]), "idem:*");
        assert_eq!(pattern(&["go-middleware", "go-middleware-v1"]), "idempotency:*");
        assert_eq!(pattern(&["go-chi"]), "*");
        let odd = catalog(&["go-chi"], Some("a*[b]:"));
        assert_eq!(odd.scan_pattern(), b"a\\*\\[b\\]:*", "a prefix is literal");
    }

    #[test]
    fn overlapping_templates_go_to_the_most_specific_one() {
        let catalog = catalog(&[], None);
        let schemas = |key: &str| {
            catalog
                .schemas_of_key(key.as_bytes())
                .map(|(s, i)| (s.name.clone(), i))
                .collect::<Vec<_>>()
        };
        let is = |name: &str, key_index| (name.to_owned(), key_index);
        assert_eq!(schemas("idem:k"), [is("express", 0)]);
        assert_eq!(schemas("idem:started:k"), [is("event-driven", 0)]);
        assert_eq!(schemas("idem:done:k"), [is("event-consumer", 1)]);
        // The empty key of the consumer: the most specific template has it, too.
        assert_eq!(schemas("idem:done:"), [is("event-consumer", 1)]);
        assert_eq!(schemas("idempotency:k"), [is("go-middleware", 0), is("go-middleware-v1", 0)]);
        assert_eq!(schemas("anything"), [is("go-chi", 0)]);
        assert_eq!(schemas(""), []);
    }

    proptest! {
        #[test]
        fn a_redis_key_has_one_owning_template(redis_key in any_key(), prefix in prop::option::of(Just("pay:"))) {
            let catalog = catalog(&[], prefix);
            let templates: Vec<_> = catalog.schemas_of_key(&redis_key).map(|(schema, key_index)| &schema.keys[key_index].template).collect();
            prop_assert!(templates.iter().all(|template| *template == templates[0]));
        }

        #[test]
        fn no_template_that_fits_is_more_specific_than_those_of_the_key(redis_key in any_key()) {
            let catalog = catalog(&[], None);
            let specificity = |(schema, key_index): (&Arc<Schema>, usize)| schema.keys[key_index].template.specificity();
            let best = catalog.schemas_of_key(&redis_key).next().map_or(0, specificity);
            for key in catalog.all().iter().flat_map(|schema| &schema.keys) {
                let fits = key.template.idempotency_key(&redis_key).is_some();
                prop_assert!(!fits || key.template.specificity() <= best);
            }
        }

        #[test]
        fn the_scan_pattern_lets_every_key_of_the_scanned_schemas_through(
            names in prop::collection::vec(prop::sample::select(schemas().iter().map(|s| s.name.clone()).collect::<Vec<_>>()), 0..4),
            prefix in prop::option::of("[a*?\\[\\]^\\\\-]{1,4}"),
            key in prop::collection::vec(any::<u8>(), 1..20),
        ) {
            let names: Vec<_> = names.iter().map(String::as_str).collect();
            let catalog = catalog(&names, prefix.as_deref());
            let pattern = catalog.scan_pattern();
            for redis_key in catalog.scanned().iter().flat_map(|schema| schema.redis_keys(&key)) {
                prop_assert!(glob::matches(&pattern, &redis_key), "{}", pattern.escape_ascii());
            }
        }
    }
}
