//! What a restore brings back: the backup, which of its lines are damaged, and whether it was taken from this server.

use std::collections::HashSet;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Result;

use super::destination;
use crate::args::ReturnArgs;
use crate::context::Context;
use crate::domain::change::provenance::Provenance;
use crate::domain::record::Only;
use crate::domain::schema::Role;
use crate::exit::{Exit, Stop};
use crate::render::name;
use crate::store::Return;
use crate::store::backup::{BackupError, BackupReader, Beside, Damage, Held};

/// Which Redis keys of a backup come back.
pub struct Wanted<'a> {
    pub args: &'a ReturnArgs,
    pub only: &'a Only,
    /// Redis keys that do not come back by this way.
    pub but: HashSet<Vec<u8>>,
}

impl Wanted<'_> {
    pub fn holds(&self, held: &Held) -> bool {
        let redis_key = &held.saved.redis_key;
        self.only.holds(&held.schema, &held.key, redis_key) && !self.but.contains(redis_key)
    }

    /// How a Redis key comes back, and what bars it.
    pub(super) fn how<'a>(&self, held: &'a Held) -> Return<'a> {
        let is_passed = |beside: &&Beside| !(self.args.replace_locked && beside.role == Role::Lock);
        let beside = held.beside.as_ref().filter(is_passed);
        Return { saved: &held.saved, barred_by: beside.and_then(Beside::bars) }
    }
}

/// Finds out which records of a backup each `--only` means.
///
/// # Errors
/// Usage: no backup, or a newer one.
pub fn only_of(file: &Path, args: &ReturnArgs) -> Result<Only, Stop> {
    let mut only = Only::of(args.keys.iter().map(|key| key.as_bytes()));
    if !only.is_all() {
        let note = |held: &Held| only.note(&held.schema, &held.key, &held.saved.redis_key);
        BackupReader::open(file, note).map_err(not_a_backup)?;
    }
    Ok(only)
}

/// Names each `--only` that means more than one record. Gives whether there is any.
///
/// # Errors
/// Usage: there are no others.
pub fn say_ambiguous(context: &mut Context, only: &Only) -> Result<bool, Stop> {
    let mut is_any = false;
    for (text, names) in only.ambiguous() {
        is_any = true;
        context.ui.warning(&name::ambiguous(text, names));
    }
    if only.is_all_ambiguous() {
        return Err(Stop::usage("--only names more than one record; nothing was changed").hint(name::HINT));
    }
    Ok(is_any)
}

/// A backup that was checked from its beginning to its end.
pub struct Source {
    pub wanted: u64,
    /// Lines that are left out although they may hold a Redis key that was changed.
    pub left_out: u64,
    pub file: String,
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
    pub fn open(context: &mut Context, file: &Path, of: &Wanted<'_>) -> Result<Self, Stop> {
        let (mut wanted, mut from_nowhere, mut places) = (0, 0, Vec::new());
        let look = |held: &Held| {
            if !of.holds(held) {
                return;
            }
            wanted += 1;
            match &held.from {
                Some(from) if places.contains(from) => {}
                Some(from) => places.push(Arc::clone(from)),
                None => from_nowhere += 1,
            }
        };
        let reader = BackupReader::open(file, look).map_err(not_a_backup)?;
        // The log names the file, and is read from other folders.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.to_owned()).display().to_string();
        let left_out = left_out(context, of.args, &file, reader.damage())?;
        if wanted == 0 && !of.args.keys.is_empty() {
            return Err(Stop::new(Exit::No, format!("{file} holds none of these keys")));
        }
        Ok(Self { wanted, left_out, file, reader, places, from_nowhere })
    }

    /// Passes where the backup was taken from this server, or the operator allows another one.
    ///
    /// # Errors
    /// Refused for safety: it was taken somewhere else.
    pub fn may_go_to(&self, context: &mut Context, here: &Provenance, elsewhere: bool) -> Result<(), Stop> {
        if self.from_nowhere > 0 {
            let (some, all, file) = (self.from_nowhere, self.wanted, &self.file);
            context.ui.warning(&format!("{some} of {all} Redis keys do not say where they come from: an older idemctl wrote {file}, or its first line is gone"));
        }
        self.places.iter().try_for_each(|from| destination::may_go_to(context, &self.file, from, here, elsewhere))
    }

    /// Begins once more with the first line.
    pub fn again(self) -> Result<Self, Stop> {
        Ok(Self { reader: self.reader.again().map_err(not_a_backup)?, ..self })
    }

    /// The next Redis key of the backup, wanted or not.
    pub fn next(&mut self) -> Result<Option<Held>, Stop> {
        self.reader.next_held().map_err(not_a_backup)
    }
}

/// Says which lines are left out. Gives how many, where one of them may hold a Redis key that was changed, else 0.
fn left_out(context: &mut Context, args: &ReturnArgs, file: &str, damage: &Damage) -> Result<u64, Stop> {
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
    Stop::usage(error.to_string()).hint("nothing was restored; idemctl log names the backup of each operation")
}
