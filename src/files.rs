//! Reads and writes whole files, with limits on their size and on who may read them.
//!
//! The operator names the files, and a name may refer to anything: an endless device, a folder, or
//! a pipe without a writer. In every case, reading ends and needs no more memory than the limit.

use std::fs::{File, FileType, Metadata, OpenOptions, Permissions};
use std::io::{self, BufRead, Read, Write as _};
use std::os::unix::fs::{FileTypeExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::OFlags;
use tempfile::NamedTempFile;

/// How long a pipe may be silent. An operator may have to type a passphrase before the writer
/// continues.
const PATIENCE: Duration = Duration::from_secs(60);

/// Reads a file of at most `most` bytes. Only a regular file is accepted, because only its size is
/// known in advance.
///
/// # Errors
/// The file cannot be read, is not a regular file, or is larger.
pub fn read(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, metadata) = open(path)?;
    refuse_unless(metadata.is_file(), &metadata)?;
    if metadata.len() > most {
        return Err(too_large(most));
    }
    up_to(file, most)
}

/// Like [`read`], but also accepts a pipe, because shells pass a program's output as `<(…)`.
///
/// # Errors
/// The errors of [`read`]; a pipe was silent for a minute.
pub fn read_or_receive(path: &Path, most: u64) -> io::Result<Vec<u8>> {
    let (file, metadata) = open(path)?;
    if !metadata.file_type().is_fifo() {
        return read(path, most);
    }
    up_to(Pipe { file, patience: PATIENCE }, most)
}

/// Opens a regular file, to read it in pieces or twice. This never waits, although opening a pipe
/// would.
///
/// # Errors
/// The file cannot be opened, or is not a regular file.
pub fn open_regular(path: &Path) -> io::Result<File> {
    let (file, metadata) = open(path)?;
    refuse_unless(metadata.is_file(), &metadata)?;
    Ok(file)
}

/// Like [`open_regular`], but also accepts a pipe or a device. Reading those fails after a minute
/// of silence. A device may be endless, so the caller limits how much it reads.
///
/// # Errors
/// The file cannot be opened, or is a folder or a socket.
pub fn open_or_receive(path: &Path) -> io::Result<Opened> {
    let (file, metadata) = open(path)?;
    let kind = metadata.file_type();
    if metadata.is_file() {
        return Ok(Opened::File(file));
    }
    refuse_unless(kind.is_fifo() || kind.is_char_device(), &metadata)?;
    let pipe = Pipe { file, patience: PATIENCE };
    Ok(if kind.is_fifo() { Opened::Pipe(pipe) } else { Opened::Device(pipe) })
}

/// The file that [`open_or_receive`] opened.
pub enum Opened {
    File(File),
    Pipe(Pipe),
    Device(Pipe),
}

/// Reads a text file as [`read`] does.
///
/// # Errors
/// The errors of [`read`]; the bytes are not UTF-8.
pub fn read_text(path: &Path, most: u64) -> io::Result<String> {
    String::from_utf8(read(path, most)?).map_err(|_| io::Error::other("it is not UTF-8 text"))
}

/// Reads everything, up to `most` bytes.
///
/// # Errors
/// Reading fails, or there are more bytes.
pub fn up_to(from: impl Read, most: u64) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    from.take(most.saturating_add(1)).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > most { Err(too_large(most)) } else { Ok(bytes) }
}

/// Reads up to and including the byte that ends a line, or to the end of the input, into the
/// emptied `line`. Returns the number of bytes.
///
/// # Errors
/// Reading fails, or the line has more than `most` bytes, which limits the memory for an endless
/// line.
pub fn read_line(
    from: &mut impl BufRead,
    end: u8,
    line: &mut Vec<u8>,
    most: u64,
) -> io::Result<usize> {
    line.clear();
    let read = from.by_ref().take(most).read_until(end, line)?;
    // Peek instead of reading one byte more, which would make the buffer grow to twice the limit.
    let goes_on = read as u64 == most && line.last() != Some(&end) && !from.fill_buf()?.is_empty();
    if goes_on { Err(io::Error::other(format!("a line {}", larger_than(most)))) } else { Ok(read) }
}

/// Writes a file that only its owner may read. The file appears completely or not at all.
///
/// Nothing is written through a link. Without `overwrite`, the name must be free. With it, a
/// regular file or a link of that name is replaced, and the target of the link remains unchanged.
///
/// # Errors
/// `AlreadyExists` if the name is taken; the file cannot be written.
pub fn write(path: &Path, bytes: &[u8], overwrite: bool) -> io::Result<()> {
    write_from(path, bytes, overwrite)
}

/// Like [`write()`], with everything that `from` has.
///
/// # Errors
/// The errors of [`write()`]; reading fails.
pub fn write_from(path: &Path, mut from: impl Read, overwrite: bool) -> io::Result<()> {
    if overwrite && let Ok(metadata) = path.symlink_metadata() {
        refuse_unless(metadata.is_file() || metadata.is_symlink(), &metadata)?;
    }
    // Temporary files are made with mode 0600.
    let mut beside = NamedTempFile::new_in(folder_of(path))?;
    io::copy(&mut from, &mut beside)?;
    beside.as_file().sync_all()?;
    if overwrite {
        beside.persist(path)?
    } else {
        beside.persist_noclobber(path)?
    };
    Ok(())
}

/// Writes a file for programs of other users, as far as the umask permits. The file appears
/// completely or not at all, and replaces the previous one.
///
/// # Errors
/// The file cannot be written, or the name belongs to something other than a regular file.
pub fn publish(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let mut beside = beside(path)?;
    beside.write_all(bytes)?;
    beside.persist(path)?;
    Ok(())
}

/// Checks whether [`publish`] could write this file now. Leaves the file as it is.
///
/// # Errors
/// Those of [`publish`].
pub fn check_publish(path: &Path) -> io::Result<()> {
    beside(path)?;
    Ok(())
}

/// A temporary file next to a file that is published.
fn beside(path: &Path) -> io::Result<NamedTempFile> {
    if let Ok(metadata) = path.symlink_metadata() {
        refuse_unless(metadata.is_file(), &metadata)?;
    }
    let mut builder = tempfile::Builder::new();
    builder.permissions(Permissions::from_mode(0o666)).tempfile_in(folder_of(path))
}

/// The bytes of all files in a folder; 0 if it cannot be read.
pub fn size_of_files(folder: &Path) -> u64 {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    files.filter_map(|file| Some(file.metadata().ok()?.len())).sum()
}

/// The folder of a file.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Opens without waiting, because opening a pipe would wait for a writer.
fn open(path: &Path) -> io::Result<(File, Metadata)> {
    let no_waiting = i32::try_from(OFlags::NONBLOCK.bits()).unwrap_or_default();
    let file = OpenOptions::new().read(true).custom_flags(no_waiting).open(path)?;
    let metadata = file.metadata()?;
    Ok((file, metadata))
}

fn refuse_unless(fits: bool, metadata: &Metadata) -> io::Result<()> {
    let kind = kind(metadata.file_type());
    if fits { Ok(()) } else { Err(io::Error::other(format!("it is {kind}, not a regular file"))) }
}

fn kind(of: FileType) -> &'static str {
    match of {
        of if of.is_symlink() => "a link",
        of if of.is_dir() => "a folder",
        of if of.is_fifo() => "a pipe",
        of if of.is_socket() => "a socket",
        _ => "a device",
    }
}

fn too_large(most: u64) -> io::Error {
    io::Error::other(format!("it {}", larger_than(most)))
}

fn larger_than(most: u64) -> String {
    let most = if most < 1024 * 1024 {
        format!("{} KiB", most / 1024)
    } else {
        format!("{} MiB", most / 1024 / 1024)
    };
    format!("is larger than {most}")
}

/// A pipe or a device that was opened without waiting. Reading waits for at most a minute.
pub struct Pipe {
    file: File,
    patience: Duration,
}

impl Read for Pipe {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let patience = Timespec::try_from(self.patience).unwrap_or_default();
        if poll(&mut [PollFd::new(&self.file, PollFlags::IN)], Some(&patience))? == 0 {
            let kind = self.file.metadata().map_or("a pipe", |metadata| kind(metadata.file_type()));
            let why =
                format!("it is {kind}, and no data arrived for {} s", self.patience.as_secs());
            return Err(io::Error::new(io::ErrorKind::TimedOut, why));
        }
        self.file.read(into)
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::{PermissionsExt as _, symlink};
    use std::process::Command;

    use super::*;

    fn folder() -> tempfile::TempDir {
        tempfile::tempdir().unwrap()
    }

    #[test]
    fn a_file_is_read_up_to_its_limit() {
        let folder = folder();
        let file = folder.path().join("f");
        std::fs::write(&file, [b'x'; 1024]).unwrap();
        assert_eq!(read(&file, 1024).unwrap().len(), 1024);
        assert_eq!(read(&file, 1023).unwrap_err().to_string(), "it is larger than 0 KiB");
        assert_eq!(read_or_receive(&file, 1024).unwrap().len(), 1024);
        assert!(read_or_receive(&file, 1023).is_err());
    }

    #[test]
    fn a_line_is_read_up_to_its_limit() {
        let (mut text, mut line) = (&b"ab\ncdef\n"[..], Vec::new());
        assert_eq!(read_line(&mut text, b'\n', &mut line, 3).unwrap(), 3);
        assert_eq!(line, b"ab\n");
        assert_eq!(
            read_line(&mut text, b'\n', &mut line, 3).unwrap_err().to_string(),
            "a line is larger than 0 KiB"
        );
        assert_eq!(read_line(&mut &b""[..], b'\n', &mut line, 3).unwrap(), 0);
        assert_eq!(read_line(&mut &b"abc"[..], b'\n', &mut line, 3).unwrap(), 3);
        assert!(read_line(&mut &b"abc\n"[..], b'\n', &mut line, 3).is_err());
    }

    #[test]
    fn what_is_no_regular_file_is_named_and_not_waited_for() {
        let folder = folder();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (path, is) in
            [(folder.path(), "a folder"), (&pipe, "a pipe"), (Path::new("/dev/zero"), "a device")]
        {
            assert_eq!(
                read(path, 9).unwrap_err().to_string(),
                format!("it is {is}, not a regular file")
            );
        }
        assert!(read_or_receive(Path::new("/dev/zero"), 9).is_err());
    }

    #[test]
    fn opening_never_waits_and_tells_what_is_there() {
        let folder = folder();
        let (pipe, file) = (folder.path().join("pipe"), folder.path().join("f"));
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        std::fs::write(&file, b"x").unwrap();
        for (path, is) in
            [(folder.path(), "a folder"), (&pipe, "a pipe"), (Path::new("/dev/zero"), "a device")]
        {
            assert_eq!(
                open_regular(path).unwrap_err().to_string(),
                format!("it is {is}, not a regular file")
            );
        }
        assert!(open_regular(&file).is_ok() && open_or_receive(folder.path()).is_err());
        assert!(matches!(open_or_receive(&file), Ok(Opened::File(_))));
        assert!(matches!(open_or_receive(&pipe), Ok(Opened::Pipe(_))));
        let Ok(Opened::Device(zero)) = open_or_receive(Path::new("/dev/zero")) else {
            panic!("it is a device")
        };
        assert!(up_to(zero, 9).is_err());
    }

    #[test]
    fn a_pipe_is_received_up_to_the_limit() {
        let folder = folder();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        for (sent, most, comes) in [(5, 9, true), (10, 9, false)] {
            std::thread::scope(|scope| {
                scope.spawn(|| std::fs::write(&pipe, vec![b'x'; sent]));
                assert_eq!(
                    read_or_receive(&pipe, most).is_ok_and(|bytes| bytes.len() == sent),
                    comes
                );
            });
        }
    }

    #[test]
    fn a_pipe_that_somebody_holds_open_and_nobody_writes_to_is_given_up() {
        let folder = folder();
        let pipe = folder.path().join("pipe");
        assert!(Command::new("mkfifo").arg(&pipe).status().unwrap().success());
        let held = OpenOptions::new().read(true).write(true).open(&pipe).unwrap();
        let Ok(Opened::Pipe(opened)) = open_or_receive(&pipe) else { panic!("it is a pipe") };
        assert_eq!(opened.patience, Duration::from_secs(60));
        let silent = Pipe { patience: Duration::from_secs(1), ..opened };
        let (tell, told) = std::sync::mpsc::channel();
        // Use a separate thread, so that the test ends even if reading does not.
        std::thread::spawn(move || tell.send(up_to(silent, 9).unwrap_err()));
        let error = told.recv_timeout(Duration::from_secs(20)).unwrap();
        assert_eq!(error.to_string(), "it is a pipe, and no data arrived for 1 s");
        drop(held);
    }

    #[test]
    fn a_file_is_its_owners_and_overwritten_only_on_demand() {
        let folder = folder();
        let file = folder.path().join("f");
        write(&file, b"1", false).unwrap();
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(write(&file, b"2", false).unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(std::fs::read(&file).unwrap(), b"1");
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        write(&file, b"2", true).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"2");
        assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(
            std::fs::read_dir(folder.path()).unwrap().count(),
            1,
            "nothing is left beside the file"
        );
    }

    #[test]
    fn nothing_is_written_through_a_link() {
        let folder = folder();
        let (kept, link, loose) =
            (folder.path().join("kept"), folder.path().join("link"), folder.path().join("loose"));
        std::fs::write(&kept, b"kept").unwrap();
        symlink(&kept, &link).unwrap();
        symlink(folder.path().join("nowhere"), &loose).unwrap();
        for link in [&link, &loose] {
            assert_eq!(
                write(link, b"new", false).unwrap_err().kind(),
                io::ErrorKind::AlreadyExists
            );
        }
        write(&link, b"new", true).unwrap();
        assert_eq!(
            (std::fs::read(&kept).unwrap(), std::fs::read(&link).unwrap()),
            (b"kept".into(), b"new".into())
        );
        assert!(link.symlink_metadata().unwrap().is_file());
        assert!(write(folder.path(), b"new", true).unwrap_err().to_string().contains("a folder"));
    }
}
