//! `idemctl detect`: identifies the keys in an unknown Redis.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;
use std::os::unix::ffi::OsStrExt as _;

use anyhow::Result;
use clap::Args as ClapArgs;
use fastrand::Rng;

use crate::args::{Output, RateArgs, SchemaArgs, SchemaFolderArgs};
use crate::domain::detect::{self, Confidence, KeyGroup};
use crate::domain::record::KeyState;
use crate::domain::schema::Catalog;
use crate::domain::select::glob;
use crate::exit::{CommandError, Exit};
use crate::interrupt::Interrupt;
use crate::render::detected::{self as render, Detected, Next};
use crate::render::{document, words};
use crate::scan::{ScanEnd, show_other_databases};
use crate::session::Session;
use crate::store::{RecordReader, Sampler};

/// Identify the keys in an unknown Redis by sampling
///
/// Reads up to --sample Redis keys of each master and the first 512 bytes of their values. Groups
/// the keys by name and type, and compares each group with every schema, including those of
/// published libraries. detect names a schema if it reads at least 95 % of a group and no other
/// schema has half as many points. A word of the service in a value counts most, then its words in
/// the key, then each field. If several schemas match, they are listed after `perhaps`. Other
/// groups are unrecognised.
///
/// Nothing is changed. Other commands do not read a library's keys until you adopt its schema, with
/// the command printed below the groups. STUCK and STATES count the sample; a lock without expiry is
/// stuck. Of keys that no schema reads, those that never expire or expire in more than a year are
/// counted, because they may be stuck locks.
#[derive(Debug, ClapArgs)]
pub struct Args {
    /// Read at most this many random keys (about 1 kB of memory each)
    #[arg(
        long,
        value_name = "N",
        default_value_t = 200_000,
        value_parser = clap::value_parser!(u32).range(1..=1_000_000)
    )]
    sample: u32,

    /// Only Redis keys that match this glob
    #[arg(long = "match", value_name = "GLOB")]
    key_glob: Option<OsString>,

    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: Output,

    #[command(flatten)]
    folder: SchemaFolderArgs,

    #[command(flatten)]
    rate: RateArgs,
}

pub async fn run(session: &mut Session, args: Args) -> Result<Exit> {
    if let Some(glob) = &args.key_glob {
        glob::check(glob.as_bytes())
            .map_err(|why| CommandError::usage(format!("--match: {why}")))?;
    }
    let schemas = session.all_schemas(&args.folder)?;
    let known =
        session.catalog(&SchemaArgs { folder: args.folder.clone(), ..SchemaArgs::default() })?;
    let reader = session.connect_reader().await?;
    let interrupt = Interrupt::listen()?;
    let wanted = usize::try_from(args.sample)?;
    let rate = args.rate.rate;
    let start = async {
        match &args.key_glob {
            Some(glob) => Sampler::matching(reader.clone(), glob.as_bytes(), wanted, rate).await,
            None => Sampler::start(reader.clone(), wanted, Rng::new(), rate).await,
        }
    };
    let Some(started) = interrupt.unless_raised(start).await else {
        return Err(CommandError::interrupted("interrupted: nothing was read").into());
    };
    let mut sampler = started?;
    let (samples, end) = samples(session, &mut sampler, &interrupt).await;
    let is_complete = matches!(end, ScanEnd::Complete);
    let so_far = format!("{} Redis keys of {}", samples.len(), reader.name());
    if !is_complete && samples.is_empty() {
        end.require_complete("the sample is", &so_far, true)?;
        return Ok(Exit::Partial);
    }
    let sampled = samples.len();
    // Without a larger total the sample is everything, and its counts are exact. How many keys match
    // a glob is not known, but whether the sample has all of them.
    let total = match args.key_glob {
        Some(_) => None,
        None => sampler.there.filter(|there| *there > sampled as u64),
    };
    let is_whole = total.is_none() && (args.key_glob.is_none() || sampled < wanted);
    // Such keys are known already.
    let mut samples = samples;
    let mut ignoring = known.scanned();
    ignoring.retain(|schema| !schema.ignored().is_empty());
    samples.retain(|sample| {
        let is_ignored = ignoring.iter().any(|schema| schema.ignores(&sample.redis_key));
        // A schema often ignores the Redis keys of another one.
        !is_ignored || known.scanned_keys(&sample.redis_key).next().is_some()
    });
    let scope = DetectScope { total, is_whole, sampled, ignored: sampled - samples.len() };
    let groups = detect::detect(&samples, &schemas);
    let mut all = Vec::with_capacity(groups.len());
    for group in groups {
        let next = next(&group, &known);
        all.push(scope.detected(group, next));
    }
    look_before_adopting(&mut all, &known);
    show(session, args.output, &all, &scope)?;
    report(session, &reader, &sampler, &scope).await;
    if all.iter().any(|detected| detected.group.stuck > Some(0)) {
        session.ui.hint("`idemctl list --finding no-expiry` lists stuck locks");
    }
    let can_adopt = all.iter().any(|detected| matches!(detected.next, Next::Adopt(..)));
    if can_adopt && session.settings.context_name().is_none() {
        let line = session.ui.invocation().making_a_context();
        session.ui.hint(&format!(
            "`schema adopt` needs a context: run `{line}` first, then add --context NEW-NAME to the \
            line"
        ));
    }
    end.require_complete("the sample is", &so_far, false)?;
    // Other schemas may own what could not be read.
    Ok(if sampler.forbidden().is_some() { Exit::Partial } else { Exit::Done })
}

/// The sample, as far as the scan got, and how the scan ended.
async fn samples(
    session: &Session,
    sampler: &mut Sampler,
    interrupt: &Interrupt,
) -> (Vec<KeyState>, ScanEnd) {
    let progress = session.ui.progress("keys scanned");
    let mut samples = Vec::new();
    let end = loop {
        match ScanEnd::unless_read(interrupt.unless_raised(sampler.next()).await) {
            Ok(page) => samples.extend(page),
            Err(end) => break end,
        }
        progress.set_position(samples.len() as u64);
    };
    progress.finish_and_clear();
    // A node that could not be read does not end the sample, and is reported at its end.
    if matches!(end, ScanEnd::Complete)
        && let Some(missed) = sampler.missed()
    {
        return (samples, ScanEnd::Incomplete(missed));
    }
    (samples, end)
}

/// How much of the keyspace was sampled.
struct DetectScope {
    /// The number of Redis keys on the server, if it is larger than the sample.
    total: Option<u64>,
    /// True if the sample has every Redis key that was asked about.
    is_whole: bool,
    sampled: usize,
    /// The number of sampled Redis keys that are not records, according to `ignore` in a schema.
    ignored: usize,
}

impl DetectScope {
    fn detected(&self, group: KeyGroup, next: Next) -> Detected {
        let sampled = group.sampled as u64;
        let mut keys = sampled;
        if let Some(total) = self.total {
            // In 128 bits, because the product of two counts of keys may overflow.
            let all_sampled = self.sampled.max(1) as u128;
            let estimate = u128::from(total) * u128::from(sampled) / all_sampled;
            keys = u64::try_from(estimate).unwrap_or(u64::MAX).max(sampled);
        }
        Detected { next, group, keys, is_exact: self.is_whole }
    }

    fn all(&self) -> u64 {
        self.total.unwrap_or(self.sampled as u64)
    }
}

/// What has to be done for the other commands to read the group.
fn next(group: &KeyGroup, known: &Catalog) -> Next {
    let Some(guess) = &group.guess else {
        // `schema new` drafts schemas from strings and hashes only.
        let can_draft = ["string", "hash"].contains(&group.kind.as_str());
        return if can_draft { Next::Describe(group.glob()) } else { Next::Nothing };
    };
    let name = &guess.schema.name;
    let is_read = known.scanned_keys(&group.example).any(|key| key.schema.name == *name);
    if is_read && group.confidence == Confidence::Is {
        return Next::List(name.clone(), None);
    }
    // Without a fixed prefix, it cannot be adopted.
    if !guess.schema.has_fixed_prefix() {
        return Next::List(name.clone(), None);
    }
    Next::Adopt(name.clone(), guess.other_prefix().map(str::to_owned))
}

/// A context has one prefix for each schema, so adopting another one would hide the records under
/// the first.
fn look_before_adopting(all: &mut [Detected], known: &Catalog) {
    let mut prefixes: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for schema in known.all() {
        if schema.prefix.is_set {
            prefixes.entry(schema.name.clone()).or_default().insert(schema.prefix.text.clone());
        }
    }
    for Detected { group, next, .. } in all.iter() {
        if let Next::Adopt(schema, _) | Next::List(schema, _) = next
            && let Some(guess) = &group.guess
        {
            prefixes.entry(schema.clone()).or_default().insert(guess.schema.prefix.text.clone());
        }
    }
    for Detected { group, next, .. } in all {
        if let Next::Adopt(schema, _) = next
            && prefixes.get(schema).is_some_and(|prefixes| prefixes.len() > 1)
            && let Some(guess) = &group.guess
        {
            // The schema's own prefix, too: the deployment has another one.
            *next = Next::List(schema.clone(), Some(guess.schema.prefix.text.clone()));
        }
    }
}

fn show(
    session: &mut Session,
    output: Output,
    all: &[Detected],
    scope: &DetectScope,
) -> Result<()> {
    let mut fields = Vec::with_capacity(all.len());
    for detected in all {
        fields.push(render::fields(detected, session.ui.invocation()));
    }
    let of_all =
        document::fields(serde_json::json!({ "sampled": scope.sampled, "keys": scope.all() }));
    let invocation = session.ui.invocation().clone();
    let explains = session.ui.is_verbose();
    Ok(session.show_with(output, "groups", &fields, &of_all, |view| {
        render::text(all, &invocation, view, explains)
    })?)
}

/// Reports how many keys were sampled, and what was left out.
async fn report(
    session: &mut Session,
    reader: &RecordReader,
    sampler: &Sampler,
    scope: &DetectScope,
) {
    let sampled = scope.sampled;
    let server = reader.name();
    let of_all = scope.total.map(|total| format!(" of {total}")).unwrap_or_default();
    session.ui.status(&format!("Sampled {sampled}{of_all} Redis keys of {server}."));
    if scope.ignored > 0 {
        let keys = words::counted(scope.ignored as u64, "Redis key");
        session.ui.status(&format!("Left out {keys} that a schema lists in `ignore`."));
    }
    if sampled == 0 {
        show_other_databases(session, reader).await;
    }
    if let Some(forbidden) = sampler.forbidden() {
        session.ui.warning(&forbidden);
    }
}
