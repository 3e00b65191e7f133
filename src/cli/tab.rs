//! Shell completion of contexts, schemas, backups, operations, and keys on the server. A completion
//! never prompts, never takes long, and never reports errors.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use clap::builder::Resettable;
use clap::{Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use clap_complete::CompleteEnv;
use clap_complete::engine::{
    ArgValueCompleter, CompletionCandidate, PathCompleter, ValueCompleter as _,
};

use super::{Root, help};
use crate::args::{ConnectionArgs, SchemaArgs, SchemaFolderArgs};
use crate::domain::diagnosis::Thresholds;
use crate::domain::record::FieldSet;
use crate::domain::select::Coverage;
use crate::render::style::Color;
use crate::schemas as all_schemas;
use crate::session::Session;
use crate::settings::{Environment, Settings};
use crate::store::audit::log;
use crate::store::{self, KeyspaceScan, ReadLimit, RecordDecoder};
use crate::terminal::ui::Ui;

/// How long a user waits for keys after pressing TAB. The shell accepts no input meanwhile, so the
/// keys found so far are offered then.
const PATIENCE: Duration = Duration::from_millis(500);

/// How many keys are offered at most. The scan ends when there are so many, because it must not
/// take long.
const MAX_KEYS: usize = 50;

/// How much of a value is read, which is enough to distinguish a lock from a result.
const HEAD: ReadLimit = ReadLimit::Bytes(512);

/// The kind of values that an argument takes.
#[derive(Clone, Copy)]
enum Offer {
    Contexts,
    Schemas,
    /// Schemas, including those of published libraries.
    AllSchemas,
    /// Names of backups, and files.
    Backups,
    Operations,
    Keys,
    /// Keys with a record that is not a result.
    Locks,
    /// `@` followed by a file.
    Body,
    /// Commands and help topics.
    Help,
}

/// Handles a completion request of a shell, which sets COMPLETE.
pub(super) fn answered(words: &[OsString]) -> bool {
    // The completers see only the current word. The words after `--` name the server to ask.
    let typed: Arc<[OsString]> = match words.iter().position(|word| word == "--") {
        Some(separator) => words[separator + 1..].into(),
        None => Arc::default(),
    };
    let completion = CompleteEnv::with_factory(|| {
        offering(super::command().subcommand(help_command()), "", &typed)
    });
    // File names are relative to the shell's folder.
    completion.try_complete(words.to_vec(), Some(Path::new("."))).unwrap_or(false)
}

/// The `help` command, which is answered before clap parses the command line.
fn help_command() -> Command {
    let topic = Arg::new("topic").num_args(0..);
    Command::new("help").about("Explain a command or a topic").disable_help_flag(true).arg(topic)
}

/// The command and its subcommands, with the completions of each argument. `name` is the command's
/// name after `idemctl`.
fn offering(command: Command, name: &str, typed: &Arc<[OsString]>) -> Command {
    let wants_option = typed.last().is_some_and(|word| word.as_encoded_bytes().starts_with(b"-"));
    let command = command.mut_args(|argument| {
        let argument =
            if argument.is_positional() { argument } else { ranked(argument, wants_option) };
        match offer(name, &argument) {
            Some(offer) => {
                let typed = Arc::clone(typed);
                argument
                    .add(ArgValueCompleter::new(move |begun: &OsStr| offered(offer, &typed, begun)))
            }
            None => argument,
        }
    });
    command.mut_subcommands(|inner| {
        let name = format!("{name} {}", inner.get_name());
        offering(under_its_name(inner), name.trim(), typed)
    })
}

/// An option with its rank: a command's own options come first. Options are hidden unless the word
/// begins with `-`, so they are offered only if there is nothing else.
fn ranked(option: Arg, is_wanted: bool) -> Arg {
    let rank = if option.is_global_set() { 1 } else { 0 };
    // With different headings, options would be sorted by heading.
    let option = option.help_heading("Options").display_order(rank);
    if is_wanted { option } else { option.hide(true) }
}

/// A command that is offered only under its name. If it has visible aliases, the shell would get an
/// arbitrary one of them.
fn under_its_name(command: Command) -> Command {
    let aliases: Vec<_> = command.get_all_aliases().map(str::to_owned).collect();
    command.visible_alias(Resettable::Reset).aliases(aliases)
}

fn offer(command: &str, argument: &Arg) -> Option<Offer> {
    let id = argument.get_id().as_str();
    match command {
        "help" if id == "topic" => Some(Offer::Help),
        "context use" | "context show" | "context set" | "context test" | "context remove"
            if id == "name" =>
        {
            Some(Offer::Contexts)
        }
        "schema show" | "schema adopt" if id == "name" => Some(Offer::AllSchemas),
        "complete" if id == "body" => Some(Offer::Body),
        "undo" | "log show" if id == "op" => Some(Offer::Operations),
        "restore" if id == "file" => Some(Offer::Backups),
        _ if id == "context" => Some(Offer::Contexts),
        _ if id == "schema" => Some(Offer::Schemas),
        "force-unlock" | "extend" | "release" | "complete" if argument.is_positional() => {
            Some(Offer::Locks)
        }
        _ if argument.is_positional() && ["key", "keys"].contains(&id) => Some(Offer::Keys),
        _ => None,
    }
}

fn offered(offer: Offer, typed: &[OsString], begun: &OsStr) -> Vec<CompletionCandidate> {
    let text = begun.to_string_lossy();
    let values = values(offer, typed, &text).unwrap_or_default();
    let mut candidates = Vec::new();
    for value in values {
        if value.starts_with(&*text) {
            candidates.push(CompletionCandidate::new(value));
        }
    }
    match offer {
        Offer::Backups => candidates.extend(PathCompleter::any().complete(begun)),
        Offer::Body => {
            let path = text.strip_prefix('@').unwrap_or_default();
            let files = PathCompleter::any().complete(OsStr::new(path));
            candidates.extend(files.into_iter().map(|file| file.add_prefix("@")));
        }
        _ => {}
    }
    candidates
}

fn values(offer: Offer, typed: &[OsString], begun: &str) -> Option<Vec<String>> {
    let matches = Root::command().ignore_errors(true).try_get_matches_from(typed).ok()?;
    let connection = ConnectionArgs::from_arg_matches(&matches).ok()?;
    match offer {
        Offer::Contexts => {
            Some(file_settings(&connection)?.file().contexts().keys().cloned().collect())
        }
        Offer::Body => None,
        Offer::Help => Some(help::begun(&super::command(), typed)),
        Offer::Backups => backups(&file_settings(&connection)?),
        Offer::Operations => operations(&file_settings(&connection)?),
        Offer::Schemas | Offer::AllSchemas => {
            let settings = file_settings(&connection)?;
            let mut session = Session::new(settings, Ui::new(Color::Never)).saying_nothing();
            // The incomplete name after --schema is not a schema yet, and would be an error.
            let args = SchemaArgs { schema: Vec::new(), ..schemas(&matches) };
            let catalog = session.catalog(&args).ok()?;
            let mut names: Vec<_> =
                catalog.all().iter().map(|schema| schema.name.clone()).collect();
            if matches!(offer, Offer::AllSchemas) {
                names.extend(all_schemas::libraries().map(str::to_owned));
                names.sort();
                names.dedup();
            }
            Some(names)
        }
        Offer::Keys | Offer::Locks => {
            let settings = Settings::resolve(&connection, Environment::capture()).ok()?;
            let wanted = OfferedKeys { begun, only_locks: matches!(offer, Offer::Locks) };
            keys(settings, &schemas(&matches), &wanted)
        }
    }
}

/// The settings of the config file, for values that need no server.
fn file_settings(connection: &ConnectionArgs) -> Option<Settings> {
    Settings::of_file(connection, Environment::capture(), false).ok()
}

/// The schema options of the innermost command on the command line.
fn schemas(matches: &ArgMatches) -> SchemaArgs {
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    // `schema show` has only the option for the folder, and other commands may have none.
    let others = ["prefix", "lock_ttl", "result_ttl", "schema_dir"];
    // `schema check` has a folder under the name `schema`. Only the types show this in a release
    // build, in which clap knows every name.
    let has_schema = innermost.try_get_many::<String>("schema").is_ok();
    if has_schema && others.iter().all(|id| innermost.try_contains_id(id).is_ok()) {
        return SchemaArgs::from_arg_matches(innermost).unwrap_or_default();
    }
    let schema_dir = innermost.try_get_one::<PathBuf>("schema_dir").ok().flatten().cloned();
    SchemaArgs { folder: SchemaFolderArgs { schema_dir }, ..SchemaArgs::default() }
}

/// The names of the backups in their default folder.
fn backups(settings: &Settings) -> Option<Vec<String>> {
    let folder = settings.backup_dir().ok()?;
    let mut files = Vec::new();
    for entry in std::fs::read_dir(folder).ok()? {
        let Ok(entry) = entry else { continue };
        if let Ok(file) = entry.file_name().into_string()
            && file.ends_with(".jsonl")
        {
            files.push(file);
        }
    }
    files.sort();
    Some(files)
}

/// The operations in the audit log, under the names that `log` prints.
fn operations(settings: &Settings) -> Option<Vec<String>> {
    let (operations, _) = log::read(&settings.audit_dir().ok()?).ok()?;
    Some(operations.all().map(|operation| operation.op.clone()).collect())
}

/// The keys that are offered.
struct OfferedKeys<'a> {
    begun: &'a str,
    only_locks: bool,
}

/// Keys on the server with the typed prefix, as many as are found in time.
fn keys(settings: Settings, schemas: &SchemaArgs, wanted: &OfferedKeys<'_>) -> Option<Vec<String>> {
    // A completion never prompts, and a new temporary Redis holds no keys.
    if settings.asks_password() || settings.wants_sandbox() {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let mut found = Vec::new();
    runtime.block_on(async {
        // A timeout is ignored, because the keys found so far are offered.
        let _ = tokio::time::timeout(PATIENCE, find(&settings, schemas, wanted, &mut found)).await;
    });
    Some(found)
}

/// Scans the keyspace until enough keys are found or the scan ends.
async fn find(
    settings: &Settings,
    schemas: &SchemaArgs,
    wanted: &OfferedKeys<'_>,
    found: &mut Vec<String>,
) -> Option<()> {
    let mut session = Session::new(settings.clone(), Ui::new(Color::Never)).saying_nothing();
    let catalog = session.catalog(schemas).ok()?;
    let client = store::connect(settings.target()).await.ok()?;
    let head = if wanted.only_locks { HEAD } else { ReadLimit::Bytes(0) };
    let mut scan =
        KeyspaceScan::start(client.reader(), &catalog, head).await.ok()?.without_lengths();
    let thresholds = Thresholds::default();
    let begun = wanted.begun.as_bytes();
    while found.len() < MAX_KEYS {
        let mut keys = Vec::new();
        if wanted.only_locks {
            let coverage = &mut Coverage::default();
            let decoder = RecordDecoder {
                catalog: &catalog,
                thresholds: &thresholds,
                needed: FieldSet::NONE,
                coverage,
            };
            let page =
                scan.next_records(decoder, &|key: &[u8]| key.starts_with(begun)).await.ok()??;
            for record in page {
                if !record.state.is_result() {
                    keys.push(record.key);
                }
            }
        } else {
            let page = scan
                .next_observations(&catalog, &|key: &[u8]| key.starts_with(begun))
                .await
                .ok()??;
            for (candidate, _) in page {
                keys.push(candidate.key);
            }
        }
        for key in keys {
            if let Ok(key) = String::from_utf8(key)
                && is_inert(&key)
            {
                found.push(key);
            }
        }
        // SCAN may return a key twice.
        found.sort();
        found.dedup();
    }
    found.truncate(MAX_KEYS);
    Some(())
}

/// True if every shell reads the word as one literal argument. Clients choose keys, and bash
/// inserts completions unquoted. A key such as `x$(reboot)` or `x --yes` must therefore never be
/// offered.
fn is_inert(word: &str) -> bool {
    if word.starts_with(['-', '=', '%', '@']) {
        return false;
    }
    word.chars()
        .all(|character| character.is_ascii_alphanumeric() || "_-./:@%+,=".contains(character))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_that_a_shell_reads_is_not_inert() {
        for word in ["pay-1", "acme:1015", "a/b.c_d", "user@example.com", "1+1=2", "50%"] {
            assert!(is_inert(word), "{word}");
        }
        let read = [
            "$(x)", "`x`", "a b", "a;b", "a|b", "a&b", "a>b", "a*", "a?", "[a]", "{a,b}", "~",
            "!1", "^a^b",
        ];
        for word in read
            .into_iter()
            .chain(["-y", "--yes", "=ls", "%1", "@f", "a\"b", "a'b", "a\\b", "a#b", "a\nb", "ä"])
        {
            assert!(!is_inert(word), "{word}");
        }
    }
}
