//! `idemctl schema new`.

use std::path::Path;

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::SchemaFolderArgs;
use crate::domain::draft::{DECIDE, draft, representatives};
use crate::domain::record::{Content, KeyState};
use crate::domain::select::glob;
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::render::invocation::word;
use crate::schemas::{self, Files};
use crate::session::{Session, interruptible};
use crate::store::{ReadLimit, Sampler};

/// The most matching keys of one master among which each format is searched.
const MAX_MATCHING: usize = 10_000;

/// The most samples for one draft.
const MAX_SAMPLES: usize = 400;

/// Samples that are read in one pipeline. With [`MOST`] bytes each, their replies have little more
/// than 1 MiB.
const AT_A_TIME: usize = 20;

/// The most bytes of a sample value that are read. No format needs more to be recognised.
const MOST: usize = 64 * 1024;

/// Create a schema of your own from another schema or from Redis keys
///
/// Creates a folder next to your other schemas, and never overwrites one. A draft contains what the
/// keys' names, values and TTLs show. It marks with DECIDE what you must fill in; `idemctl schema
/// check` rejects the file until no mark is left.
#[derive(Debug, ClapArgs)]
pub(super) struct Args {
    /// Name of the new schema
    name: String,

    /// Schema to copy with its scripts, or sample Redis keys, some in each state
    #[arg(long, value_name = "SCHEMA|KEY", num_args = 1.., required_unless_present = "glob")]
    from: Vec<String>,

    /// Draft from a sample of the Redis keys that match this glob
    #[arg(long = "match", value_name = "GLOB", conflicts_with = "from")]
    glob: Option<String>,

    #[command(flatten)]
    folder: SchemaFolderArgs,
}

pub(super) async fn new(session: &mut Session, args: Args) -> Result<Exit> {
    let own = session.settings.schema_dir(args.folder.schema_dir.as_deref());
    let Some(place) = own.clone().or_else(|| session.settings.usual_schema_dir()) else {
        return Err(CommandError::usage(
            "cannot choose a folder for schemas, because neither XDG_CONFIG_HOME nor HOME is set",
        )
        .into());
    };
    let folder = place.join(&args.name);
    schemas::refuse_name(&args.name).map_err(CommandError::usage)?;
    // A link counts as existing even if its target does not.
    if folder.symlink_metadata().is_ok() {
        let message = format!("{} exists already and was not overwritten", folder.display());
        return Err(CommandError::usage(message).hint("choose another name").into());
    }
    let copied = match &args.from[..] {
        [one] => schemas::files_of(own.as_deref(), one)
            .map_err(|error| CommandError::usage(format!("schema {error}")))?,
        _ => None,
    };
    // A word after --from is the name of a schema if such a schema exists, and else a Redis key.
    let files = if let Some(copied) = copied {
        copied.renamed(&args.name)
    } else {
        let samples = match &args.glob {
            Some(glob) => matching(session, glob).await?,
            None => samples(session, &args.from).await?,
        };
        Files { toml: draft(&args.name, &samples, args.glob.as_deref()), scripts: Vec::new() }
    };
    schemas::write_new(&folder, &files).map_err(|error| {
        CommandError::usage(format!("cannot make {}: {error}", folder.display()))
    })?;
    report(session, &folder, &files);
    Ok(Exit::Done)
}

/// Some of the Redis keys that match a glob, with each format and each kind of expiry, read as far
/// as a draft needs.
///
/// # Errors
/// No: no key matches, or none from which a draft can be made.
async fn matching(session: &mut Session, glob: &str) -> Result<Vec<KeyState>> {
    glob::check(glob.as_bytes()).map_err(|why| CommandError::usage(format!("--match: {why}")))?;
    let reader = session.connect_reader().await?;
    let mut sampler =
        Sampler::matching(reader.clone(), glob.as_bytes(), MAX_MATCHING, None).await?;
    let progress = session.ui.progress("keys scanned");
    let found = interruptible(async {
        let mut found = Vec::new();
        while let Some(page) = sampler.next().await? {
            found.extend(page);
            progress.set_position(found.len() as u64);
        }
        Ok(found)
    })
    .await?;
    progress.finish_and_clear();
    let shown = escape::text(glob.as_bytes());
    let count = found.len();
    let mut candidates = Vec::with_capacity(count);
    for key in found {
        if !matches!(key.content, Content::Other(_)) {
            candidates.push(key);
        }
    }
    if candidates.is_empty() {
        let message = format!("no string or hash of {} matches `{shown}`", reader.name());
        return Err(CommandError::new(Exit::No, message).into());
    }
    let matching = candidates.len();
    let chosen = representatives(candidates, MAX_SAMPLES);
    let mut samples = Vec::with_capacity(chosen.len());
    // The sampler has read only the beginning of each value.
    for keys in chosen.chunks(AT_A_TIME) {
        let records: Vec<_> = keys.iter().map(|key| vec![key.redis_key.clone()]).collect();
        let read = interruptible(async {
            Ok(reader.read_by_commands(&records, ReadLimit::Bytes(MOST)).await?)
        })
        .await?;
        for seen in read {
            for key in seen?.keys {
                // A key may have expired since the scan.
                if !key.content.is_absent() {
                    samples.push(key);
                }
            }
        }
    }
    let more = if matching == MAX_MATCHING { "at least " } else { "" };
    session.ui.status(&format!(
        "Drafted from {} of {more}{matching} Redis keys that match {shown}.",
        samples.len()
    ));
    // A draft needs only examples, so an incomplete scan is not an error.
    if let Some(forbidden) = sampler.forbidden() {
        session.ui.warning(&forbidden);
    }
    if let Some(missed) = sampler.missed() {
        session.ui.warning(&missed.to_string());
    }
    Ok(samples)
}

/// The Redis keys that the operator named, as they are on the server.
async fn samples(session: &mut Session, keys: &[String]) -> Result<Vec<KeyState>> {
    let reader = session.connect_reader().await?;
    let records: Vec<_> = keys.iter().map(|key| vec![key.clone().into_bytes()]).collect();
    let seen = interruptible(async {
        Ok(reader.read_by_commands(&records, ReadLimit::Bytes(MOST)).await?)
    })
    .await?;
    let mut samples = Vec::with_capacity(keys.len());
    for (key, seen) in keys.iter().zip(seen) {
        let mut keys = seen?.keys.into_iter();
        let existing = keys.find(|key| !key.content.is_absent());
        let shown = escape::text(key.as_bytes());
        let Some(existing) = existing else {
            let message = format!(
                "`{shown}` is neither the name of a schema nor a Redis key of {}",
                reader.name()
            );
            return Err(CommandError::new(Exit::No, message).into());
        };
        if matches!(existing.content, Content::Other(_)) {
            let message =
                format!("`{shown}` is neither a string nor a hash, and a draft needs one of these");
            return Err(CommandError::usage(message).into());
        }
        samples.push(existing);
    }
    Ok(samples)
}

/// Prints what was created, and what the operator has to decide.
fn report(session: &mut Session, folder: &Path, files: &Files) {
    let path = folder.join("schema.toml");
    let mark = format!("= \"{DECIDE}\"");
    let open = files.toml.lines().filter(|line| line.contains(&mark)).count();
    let scripts = match files.scripts.len() {
        0 => String::new(),
        1 => " and 1 script".to_owned(),
        count => format!(" and {count} scripts"),
    };
    session.ui.status(&format!("Made {}{scripts}.", path.display()));
    if open > 0 {
        session.ui.status(&format!("Decide the lines that say {DECIDE} ({open})."));
    }
    session.ui.status("It is a draft, which is read only if --schema or a context names it.");
    session.ui.hint(&format!(
        "`idemctl schema check {}` reports the open points",
        word(&folder.display().to_string())
    ));
}
