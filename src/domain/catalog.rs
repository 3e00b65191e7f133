//! The schemas idemctl knows, which of them a command works on, and which one a Redis key belongs to.

use std::sync::Arc;

use crate::domain::glob;
use crate::domain::schema::Schema;

/// Every known schema, and the chosen ones.
#[derive(Debug, Clone)]
pub struct Catalog {
    all: Vec<Arc<Schema>>,
    chosen: Vec<Arc<Schema>>,
    named: bool,
}

impl Catalog {
    /// Takes every known schema, and the names of those to work on; no names means all.
    ///
    /// # Errors
    /// The first name that is not known.
    pub fn new(all: Vec<Schema>, names: &[String]) -> Result<Self, String> {
        let all: Vec<_> = all.into_iter().map(Arc::new).collect();
        let mut chosen = Vec::new();
        for name in names {
            let found = all.iter().find(|schema| &schema.name == name).ok_or_else(|| name.clone())?;
            if !chosen.iter().any(|schema| Arc::ptr_eq(schema, found)) {
                chosen.push(Arc::clone(found));
            }
        }
        let named = !names.is_empty();
        Ok(Self { chosen: if named { chosen } else { all.clone() }, all, named })
    }

    /// Every known schema.
    pub fn all(&self) -> &[Arc<Schema>] {
        &self.all
    }

    /// The schemas a command works on.
    pub fn chosen(&self) -> &[Arc<Schema>] {
        &self.chosen
    }

    /// True when the operator, or the context, named the schemas to work on.
    pub fn is_named(&self) -> bool {
        self.named
    }

    /// The schemas that a scan looks for: the chosen ones, but those without a literal prefix only when named.
    pub fn scanned(&self) -> Vec<Arc<Schema>> {
        self.chosen.iter().filter(|schema| self.named || schema.has_prefix()).cloned().collect()
    }

    /// One `MATCH` pattern that lets through every Redis key of the scanned schemas, so that a single walk over the
    /// keyspace serves them all: their longest common literal beginning and a star.
    pub fn scan_pattern(&self) -> Vec<u8> {
        let scanned = self.scanned();
        let mut prefixes = scanned.iter().flat_map(|schema| &schema.slots).map(|slot| slot.template.prefix());
        let first = prefixes.next().unwrap_or_default();
        let common = prefixes.fold(first, |common, prefix| {
            let shared = common.iter().zip(prefix).take_while(|(a, b)| a == b).count();
            &common[..shared]
        });
        let mut pattern = glob::escape(common);
        pattern.push(b'*');
        pattern
    }

    /// The schemas a Redis key belongs to, each with the slot it is: those with the most specific of the templates
    /// that fit. More than one when schemas share a template.
    pub fn owners(&self, redis_key: &[u8]) -> Vec<(Arc<Schema>, usize)> {
        let mut best = 0;
        let mut owners: Vec<(Arc<Schema>, usize)> = Vec::new();
        for schema in &self.all {
            for (index, slot) in schema.slots.iter().enumerate() {
                if slot.template.idempotency_key(redis_key).is_none() {
                    continue;
                }
                let specificity = slot.template.specificity();
                if specificity > best {
                    owners.clear();
                    best = specificity;
                }
                if specificity == best {
                    owners.push((Arc::clone(schema), index));
                }
            }
        }
        owners
    }

    /// True when the schema is one of the chosen.
    pub fn is_chosen(&self, schema: &Schema) -> bool {
        self.chosen.iter().any(|chosen| chosen.name == schema.name)
    }
}
