//! Frontiers that were accepted before, to compare with.

use std::collections::BTreeSet;

use serde::Deserialize;
use serde_json::{Map, Value};

use super::exploration::Exploration;

/// A way to a harm: schema, invariant, faults.
type Way = (String, String, String);

/// The accepted ways.
#[derive(Debug, Clone)]
pub(crate) struct Accepted {
    ways: BTreeSet<Way>,
}

/// A way to a harm that was not accepted, or that is no more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Difference {
    pub(crate) schema: String,
    pub(crate) invariant: String,
    pub(crate) faults: String,
    pub(crate) is_new: bool,
}

#[derive(Deserialize)]
struct Document {
    format: u64,
    schemas: Vec<Explored>,
}

#[derive(Deserialize)]
struct Explored {
    schema: String,
    beside: Option<String>,
    harms: Vec<Found>,
}

#[derive(Deserialize)]
struct Found {
    invariant: String,
    minimal_faults: Map<String, Value>,
}

impl Accepted {
    /// Reads what `--output json` wrote.
    pub(crate) fn parse(json: &[u8]) -> Result<Self, String> {
        let document: Document = serde_json::from_slice(json).map_err(|why| why.to_string())?;
        if document.format != 1 {
            return Err(format!("format {} is not known: this idemctl reads format 1", document.format));
        }
        let mut accepted = Self { ways: BTreeSet::new() };
        for explored in document.schemas {
            let name =
                [Some(explored.schema), explored.beside].into_iter().flatten().collect::<Vec<_>>().join(" beside ");
            for found in explored.harms {
                let faults = found.minimal_faults.iter().map(|(fault, count)| format!("{fault}={count}"));
                let faults = in_words(faults);
                accepted.ways.insert((name.clone(), found.invariant, faults));
            }
        }
        Ok(accepted)
    }

    /// What is not as it was accepted, the new harms first. Schemas that were accepted and not explored now are no
    /// difference.
    pub(crate) fn differences(&self, explorations: &[Exploration]) -> Vec<Difference> {
        let now: BTreeSet<Way> = explorations.iter().flat_map(ways).collect();
        let explored: BTreeSet<_> = explorations.iter().map(Exploration::name).collect();
        let difference = |way: &Way, is_new: bool| {
            let (schema, invariant, faults) = way.clone();
            Difference { schema, invariant, faults, is_new }
        };
        let new = now.difference(&self.ways).map(|way| difference(way, true));
        let gone = self.ways.difference(&now).filter(|way| explored.contains(&way.0)).map(|way| difference(way, false));
        new.chain(gone).collect()
    }
}

fn ways(exploration: &Exploration) -> impl Iterator<Item = Way> {
    exploration.harms.iter().map(|harm| {
        let faults = harm.faults.faults().map(|(fault, count)| format!("{}={count}", fault.as_str()));
        (exploration.name(), harm.invariant.name.to_owned(), in_words(faults))
    })
}

/// `crash=1,expiry=1`, or `no fault`.
fn in_words(faults: impl Iterator<Item = String>) -> String {
    let mut faults: Vec<_> = faults.collect();
    faults.sort();
    if faults.is_empty() { "no fault".to_owned() } else { faults.join(",") }
}
