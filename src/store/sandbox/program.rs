//! Finding a server program.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Program {
    /// Its absolute path.
    pub path: PathBuf,
    /// True when it is a server only if it is called [`SERVER_NAME`].
    pub by_name: bool,
}

/// The name that makes a server of such a program.
pub(super) const SERVER_NAME: &str = "redis-server";

/// A server by its own name.
const SERVERS: [&str; 2] = ["valkey-server", "redis-server"];

/// The same program under another name: what Debian's redis-tools brings, without a service that starts.
const CHECKERS: [&str; 2] = ["valkey-check-rdb", "redis-check-rdb"];

/// The first server program in these folders.
pub(super) fn find(folders: &[PathBuf]) -> Option<Program> {
    let first = |names: [&str; 2]| {
        folders
            .iter()
            .flat_map(|folder| names.map(|name| folder.join(name)))
            .find(|path| is_program(path))
    };
    let found =
        |path: PathBuf, by_name| Some(Program { path: std::path::absolute(path).ok()?, by_name });
    first(SERVERS)
        .and_then(|path| found(path, false))
        .or_else(|| first(CHECKERS).and_then(|path| found(path, true)))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|file| file.is_file() && file.permissions().mode() & 0o111 != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn folder(programs: &[&str]) -> tempfile::TempDir {
        let folder = tempfile::tempdir().unwrap();
        for name in programs {
            let path = folder.path().join(name);
            std::fs::write(&path, "").unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        folder
    }

    #[test]
    fn the_first_folder_of_the_path_wins() {
        let (first, second) = (folder(&["redis-server"]), folder(&["valkey-server"]));
        let found = find(&[first.path().to_owned(), second.path().to_owned()]).unwrap();
        assert_eq!(found, Program { path: first.path().join("redis-server"), by_name: false });
    }

    #[test]
    fn a_checker_serves_where_no_server_is() {
        let (first, second) = (folder(&["redis-check-rdb"]), folder(&[]));
        let folders = [first.path().to_owned(), second.path().to_owned()];
        assert!(find(&folders).unwrap().by_name);
        std::fs::write(second.path().join("redis-server"), "not executable").unwrap();
        assert!(find(&folders).unwrap().by_name);
        assert_eq!(find(&folders[1..]), None);
    }
}
