//! `idemctl diff`: what happened to records between two moments.

mod moment;

use std::path::{Path, PathBuf};

use anyhow::Result;
use clap::Args as ClapArgs;

use self::moment::{Completeness, records};
use crate::args::{Output, SchemaArgs, SelectArgs, WalkArgs};
use crate::change::say_coverage;
use crate::context::Context;
use crate::domain::diagnosis::Thresholds;
use crate::domain::moments::{Counts, Known, Sighting, Summary, What, how_it_went};
use crate::domain::select::{Coverage, Selection};
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::render::difference::{self, Row, Rows};
use crate::store::read::records as read;
use crate::store::{ReadLimit, Walk};

/// Compare two moments, or a moment and now: what came, went, changed its state, was taken anew
///
/// A moment is a file that `idemctl list -o json` wrote. Lines of `list -o jsonl` will do, but do not say whether they are
/// complete. Two files need no server. Without B all records of the chosen schemas are read now. Filters choose the records
/// that pass at either moment. `expired` is gone because its time was over, `removed` before; `state` is another state;
/// `retaken` another value; `renewed` the same value with another expiry: renewed, or taken anew.
///
/// Exit status 0 if nothing differs, 1 if something does, 3 if a moment is not complete.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The first moment, a file of `list -o json`
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The second moment, `-` for stdin [default: now]
    #[arg(value_name = "B")]
    after: Option<PathBuf>,

    /// How to show the differences
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    select: SelectArgs,

    #[command(flatten)]
    walk: WalkArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let selection = args.select.selection()?;
    if selection.reads_bodies() {
        return Err(Stop::usage("--body-contains: a moment does not hold bodies")
            .hint("list both moments with --body-contains, and compare those")
            .into());
    }
    let (mut known, mut summary) = (Known::with_capacity(moment::count(&args.before)?), Summary::default());
    let completeness = records(&args.before, |sighting| {
        let is_chosen = sighting.is_chosen(&selection);
        known.add(&sighting, is_chosen);
        if is_chosen {
            summary.add(&sighting, 0);
        }
        Ok(())
    })?;
    known.close();
    let held = (args.output == Output::Table).then(String::new);
    let mut diff = Diff {
        known,
        selection,
        summary,
        rows: Rows::new(),
        held,
        counts: Counts::default(),
        output: args.output,
        at: None,
        is_complete: true,
    };
    diff.heed(context, &args.before, completeness);
    let interrupt = Interrupt::listen()?;
    match &args.after {
        Some(file) => {
            let completeness = records(file, |sighting| {
                if interrupt.is_raised() {
                    return Err(interrupted().into());
                }
                diff.meet(context, &sighting)
            })?;
            diff.heed(context, file, completeness);
        }
        None => diff.meet_now(context, &args, &interrupt).await?,
    }
    records(&args.before, |sighting| diff.miss(context, &sighting))?;
    diff.end(context)
}

/// The most differences that wait for the summary before them.
const MOST_HELD: u64 = 10_000;

struct Diff {
    known: Known,
    selection: Selection,
    summary: Summary,
    rows: Rows,
    /// Lines for people that wait for the summary; `None` where they are shown as they come.
    held: Option<String>,
    counts: Counts,
    output: Output,
    /// When the second moment's last record was read, by its server's clock.
    at: Option<u64>,
    /// False if a moment lacks records that may have been there.
    is_complete: bool,
}

impl Diff {
    /// Heeds what a moment says of being complete.
    fn heed(&mut self, context: &mut Context, file: &Path, completeness: Completeness) {
        let file = file.display();
        match completeness {
            Completeness::Complete => {}
            Completeness::Incomplete => {
                self.is_complete = false;
                context.ui.warning(&format!("{file} is not complete: records that it lacks seem to have come or gone"));
            }
            Completeness::Unknown => {
                let text = format!("{file}: lines do not say whether a list is complete; `list -o json` does");
                context.ui.status(&text);
            }
        }
    }

    fn meet(&mut self, context: &mut Context, now: &Sighting) -> Result<()> {
        self.at = self.at.max(now.read_at_ms());
        let is_chosen = now.is_chosen(&self.selection);
        let Some(met) = self.known.meet(now, is_chosen) else { return Ok(()) };
        if is_chosen {
            self.summary.add(now, 1);
        }
        self.counts.add(met.what);
        match met.what {
            Some(what) => {
                let row = Row { what, how: None, before: met.before, after: Some(&now.state), of: now };
                self.show(context, &row)
            }
            None => Ok(()),
        }
    }

    fn miss(&mut self, context: &mut Context, then: &Sighting) -> Result<()> {
        if !then.is_chosen(&self.selection) || !self.known.is_gone(then) {
            return Ok(());
        }
        let how = how_it_went(then.ends_at_ms(), self.at);
        self.counts.add(Some(What::Went));
        self.counts.add_how(how);
        self.show(context, &Row { what: What::Went, how, before: Some(&then.state), after: None, of: then })
    }

    async fn meet_now(&mut self, context: &mut Context, args: &Args, interrupt: &Interrupt) -> Result<()> {
        let catalog = context.catalog(&args.schemas)?;
        if catalog.scanned().is_empty() {
            return Err(Stop::usage("no schema to compare").hint("name one with --schema").into());
        }
        let reader = context.reader().await?.walking(args.walk.scan_options());
        // As much is read as a list reads: else the bytes of long values could not be compared.
        let mut walk = Walk::start(reader, &catalog, ReadLimit::Bytes(0)).await?.without_lengths();
        let (mut coverage, thresholds) = (Coverage::default(), Thresholds::default());
        let progress = context.ui.progress("keys looked at");
        loop {
            let page = read::next_page(&mut walk, &catalog, &thresholds, &mut coverage, |_| true);
            let page = interrupt.unless_raised(page).await.ok_or_else(interrupted)?;
            let Some(page) = page? else { break };
            progress.set_position(walk.looked_at());
            for record in &page {
                self.at = self.at.max(record.seen.server_ms);
                progress.suspend(|| self.meet(context, &Sighting::of(record)))?;
            }
        }
        progress.finish_and_clear();
        if let Some(forbidden) = walk.forbidden() {
            self.is_complete = false;
            context.ui.warning(&format!("{forbidden}; those that were there before seem to have gone"));
        }
        say_coverage(context, &coverage, &catalog);
        Ok(())
    }

    fn show(&mut self, context: &mut Context, row: &Row<'_>) -> Result<()> {
        let text = match self.output {
            Output::Table => self.rows.line(row),
            Output::Json => self.rows.element(row),
            Output::Jsonl => difference::json(row) + "\n",
        };
        let Some(held) = &mut self.held else { return Ok(self.write(context, &text)?) };
        held.push_str(&text);
        if self.counts.differences() > MOST_HELD {
            let text = std::mem::take(held);
            self.held = None;
            context.ui.status("more than 10,000 differences: the summary comes after them");
            self.write(context, &text)?;
        }
        Ok(())
    }

    fn write(&self, context: &mut Context, text: &str) -> std::io::Result<()> {
        if self.output == Output::Table { context.ui.page(text) } else { context.ui.data(text) }
    }

    fn end(mut self, context: &mut Context) -> Result<Exit> {
        match self.output {
            Output::Json => context.ui.data(self.rows.end(&self.counts, &self.summary))?,
            Output::Jsonl => {}
            Output::Table => {
                let rows = self.held.take().unwrap_or_default();
                context.ui.page(difference::summary_table(&self.summary, context.ui.view()))?;
                if !rows.is_empty() {
                    context.ui.page(format!("\n{rows}"))?;
                }
            }
        }
        context.ui.flush()?;
        context.ui.status(&difference::summary(&self.counts));
        Ok(match self.counts.differences() {
            _ if !self.is_complete => Exit::Partial,
            0 => Exit::Done,
            _ => Exit::No,
        })
    }
}

fn interrupted() -> Stop {
    Stop::interrupted("interrupted; what went is not told")
}
