//! What is explored: single schemas, two schemas together, or the histories of tokens.

use std::sync::Arc;

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use strum::VariantArray as _;

use crate::args::SchemaArgs;
use crate::domain::exploration::{Assumption, Fault, FaultBudget, MAX_WORKERS, ScheduleToken};
use crate::domain::schema::{Catalog, Schema};
use crate::exit::CommandError;
use crate::session::{Session, USE_SANDBOX};
use crate::sim::exploration::unexplorable_because;

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

/// The schemas of the programs to explore: one for each, or two.
pub(super) type ExploredPrograms = Vec<Vec<Arc<Schema>>>;

pub(super) fn assumptions() -> impl TypedValueParser<Value = Assumption> {
    let mut names = Vec::with_capacity(Assumption::VARIANTS.len());
    for assumption in Assumption::VARIANTS {
        names.push(PossibleValue::new(assumption.as_str()).help(assumption.meaning()));
    }
    // The parser passes only these names.
    PossibleValuesParser::new(names).map(|name| name.parse().unwrap_or(Assumption::CriticalSection))
}

pub(super) fn choose(
    session: &mut Session,
    args: &ChosenArgs,
    schemas: &SchemaArgs,
) -> Result<ExploredPrograms> {
    if !args.replay.is_empty() {
        let mut programs = Vec::with_capacity(args.replay.len());
        for token in &args.replay {
            programs.push(of_token(session, schemas, &token.workers)?);
        }
        return Ok(programs);
    }
    if let Some(mix) = &args.mix {
        let Some((old, new)) = mix.split_once(',') else {
            return Err(CommandError::usage(format!(
                "--mix {mix}: name two schemas, as in --mix OLD,NEW"
            ))
            .into());
        };
        return Ok(vec![mixed(session, schemas, old, new)?]);
    }
    let mut named = schemas.clone();
    named.schema.extend(args.names.iter().cloned());
    let (executed, _) = session.schemas_to_play(&named, |_| true, unexplorable_because)?;
    Ok(executed.into_iter().map(|schema| vec![schema]).collect())
}

/// The schemas of a token's workers.
fn of_token(
    session: &mut Session,
    args: &SchemaArgs,
    workers: &[String],
) -> Result<Vec<Arc<Schema>>> {
    // The token may be typed by hand, so its workers are checked like --workers.
    if workers.len() > MAX_WORKERS {
        return Err(CommandError::usage(format!(
            "--replay: at most {MAX_WORKERS} workers are possible"
        ))
        .into());
    }
    let first = &workers[0];
    let program = match workers.iter().find(|name| *name != first) {
        Some(second) => mixed(session, args, first, second)?,
        None => vec![one(&every(session, args, &[first])?, first)?],
    };
    for name in workers {
        if program.iter().all(|schema| schema.name != *name) {
            return Err(CommandError::usage(format!(
                "--replay: workers can have at most two schemas, but `{name}` is a third"
            ))
            .into());
        }
    }
    Ok(program)
}

fn mixed(
    session: &mut Session,
    args: &SchemaArgs,
    old: &str,
    new: &str,
) -> Result<Vec<Arc<Schema>>> {
    let catalog = every(session, args, &[old, new])?;
    let old = one(&catalog, old)?;
    let new = one(&catalog, new)?;
    if old.name == new.name {
        return Err(CommandError::usage(format!(
            "--mix: name two different schemas, not {} twice",
            old.name
        ))
        .into());
    }
    // Workers that use different Redis keys cannot affect each other.
    if !old.has_templates_of(&new) {
        let message = format!(
            "{} and {} cannot be mixed, because they use different Redis keys",
            old.name, new.name
        );
        return Err(CommandError::usage(message).into());
    }
    Ok(vec![old, new])
}

/// Every schema, with these names among them: the schema of a library is read only if it is named.
fn every(session: &mut Session, args: &SchemaArgs, names: &[&str]) -> Result<Catalog> {
    let all = session.catalog(&SchemaArgs { schema: Vec::new(), ..args.clone() })?;
    if names.iter().all(|name| all.all().iter().any(|schema| schema.name == *name)) {
        return Ok(all);
    }
    let schema = names.iter().map(|name| (*name).to_owned()).collect();
    session.catalog(&SchemaArgs { schema, ..args.clone() })
}

fn one(catalog: &Catalog, name: &str) -> Result<Arc<Schema>> {
    let Some(found) = catalog.all().iter().find(|schema| schema.name == name) else {
        let known: Vec<_> = catalog.all().iter().map(|schema| schema.name.as_str()).collect();
        return Err(CommandError::no_schema(name, &known).into());
    };
    match unexplorable_because(found) {
        Some(why) => Err(CommandError::usage(format!("{name} cannot be explored: {why}")).into()),
        None => Ok(Arc::clone(found)),
    }
}

/// Passes unless a fault that affects a whole server would be applied to a server that others use.
///
/// # Errors
/// Usage: which fault.
pub(super) fn permits(args: &ChosenArgs, budget: FaultBudget, is_private: bool) -> Result<()> {
    if is_private {
        return Ok(());
    }
    let mut faults: Vec<Fault> = budget.faults().map(|(fault, _)| fault).collect();
    // A history that is replayed has the faults of its token, whatever --faults allows.
    for token in &args.replay {
        faults.extend(token.acts.iter().filter_map(|act| act.fault()));
    }
    for fault in faults {
        if matches!(fault, Fault::Evict | Fault::Restart | Fault::Failover) {
            let message = format!(
                "{} is only possible on a temporary local Redis, because it affects the whole \
                server",
                fault.as_str()
            );
            return Err(CommandError::usage(message).hint(USE_SANDBOX).into());
        }
    }
    Ok(())
}
