//! Records that an operation left something of, each taken back if it is still that.

use anyhow::Result;

use super::look::{Goes, Looked, look};
use super::operation_to_undo::unreadable;
use super::undone::Undone;
use super::units::{Unit, Units};
use crate::change::restore::{Ending, Rows};
use crate::change::{Journal, Step};
use crate::context::Context;
use crate::domain::history::OUTCOME_UNKNOWN;
use crate::domain::schema::Catalog;
use crate::interrupt::Interrupt;
use crate::store::{Action, Change, Client, Former, Outcome, StepOutcome, StoreError, Writer};

/// Records that are looked at, and changed, at a time.
const BATCH: usize = 100;

/// By what records are taken back.
pub(super) enum By<'a> {
    /// By nothing: a look tells what would be done.
    Looks,
    Changes(&'a Writer, &'a mut Journal),
}

pub(super) struct TurnBack<'a> {
    pub(super) client: &'a Client,
    pub(super) catalog: &'a Catalog,
    pub(super) undone: &'a Undone,
    pub(super) interrupt: &'a Interrupt,
}

impl TurnBack<'_> {
    /// Takes the records back; false when Ctrl-C came before the end.
    pub(super) async fn run(&self, context: &mut Context, by: &mut By<'_>, rows: &mut Rows) -> Result<bool> {
        if self.undone.records == 0 {
            return Ok(true);
        }
        let wrong = |error| unreadable(&self.undone.log, &error);
        let mut units = Units::open(&self.undone.log, &self.undone.operation.op).map_err(wrong)?;
        let progress = context.ui.progress("Redis keys");
        loop {
            let batch = self.next_batch(&mut units).map_err(wrong)?;
            if batch.is_empty() {
                return Ok(true);
            }
            if self.interrupt.is_raised() {
                return Ok(false);
            }
            let looked = look(self.client, self.catalog, &batch).await?;
            let ended = match by {
                By::Looks => {
                    progress.suspend(|| looked.iter().for_each(|looked| tell(context, rows, looked)));
                    Ok(())
                }
                By::Changes(writer, journal) => change(context, writer, journal, rows, looked).await,
            };
            progress.set_position(rows.seen());
            ended?;
        }
    }

    fn next_batch(&self, units: &mut Units) -> std::io::Result<Vec<Unit>> {
        let mut batch = Vec::new();
        while batch.len() < BATCH {
            match units.next()? {
                None => break,
                Some(unit) if !unit.is_removal() && unit.is_of(&self.undone.only) => batch.push(unit),
                Some(_) => {}
            }
        }
        Ok(batch)
    }
}

fn tell(context: &mut Context, rows: &mut Rows, looked: &Looked) {
    for index in 0..looked.part.keys.len() {
        let (row, ending) = looked.row(index);
        rows.add_one(context, row, ending);
    }
}

/// Changes a batch of records: those of which one Redis key goes away all in one step, as a purge does, the others one by one.
async fn change(
    context: &mut Context,
    writer: &Writer,
    journal: &mut Journal,
    rows: &mut Rows,
    looked: Vec<Looked>,
) -> Result<()> {
    let (away, others): (Vec<_>, Vec<_>) = looked.into_iter().partition(goes_away);
    let changes: Vec<_> = away.iter().filter_map(removal).collect();
    let (outcomes, ended) = journal.apply(writer, &changes, Action::Remove, "removed", context.now()).await;
    for (mut looked, outcome) in away.into_iter().zip(outcomes) {
        if matches!(outcome, Outcome::Changed | Outcome::Absent) {
            looked.goes = Goes::Stays(Ending::Changed);
        }
        if !matches!(outcome, Outcome::Refused | Outcome::Unknown) {
            tell(context, rows, &looked);
        }
    }
    ended?;
    for mut looked in others {
        if let Goes::Back(former) = &looked.goes
            && !turn_back(context, writer, journal, &looked, former).await?
        {
            looked.goes = Goes::Stays(Ending::Changed);
        }
        tell(context, rows, &looked);
    }
    Ok(())
}

fn goes_away(looked: &Looked) -> bool {
    matches!(&looked.goes, Goes::Back(former) if former.as_slice() == [Former::Nothing])
}

fn removal(looked: &Looked) -> Option<Change> {
    let goes = looked.part.keys.first()?;
    let role = looked.record.keys.iter().position(|key| key.redis_key == goes.redis_key)?;
    Some(Change::new(vec![role], looked.record.clone(), looked.about.clone()))
}

/// Takes one record back; false when the record is no longer what the look saw.
///
/// # Errors
/// As every change: outcome unknown where no reply tells and nobody can say.
async fn turn_back(
    context: &Context,
    writer: &Writer,
    journal: &mut Journal,
    looked: &Looked,
    former: &[Former],
) -> Result<bool> {
    let Looked { about, record, part, .. } = looked;
    let now = context.now();
    journal.back_up(writer, record, about, now).await?;
    let made = writer.turn_back(part, former).await;
    let after = match &made {
        Ok(StepOutcome::Made { reply: Ok(_), after, .. }) => Some(after),
        Ok(StepOutcome::Lost { .. }) => None,
        Ok(StepOutcome::Made { reply: Err(_), .. } | StepOutcome::Changed) | Err(_) => {
            journal.nothing_changed(record);
            return match made {
                Ok(StepOutcome::Made { reply: Err(error), .. }) | Err(error) => Err(error.into()),
                Ok(_) => Ok(false),
            };
        }
    };
    let what = if after.is_some() { "restored" } else { OUTCOME_UNKNOWN };
    journal.note_step(writer, Step { about, before: part, after, role: 0 }, what, now).await?;
    match made {
        Ok(StepOutcome::Lost { why, .. }) => Err(unknown(writer, looked, &why).into()),
        _ => Ok(true),
    }
}

fn unknown(writer: &Writer, looked: &Looked, why: &StoreError) -> StoreError {
    let keys = looked.part.keys.iter().map(|key| format!("{:?}", bstr::BStr::new(&key.redis_key)));
    let what = format!("the return of {}", keys.collect::<Vec<_>>().join(" and "));
    StoreError::OutcomeUnknown { target: writer.name(), what, why: why.to_string() }
}
