//! What a check looks for, and which status it gives.

use anyhow::Result;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::args::ThresholdArgs;
use crate::change::needs_a_stated_lock_ttl;
use crate::domain::diagnosis::health::{Alarm, Limits, Status};
use crate::domain::diagnosis::{FindingCode, Thresholds};
use crate::domain::record::age;
use crate::domain::schema::{Catalog, TtlOf};
use crate::exit::Stop;
use crate::settings::Settings;

/// The options that say which locks give which status.
#[derive(Debug, Args)]
pub(super) struct AlarmArgs {
    /// WARNING from so many orphaned locks on [default: 1, if --critical is greater]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    warning: Option<u64>,

    /// CRITICAL from so many orphaned locks on
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..), default_value_t = 1)]
    critical: u64,

    /// The status that one lock with this finding gives, for `excess-ttl`, `overdue`, `leftover-lock` or `unreadable`, e.g.
    /// excess-ttl=CRITICAL
    #[arg(long, value_name = "CODE=STATUS", value_delimiter = ',', value_parser = alarms(), hide_possible_values = true)]
    include: Vec<Alarm>,
}

fn alarms() -> impl TypedValueParser<Value = Alarm> {
    PossibleValuesParser::new(Alarm::all()).try_map(|alarm| alarm.parse::<Alarm>())
}

/// What a check looks for.
pub(super) struct Sought {
    pub(super) codes: Vec<FindingCode>,
    pub(super) limits: Limits,
    pub(super) thresholds: Thresholds,
}

impl AlarmArgs {
    /// What the options say, and where they do not, the context.
    ///
    /// # Errors
    /// Usage: a finding that is included compares with what nobody stated.
    pub(super) fn sought(
        &self,
        settings: &Settings,
        mut thresholds: ThresholdArgs,
        catalog: &Catalog,
    ) -> Result<Sought, Stop> {
        let defaults = settings.check();
        thresholds.overdue = thresholds.overdue.or(defaults.overdue.map(|overdue| overdue.0));
        // Every orphaned lock blocks a client, so it is OK only if the operator says so with --warning.
        let default_warning = if self.critical > 1 { Some(1) } else { None };
        let warning = self.warning.or(default_warning);
        let mut limits = Limits { warning, critical: self.critical, ..Limits::default() };
        let schemas = catalog.scanned();
        if schemas.iter().any(|schema| schema.states_ttl(TtlOf::Lock)) {
            limits.alarms.insert(FindingCode::ExcessTtl, Status::Warning);
        }
        if thresholds.overdue.is_some() {
            limits.alarms.insert(FindingCode::Overdue, Status::Warning);
        }
        for alarm in defaults.include.iter().map(|alarm| alarm.0).chain(self.include.iter().copied()) {
            limits.alarms.insert(alarm.code, alarm.status);
        }
        if limits.alarms.contains_key(&FindingCode::ExcessTtl) {
            needs_a_stated_lock_ttl("`excess-ttl` compares with this deployment's lock TTL", &schemas)?;
        }
        let Some(overdue) = thresholds.overdue else {
            return match limits.alarms.contains_key(&FindingCode::Overdue) {
                true => Err(Stop::usage("`overdue` is included, and nothing says from which age on a lock is overdue")
                    .hint("say so with --overdue DURATION, or in the context: [contexts.NAME.check] overdue")),
                false => Ok(Sought { codes: limits.sought(), limits, thresholds: Thresholds::default() }),
            };
        };
        let thresholds = Thresholds { overdue_ms: Some(age::millis(overdue)), ..Thresholds::default() };
        Ok(Sought { codes: limits.sought(), limits, thresholds })
    }
}
