//! What a restore brings back: the backup, which of its lines are damaged, and whether it was taken from this server.

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;
use std::sync::Arc;

use anyhow::Result;
use clap::Args;

use crate::context::Context;
use crate::domain::change::provenance::{Likeness, Provenance};
use crate::domain::schema::Role;
use crate::exit::{Exit, Stop};
use crate::render::escape;
use crate::store::Return;
use crate::store::backup::{BackupError, BackupReader, Beside, Damage, Held};

/// The options that say what is restored.
#[derive(Debug, Args)]
pub(super) struct SourceArgs {
    /// Backup to restore from
    #[arg(value_name = "FILE")]
    pub(super) file: PathBuf,

    /// Only this idempotency key or Redis key; can be given more than once
    #[arg(long = "only", value_name = "KEY")]
    pub(super) keys: Vec<OsString>,

    /// Restore to another server, service, cluster or database than the backup was taken from
    #[arg(long)]
    pub(super) elsewhere: bool,

    /// Restore a result although a lock stands beside it: the lock stays, and requests get this result until the lock's
    /// holder overwrites it
    #[arg(long)]
    pub(super) replace_locked: bool,

    /// Leave out damaged lines that have whole ones behind them, too: what a damaged line may have taken back comes back
    #[arg(long)]
    pub(super) skip_damaged: bool,
}

impl SourceArgs {
    pub(super) fn wants(&self, held: &Held) -> bool {
        let is = |key: &OsString| key.as_bytes() == held.key || key.as_bytes() == held.saved.redis_key;
        self.keys.is_empty() || self.keys.iter().any(is)
    }

    /// How a Redis key comes back, and what bars it.
    pub(super) fn wanted<'a>(&self, held: &'a Held) -> Return<'a> {
        let beside = held.beside.as_ref().filter(|beside| !(self.replace_locked && beside.role == Role::Lock));
        Return { saved: &held.saved, barred_by: beside.and_then(Beside::bars) }
    }
}

/// A backup that was checked from its beginning to its end.
pub(super) struct Source {
    pub(super) wanted: u64,
    /// Lines that are left out although they may hold a Redis key that was changed.
    pub(super) left_out: u64,
    file: String,
    reader: BackupReader,
    /// Where the wanted Redis keys were taken from, each server once.
    places: Vec<Arc<Provenance>>,
    /// Wanted Redis keys of which the backup does not say where they were taken from.
    from_nowhere: u64,
}

impl Source {
    /// Checks the whole backup, and says which of its lines are left out.
    ///
    /// # Errors
    /// Usage: no backup, a newer one, one that is damaged in the middle. No: it holds none of the keys asked for.
    pub(super) fn open(context: &mut Context, args: &SourceArgs) -> Result<Self, Stop> {
        let (mut wanted, mut from_nowhere, mut places) = (0, 0, Vec::new());
        let look = |held: &Held| {
            if !args.wants(held) {
                return;
            }
            wanted += 1;
            match &held.from {
                Some(from) if places.contains(from) => {}
                Some(from) => places.push(Arc::clone(from)),
                None => from_nowhere += 1,
            }
        };
        let reader = BackupReader::open(&args.file, look).map_err(not_a_backup)?;
        let file = args.file.display().to_string();
        let left_out = left_out(context, args, &file, reader.damage())?;
        if wanted == 0 && !args.keys.is_empty() {
            return Err(Stop::new(Exit::No, format!("{file} holds none of these keys")));
        }
        Ok(Self { wanted, left_out, file, reader, places, from_nowhere })
    }

    /// Passes where the backup was taken from this server, or the operator allows another one.
    ///
    /// # Errors
    /// Refused for safety: it was taken somewhere else.
    pub(super) fn may_go_to(&self, context: &mut Context, here: &Provenance, elsewhere: bool) -> Result<(), Stop> {
        if self.from_nowhere > 0 {
            let (some, all, file) = (self.from_nowhere, self.wanted, &self.file);
            context.ui.warning(&format!("{some} of {all} Redis keys do not say where they come from: an older idemctl wrote {file}, or its first line is gone"));
        }
        for from in &self.places {
            let (there, here) = (escape::text(from.to_string().as_bytes()), here);
            match from.likeness(here) {
                Likeness::Same => {}
                Likeness::OtherProcess => context.ui.warning(&format!(
                    "{} was taken from {there}, and here is {here}: a restart or a failover since, or another server at that address",
                    self.file
                )),
                Likeness::Elsewhere if elsewhere => {
                    context.ui.warning(&format!("{} was taken from {there}, and goes to {here}", self.file));
                }
                Likeness::Elsewhere => {
                    return Err(Stop::usage(format!("{} was taken from {there}, and here is {here}", self.file))
                        .hint("nothing was restored; name the server it came from, or restore to this one with --elsewhere"));
                }
            }
        }
        Ok(())
    }

    pub(super) fn next(&mut self) -> Result<Option<Held>, Stop> {
        self.reader.next_held().map_err(not_a_backup)
    }
}

/// Says which lines are left out. Gives how many, where one of them may hold a Redis key that was changed, else 0.
fn left_out(context: &mut Context, args: &SourceArgs, file: &str, damage: &Damage) -> Result<u64, Stop> {
    if let Some(gap) = damage.middle.as_ref().filter(|_| !args.skip_damaged) {
        let more = if gap.lines > 1 {
            format!("; {} are damaged, and whole lines follow", gap.words())
        } else {
            String::new()
        };
        return Err(Stop::usage(format!("{file}:{}: {}{more}", gap.first, gap.why))
            .hint("nothing was restored; --skip-damaged leaves out what is damaged and restores the rest"));
    }
    for gap in damage.middle.iter().chain(&damage.tail) {
        let verb = if gap.lines == 1 { "is" } else { "are" };
        let as_by = if gap.may_have_held { "" } else { ", as by a crash: no key was changed for it" };
        context.ui.warning(&format!("{} of {file} {verb} left out: {}{as_by}", gap.words(), gap.why));
    }
    Ok(if damage.may_have_held() { damage.lines() } else { 0 })
}

fn not_a_backup(error: BackupError) -> Stop {
    Stop::usage(error.to_string()).hint("nothing was restored; idemctl audit -o json names the backup of each change")
}
