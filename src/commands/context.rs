//! `idemctl context`: the servers of the config file by name.

mod set;
mod test;

use std::collections::BTreeSet;

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::{ConnectionArgs, Output};
use crate::domain::duration;
use crate::domain::record::age;
use crate::domain::schema::ttl::{NO_TTL, NONE};
use crate::exit::{CommandError, Exit};
use crate::render::invocation::Invocation;
use crate::render::settings::{self as render, NamedContext};
use crate::session::Session;
use crate::settings::{self, ContextConfig};

/// List, create, change, test and remove contexts
///
/// A context, `[contexts.NAME]` in the config file, names a server. It defines how to connect, how
/// services are deployed there, and which changes are allowed. idemctl uses the context in
/// --context, else IDEMCTL_CONTEXT, else default_context. No passwords are shown, and only `test`
/// connects.
///
/// Name, colour, protection, schemas, prefixes and TTLs belong to the server's address. They also
/// apply if you name the server with -p, -u or REDIS_URL; a server without a context gets none. If
/// several contexts have the same address, one with `protected` protects it for all. `read_only`
/// applies alike, unless --context or IDEMCTL_CONTEXT names a context of the server. A context
/// without a server applies to every named server that has no context of its own.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    what: ContextSubcommand,
}

#[derive(Debug, Subcommand)]
enum ContextSubcommand {
    /// List the contexts, with a mark at the current one
    List {
        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Show the settings of a context in the config file
    Show {
        /// Name of the context [default: the current one]
        #[arg(value_name = "NAME")]
        name: Option<String>,

        /// Output format
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Make a context the default
    ///
    /// The rest of the config file stays as it is.
    Use {
        /// Name of the context
        #[arg(value_name = "NAME")]
        name: String,
    },
    Set(set::SetArgs),
    Test(test::Args),
    Remove(set::RemoveArgs),
}

impl Args {
    /// The connection of the commands that ask a server; `None` for those that work on the config
    /// file alone.
    pub(crate) fn tested(&self, given: &ConnectionArgs) -> Option<ConnectionArgs> {
        match &self.what {
            ContextSubcommand::Test(args) => Some(args.connection(given)),
            _ => None,
        }
    }

    /// True if the command creates the config file if it does not exist.
    pub(crate) fn creates_file(&self) -> bool {
        matches!(self.what, ContextSubcommand::Set(_))
    }
}

pub async fn run(session: &mut Session, args: Args, connection: &ConnectionArgs) -> Result<Exit> {
    if !matches!(args.what, ContextSubcommand::Test(_)) {
        // The options for a server are saved in a context, so printed lines do not repeat them.
        let config =
            ConnectionArgs { config: connection.config.clone(), ..ConnectionArgs::default() };
        let environment = session.settings.environment().without_server();
        session.ui.set_invocation(Invocation::of(&config, &environment));
    }
    match args.what {
        ContextSubcommand::Set(args) => set::set(session, args, connection).await,
        ContextSubcommand::Test(args) => test::run(session, args).await,
        ContextSubcommand::Remove(args) => set::remove(session, &args).await,
        ContextSubcommand::List { output } => list(session, output),
        ContextSubcommand::Show { name, output } => show(session, name, output),
        ContextSubcommand::Use { name } => choose(session, &name),
    }
}

fn list(session: &mut Session, output: Output) -> Result<Exit> {
    let used = session.settings.context_name().map(str::to_owned);
    let mut contexts = Vec::new();
    let mut notes = BTreeSet::new();
    let file = session.settings.file();
    for (name, config) in file.contexts() {
        let named = named(name, config, used.as_deref() == Some(name));
        contexts.push(NamedContext { protected: file.is_protected(name), ..named });
        notes.extend(file.shared_access(name));
    }
    session.show(output, "contexts", &contexts, |view| {
        if contexts.is_empty() { String::new() } else { render::contexts(&contexts, view) }
    })?;
    for note in notes {
        session.ui.note(&note);
    }
    if contexts.is_empty() {
        session.ui.status("No contexts yet.");
        session.ui.hint("`idemctl context set NAME -u redis://HOST:PORT/DB` adds one");
    }
    if let Some(missing) = used
        && !contexts.iter().any(|context| context.name == missing)
    {
        session.ui.warning(&format!("the selected context `{missing}` does not exist"));
    }
    Ok(Exit::Done)
}

fn show(session: &mut Session, name: Option<String>, output: Output) -> Result<Exit> {
    let used = session.settings.context_name().map(str::to_owned);
    let Some(name) = name.or_else(|| used.clone()) else {
        return Err(CommandError::usage("no context is selected; pass a context's NAME").into());
    };
    let config = session.settings.file().context(&name)?;
    let named = [named(&name, config, used.as_ref() == Some(&name))];
    session.show(output, "contexts", &named, |view| render::context(&named[0], view))?;
    Ok(Exit::Done)
}

fn choose(session: &mut Session, name: &str) -> Result<Exit> {
    settings::use_context(session.settings.file(), name)?;
    session.ui.status(&format!("The default context is {name}."));
    // The default has the lowest precedence, so the next command may still use another context.
    if let Some(used) = session.settings.overriding_context() {
        session.ui.warning(&format!("{used} overrides the default and selects the context"));
    }
    Ok(Exit::Done)
}

/// The TTLs that a context states, schema by schema.
fn ttls(config: &ContextConfig) -> Vec<String> {
    let mut ttls = Vec::new();
    for (schema, deployment) in &config.deployment {
        for (of, ttl) in [("lock", deployment.lock_ttl), ("result", deployment.result_ttl)] {
            let shown = match ttl {
                None => continue,
                Some(NO_TTL) => NONE.to_owned(),
                Some(ttl) => duration::short(age::millis(ttl)),
            };
            ttls.push(format!("{schema}: {of} {shown}"));
        }
    }
    ttls
}

fn named(name: &str, config: &ContextConfig, used: bool) -> NamedContext {
    NamedContext {
        name: name.to_owned(),
        used,
        server: config.server(),
        user: config.user(),
        tls: config.speaks_tls(),
        schemas: config.schema.clone(),
        protected: config.protected,
        read_only: config.read_only,
        color: config.color.map(|color| color.as_str().to_owned()),
        ttls: ttls(config),
    }
}
