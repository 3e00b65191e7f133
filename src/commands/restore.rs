//! `idemctl restore`: brings back what a backup holds.

mod rows;
mod source;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::rows::Rows;
use self::source::{Source, SourceArgs};
use crate::args::{ConfirmArgs, Output};
use crate::change::{self, AuditTrail, Noted};
use crate::context::Context;
use crate::exit::{self, Exit, Stop};
use crate::interrupt::Interrupt;
use crate::store::backup::Held;
use crate::store::{Became, Fate, Link, Return, StoreError, Writer};

/// Redis keys that a round trip brings back at most.
const BATCH: usize = 100;

/// Bytes of values after which a round trip takes no more Redis keys.
const BATCH_BYTES: usize = 4 << 20;

/// The warning for a cluster that keeps lock and result apart.
const APART: &str = "this cluster keeps lock and result in different slots: whether one stands beside the other is looked \
                     at right before a Redis key comes back, not in the same step";

/// Bring back what a backup holds, where nothing stands now
///
/// Checks the whole file first, then brings back each Redis key byte for byte, to expire at the moment at which it was to
/// expire. What is there stays as it is; what has expired since, by the server's clock, stays away. So does a result beside
/// a lock, for a retry is at work and overwrites it, and a lock whose record has a result by now, for its old worker would
/// overwrite that.
///
/// Goes to the server that the backup was taken from: neither a restart nor a failover makes another server of it. One
/// that is another, of the same version or a newer one, needs --elsewhere.
///
/// What is damaged at the end of the file is left out and named. Doing it again does no harm. Exit status 3 when some
/// Redis keys were there already, were kept away or are lost with the end of the file, 1 when the backup holds none of the
/// keys asked for.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(flatten)]
    source: SourceArgs,

    /// How to show what became of each Redis key
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    change: ConfirmArgs,
}

pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let mut source = Source::open(context, &args.source)?;
    let mut mode = Mode::over(context, &args, &source).await?;
    let mut rows = Rows::new(args.output, args.change.dry_run);
    let mut ended = restore(context, &args, &mut source, &mut mode, &mut rows).await;
    if let Mode::Restores(_, trail) = &mut mode {
        let noted = trail.settle().await;
        ended = ended.and_then(|whole| Ok(noted.map(|()| whole)?));
    }
    let shown = rows.close(context, matches!(ended, Ok(true)), source.left_out);
    finish(context, &args, &rows, ended, &source)?;
    shown?;
    Ok(if rows.kept_away() + source.left_out > 0 { Exit::Partial } else { Exit::Done })
}

enum Mode {
    Looks(Box<Link>),
    /// Brings it back and notes it.
    Restores(Box<Writer>, AuditTrail),
}

impl Mode {
    /// Connects to the server that the backup came from, and asks for leave unless this is a dry run.
    async fn over(context: &mut Context, args: &Args, source: &Source) -> Result<Self> {
        if args.change.dry_run {
            let link = context.link().await?;
            source.may_go_to(context, &link.provenance().await?, args.source.elsewhere)?;
            return Ok(Self::Looks(Box::new(link)));
        }
        let writer = context.writer(&args.change).await?;
        let trail = AuditTrail::open(context, &args.change, "restore")?;
        source.may_go_to(context, &writer.provenance().await?, args.source.elsewhere)?;
        let question = format!("Restore {} Redis keys from {}?", source.wanted, args.source.file.display());
        args.change.confirm(context, &question, &writer.name())?;
        Ok(Self::Restores(Box::new(writer), trail))
    }

    fn looks_ahead(&self, wanted: &[Return<'_>]) -> bool {
        wanted.iter().any(|wanted| match self {
            Self::Looks(link) => link.looks_ahead(wanted),
            Self::Restores(writer, _) => writer.looks_ahead(wanted),
        })
    }
}

/// Brings the backup's Redis keys back; false when Ctrl-C came before the end.
async fn restore(
    context: &mut Context,
    args: &Args,
    source: &mut Source,
    mode: &mut Mode,
    rows: &mut Rows,
) -> Result<bool> {
    let interrupt = Interrupt::listen()?;
    interrupt.heed_terminate()?;
    let progress = context.ui.progress("Redis keys");
    let mut told_apart = false;
    loop {
        let batch = next_batch(source, args)?;
        if batch.is_empty() {
            return Ok(true);
        }
        if interrupt.is_raised() {
            return Ok(false);
        }
        let wanted: Vec<_> = batch.iter().map(|held| args.source.wanted(held)).collect();
        if !told_apart && mode.looks_ahead(&wanted) {
            told_apart = true;
            progress.suspend(|| context.ui.warning(APART));
        }
        let (fates, ended) = match mode {
            Mode::Looks(link) => (link.would_restore(&wanted).await?, Ok(())),
            Mode::Restores(writer, trail) => {
                let (restored, ended) = writer.restore(&wanted).await;
                let mut ended = ended.map_err(anyhow::Error::from);
                for (what, which) in [("restored", is_back as fn(&Became) -> bool), ("outcome-unknown", is_unknown)] {
                    let noted = batch.iter().zip(&restored).filter(|(_, became)| which(became));
                    // A Redis key that is back is shown even where the change could not be noted.
                    ended = ended.and(note(context, args, writer, trail, noted.map(|(held, _)| held), what).await);
                }
                (restored, ended)
            }
        };
        let refusal = progress.suspend(|| rows.add(context, &batch, fates));
        progress.set_position(rows.seen());
        if let Some(refusal) = refusal {
            return Err(refused(refusal));
        }
        ended?;
    }
}

fn next_batch(source: &mut Source, args: &Args) -> Result<Vec<Held>, Stop> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < BATCH && bytes < BATCH_BYTES {
        match source.next()? {
            None => break,
            Some(held) if args.source.wants(&held) => {
                bytes += held.saved.dump.len();
                batch.push(held);
            }
            Some(_) => {}
        }
    }
    Ok(batch)
}

async fn note<'a>(
    context: &Context,
    args: &Args,
    writer: &Writer,
    trail: &mut AuditTrail,
    held: impl Iterator<Item = &'a Held>,
    what: &'static str,
) -> Result<()> {
    let noted = held.map(|held| Noted { schema: &held.schema, key: &held.key, redis_key: &held.saved.redis_key });
    let file = args.source.file.display().to_string();
    Ok(trail.note(noted, what, &writer.name(), Some(&file), context.now()).await?)
}

fn is_back(became: &Became) -> bool {
    matches!(became, Ok(Fate::Restored(_) | Fate::FoundBack(_)))
}

fn is_unknown(became: &Became) -> bool {
    matches!(became, Err(StoreError::OutcomeUnknown { .. }))
}

/// Says how far the restore got, and passes its error on.
fn finish(context: &mut Context, args: &Args, rows: &Rows, ended: Result<bool>, source: &Source) -> Result<()> {
    let so_far = rows.summary(source.wanted);
    change::say_read_back(context, rows.read_back);
    match ended {
        Ok(true) if args.change.dry_run => context.ui.status(&format!("{so_far}. Dry run: nothing was changed.")),
        Ok(true) => context.ui.status(&format!("{so_far}.")),
        Ok(false) => {
            return Err(Stop::interrupted(format!("interrupted: {so_far}"))
                .hint("the same command again goes on: what is back stays as it is")
                .into());
        }
        Err(error) if rows.seen() == 0 => return Err(error),
        Err(error) => return Err(exit::between(&error, rows.restored() > 0, &so_far).into()),
    }
    Ok(())
}

/// A refusal of the values' bytes. The backup's own checksum holds, so the server does not know the format of the bytes.
fn refused(error: StoreError) -> anyhow::Error {
    let text = error.to_string();
    if !text.contains("DUMP payload version") && !text.contains("Bad data format") {
        return error.into();
    }
    Stop::new(Exit::Refused, format!("the server does not know the format of the values in this backup: {text}"))
        .hint("they come from a newer Redis or another kind of server: restore to the version they come from, or newer")
        .into()
}
