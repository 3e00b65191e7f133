//! The commands of idemctl as rows: what is said about each outside its own arguments. The rows
//! stand in `src/cli/commands.toml`.

/// What is said about a command, or about a subcommand such as `log prune`.
#[derive(Debug)]
pub struct CommandRow {
    /// Its name after `idemctl`.
    pub name: &'static str,
    pub(crate) group: CommandGroup,
    pub(crate) repeats: Repeats,
    pub(crate) stdout: WhenStdoutCloses,
    /// True if it uses a server only if an option names it, because it puts load on it.
    pub(crate) is_named: bool,
    /// Its example command lines.
    pub examples: &'static [&'static str],
}

/// The headings of the page that `idemctl` prints.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CommandGroup {
    Look,
    Repair,
    Prove,
    SetUp,
}

impl CommandGroup {
    pub(crate) fn heading(self) -> &'static str {
        match self {
            Self::Look => "Look",
            Self::Repair => "Repair",
            Self::Prove => "Prove",
            Self::SetUp => "Set up",
        }
    }
}

/// Which options of a run a printed command line repeats, besides those for the connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Repeats {
    /// None, and not those for the connection either: the command needs no server, or starts its
    /// own.
    Nothing,
    /// Only those for the connection.
    Server,
    /// `--schema-dir`.
    SchemaDir,
    /// `--schema-dir`, and the schema with its prefix.
    Prefix,
}

/// What a command does when the reader of stdout has closed it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WhenStdoutCloses {
    /// The command only shows something, so it ends without an error.
    EndsQuietly,
    /// Its exit code answers a question, so it ends without an answer.
    Ends,
    /// It changes records, or its exit code alone is useful, so it continues.
    GoesOn,
}

/// Every row, in the order of the page.
pub static COMMANDS: &[CommandRow] = include!(concat!(env!("OUT_DIR"), "/commands.rs"));

/// The row of the command with which these words begin, e.g. `log show OP`.
pub(crate) fn row_of(words: &str) -> Option<&'static CommandRow> {
    let is_named = |row: &&CommandRow| match words.strip_prefix(row.name) {
        Some(rest) => rest.is_empty() || rest.starts_with(' '),
        None => false,
    };
    COMMANDS.iter().filter(is_named).max_by_key(|row| row.name.len())
}
