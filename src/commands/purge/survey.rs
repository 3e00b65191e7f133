//! What a purge is about, counted.

use anyhow::Result;

use super::Args;
use super::choice::Choice;
use super::key_file::KeyFile;
use super::source::{Page, Source};
use crate::context::Context;
use crate::domain::tally::Tally;
use crate::exit::Stop;
use crate::interrupt::Interrupt;
use crate::store::Reader;

/// What was found.
#[derive(Default)]
pub(super) struct Survey {
    pub(super) tally: Tally<(String, &'static str)>,
    /// Redis keys, or keys of the file, that were looked at.
    pub(super) looked_at: u64,
    /// All records of the schemas, chosen or not; known where a percentage is asked for.
    records: u64,
    /// That records were left out which the user may not read.
    pub(super) forbidden: Option<String>,
}

impl Survey {
    /// Walks once, and counts.
    ///
    /// # Errors
    /// Interrupted, or whatever the server says; nothing was changed then.
    pub(super) async fn walk(
        context: &Context,
        choice: &Choice,
        reader: Reader,
        file: Option<&mut KeyFile>,
        interrupt: &Interrupt,
    ) -> Result<Self> {
        let progress = context.ui.progress("keys looked at");
        let mut source = Source::open(choice, reader, file).await?;
        let mut survey = Self::default();
        loop {
            let next = interrupt.unless_raised(source.next(choice)).await;
            let Some(page) = next.ok_or_else(|| Stop::interrupted("interrupted; nothing was changed"))?? else { break };
            survey.add(&page, source.looked_at());
            progress.set_position(source.looked_at());
        }
        progress.finish_and_clear();
        survey.forbidden = source.forbidden();
        Ok(survey)
    }

    /// Counts a page.
    pub(super) fn add(&mut self, page: &Page, looked_at: u64) {
        self.records += page.records as u64;
        for record in &page.chosen {
            self.tally.add((record.schema.name.clone(), record.state.word()), record, record.age);
        }
        self.looked_at = looked_at;
    }

    /// How many records may be removed: as many as were counted, or as --max and --max-percent allow, should there be
    /// more by then.
    ///
    /// # Errors
    /// Refused: more than that are chosen.
    pub(super) fn limit(&self, args: &Args) -> Result<u64, Stop> {
        let (total, records) = (self.tally.total(), self.records);
        if total == 0 {
            return Ok(0);
        }
        let refuse = |allowed: u64, by: String| {
            Stop::usage(format!("{total} records are chosen, but {by} allows {allowed}; nothing was changed"))
                .hint("choose more narrowly, or allow more")
        };
        if let Some(max) = args.max.filter(|max| total > *max) {
            return Err(refuse(max, "--max".to_owned()));
        }
        #[expect(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a percentage of a count, rounded down"
        )]
        let part = args.max_percent.map(|percent| (records as f64 * percent / 100.0) as u64);
        if let Some((part, percent)) = part.zip(args.max_percent).filter(|(part, _)| total > *part) {
            return Err(refuse(part, format!("--max-percent {percent} of {records}")));
        }
        Ok(args.max.into_iter().chain(part).min().unwrap_or(total))
    }
}
