//! Keys that the operator names on the command line, in a file or on stdin. They are read twice,
//! first to find repeated keys and then to process them.

use std::collections::HashSet;
use std::collections::hash_map::RandomState;
use std::ffi::OsString;
use std::fs::File;
use std::hash::{BuildHasher as _, Hash};
use std::io::{self, BufRead, BufReader, BufWriter, Cursor, Read, Seek, SeekFrom, Write as _};
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

use crate::args::KeysArgs;
use crate::domain::record::{GivenKey, RecordName};
use crate::exit::CommandError;
use crate::files::{self, Opened};
use crate::session::Session;

/// The longest key in bytes; no service has longer keys.
const MAX_KEY: usize = 1 << 20;

/// The longest line in bytes. A name has four bytes for each unprintable byte of a key, and starts
/// with a schema and a prefix.
const MAX_LINE: u64 = 4 * (1 << 20) + (64 << 10);

/// The most bytes of a list that cannot be read twice, because such a list may be endless.
const MAX_KEPT: u64 = 4 << 30;

/// The same limit for a list that is kept in memory.
const MAX_OF_FEW: u64 = 16 << 20;

/// The most schemas and prefixes that the names of a list may have.
const MAX_PLACES: usize = 100;

/// A list of keys that can be read repeatedly, and that returns each key once.
pub struct KeyList {
    list: List,
    once: Once<GivenKey>,
}

/// The keys as the operator named them.
struct List {
    source: BufReader<Box<dyn ReadAgain>>,
    name: String,
    end: u8,
    /// True if a key that can be read as a name is nothing else.
    are_names: bool,
}

/// A source that can be read repeatedly from its beginning.
trait ReadAgain: Read + Seek {}

impl ReadAgain for File {}

impl ReadAgain for Cursor<Vec<u8>> {}

impl KeyList {
    /// The keys that the options name; `None` if they name none.
    ///
    /// # Errors
    /// Usage: the keys cannot be read, or stdin is combined with other keys.
    pub fn of(args: &KeysArgs, session: &mut Session) -> Result<Option<Self>, CommandError> {
        Self::bounded(args, session, MAX_KEPT)
    }

    fn bounded(
        args: &KeysArgs,
        session: &mut Session,
        most: u64,
    ) -> Result<Option<Self>, CommandError> {
        let temp_dir = session.settings.environment().temp_dir();
        let list = match args.keys.as_slice() {
            _ if let Some(path) = &args.key_file => List::open(path, args.null, &temp_dir, most)?,
            [] if args.null => {
                return Err(CommandError::usage(
                    "-0 sets how keys end in a file or on stdin, but neither is given",
                ));
            }
            [] => return Ok(None),
            keys if keys.iter().any(|key| key.is_empty()) => {
                // An unset variable in a script causes this.
                return Err(CommandError::usage("a key is empty")
                    .hint("to name the record with the empty key, write SCHEMA/\"\""));
            }
            [only] if only == "-" => List::open(Path::new("-"), args.null, &temp_dir, most)?,
            keys if keys.iter().any(|key| key == "-") => {
                return Err(CommandError::usage(
                    "`-` (keys from stdin) cannot be combined with other keys",
                ));
            }
            keys => List::of_words(keys),
        };
        // A prompt must then read the terminal instead of stdin.
        if args.are_on_stdin() {
            session.ui.stdin_carries_data();
        }
        Self::of_list(list).map(Some)
    }

    /// The keys that the options name, which are few.
    ///
    /// # Errors
    /// Usage: there are no keys, or they cannot be read.
    pub fn of_few(args: &KeysArgs, session: &mut Session) -> Result<Self, CommandError> {
        let list = Self::bounded(args, session, MAX_OF_FEW)?;
        list.ok_or_else(|| {
            CommandError::usage("no KEY was given")
                .hint("name keys, `-` to read them from stdin, or --key-file FILE")
        })
    }

    /// A list of these keys.
    ///
    /// # Errors
    /// Usage: a key is too large.
    pub fn of_words(keys: &[OsString]) -> Result<Self, CommandError> {
        Self::of_list(List::of_words(keys))
    }

    /// One name for each schema and prefix of the names in the list.
    ///
    /// # Errors
    /// Usage: the keys cannot be read, or have more than 100 prefixes.
    pub fn places(
        &mut self,
        is_schema: impl Fn(&str) -> bool,
    ) -> Result<Vec<RecordName>, CommandError> {
        let mut known = HashSet::new();
        let mut names = Vec::new();
        while let Some(key) = self.list.next()? {
            let Some(name) = RecordName::parse(&key.text) else { continue };
            if !is_schema(&name.schema) || !known.insert((name.schema.clone(), name.prefix.clone()))
            {
                continue;
            }
            // Each of them is a schema to load.
            if names.len() == MAX_PLACES {
                return Err(CommandError::usage(format!("more than {MAX_PLACES} prefixes")));
            }
            names.push(name);
        }
        self.rewind()?;
        Ok(names)
    }

    /// All keys, up to `most`.
    ///
    /// # Errors
    /// Usage: there are no keys, too many, or they cannot be read.
    pub fn all(&mut self, most: usize) -> Result<Vec<GivenKey>, CommandError> {
        // One more than allowed shows that there are too many.
        let keys = self.next(most + 1)?;
        if keys.is_empty() {
            return Err(CommandError::usage("no KEY was given"));
        }
        if keys.len() > most {
            return Err(CommandError::usage(format!(
                "more than {most} keys at a time are not allowed"
            )));
        }
        Ok(keys)
    }

    fn of_list(mut list: List) -> Result<Self, CommandError> {
        let once = Once::of(std::iter::from_fn(|| list.next().transpose()))?;
        list.rewind()?;
        Ok(Self { list, once })
    }

    pub fn rewind(&mut self) -> Result<(), CommandError> {
        self.once.rewind();
        self.list.rewind()
    }

    /// The next keys, up to `most`; empty at the end of the list.
    pub fn next(&mut self, most: usize) -> Result<Vec<GivenKey>, CommandError> {
        let mut keys = Vec::new();
        while keys.len() < most
            && let Some(key) = self.list.next()?
        {
            if self.once.takes(&key) {
                keys.push(key);
            }
        }
        Ok(keys)
    }
}

impl List {
    fn of_words(keys: &[OsString]) -> Self {
        // An argument cannot contain NUL, so NUL separates the keys unambiguously.
        let mut list = Vec::new();
        for key in keys {
            list.extend_from_slice(key.as_bytes());
            list.push(0);
        }
        Self {
            source: BufReader::new(Box::new(Cursor::new(list))),
            name: "the command line".to_owned(),
            end: 0,
            are_names: false,
        }
    }

    /// Opens a file, or stdin for `-`. A list that cannot be read twice, such as a pipe, is copied
    /// into an unnamed file in `temp_dir`.
    fn open(path: &Path, null: bool, temp_dir: &Path, most: u64) -> Result<Self, CommandError> {
        let is_stdin = path == Path::new("-");
        let name = if is_stdin { "stdin".to_owned() } else { path.display().to_string() };
        let end = if null { 0 } else { b'\n' };
        // Stdin cannot be read twice, so it is always copied.
        let file = if is_stdin {
            keep(io::stdin().lock(), end, temp_dir, most)
        } else {
            open(path, end, temp_dir, most)
        };
        let file = file.map_err(|error| cannot_read(&name, &error).hint("nothing was changed"))?;
        Ok(Self { source: BufReader::new(Box::new(file)), name, end, are_names: null })
    }

    fn rewind(&mut self) -> Result<(), CommandError> {
        match self.source.seek(SeekFrom::Start(0)) {
            Ok(_) => Ok(()),
            Err(error) => Err(cannot_read(&self.name, &error)),
        }
    }

    /// The next key. Empty lines are skipped.
    fn next(&mut self) -> Result<Option<GivenKey>, CommandError> {
        loop {
            let mut key = Vec::new();
            let read = files::read_line(&mut self.source, self.end, &mut key, MAX_LINE);
            if read.map_err(|error| cannot_read(&self.name, &error))? == 0 {
                return Ok(None);
            }
            let is_ended = key.pop_if(|last| *last == self.end).is_some();
            if !is_ended && self.end == 0 {
                // A program that writes NUL bytes ends each key with one, so this key is incomplete
                // and would name another record. Lines may come from a person, who may omit the
                // last line feed.
                let cut =
                    io::Error::other("the last key does not end with NUL, so it may be truncated");
                return Err(cannot_read(&self.name, &cut).hint("nothing was changed"));
            }
            let bytes = match RecordName::parse(&key) {
                Some(name) => name.key.len(),
                None => key.len(),
            };
            if bytes > MAX_KEY {
                let too_large =
                    io::Error::other(format!("a key is larger than {} MiB", MAX_KEY >> 20));
                return Err(cannot_read(&self.name, &too_large));
            }
            if !key.is_empty() {
                return Ok(Some(GivenKey { text: key, is_name: self.are_names }));
            }
        }
    }
}

fn open(path: &Path, end: u8, temp_dir: &Path, most: u64) -> io::Result<File> {
    match files::open_or_receive(path)? {
        Opened::File(file) => Ok(file),
        Opened::Pipe(pipe) | Opened::Device(pipe) => {
            keep(BufReader::new(pipe), end, temp_dir, most)
        }
    }
}

fn keep(mut from: impl BufRead, end: u8, temp_dir: &Path, most: u64) -> io::Result<File> {
    let mut file = BufWriter::new(tempfile::tempfile_in(temp_dir)?);
    let mut line = Vec::new();
    let mut kept = 0;
    loop {
        let read = files::read_line(&mut from, end, &mut line, MAX_LINE)? as u64;
        if read == 0 {
            break;
        }
        kept += read;
        // A list from a pipe may be endless, and would fill the disk.
        if kept > most {
            return Err(io::Error::other(format!("they are larger than {} MiB", most >> 20)));
        }
        file.write_all(&line)?;
    }
    let mut file = file.into_inner()?;
    file.seek(SeekFrom::Start(0))?;
    Ok(file)
}

fn cannot_read(name: &str, error: &io::Error) -> CommandError {
    CommandError::usage(format!("cannot read keys from {name}: {error}"))
        .hint("nothing more was changed")
}

/// Returns each key of a list once, however often the list contains it.
pub(super) struct Once<K> {
    hasher: RandomState,
    /// The hashes that occur more than once in the list.
    repeated: HashSet<u64>,
    /// The keys with such a hash that were already returned.
    taken: HashSet<K>,
}

impl<K: Hash + Eq + Clone> Once<K> {
    pub(super) fn of<E>(keys: impl Iterator<Item = Result<K, E>>) -> Result<Self, E> {
        let hasher = RandomState::new();
        // Hashes of eight bytes instead of keys, because a list may name millions of long keys.
        let mut hashes = Vec::new();
        for key in keys {
            hashes.push(hasher.hash_one(key?));
        }
        hashes.sort_unstable();
        let mut repeated = HashSet::new();
        for pair in hashes.windows(2) {
            if pair[0] == pair[1] {
                repeated.insert(pair[0]);
            }
        }
        Ok(Self { hasher, repeated, taken: HashSet::new() })
    }

    /// True for a key that was not returned before.
    pub(super) fn takes(&mut self, key: &K) -> bool {
        !self.repeated.contains(&self.hasher.hash_one(key)) || self.taken.insert(key.clone())
    }

    /// Starts again with the same list.
    pub(super) fn rewind(&mut self) {
        self.taken.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rule: a key that is named twice is returned once, and only such keys are kept in memory.
    #[test]
    fn each_key_is_taken_once_each_time_the_list_is_read() {
        let list: Vec<_> =
            (0..1_000u32).chain([7, 7, 900]).map(|number| number.to_be_bytes().to_vec()).collect();
        let mut once = Once::of(list.iter().cloned().map(Ok::<_, ()>)).unwrap();
        for _ in 0..2 {
            assert_eq!(list.iter().filter(|key| once.takes(key)).count(), 1_000);
            assert_eq!(once.taken.len(), 2);
            once.rewind();
        }
    }
}
