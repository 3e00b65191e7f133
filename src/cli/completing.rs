//! What TAB offers behind `idemctl`: contexts, schemas, backups, operations, and keys from the server. A completion never asks, never
//! waits longer than a person does, and says nothing of what goes wrong.

use std::ffi::{OsStr, OsString};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::{Arg, ArgMatches, Command, CommandFactory as _, FromArgMatches as _};
use clap_complete::CompleteEnv;
use clap_complete::engine::{ArgValueCompleter, CompletionCandidate};

use super::Root;
use crate::args::{ConnectionArgs, SchemaArgs, SchemaFolderArgs};
use crate::context::Context;
use crate::render::style::Color;
use crate::settings::{Environment, Settings};
use crate::store::audit::log::Log;
use crate::store::{self, ReadLimit, Walk};
use crate::terminal::ui::Ui;

/// How long a person waits for keys behind TAB.
const PATIENCE: Duration = Duration::from_millis(200);

/// How many keys a person looks through.
const MOST_KEYS: usize = 50;

/// What an argument takes.
#[derive(Clone, Copy)]
enum Offer {
    Contexts,
    Schemas,
    Backups,
    Operations,
    Keys,
}

/// Answers where a shell asks what may come next (it sets COMPLETE).
pub(super) fn answered(words: &[OsString]) -> bool {
    let typed: Arc<[OsString]> = words.iter().skip_while(|word| *word != "--").skip(1).cloned().collect();
    let offering = || offering(super::command(), "", &typed);
    CompleteEnv::with_factory(offering).try_complete(words.to_vec(), None).unwrap_or(false)
}

/// The command and all in it, with what each argument offers; `name` is the command's name behind `idemctl`.
fn offering(command: Command, name: &str, typed: &Arc<[OsString]>) -> Command {
    let command = command.mut_args(|argument| match offer(name, &argument) {
        Some(offer) => {
            let typed = Arc::clone(typed);
            argument.add(ArgValueCompleter::new(move |begun: &OsStr| offered(offer, &typed, begun)))
        }
        None => argument,
    });
    command.mut_subcommands(|inner| {
        let name = format!("{name} {}", inner.get_name());
        offering(inner, name.trim(), typed)
    })
}

fn offer(command: &str, argument: &Arg) -> Option<Offer> {
    let id = argument.get_id().as_str();
    match command {
        "context use" | "context show" if id == "name" => Some(Offer::Contexts),
        "schema show" | "schema adopt" if id == "name" => Some(Offer::Schemas),
        "undo" | "log show" if id == "op" => Some(Offer::Operations),
        "restore" if id == "file" => Some(Offer::Backups),
        _ if id == "context" => Some(Offer::Contexts),
        _ if id == "schema" => Some(Offer::Schemas),
        _ if argument.is_positional() && ["key", "keys"].contains(&id) => Some(Offer::Keys),
        _ => None,
    }
}

fn offered(offer: Offer, typed: &[OsString], begun: &OsStr) -> Vec<CompletionCandidate> {
    let begun = begun.to_string_lossy();
    let values = values(offer, typed, &begun).unwrap_or_default();
    values.into_iter().filter(|value| value.starts_with(&*begun)).map(CompletionCandidate::new).collect()
}

fn values(offer: Offer, typed: &[OsString], begun: &str) -> Option<Vec<String>> {
    let matches = Root::command().ignore_errors(true).try_get_matches_from(typed).ok()?;
    let connection = ConnectionArgs::from_arg_matches(&matches).ok()?;
    let file = || Settings::of_file(&connection, Environment::capture()).ok();
    match offer {
        Offer::Contexts => Some(file()?.file().contexts().keys().cloned().collect()),
        Offer::Backups => backups(&file()?),
        Offer::Operations => operations(&file()?),
        Offer::Schemas => {
            let mut context = Context::new(file()?, Ui::new(Color::Never)).saying_nothing();
            let args = SchemaArgs { schema: Vec::new(), ..schemas(&matches) };
            Some(context.catalog(&args).ok()?.all().iter().map(|schema| schema.name.clone()).collect())
        }
        Offer::Keys => keys(Settings::resolve(&connection, Environment::capture()).ok()?, &schemas(&matches), begun),
    }
}

/// What the innermost command that is typed says of schemas.
fn schemas(matches: &ArgMatches) -> SchemaArgs {
    let mut innermost = matches;
    while let Some((_, inner)) = innermost.subcommand() {
        innermost = inner;
    }
    // `schema show` has a folder of schemas and no more; other commands have none of it.
    let all = ["schema", "prefix", "lock_ttl", "result_ttl", "schema_dir"];
    if all.iter().all(|id| innermost.try_contains_id(id).is_ok()) {
        return SchemaArgs::from_arg_matches(innermost).unwrap_or_default();
    }
    let schema_dir = innermost.try_get_one::<PathBuf>("schema_dir").ok().flatten().cloned();
    SchemaArgs { folder: SchemaFolderArgs { schema_dir }, ..SchemaArgs::default() }
}

fn backups(settings: &Settings) -> Option<Vec<String>> {
    let folder = settings.state_dir().ok()?.join("backups");
    let files = std::fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path().display().to_string()));
    let mut files: Vec<_> = files.filter(|file| file.ends_with(".jsonl")).collect();
    files.sort();
    Some(files)
}

/// The operations of the log, each as `log` names the operation.
fn operations(settings: &Settings) -> Option<Vec<String>> {
    let mut log = Log::open(&settings.audit_log().ok()?).ok()??;
    let mut names = Vec::new();
    while let Some(entry) = log.next_entry().ok()? {
        let name = entry.op.map(|op| op.into_owned());
        names.extend(name.filter(|name| names.last() != Some(name)));
    }
    Some(names)
}

/// Keys on the server that begin as typed, as many as are found in time.
fn keys(settings: Settings, schemas: &SchemaArgs, begun: &str) -> Option<Vec<String>> {
    if settings.asks_password() || settings.wants_sandbox() {
        return None;
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().ok()?;
    let mut found = Vec::new();
    runtime.block_on(async {
        // What was found until then is offered.
        let _ = tokio::time::timeout(PATIENCE, find(&settings, schemas, begun, &mut found)).await;
    });
    Some(found)
}

/// Walks the keyspace until enough keys are found, or nothing more can be.
async fn find(settings: &Settings, schemas: &SchemaArgs, begun: &str, found: &mut Vec<String>) -> Option<()> {
    let mut context = Context::new(settings.clone(), Ui::new(Color::Never)).saying_nothing();
    let catalog = context.catalog(schemas).ok()?;
    let client = store::connect(settings.target()).await.ok()?;
    let mut walk = Walk::start(client.reader(), &catalog, ReadLimit::Bytes(0)).await.ok()?.without_lengths();
    while found.len() < MOST_KEYS {
        let page = walk.next(&catalog, |key| key.starts_with(begun.as_bytes())).await.ok()??;
        let keys = page.into_iter().filter_map(|(candidate, _)| String::from_utf8(candidate.key).ok());
        found.extend(keys.filter(|key| !key.contains(char::is_control)));
        found.sort();
        found.dedup();
    }
    found.truncate(MOST_KEYS);
    Some(())
}
