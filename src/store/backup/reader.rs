//! Reads a backup line by line, after a first pass has checked the whole file.

use std::collections::{HashSet, VecDeque};
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read as _, Seek as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::entry::{MAX_SAVED, Maker};
use super::integrity::{Closing, Count, Damage, LineFault};
use super::parse::{self, BEGINNING, BackupLine, Held};
use crate::domain::change::provenance::Provenance;
use crate::files;

/// The longest line in bytes: the largest value of Redis in base64, and its other fields.
const LONGEST_LINE: u64 = 1 << 30;

#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BackupError {
    /// The file cannot be read at all.
    #[error("cannot read the backup {path}: {why}")]
    Unreadable { path: String, why: String },
    /// The file is not a backup that this version of idemctl can read.
    #[error("{path}:{line}: {why}")]
    Line {
        path: String,
        /// The number of the faulty line, from 1.
        line: u64,
        why: String,
    },
}

/// Returns the records in a backup, line by line, without withdrawn entries and damaged lines.
#[derive(Debug)]
pub struct BackupReader {
    pass: Pass,
    damage: Damage,
    by: Option<Maker>,
    is_blank: bool,
    closing: Closing,
}

impl BackupReader {
    /// Opens a backup and checks every line of it. It passes the records of intact lines to `look`.
    /// [`BackupReader::damage`] returns the damaged lines.
    ///
    /// # Errors
    /// The file cannot be read, is not a backup, or has a format that this version of idemctl does
    /// not read.
    pub fn open(path: &Path, mut look: impl FnMut(&Held)) -> Result<Self, BackupError> {
        let file = files::open_regular(path).map_err(|error| unreadable(path, &error))?;
        let mut first_pass = Pass::over(path.to_owned(), file, Arc::default());
        let mut taken_back = HashSet::new();
        // The entries that may still be withdrawn, at most as many as are written at a time. Their
        // DUMPs are not needed here.
        let mut pending: VecDeque<(u64, Held)> = VecDeque::new();
        while let Some(line) = first_pass.next_line()? {
            match line {
                BackupLine::Held(mut held) => {
                    for key in &mut held.keys {
                        key.saved.dump = Vec::new();
                    }
                    pending.push_back((first_pass.line, *held));
                }
                BackupLine::Void(redis_keys) => {
                    for redis_key in redis_keys {
                        // Only the last entry of a key is withdrawn, because earlier ones belong to
                        // other changes.
                        let last = pending.iter().rposition(|(_, held)| held.has(&redis_key));
                        if let Some(last) = last
                            && let Some((line, _)) = pending.remove(last)
                        {
                            taken_back.insert(line);
                        }
                    }
                }
                BackupLine::From(_) | BackupLine::End(_) => {}
            }
            if pending.len() > MAX_SAVED
                && let Some((_, held)) = pending.pop_front()
            {
                look(&held);
            }
        }
        for (_, held) in &pending {
            look(held);
        }
        let closing = first_pass.closing();
        let Pass { path, lines, whole, damage, by, .. } = first_pass;
        if whole == 0
            && let Some(gap) = &damage.tail
            && gap.may_have_held
        {
            return Err(BackupError::of_line(&path, gap.first, gap.why.clone()));
        }
        let mut file = lines.into_inner();
        file.rewind().map_err(|error| unreadable(&path, &error))?;
        // The second pass knows which entries a later line withdraws.
        let pass = Pass::over(path, file, Arc::new(taken_back));
        Ok(Self { pass, damage, by, is_blank: whole == 0, closing })
    }

    /// Starts again with the first line.
    pub(crate) fn again(self) -> Result<Self, BackupError> {
        let Pass { path, lines, taken_back, .. } = self.pass;
        let mut file = lines.into_inner();
        file.rewind().map_err(|error| unreadable(&path, &error))?;
        Ok(Self { pass: Pass::over(path, file, taken_back), ..self })
    }

    /// How the file ends.
    pub fn closing(&self) -> Closing {
        self.closing
    }

    /// True if no line is intact, so that the file need not be a backup at all.
    pub(crate) fn is_blank(&self) -> bool {
        self.is_blank
    }

    /// The operation that wrote it; `None` if the first line is damaged.
    pub(crate) fn by(&self) -> Option<&Maker> {
        self.by.as_ref()
    }

    pub fn damage(&self) -> &Damage {
        &self.damage
    }

    /// The next record; `None` at the end.
    pub fn next_held(&mut self) -> Result<Option<Held>, BackupError> {
        self.pass.next_held()
    }
}

#[derive(Debug)]
struct Pass {
    path: PathBuf,
    lines: BufReader<File>,
    line: u64,
    /// How many of them are intact.
    whole: u64,
    /// The numbers of lines whose entries were withdrawn.
    taken_back: Arc<HashSet<u64>>,
    /// Where the following entries were backed up.
    from: Option<Arc<Provenance>>,
    by: Option<Maker>,
    damage: Damage,
    count: Count,
    /// The counts in the closing line, and the counts of the lines above it.
    end: Option<(Count, Count)>,
}

impl Pass {
    fn over(path: PathBuf, file: File, taken_back: Arc<HashSet<u64>>) -> Self {
        Self {
            path,
            lines: BufReader::new(file),
            line: 0,
            whole: 0,
            taken_back,
            from: None,
            by: None,
            damage: Damage::default(),
            count: Count::default(),
            end: None,
        }
    }

    fn next_held(&mut self) -> Result<Option<Held>, BackupError> {
        while let Some(line) = self.next_line()? {
            if let BackupLine::Held(held) = line
                && !self.taken_back.contains(&self.line)
            {
                return Ok(Some(*held));
            }
        }
        Ok(None)
    }

    fn closing(&self) -> Closing {
        match self.end {
            Some((said, counted)) if said == counted => Closing::Whole,
            Some(_) => Closing::Differs,
            None => Closing::Missing,
        }
    }

    /// The next intact line.
    fn next_line(&mut self) -> Result<Option<BackupLine>, BackupError> {
        while let Some((bytes, is_ended)) =
            read_line(&mut self.lines).map_err(|error| unreadable(&self.path, &error))?
        {
            self.line += 1;
            let fault = match bytes {
                Ok(bytes) => match parse::parse(&bytes) {
                    // idemctl writes nothing after the closing line, so this line does not belong
                    // to the backup.
                    Ok(_) if self.end.is_some() => LineFault::Behind,
                    Ok(line) => {
                        self.whole += 1;
                        // A damaged line before the closing line cannot have withdrawn an entry
                        // after it, so it counts as the end of the file.
                        if !matches!(line, BackupLine::End(_)) {
                            self.damage.is_followed();
                        }
                        return Ok(Some(self.take(line, &bytes)));
                    }
                    Err(fault) => fault,
                },
                Err(fault) => fault,
            };
            if let LineFault::OtherVersion(why) = fault {
                return Err(BackupError::of_line(&self.path, self.line, why));
            }
            self.damage.add(self.line, &fault, is_ended);
            // The damaged line may have stated where the following entries were backed up.
            self.from = None;
        }
        Ok(None)
    }

    /// Counts a line, and remembers its statements about the following lines.
    fn take(&mut self, line: BackupLine, bytes: &[u8]) -> BackupLine {
        match line {
            BackupLine::Held(held) => {
                self.count.add(bytes, held.keys.len() as u64);
                return BackupLine::Held(Box::new(Held { from: self.from.clone(), ..*held }));
            }
            BackupLine::From(ref said) => {
                let (from, by) = said.as_ref();
                let taken_at = by.as_ref().map(|by| by.at.clone());
                self.from = Some(Arc::new(Provenance { taken_at, ..from.clone() }));
                // A run repeats its name with each place, so the first is enough.
                if self.by.is_none() {
                    self.by = by.clone();
                }
                self.count.add(bytes, 0);
            }
            BackupLine::Void(_) => self.count.add(bytes, 0),
            BackupLine::End(said) => self.end = Some((said, self.count)),
        }
        line
    }
}

impl BackupError {
    fn of_line(path: &Path, line: u64, why: String) -> Self {
        Self::Line { path: path.display().to_string(), line, why }
    }
}

fn unreadable(path: &Path, error: &io::Error) -> BackupError {
    BackupError::Unreadable { path: path.display().to_string(), why: error.to_string() }
}

/// The bytes of a line, or its fault if they need not be kept, and true if a line feed ends it.
type LineRead = (Result<Vec<u8>, LineFault>, bool);

/// The next line; `None` at the end. A line that does not begin like a line of a backup is skipped
/// without being kept, because garbage may be arbitrarily long.
fn read_line(lines: &mut impl BufRead) -> io::Result<Option<LineRead>> {
    let Some(first) = lines.fill_buf()?.first().copied() else { return Ok(None) };
    if first != BEGINNING[0] {
        return skip_line(lines).map(Some);
    }
    let mut bytes = Vec::new();
    lines.take(LONGEST_LINE).read_until(b'\n', &mut bytes)?;
    let is_ended = bytes.pop_if(|last| *last == b'\n').is_some();
    // After a crash, NULs of disk blocks that were never written may follow a truncated line.
    while !is_ended && bytes.pop_if(|last| *last == 0).is_some() {}
    Ok(Some((Ok(bytes), is_ended)))
}

fn skip_line(lines: &mut impl BufRead) -> io::Result<LineRead> {
    let mut is_blank = true;
    let is_ended = loop {
        let buffer = lines.fill_buf()?;
        let end = buffer.iter().position(|byte| *byte == b'\n');
        let part = &buffer[..end.unwrap_or(buffer.len())];
        is_blank &= part.iter().all(|byte| *byte == 0 || byte.is_ascii_whitespace());
        let read = part.len() + usize::from(end.is_some());
        lines.consume(read);
        if end.is_some() || read == 0 {
            break end.is_some();
        }
    };
    Ok((Err(if is_blank { LineFault::Blank } else { LineFault::Foreign }), is_ended))
}
