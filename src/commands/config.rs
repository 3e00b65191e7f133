//! `idemctl config`: the effective settings from flags, variables and the config file.

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{Output, SchemaArgs};
use crate::exit::Exit;
use crate::render::{self, escape, history};
use crate::session::Session;
use crate::session::operations::unreadable;
use crate::store::audit::log;
use crate::store::backup::folder::{BackupState, Folder};

/// Show the effective settings, and check that all is read
///
/// Shows every setting that a command with the same options would use. Passwords are shown only as
/// set or not set, and idemctl does not connect. A setting that has no effect, or is for an unknown
/// schema, is an error with its line number.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    what: ConfigSubcommand,
}

#[derive(Debug, Subcommand)]
enum ConfigSubcommand {
    /// Show every effective setting
    Show {
        /// Show the origin of each: an option, a variable, a line of the config file, or the
        /// default
        #[arg(long)]
        origin: bool,

        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Check that the config file, your schemas, the audit log and the backups are all read
    ///
    /// Prints everything that idemctl will not read, e.g. after an update; exit status 1 if there
    /// is something. It does not connect.
    Check,
}

impl Args {
    /// True if the command reports what is wrong with the config file.
    pub fn is_check(&self) -> bool {
        matches!(self.what, ConfigSubcommand::Check)
    }
}

pub fn run(session: &mut Session, args: Args) -> Result<Exit> {
    let ConfigSubcommand::Show { origin, output } = args.what else { return check(session) };
    // Loading the schemas checks the settings for them, as every other command does.
    session.catalog(&SchemaArgs::default())?;
    let settings = session.settings.rows();
    session.show(output, "settings", &settings, |view| {
        render::settings::settings(&settings, origin, view)
    })?;
    Ok(Exit::Done)
}

/// Prints everything that idemctl will not read.
fn check(session: &mut Session) -> Result<Exit> {
    let mut unread = Vec::new();
    if let Some(wrong) = session.settings.wrong() {
        unread.push(wrong.to_owned());
    }
    match session.unread_schemas() {
        Ok(schemas) => {
            for (name, wrong) in schemas {
                unread.push(format!("schema {name}: {wrong}"));
            }
        }
        Err(wrong) => unread.push(wrong.with_hint()),
    }
    // The settings for schemas are checked with those that can be read.
    if unread.is_empty()
        && let Err(wrong) = session.catalog(&SchemaArgs::default())
    {
        unread.push(wrong.to_string());
    }
    let log = session.operations().and_then(|(folder, operations, mut unread)| {
        for operation in operations.all() {
            let is_whole = log::each_change(&folder, operation, |_| {});
            if !is_whole.map_err(|error| unreadable(&folder, &error))? {
                unread.push(history::damaged_details(operation));
            }
        }
        Ok(unread)
    });
    unread.extend(log.unwrap_or_else(|error| vec![error.to_string()]));
    let folder = session.settings.backup_dir()?;
    match Folder::read(&folder) {
        Ok(backups) => {
            let mut wrong = backups.others;
            for backup in backups.backups {
                match backup.state {
                    BackupState::Damaged(why) => wrong.push((backup.path, why)),
                    // It may have lost all of them.
                    BackupState::Unended(why) if backup.redis_keys == 0 => {
                        wrong.push((backup.path, why));
                    }
                    _ => {}
                }
            }
            for (path, why) in wrong {
                unread.push(format!("{}: {why}", path.display()));
            }
        }
        Err(error) => unread.push(format!("{}: {error}", folder.display())),
    }
    for line in &unread {
        session.ui.data(escape::text(line.as_bytes()) + "\n")?;
    }
    if unread.is_empty() {
        session.ui.status("The config file, your schemas, the audit log and the backups are read.");
    }
    Ok(if unread.is_empty() { Exit::Done } else { Exit::No })
}
