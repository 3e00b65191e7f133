//! The root parser and dispatch.

mod ending;
mod help;
mod tab;
#[cfg(test)]
mod tests;
mod topics;

use std::ffi::OsString;
use std::mem::ManuallyDrop;
use std::time::Instant;

use anyhow::Result;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgAction, Args as _, CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

use self::ending::{UNKNOWN, report, settle, unknown};
use crate::args::{ConnectionArgs, DisplayArgs, Output};
use crate::commands::{
    apply, backup, begin, check, complete, completions, config, context as contexts, detect, diff,
    doctor, duplicates, explore, extend, force_unlock, inspect, list, log, man, probe, purge, race,
    reconcile, release, restore, sandbox, schema, simulate, stats, sweep, undo,
};
use crate::domain::command_row::{COMMANDS, CommandRow, row_of};
use crate::domain::removed::{self, Removed, RemovedKind};
use crate::exit::{CommandError, Exit};
use crate::interrupt::outlive_file_size_limit;
use crate::render::escape;
use crate::render::invocation::{Invocation, RunWords, option_words};
use crate::render::style::Color;
use crate::session::{Session, interruptible};
use crate::settings::{Environment, Settings};
use crate::terminal::ui::Ui;
use crate::version;

/// Inspect, list, unlock and race the idempotency keys that services keep in Redis
#[derive(Debug, Parser)]
pub struct Root {
    #[command(flatten)]
    options: Options,

    #[command(subcommand)]
    command: Command,
}

/// The options that can be given before or after a command.
#[derive(Debug, clap::Args)]
#[command(
    name = "idemctl",
    version = version::TEXT,
    disable_help_flag = true,
    disable_help_subcommand = true,
    max_term_width = 100
)]
struct Options {
    #[command(flatten)]
    connection: ConnectionArgs,

    #[command(flatten)]
    display: DisplayArgs,

    /// Print help
    #[arg(long, global = true, action = ArgAction::Help, help_heading = "Display")]
    help: Option<bool>,
}

/// clap builds the options of a command only if it runs, because building them takes most of clap's
/// time.
#[derive(Debug, Subcommand)]
#[command(defer = true)]
enum Command {
    #[command(visible_alias = "get")]
    Inspect(inspect::Args),
    #[command(visible_alias = "ls")]
    List(list::Args),
    Stats(stats::Args),
    Diff(diff::Args),
    Duplicates(duplicates::Args),
    Check(check::Args),
    Doctor(doctor::Args),
    ForceUnlock(force_unlock::Args),
    Extend(extend::Args),
    Complete(complete::Args),
    Release(release::Args),
    Begin(begin::Args),
    Sweep(sweep::Args),
    Reconcile(reconcile::Args),
    Purge(purge::Args),
    Apply(apply::Args),
    Restore(restore::Args),
    Undo(undo::Args),
    Log(log::Args),
    Backup(backup::Args),
    Race(race::Args),
    Simulate(simulate::Args),
    Explore(explore::Args),
    Probe(probe::Args),
    Sandbox(sandbox::Args),
    Detect(detect::Args),
    Schema(schema::Args),
    Context(contexts::Args),
    Config(config::Args),
    #[command(alias = "completion")]
    Completions(completions::Args),
    Man(man::Args),
}

/// The complete command line for clap, with examples, for help, completions, man pages and their
/// tests.
pub fn command() -> clap::Command {
    let mut command = Root::command();
    command.build();
    help::added_to(command, "")
}

/// Runs a command line and returns its exit code.
pub fn main(words: impl Iterator<Item = OsString>) -> Exit {
    let words: Vec<OsString> = words.collect();
    // For TAB, a shell runs idemctl with an incomplete command line, which clap must not parse.
    if tab::answered(&words) {
        return Exit::Done;
    }
    let words = in_own_words(words);
    // idemctl answers `help` itself, because clap knows no topics.
    match words.get(1) {
        Some(word) if word == "help" => return help::answer(&words[2..]),
        Some(_) => {}
        None => {
            help::answer(&[]);
            return Exit::Usage;
        }
    }
    let (root, row, run_words) = match parse(&words) {
        Ok(parsed) => parsed,
        Err(error) => return usage(error, &words),
    };
    let started = Instant::now();
    let display = &root.options.display;
    let mut ui = Ui::new(Color::from(display.color));
    ui.talk(display.talk());
    let environment = Environment::capture();
    // Printed command lines repeat the server that a variable named, because the variable may be
    // set for one command only. If the command ignores the variables, the printed lines do so too.
    // Otherwise a pasted line would put load on that server.
    let mut invocation = if row.is_named {
        Invocation::of(&root.options.connection, &environment.without_server())
    } else {
        Invocation::of(&root.options.connection, &environment)
    };
    invocation.set_run(run_words);
    ui.set_invocation(invocation);
    ui.when_stdout_closes(row.stdout);
    let check = match &root.command {
        Command::Check(args) => Some(args.output),
        _ => None,
    };
    let mut settings = match settings(&root, environment) {
        Ok(settings) => settings,
        Err(stop) => return report(&mut ui, &stop.into(), check),
    };
    if !row.is_named
        && let Some(url) = settings.url_of_redis_url()
    {
        ui.invocation_mut().note_redis_url(url);
    }
    for warning in settings.warnings() {
        ui.warning(&warning);
    }
    if root.options.display.debug {
        settings.trace(ui.trace());
    }
    if !settings.environment().speaks_utf8() {
        ui.show_ascii();
    }
    let mut session = Session::new(settings, ui);
    let ended = run(&mut session, root.command, &root.options.connection);
    if let Some(why) = session.not_audited.get() {
        session.ui.warning(&format!("the change was made, but not audited: {why}"));
    }
    session.ui.detail(&format!("took {:.3} s", started.elapsed().as_secs_f64()));
    match ended {
        Ok(exit) => settle(&mut session.ui, exit),
        Err(error) => report(&mut session.ui, &error, check),
    }
}

/// Parses the command line, and separates the subcommand's own words and its filters.
///
/// clap copies the options that all commands share into each command, which would be most of the
/// cost of a start. clap therefore first gets only the commands whose names are among the words. If
/// that fails, it gets all commands.
fn parse(words: &[OsString]) -> Result<(Root, &'static CommandRow, RunWords), clap::Error> {
    let all = Command::augment_subcommands(clap::Command::new("all"));
    let mut named = Vec::new();
    for command in all.get_subcommands() {
        if words.iter().any(|word| is_named(command, word)) {
            named.push(command);
        }
    }
    let short = Options::augment_args(clap::Command::new("idemctl"))
        .subcommand_required(true)
        .subcommands(named);
    // It is built once per run, and freeing its many small parts would take time.
    let mut short = ManuallyDrop::new(short);
    let matches = match short.try_get_matches_from_mut(words) {
        Ok(matches) => matches,
        // `--version` names no command, so the other commands cannot change its output.
        Err(version) if version.kind() == ErrorKind::DisplayVersion => return Err(version),
        Err(_) => Root::command().try_get_matches_from(words)?,
    };
    let under = |headings: &[Option<&str>]| option_words_under(&short, &matches, headings);
    let run_words = RunWords {
        own: own_words(&short, &matches),
        filters: under(&[None, Some("Select"), Some("Schemas")]),
        selection: under(&[Some("Select")]),
    };
    Ok((Root::from_arg_matches(&matches)?, row(&matches), run_words))
}

/// The row of the command that runs. Every command has one, which a test checks.
fn row(matches: &clap::ArgMatches) -> &'static CommandRow {
    let mut words = String::new();
    let mut inner = matches;
    while let Some((name, matches)) = inner.subcommand() {
        words = format!("{words} {name}");
        inner = matches;
    }
    row_of(words.trim_start()).unwrap_or(&COMMANDS[0])
}

/// The subcommand with the options and arguments given to it, each as `--name value`. It excludes
/// the options for the server and the schemas, which are added to every command line.
fn own_words(root: &clap::Command, matches: &clap::ArgMatches) -> Vec<String> {
    let Some((name, given)) = matches.subcommand() else { return Vec::new() };
    let mut words = vec![name.to_owned()];
    let mut positional = Vec::new();
    let Some(command) = root.find_subcommand(name) else { return words };
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        if argument.is_global_set() || ["schema", "schema_dir", "prefix"].contains(&id) {
            continue;
        }
        let given = as_given(argument, given);
        if argument.get_long().is_some() { words.extend(given) } else { positional.extend(given) }
    }
    // Clients choose keys, so a key may look like an option.
    if positional.iter().any(|word| word.starts_with('-')) {
        words.push("--".to_owned());
    }
    words.extend(positional);
    words
}

/// The options with which a command selected records, each as `--name value`, for the audit log.
/// Only options under one of these headings of the help count. Keys are left out, because the log
/// has one line for each. Options that select nothing (`--output`, `--yes`, `--count`) are left out
/// as well.
fn option_words_under(
    root: &clap::Command,
    matches: &clap::ArgMatches,
    headings: &[Option<&str>],
) -> Vec<String> {
    let Some((name, given)) = matches.subcommand() else { return Vec::new() };
    let Some(command) = root.find_subcommand(name) else { return Vec::new() };
    if !command.get_arguments().any(|argument| argument.get_help_heading() == Some("Select")) {
        return Vec::new();
    }
    let mut words = Vec::new();
    for argument in command.get_arguments() {
        let id = argument.get_id().as_str();
        // A shell command may contain a secret.
        let is_left_out = argument.get_long().is_none() || ["output", "owner_alive"].contains(&id);
        let chooses = headings.contains(&argument.get_help_heading());
        if !chooses || is_left_out {
            continue;
        }
        let option = as_given(argument, given);
        // The audit log never contains the bytes of a value, so it gets only the length of the
        // text.
        if id == "body_contains"
            && !option.is_empty()
            && let Some(mut texts) = given.get_raw(id)
            && let Some(text) = texts.next()
        {
            words.push("--body-contains".to_owned());
            words.push(format!("({} bytes)", text.len()));
        } else {
            words.extend(option);
        }
    }
    words
}

/// The words of an argument as given on the command line; empty if it was not given.
fn as_given(argument: &clap::Arg, matches: &clap::ArgMatches) -> Vec<String> {
    let id = argument.get_id().as_str();
    if matches.value_source(id) != Some(clap::parser::ValueSource::CommandLine) {
        return Vec::new();
    }
    let option = argument.get_long().map(|long| format!("--{long}"));
    let mut words = Vec::new();
    if !argument.get_action().takes_values() {
        words.extend(option);
        return words;
    }
    for value in matches.get_raw(id).into_iter().flatten() {
        let value = value.to_string_lossy();
        match &option {
            Some(option) => words.extend(option_words(option, &value)),
            None => words.push(value.into_owned()),
        }
    }
    words
}

fn is_named(command: &clap::Command, word: &OsString) -> bool {
    word == command.get_name() || command.get_all_aliases().any(|alias| word == alias)
}

fn settings(root: &Root, environment: Environment) -> Result<Settings, CommandError> {
    match &root.command {
        // `context use` must work if the default context is missing, because that stops every other
        // command.
        Command::Context(args) => match args.tested(&root.options.connection) {
            Some(connection) => Settings::resolve(&connection, environment),
            None => Settings::of_file(&root.options.connection, environment, args.creates_file()),
        },
        // It reports all that is wrong, the config file included.
        Command::Config(args) if args.is_check() => {
            let connection = &root.options.connection;
            Settings::resolve(connection, environment.clone())
                .or_else(|wrong| Settings::without_file(environment, &wrong))
        }
        _ => Settings::resolve(&root.options.connection, environment),
    }
}

fn run(session: &mut Session, command: Command, connection: &ConnectionArgs) -> Result<Exit> {
    // One thread, because races ran slower on several threads when this was measured on two cores.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let ended = runtime.block_on(async {
        // At a file size limit, SIGXFSZ would kill idemctl between a change and its line in the
        // log.
        outlive_file_size_limit()?;
        dispatch(session, command, connection).await
    });
    // What was printed before an error still reaches stdout, but the error decides the exit code.
    let flushed = session.ui.flush();
    let exit = ended?;
    flushed?;
    Ok(exit)
}

async fn dispatch(
    session: &mut Session,
    command: Command,
    connection: &ConnectionArgs,
) -> Result<Exit> {
    match command {
        Command::Inspect(args) if args.handles_interrupt() => inspect::run(session, args).await,
        Command::Inspect(args) => interruptible(inspect::run(session, args)).await,
        Command::List(args) => list::run(session, args).await,
        Command::Stats(args) => stats::run(session, args).await,
        Command::Diff(args) => diff::run(session, args).await,
        Command::Duplicates(args) => duplicates::run(session, args).await,
        Command::Check(args) => check::run(session, args).await,
        Command::Doctor(args) => doctor::run(session, args).await,
        Command::ForceUnlock(args) => force_unlock::run(session, args).await,
        Command::Extend(args) => extend::run(session, args).await,
        Command::Complete(args) => complete::run(session, args).await,
        Command::Release(args) => release::run(session, args).await,
        Command::Begin(args) => begin::run(session, args).await,
        Command::Sweep(args) => sweep::run(session, args).await,
        Command::Reconcile(args) => reconcile::run(session, args).await,
        Command::Purge(args) => purge::run(session, args).await,
        Command::Apply(args) => apply::run(session, args).await,
        Command::Restore(args) => restore::run(session, args).await,
        Command::Undo(args) => undo::run(session, args).await,
        Command::Log(args) => log::run(session, args).await,
        Command::Backup(args) => backup::run(session, args).await,
        Command::Sandbox(args) => sandbox::run(session, args).await,
        Command::Race(args) => race::run(session, args).await,
        Command::Simulate(args) => simulate::run(session, args).await,
        Command::Explore(args) => explore::run(session, args).await,
        Command::Probe(args) => probe::run(session, args).await,
        Command::Detect(args) => detect::run(session, args).await,
        Command::Schema(args) => schema::run(session, args).await,
        Command::Context(args) => interruptible(contexts::run(session, args, connection)).await,
        Command::Config(args) => config::run(session, args),
        Command::Completions(args) => completions::run(session, args),
        Command::Man(args) => man::run(session, args, self::command()),
    }
}

/// Replaces `version`, and a final `-h`, which would otherwise be the host option without a value.
fn in_own_words(mut words: Vec<OsString>) -> Vec<OsString> {
    if words.len() == 2 && words[1] == "version" {
        words[1] = "--version".into();
    }
    if words.len() > 1
        && let Some(last) = words.last_mut()
        && *last == "-h"
    {
        *last = "--help".into();
    }
    words
}

/// Help and version end successfully; every other error of clap is a usage error.
fn usage(mut error: clap::Error, words: &[OsString]) -> Exit {
    if error.kind() == ErrorKind::DisplayHelp {
        return help::show_one_screen(words);
    }
    if let Some((message, removed)) = removed_in(&error, words) {
        let mut ui = Ui::new(Color::Auto);
        ui.set_invocation(named_in(words));
        ui.error(&message);
        ui.hint(&removed.hint());
        return Exit::Usage;
    }
    escape_arguments(&mut error);
    // A closed pipe, as in `--help | head`, is not an error.
    let _ = error.print();
    if error.kind() == ErrorKind::DisplayVersion {
        if words.iter().any(|word| word == "--verbose" || word == "-v") {
            let mut ui = Ui::new(Color::Never);
            let _ = ui.data(version::details(Environment::capture().state_dir()));
            let _ = ui.flush();
        }
        return Exit::Done;
    }
    // Monitoring needs a line on stdout and an exit code of plugins in every case.
    if first_command(words).is_some_and(|command| command == "check") {
        let why = "the command line cannot be understood";
        let _ = unknown(&mut Ui::new(Color::Never), why, Output::Text);
        return UNKNOWN;
    }
    Exit::Usage
}

/// What an error says of a command or an option that an earlier version had.
fn removed_in(error: &clap::Error, words: &[OsString]) -> Option<(String, Removed)> {
    if let Some(ContextValue::String(command)) = error.get(ContextKind::InvalidSubcommand) {
        let removed = removed::find(RemovedKind::Command, command)?;
        return Some((format!("there is no command `{command}`"), removed));
    }
    let Some(ContextValue::String(option)) = error.get(ContextKind::InvalidArg) else {
        return None;
    };
    let command = first_command(words)?;
    let removed = removed::option(&command, option)?;
    Some((format!("`{command}` no longer has the option {option}"), removed))
}

/// The server that an invalid command line names.
fn named_in(words: &[OsString]) -> Invocation {
    let options = Options::augment_args(clap::Command::new("idemctl"))
        .ignore_errors(true)
        .arg_required_else_help(false);
    let Ok(matches) = options.try_get_matches_from(words) else { return Invocation::default() };
    let Ok(args) = ConnectionArgs::from_arg_matches(&matches) else {
        return Invocation::default();
    };
    Invocation::of(&args, &Environment::capture())
}

/// Escapes the arguments in an error of clap, because they must not move the terminal's cursor.
fn escape_arguments(error: &mut clap::Error) {
    let mut escaped = Vec::new();
    for (kind, value) in error.context() {
        match value {
            ContextValue::String(text) => {
                escaped.push((kind, ContextValue::String(escape::text(text.as_bytes()))));
            }
            ContextValue::Strings(texts) => {
                let texts = texts.iter().map(|text| escape::text(text.as_bytes())).collect();
                escaped.push((kind, ContextValue::Strings(texts)));
            }
            _ => {}
        }
    }
    for (kind, value) in escaped {
        error.insert(kind, value);
    }
}

/// The first word that names a command.
fn first_command(words: &[OsString]) -> Option<String> {
    let all = Command::augment_subcommands(clap::Command::new("all"));
    for word in words.iter().skip(1) {
        if let Some(command) = all.get_subcommands().find(|command| *word == command.get_name()) {
            return Some(command.get_name().to_owned());
        }
    }
    None
}
