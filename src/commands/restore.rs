//! `idemctl restore`: brings back what a backup holds.

mod rows;

use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

use anyhow::Result;
use clap::Args as ClapArgs;

use self::rows::Rows;
use crate::args::{ConfirmArgs, Output};
use crate::change::{self, Noted, Trail};
use crate::context::Context;
use crate::exit::{self, Exit, Stop};
use crate::interrupt::Interrupt;
use crate::store::backup::{BackupError, BackupReader, Held};
use crate::store::{Became, Fate, Link, StoreError, Writer};

/// Redis keys a round trip brings back, and the bytes after which it takes no more.
const BATCH: (usize, usize) = (100, 4 << 20);

/// Bring back what a backup holds, where nothing stands now
///
/// Checks the whole file first, then brings back each Redis key byte for byte, to expire at the moment at which it was to
/// expire. What is there stays as it is; what has expired since, by the server's clock, stays away. The server may be
/// another one than the backup was taken from, of the same version or a newer one. Doing it again does no harm. Exit
/// status 3 when some Redis keys were there already, 1 when the backup holds none of the keys asked for.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Backup to restore from
    #[arg(value_name = "FILE")]
    file: PathBuf,

    /// Only this idempotency key or Redis key; can be given more than once
    #[arg(long = "only", value_name = "KEY")]
    keys: Vec<OsString>,

    /// How to show what became of each Redis key
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    change: ConfirmArgs,
}

impl Args {
    fn wants(&self, held: &Held) -> bool {
        let is = |key: &OsString| key.as_bytes() == held.key || key.as_bytes() == held.saved.redis_key;
        self.keys.is_empty() || self.keys.iter().any(is)
    }
}

/// Runs `idemctl restore`.
///
/// # Errors
/// Usage: a file that is no whole backup; refusals; partial when the audit log cannot be written; whatever the server
/// says.
pub async fn run(context: &mut Context, args: Args) -> Result<Exit> {
    let mut count = 0_u64;
    let backup = BackupReader::open(&args.file, |held| count += u64::from(args.wants(held))).map_err(not_a_backup)?;
    let file = args.file.display();
    if backup.is_cut_short() {
        context.ui.warning(&format!("the last line of {file} is cut short, as by a crash: what is before it is used"));
    }
    if count == 0 && !args.keys.is_empty() {
        return Err(Stop::new(Exit::No, format!("{file} holds none of these keys")).into());
    }
    let mut hand = if args.change.dry_run {
        Hand::Looks(Box::new(context.link().await?))
    } else {
        let writer = context.writer(&args.change).await?;
        let trail = Trail::open(context, &args.change, "restore")?;
        let question = format!("Restore {count} Redis keys from {file}?");
        args.change.confirm(context, &question, &writer.name())?;
        Hand::Restores(Box::new(writer), trail)
    };
    let mut rows = Rows::new(args.output, args.change.dry_run);
    let mut ended = restore(context, &args, backup, &mut hand, &mut rows).await;
    if let Hand::Restores(_, trail) = &mut hand {
        let noted = trail.settle().await;
        ended = ended.and_then(|whole| Ok(noted.map(|()| whole)?));
    }
    let shown = rows.close(context, matches!(ended, Ok(true)));
    finish(context, &args, &rows, ended, count)?;
    shown?;
    Ok(if rows.present > 0 { Exit::Partial } else { Exit::Done })
}

/// What is done with a batch.
enum Hand {
    Looks(Box<Link>),
    /// Brings it back and notes it.
    Restores(Box<Writer>, Trail),
}

/// True at the end of the backup, false when interrupted before.
async fn restore(
    context: &mut Context,
    args: &Args,
    mut backup: BackupReader,
    hand: &mut Hand,
    rows: &mut Rows,
) -> Result<bool> {
    let interrupt = Interrupt::listen()?;
    interrupt.heed_terminate()?;
    let progress = context.ui.progress("Redis keys");
    loop {
        let batch = next_batch(&mut backup, args).map_err(not_a_backup)?;
        if batch.is_empty() {
            return Ok(true);
        }
        if interrupt.is_raised() {
            return Ok(false);
        }
        let saved: Vec<_> = batch.iter().map(|held| &held.saved).collect();
        let (fates, ended) = match hand {
            Hand::Looks(link) => (link.would_restore(&saved).await?, Ok(())),
            Hand::Restores(writer, trail) => {
                let (restored, ended) = writer.restore(&saved).await;
                let mut ended = ended.map_err(anyhow::Error::from);
                for (what, which) in [("restored", is_back as fn(&Became) -> bool), ("outcome-unknown", is_unknown)] {
                    let noted = batch.iter().zip(&restored).filter(|(_, became)| which(became));
                    // What is back is shown whether it could be noted or not.
                    ended = ended.and(note(context, args, (writer, trail), noted.map(|(held, _)| held), what).await);
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

fn next_batch(backup: &mut BackupReader, args: &Args) -> Result<Vec<Held>, BackupError> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < BATCH.0 && bytes < BATCH.1 {
        match backup.next_held()? {
            None => break,
            Some(held) if args.wants(&held) => {
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
    (writer, trail): (&Writer, &mut Trail),
    held: impl Iterator<Item = &'a Held>,
    what: &'static str,
) -> Result<()> {
    let noted = held.map(|held| Noted { schema: &held.schema, key: &held.key, redis_key: &held.saved.redis_key });
    let file = args.file.display().to_string();
    Ok(trail.note(noted, what, &writer.name(), Some(&file), context.now()).await?)
}

fn is_back(became: &Became) -> bool {
    matches!(became, Ok(Fate::Restored(_) | Fate::FoundBack(_)))
}

fn is_unknown(became: &Became) -> bool {
    matches!(became, Err(StoreError::OutcomeUnknown { .. }))
}

/// Says how far it got; on to the error there was.
fn finish(context: &mut Context, args: &Args, rows: &Rows, ended: Result<bool>, count: u64) -> Result<()> {
    let so_far = rows.summary(count);
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

fn not_a_backup(error: BackupError) -> Stop {
    Stop::usage(error.to_string()).hint("nothing was restored; idemctl audit -o json names the backup of each change")
}

/// The backup's own checksum holds, so a server that refuses the bytes is one that does not know their format.
fn refused(error: StoreError) -> anyhow::Error {
    let text = error.to_string();
    if !text.contains("DUMP payload version") && !text.contains("Bad data format") {
        return error.into();
    }
    Stop::new(Exit::Refused, format!("the server does not know the format of the values in this backup: {text}"))
        .hint("they come from a newer Redis or another kind of server: restore to the version they come from, or newer")
        .into()
}
