//! What is explored: which schemas, beside which.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use strum::VariantArray as _;

use crate::args::SchemaArgs;
use crate::context::Context;
use crate::domain::exploration::{Assumption, Fault, FaultBudget, MOST_WORKERS, ScheduleToken};
use crate::domain::schema::{Catalog, Schema};
use crate::exit::CommandError;

/// The schemas to explore, two schemas together, or histories to replay.
#[derive(Debug, Args)]
pub(super) struct ChosenArgs {
    /// Schemas to explore; `all` for every schema [default: the context's, else all]
    #[arg(value_name = "SCHEMA")]
    names: Vec<String>,

    /// Explore workers of two schemas on the same Redis keys, as in a rolling deploy
    #[arg(long, value_name = "OLD,NEW", conflicts_with = "names")]
    pub(super) mix: Option<String>,

    /// Replay the history with this token from the table or `-o json`; may be repeated
    #[arg(long, value_name = "TOKEN", conflicts_with_all = ["names", "mix"])]
    pub(super) replay: Vec<ScheduleToken>,
}

/// The schemas to explore, each alone, or two beside each other.
pub(super) struct ExploredPrograms {
    pub(super) programs: Vec<Vec<Arc<Schema>>>,
}

pub(super) fn assumptions() -> impl TypedValueParser<Value = Assumption> {
    let names = Assumption::VARIANTS
        .iter()
        .map(|assumption| PossibleValue::new(assumption.as_str()).help(assumption.meaning()));
    PossibleValuesParser::new(names).map(|name| {
        let named = Assumption::VARIANTS.iter().find(|assumption| assumption.as_str() == name);
        named.copied().unwrap_or(Assumption::CriticalSection)
    })
}

pub(super) fn choose(
    context: &mut Context,
    args: &ChosenArgs,
    schemas: &SchemaArgs,
) -> Result<ExploredPrograms> {
    if !args.replay.is_empty() {
        let programs = args.replay.iter().map(|token| of_token(context, schemas, &token.workers));
        return Ok(ExploredPrograms { programs: programs.collect::<Result<_>>()? });
    }
    if let Some(mix) = &args.mix {
        let Some((old, new)) = mix.split_once(',') else {
            return Err(CommandError::usage(format!(
                "--mix {mix}: name two schemas, as in --mix OLD,NEW"
            ))
            .into());
        };
        return Ok(ExploredPrograms { programs: vec![mixed(context, schemas, old, new)?] });
    }
    let mut named = schemas.clone();
    named.schema.extend(args.names.iter().cloned());
    let (executed, _) = context.schemas_to_play(&named, |_| true, Schema::unexplorable_because)?;
    Ok(ExploredPrograms { programs: executed.into_iter().map(|schema| vec![schema]).collect() })
}

/// The schemas of a token's workers.
fn of_token(
    context: &mut Context,
    args: &SchemaArgs,
    workers: &[String],
) -> Result<Vec<Arc<Schema>>> {
    if workers.len() > MOST_WORKERS {
        return Err(CommandError::usage(format!(
            "--replay: at most {MOST_WORKERS} workers are possible"
        ))
        .into());
    }
    let first = &workers[0];
    let program = match workers.iter().find(|name| *name != first) {
        Some(second) => mixed(context, args, first, second)?,
        None => vec![one(&every(context, args)?, first)?],
    };
    if let Some(third) =
        workers.iter().find(|name| program.iter().all(|schema| schema.name != **name))
    {
        return Err(CommandError::usage(format!(
            "--replay: workers can have at most two schemas, but `{third}` is a third"
        ))
        .into());
    }
    Ok(program)
}

fn mixed(
    context: &mut Context,
    args: &SchemaArgs,
    old: &str,
    new: &str,
) -> Result<Vec<Arc<Schema>>> {
    let catalog = every(context, args)?;
    let (old, new) = (one(&catalog, old)?, one(&catalog, new)?);
    if old.name == new.name {
        return Err(CommandError::usage(format!(
            "--mix: name two different schemas, not {} twice",
            old.name
        ))
        .into());
    }
    if !old.has_templates_of(&new) {
        let message = format!(
            "{} and {} cannot be mixed, because they use different Redis keys",
            old.name, new.name
        );
        return Err(CommandError::usage(message).into());
    }
    Ok(vec![old, new])
}

fn every(context: &mut Context, args: &SchemaArgs) -> Result<Catalog> {
    context.catalog(&SchemaArgs { schema: Vec::new(), ..args.clone() })
}

fn one(catalog: &Catalog, name: &str) -> Result<Arc<Schema>> {
    let found = named(catalog, name)?;
    match found.unexplorable_because() {
        Some(why) => Err(CommandError::usage(format!("{name} cannot be explored: {why}")).into()),
        None => Ok(found),
    }
}

fn named(catalog: &Catalog, name: &str) -> Result<Arc<Schema>> {
    let known =
        || catalog.all().iter().map(|schema| schema.name.clone()).collect::<Vec<_>>().join(", ");
    let found = catalog.all().iter().find(|schema| schema.name == name).cloned();
    Ok(found.ok_or_else(|| {
        CommandError::usage(format!("there is no schema `{name}`"))
            .hint(format!("schemas: {}", known()))
    })?)
}

/// What befalls a whole server is for throw-away ones.
pub(super) fn permits(args: &ChosenArgs, faults: FaultBudget, is_private: bool) -> Result<()> {
    let of_token = args.replay.iter().flat_map(|token| &token.acts).filter_map(|act| act.fault());
    let mut faults = faults.faults().map(|(fault, _)| fault).chain(of_token);
    match faults.find(|fault| matches!(fault, Fault::Evict | Fault::Failover)) {
        Some(fault) if !is_private => {
            let message = format!(
                "{} is only possible on a temporary local Redis, because it affects the whole \
                server",
                fault.as_str()
            );
            Err(CommandError::usage(message)
                .hint("pass --sandbox to explore on a temporary local Redis")
                .into())
        }
        _ => Ok(()),
    }
}
