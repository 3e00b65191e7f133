//! `idemctl context`: the servers of the config file by name.

use anyhow::Result;
use clap::{Args as ClapArgs, Subcommand};

use crate::args::Output;
use crate::context::Context;
use crate::exit::{Exit, Stop};
use crate::render::settings::{self as render, NamedContext};
use crate::settings::{self, ContextConfig};

/// List the contexts of the config file, show one, or choose the one that is used
///
/// A context is a server under a name, with how it is reached, how its services are deployed and what may be done there:
/// `[contexts.NAME]` in the config file. The one that is used is --context's, else IDEMCTL_CONTEXT's, else
/// default_context's. No password is shown, and no server is asked.
///
/// Name, colour, protection, schemas, prefixes and TTLs belong to the server's address: whoever names the server, by -p,
/// -u or REDIS_URL, gets those of the context with this address, and a server of no context gets none. Where several
/// contexts have one address, the strictest protection of them all holds, whatever the database. A context without a
/// server says how to reach whichever server is named and is no other context's.
#[derive(Debug, ClapArgs)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// List the contexts; the one that is used is marked
    List {
        /// How to show them
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Show what the file says of a context
    Show {
        /// Which [default: the one that is used]
        #[arg(value_name = "NAME")]
        name: Option<String>,

        /// How to show it
        #[arg(short, long, value_enum, default_value_t)]
        output: Output,
    },
    /// Make a context the default one; the rest of the file stays as it is
    Use {
        /// Which
        #[arg(value_name = "NAME")]
        name: String,
    },
}

pub fn run(context: &mut Context, args: Args) -> Result<Exit> {
    match args.what {
        What::List { output } => list(context, output),
        What::Show { name, output } => show(context, name, output),
        What::Use { name } => choose(context, &name),
    }
}

fn list(context: &mut Context, output: Output) -> Result<Exit> {
    let used = context.settings.context_name().map(str::to_owned);
    let configs = context.settings.file().contexts().iter();
    let contexts: Vec<_> = configs.map(|(name, config)| named(name, config, used.as_deref() == Some(name))).collect();
    let table = |view| match contexts.is_empty() {
        true => String::new(),
        false => render::contexts(&contexts, view),
    };
    context.show(output, "contexts", &contexts, table)?;
    if contexts.is_empty() {
        let file = context.settings.file().path().map(|path| path.display().to_string()).unwrap_or_default();
        context.ui.status(&format!("No contexts: [contexts.NAME] in {file} makes one."));
    }
    if let Some(missing) = used.filter(|used| !contexts.iter().any(|context| context.name == *used)) {
        context.ui.warning(&format!("the context to use is `{missing}`, which is not there"));
    }
    Ok(Exit::Done)
}

fn show(context: &mut Context, name: Option<String>, output: Output) -> Result<Exit> {
    let used = context.settings.context_name().map(str::to_owned);
    let name = name.or_else(|| used.clone()).ok_or_else(|| Stop::usage("no context is used: which one?"))?;
    let config = context.settings.file().context(&name)?;
    let named = [named(&name, config, used.as_ref() == Some(&name))];
    context.show(output, "contexts", &named, |view| render::context(&named[0], view))?;
    Ok(Exit::Done)
}

fn choose(context: &mut Context, name: &str) -> Result<Exit> {
    settings::use_context(context.settings.file(), name)?;
    context.ui.status(&format!("The default context is {name}."));
    if let Some(used) = context.settings.overriding_context() {
        context.ui.warning(&format!("{used} names the context that is used"));
    }
    Ok(Exit::Done)
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
    }
}
