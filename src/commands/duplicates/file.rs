//! The records of a file of JSON lines, or of stdin.

use std::collections::HashSet;
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, BufReader, Read};
use std::path::Path;

use anyhow::Result;

use super::collector::{Collected, Collector, KeptRecords};
use super::spool::{Spool, SpoolReader};
use crate::domain::duplicates::{
    CompareCounts, CompareRule, ComparedRecord, FileLine, PointerTally,
};
use crate::exit::CommandError;
use crate::files::{self, Opened};

/// The most bytes of a line, as many as are read of a value in Redis.
const MAX_LINE: u64 = 16 << 20;

/// What was read of a file.
pub(super) struct ReadFile {
    pub(super) records: Vec<ComparedRecord>,
    pub(super) counts: CompareCounts,
    pub(super) tally: PointerTally,
    pub(super) leaves_fingerprints_out: bool,
    /// Lines that a later line with the same schema and key replaces.
    pub(super) replaced: u64,
}

/// A line of the file: the hash of the record's name, and its place in the temporary file.
struct KnownLine {
    name: u64,
    place: u64,
}

/// Reads all lines. They are copied to a temporary file first, because stdin can be read only once,
/// and a later line may replace an earlier one.
pub(super) fn read(path: &Path, rule: &CompareRule, within_ms: Option<u64>) -> Result<ReadFile> {
    let (lines, spool) = copy(path)?;
    let replaced = replaced(&lines, &spool)?;
    let mut collector = Collector::new(rule)?;
    for line in &lines {
        if replaced.contains(&line.place) {
            continue;
        }
        let parsed = parse(&spool, line.place)?;
        if collector.tallies_pointers()
            && let Some(body) = parsed.body()
        {
            collector.tally.add(parsed.key.as_bytes(), &body);
        }
        collector.add(&parsed.compare(rule), &line.place.to_le_bytes())?;
    }
    let collected = collector.finish(within_ms)?;
    let Collected { nominations, spool: places, counts, tally, .. } = collected;
    let leaves_fingerprints_out = collected.leaves_fingerprints_out;
    let mut kept = KeptRecords::default();
    for nomination in nominations {
        let place = places.read(nomination.place)?;
        let Some(place) = place.first_chunk() else { continue };
        let record = parse(&spool, u64::from_le_bytes(*place))?.compare(rule);
        kept.add(record, leaves_fingerprints_out)?;
    }
    Ok(ReadFile {
        records: kept.into_records(),
        counts,
        tally,
        leaves_fingerprints_out,
        replaced: replaced.len() as u64,
    })
}

/// Copies the lines to a temporary file, and checks each.
fn copy(path: &Path) -> Result<(Vec<KnownLine>, SpoolReader), CommandError> {
    let mut input = open(path)?;
    let mut spool = Spool::create()?;
    // Seeded at random, so that nobody can construct names with equal hashes.
    let hasher = RandomState::new();
    let mut lines = Vec::new();
    let mut line = Vec::new();
    let mut number: u64 = 0;
    loop {
        number += 1;
        let read = files::read_line(&mut input, b'\n', &mut line, MAX_LINE);
        let length = read.map_err(|error| refused(path, number, &error.to_string()))?;
        if length == 0 {
            return Ok((lines, spool.finish()?));
        }
        if line.trim_ascii().is_empty() {
            continue;
        }
        let parsed = FileLine::parse(&line).map_err(|why| refused(path, number, &why))?;
        let name = hasher.hash_one(parsed.name());
        lines.push(KnownLine { name, place: spool.add(&line)? });
    }
}

/// The places of lines that a later line replaces, because it has the same schema and key.
fn replaced(lines: &[KnownLine], spool: &SpoolReader) -> Result<HashSet<u64>, CommandError> {
    let mut replaced = HashSet::new();
    let mut sorted: Vec<_> = lines.iter().map(|line| (line.name, line.place)).collect();
    sorted.sort_unstable();
    for alike in sorted.chunk_by(|one, next| one.0 == next.0) {
        if alike.len() < 2 {
            continue;
        }
        // Equal hashes alone do not prove equal names. The last line comes first.
        let mut later: HashSet<(String, String)> = HashSet::new();
        for (_, place) in alike.iter().rev() {
            let parsed = parse(spool, *place)?;
            let (schema, key) = parsed.name();
            if !later.insert((schema.to_owned(), key.to_owned())) {
                replaced.insert(*place);
            }
        }
    }
    Ok(replaced)
}

fn parse(spool: &SpoolReader, place: u64) -> Result<FileLine, CommandError> {
    FileLine::parse(&spool.read(place)?).map_err(CommandError::usage)
}

fn open(path: &Path) -> Result<BufReader<Box<dyn Read>>, CommandError> {
    let cannot = |error: &io::Error| {
        CommandError::usage(format!("cannot read the records in {}: {error}", path.display()))
    };
    let from: Box<dyn Read> = match path.to_str() {
        Some("-") => Box::new(io::stdin()),
        _ => match files::open_or_receive(path).map_err(|error| cannot(&error))? {
            Opened::File(file) => Box::new(file),
            Opened::Pipe(pipe) => Box::new(pipe),
            // A device without an end would fill the disk.
            Opened::Device(_) => return Err(cannot(&io::Error::other("it is a device"))),
        },
    };
    Ok(BufReader::with_capacity(1 << 16, from))
}

fn refused(path: &Path, number: u64, why: &str) -> CommandError {
    CommandError::usage(format!("{}:{number}: {why}", path.display())).hint(
        "each line is a JSON object with `key`, and usually `created_at` and `response`; see \
        `idemctl help duplicates`",
    )
}
