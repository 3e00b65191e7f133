//! Which locks a sweep is about.

use anyhow::Result;

use super::{ActionArg, Args};
use crate::change::bulk::{Chosen, Rule, Scope};
use crate::context::Context;
use crate::domain::age;
use crate::domain::catalog::LONG_HEAD_BYTES;
use crate::domain::diagnosis::Thresholds;
use crate::domain::orphan::{self, ORPHANED, OVERDUE, UNREADABLE};
use crate::domain::record::Record;
use crate::exit::Stop;
use crate::store::Action;

/// Bytes of each value that are read at the first look: a lock fits.
const HEAD_BYTES: usize = 128;

/// Schemas, and the findings that are sought.
pub(super) struct Orphans {
    scope: Scope,
    /// Codes of findings.
    pub(super) sought: Vec<&'static str>,
    action: ActionArg,
}

impl Orphans {
    /// Makes sense of the options.
    ///
    /// # Errors
    /// Usage: there is no schema to sweep.
    pub(super) fn new(context: &Context, args: &Args) -> Result<Self> {
        let catalog = context.catalog(&args.schemas)?;
        if catalog.scanned().is_empty() {
            return Err(Stop::usage("no schema to sweep").hint("name one with --schema").into());
        }
        let mut sought: Vec<_> =
            ORPHANED.into_iter().filter(|code| args.orphaned.iter().any(|asked| asked == code)).collect();
        sought.extend(args.older_than.map(|_| OVERDUE));
        sought.extend(args.include.as_ref().map(|_| UNREADABLE));
        let thresholds = Thresholds { overdue_ms: args.older_than.map(age::millis), ..Thresholds::default() };
        let least = if sought.contains(&UNREADABLE) { LONG_HEAD_BYTES } else { HEAD_BYTES };
        let scope = Scope { catalog, thresholds, least, lengths: false };
        Ok(Self { scope, sought, action: args.action })
    }
}

impl Rule for Orphans {
    /// The code of the finding.
    type Group = &'static str;

    fn scope(&self) -> &Scope {
        &self.scope
    }

    fn choose(&self, record: &Record) -> Option<Chosen<Self::Group>> {
        let orphan = orphan::of(record, &self.sought)?;
        let action = match self.action {
            ActionArg::Unlock => Some(Action::Remove),
            ActionArg::Expire if orphan::expires_anyway(record, orphan.slot) => None,
            ActionArg::Expire => Some(Action::ExpireIn(age::millis(record.schema.lock_ttl))),
        };
        let ends_by_itself = orphan::may_be_held(record, orphan);
        Some(Chosen { group: orphan.code, age: orphan::age(record), slots: vec![orphan.slot], action, ends_by_itself })
    }
}
