//! What is explored: which schemas, beside which.

use std::sync::Arc;

use anyhow::Result;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use strum::VariantArray as _;

use super::Args;
use crate::args::SchemaArgs;
use crate::context::Context;
use crate::domain::exploration::{Assumption, Fault, MOST_WORKERS};
use crate::domain::schema::{Catalog, Schema};
use crate::exit::Stop;

/// The schemas to explore, each alone, or two beside each other.
pub(super) struct Choice {
    pub(super) programs: Vec<Vec<Arc<Schema>>>,
}

pub(super) fn assumptions() -> impl TypedValueParser<Value = Assumption> {
    let names = Assumption::VARIANTS
        .iter()
        .map(|assumption| clap::builder::PossibleValue::new(assumption.as_str()).help(assumption.meaning()));
    PossibleValuesParser::new(names).map(|name| {
        let named = Assumption::VARIANTS.iter().find(|assumption| assumption.as_str() == name);
        named.copied().unwrap_or(Assumption::CriticalSection)
    })
}

pub(super) fn choose(context: &Context, args: &Args) -> Result<Choice> {
    if let Some(token) = &args.replay {
        return of_token(context, args, &token.workers);
    }
    if let Some(mix) = &args.mix {
        let Some((old, new)) = mix.split_once(',') else {
            return Err(Stop::usage(format!("--mix {mix}: two schemas are mixed, as in --mix OLD,NEW")).into());
        };
        return Ok(Choice { programs: vec![mixed(context, args, old, new)?] });
    }
    let mut named = args.schemas.clone();
    named.schema.extend(args.names.iter().cloned());
    let (schemas, _) = context.schemas_to_play(&named, |_| true)?;
    Ok(Choice { programs: schemas.into_iter().map(|schema| vec![schema]).collect() })
}

/// The schemas of a token's workers.
fn of_token(context: &Context, args: &Args, workers: &[String]) -> Result<Choice> {
    if workers.len() > MOST_WORKERS {
        return Err(Stop::usage(format!("--replay: there are at most {MOST_WORKERS} workers")).into());
    }
    let first = &workers[0];
    let program = match workers.iter().find(|name| *name != first) {
        Some(second) => mixed(context, args, first, second)?,
        None => vec![one(&every(context, args)?, first)?],
    };
    if let Some(third) = workers.iter().find(|name| program.iter().all(|schema| schema.name != **name)) {
        return Err(
            Stop::usage(format!("--replay: workers of two schemas are played, and `{third}` is a third")).into()
        );
    }
    Ok(Choice { programs: vec![program] })
}

fn mixed(context: &Context, args: &Args, old: &str, new: &str) -> Result<Vec<Arc<Schema>>> {
    let catalog = every(context, args)?;
    let (old, new) = (one(&catalog, old)?, one(&catalog, new)?);
    if old.name == new.name {
        return Err(Stop::usage(format!("{} is mixed with itself: name two schemas", old.name)).into());
    }
    if !old.has_templates_of(&new) {
        let message =
            format!("{} and {} keep their records at different Redis keys: they never meet", old.name, new.name);
        return Err(Stop::usage(message).into());
    }
    if args.workers < 2 && args.replay.is_none() {
        return Err(Stop::usage("--mix: two schemas take two workers at least").into());
    }
    Ok(vec![old, new])
}

fn every(context: &Context, args: &Args) -> Result<Catalog> {
    context.catalog(&SchemaArgs { schema: Vec::new(), ..args.schemas.clone() })
}

fn one(catalog: &Catalog, name: &str) -> Result<Arc<Schema>> {
    let known = || catalog.all().iter().map(|schema| schema.name.clone()).collect::<Vec<_>>().join(", ");
    let found = catalog.all().iter().find(|schema| schema.name == name).cloned();
    Ok(found
        .ok_or_else(|| Stop::usage(format!("there is no schema `{name}`")).hint(format!("schemas: {}", known())))?)
}

/// What befalls a whole server is for throw-away ones.
pub(super) fn permits(args: &Args, is_private: bool) -> Result<()> {
    let of_token = args.replay.iter().flat_map(|token| &token.acts).filter_map(|act| act.fault());
    let mut faults = args.faults.faults().map(|(fault, _)| fault).chain(of_token);
    match faults.find(|fault| matches!(fault, Fault::Evict | Fault::Failover)) {
        Some(fault) if !is_private => {
            let message = format!("{} is for a throw-away server, and not for one that somebody uses", fault.as_str());
            Err(Stop::usage(message).hint("--sandbox explores on a private throw-away server").into())
        }
        _ => Ok(()),
    }
}
