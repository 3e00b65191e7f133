//! The operation that is taken back, and in which ways it can be.

use std::collections::HashSet;
use std::io;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};

use anyhow::Result;

use super::units::{Unit, Units};
use crate::args::ReturnArgs;
use crate::change::restore::may_go_to;
use crate::context::Context;
use crate::domain::change::provenance::Provenance;
use crate::domain::history::Operation;
use crate::domain::record::Only;
use crate::exit::{Exit, Stop};
use crate::store::audit::log;

/// An operation, and what taking it back comes to.
pub(super) struct Undone {
    pub(super) log: PathBuf,
    pub(super) operation: Operation,
    /// The backups from which what was removed comes back.
    pub(super) backups: Vec<PathBuf>,
    /// Redis keys that do not come back from a backup: something else is to be done, or nothing can be.
    pub(super) but: HashSet<Vec<u8>>,
    /// How many records the log has to be asked for.
    pub(super) records: u64,
    /// Which records are to be taken back.
    pub(super) only: Only,
    places: Vec<Provenance>,
}

impl Undone {
    /// Finds the operation whose name begins so, or the last one.
    ///
    /// # Errors
    /// No: the log has none. Usage: several have such a name, or an older idemctl did not say what its changes left.
    pub(super) fn find(context: &Context, op: Option<&str>, args: &ReturnArgs) -> Result<Self> {
        let path = context.settings.audit_log()?;
        let operation = find(&path, op)?;
        let only = Only::of(args.keys.iter().map(|key| key.as_bytes()));
        let (backups, but, places) = (Vec::new(), HashSet::new(), Vec::new());
        let mut found = Self { operation, backups, but, records: 0, only, places, log: path };
        found.survey().map_err(|error| unreadable(&found.log, &error))?;
        Ok(found)
    }

    fn survey(&mut self) -> io::Result<()> {
        if !self.only.is_all() {
            let mut units = Units::open(&self.log, &self.operation.op)?;
            while let Some(unit) = units.next()? {
                let redis_keys = unit.changes.iter().map(|change| &change.redis_key);
                redis_keys.for_each(|redis_key| self.only.note(&unit.schema, &unit.key, redis_key));
            }
        }
        let mut units = Units::open(&self.log, &self.operation.op)?;
        while let Some(unit) = units.next()? {
            if unit.is_removal() {
                self.take_backups(&unit);
            } else {
                self.records += u64::from(unit.is_of(&self.only));
                self.but.extend(unit.changes.into_iter().map(|change| change.redis_key));
            }
        }
        if self.backups.is_empty() {
            self.but.clear();
        }
        self.places = units.places;
        Ok(())
    }

    fn take_backups(&mut self, unit: &Unit) {
        for file in unit.changes.iter().filter_map(|change| change.backup.as_ref()) {
            if !self.backups.iter().any(|known| known == Path::new(file)) {
                self.backups.push(PathBuf::from(file));
            }
        }
    }

    /// Passes where what the log alone tells of was changed here, or where the operator allows another place.
    ///
    /// # Errors
    /// Refused for safety: it was changed somewhere else.
    pub(super) fn may_go_to(&self, context: &mut Context, here: &Provenance, elsewhere: bool) -> Result<(), Stop> {
        let what = format!("what {} changed", self.name());
        if self.records == 0 {
            return Ok(());
        }
        if self.places.is_empty() && !elsewhere {
            return Err(Stop::usage(format!("the audit log does not say where {} was done", self.name()))
                .hint("nothing was changed; --elsewhere takes it back on this server"));
        }
        for from in &self.places {
            let from = Provenance { taken_at: Some(self.operation.at.clone()), ..from.clone() };
            may_go_to(context, &what, &from, here, elsewhere)?;
        }
        Ok(())
    }

    /// The operation's name for people.
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.operation.command, self.operation.op)
    }
}

fn find(path: &Path, op: Option<&str>) -> Result<Operation, Stop> {
    let read = log::each(path, |_, _| {}).map_err(|error| unreadable(path, &error))?;
    let Some((operations, _)) = read else {
        return Err(Stop::new(Exit::No, "nothing was changed yet: there is no audit log"));
    };
    let found = match op {
        None => operations.last().into_iter().collect(),
        Some(op) => operations.named(op),
    };
    match (found.as_slice(), op) {
        ([one], _) if operations.is_ambiguous(&one.op) => {
            Err(Stop::usage(format!("two operations of the audit log have the name {}; nothing was changed", one.op))
                .hint("`idemctl log show` names their backups, and `idemctl restore FILE` brings one of them back"))
        }
        ([one], _) if one.says_what_was_left => Ok((*one).clone()),
        ([one], _) => {
            let hint = match &one.backup {
                Some(file) => format!("idemctl restore {file} brings back what is in its backup"),
                None => "it has no backup either".to_owned(),
            };
            let message = format!("nobody knows what {} {} left: the audit log does not say", one.command, one.op);
            Err(Stop::usage(message).hint(hint))
        }
        ([], None) => Err(Stop::new(Exit::No, "nothing was changed yet: the audit log has no operation")),
        ([], Some(name)) => Err(Stop::new(Exit::No, format!("the audit log has no operation {name}"))
            .hint("idemctl log names the operations")),
        (several, _) => {
            let names: Vec<_> = several.iter().map(|operation| operation.op.as_str()).collect();
            Err(Stop::usage(format!("several operations have such a name: {}", names.join(", "))))
        }
    }
}

pub(super) fn unreadable(path: &Path, error: &io::Error) -> Stop {
    Stop::usage(format!("cannot read the audit log {}: {error}", path.display()))
}
