//! `idemctl diff`: what happened to records between two moments.

mod moment;

use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::moment::{Lines, records};
use crate::args::{Output, SchemaArgs, WalkArgs};
use crate::change::say_coverage;
use crate::context::Context;
use crate::domain::diagnosis::Thresholds;
use crate::domain::moments::{Counts, Known, Sighting, What};
use crate::domain::select::Coverage;
use crate::exit::{Exit, Stop};
use crate::interrupt::Interrupt;
use crate::render::difference::{self, Rows};
use crate::store::read::records as read;
use crate::store::{ReadLimit, Walk};

/// Compare two moments, or a moment and now: what came, went, changed its state, was taken anew
///
/// A moment is a file that `idemctl list -o jsonl` wrote. Two files need no server; without B the records of the chosen schemas
/// are walked now, all of them: a moment that was filtered is compared with one that was filtered alike. `state` is another
/// state; `retaken` another value, `renewed` another moment of expiry with the same value: renewed, or taken anew.
///
/// Exit status 0 when nothing differs, 1 when something does, as `diff` has it.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// The first moment, a file of `list -o jsonl`
    #[arg(value_name = "A")]
    before: PathBuf,

    /// The second moment, `-` for stdin [default: now]
    #[arg(value_name = "B")]
    after: Option<PathBuf>,

    /// How to show the differences
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    walk: WalkArgs,

    #[command(flatten)]
    schemas: SchemaArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let mut known = Known::with_capacity(moment::count(&args.before)?);
    records(&args.before, |sighting| {
        known.add(&sighting);
        Ok(())
    })?;
    known.close();
    let mut diff = Diff { known, rows: Rows::new(), counts: Counts::default(), output: args.output };
    let interrupt = Interrupt::listen()?;
    match &args.after {
        Some(file) => {
            let mut lines = Lines::open(file)?;
            while let Some(sighting) = lines.next()? {
                if interrupt.is_raised() {
                    return Err(interrupted().into());
                }
                diff.meet(context, &sighting)?;
            }
        }
        None => diff.meet_now(context, &args, &interrupt).await?,
    }
    records(&args.before, |sighting| diff.miss(context, &sighting))?;
    diff.end(context)
}

struct Diff {
    known: Known,
    rows: Rows,
    counts: Counts,
    output: Output,
}

impl Diff {
    fn meet(&mut self, context: &mut Context, now: &Sighting) -> Result<()> {
        let Some(met) = self.known.meet(now) else { return Ok(()) };
        self.counts.add(met.what);
        match met.what {
            Some(what) => self.show(context, what, met.before, Some(&now.state), now),
            None => Ok(()),
        }
    }

    fn miss(&mut self, context: &mut Context, then: &Sighting) -> Result<()> {
        if !self.known.is_gone(then) {
            return Ok(());
        }
        self.counts.add(Some(What::Went));
        self.show(context, What::Went, Some(&then.state), None, then)
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
            progress.suspend(|| page.iter().try_for_each(|record| self.meet(context, &Sighting::of(record))))?;
        }
        progress.finish_and_clear();
        if let Some(forbidden) = walk.forbidden() {
            context.ui.warning(&forbidden);
        }
        say_coverage(context, &coverage, &catalog);
        Ok(())
    }

    fn show(
        &mut self,
        context: &mut Context,
        what: What,
        before: Option<&str>,
        after: Option<&str>,
        of: &Sighting,
    ) -> Result<()> {
        let row = difference::Row { what, before, after, of };
        let text = match self.output {
            Output::Table => self.rows.line(&row),
            Output::Json => self.rows.element(&row),
            Output::Jsonl => difference::json(&row) + "\n",
        };
        Ok(context.ui.data(text)?)
    }

    fn end(mut self, context: &mut Context) -> Result<Exit> {
        if self.output == Output::Json {
            context.ui.data(self.rows.end(&self.counts))?;
        }
        context.ui.flush()?;
        context.ui.status(&difference::summary(&self.counts));
        Ok(if self.counts.differences() == 0 { Exit::Done } else { Exit::No })
    }
}

fn interrupted() -> Stop {
    Stop::interrupted("interrupted; what went is not told")
}
