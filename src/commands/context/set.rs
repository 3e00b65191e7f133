//! `idemctl context set` and `idemctl context remove`.

use anyhow::Result;
use clap::Args as ClapArgs;

use crate::args::{ConnectionArgs, ContextArgs, SchemaFolderArgs};
use crate::domain::detect::SchemaSet as _;
use crate::exit::{CommandError, Exit};
use crate::render::escape;
use crate::render::invocation::word;
use crate::session::Session;
use crate::settings::{self, NOTHING_TO_WRITE, ServerChange, not_confirmed, previous};

/// Add or change a context
///
/// The connection and TLS options (-u, -h, -p, -s, -n, --user, --password-file, --tls, --cacert,
/// --timeout ...) are saved in the context. A password itself is never saved. Other settings stay
/// as they are, and the previous file is kept as config.toml.bak. If an existing context would get
/// another server, set asks first. set does not connect; `idemctl context test` does.
#[derive(Debug, ClapArgs)]
pub(super) struct SetArgs {
    /// Name of the context
    #[arg(value_name = "NAME")]
    name: String,

    #[command(flatten)]
    fields: ContextArgs,

    /// Do not ask before the context gets another server
    #[arg(short = 'y', long)]
    yes: bool,

    /// Name of the context, instead of typing it to end its protection; for scripts
    #[arg(long, value_name = "NAME")]
    confirm: Option<String>,
}

/// Remove a context from the config file
///
/// The server itself is not changed.
#[derive(Debug, ClapArgs)]
pub(super) struct RemoveArgs {
    /// Name of the context
    #[arg(value_name = "NAME")]
    name: String,

    /// Remove it even if it is the default context; no context is then the default
    #[arg(long)]
    default: bool,

    /// Do not ask for confirmation
    #[arg(short = 'y', long)]
    yes: bool,
}

pub(super) async fn set(
    session: &mut Session,
    args: SetArgs,
    connection: &ConnectionArgs,
) -> Result<Exit> {
    let name = args.name;
    if name.trim().is_empty() || name.contains(char::is_control) {
        return Err(CommandError::usage(
            "a context's name must contain letters, and no control characters",
        )
        .into());
    }
    let fields = args.fields;
    // Checked before the file is written, because a wrong name would stop every command later.
    check_schemas(session, &name, &fields)?;
    let file = session.settings.file();
    let change = settings::server_change(file, &name, connection)?;
    // Scripts and colleagues use the name, and would then change data on the new server.
    if let Some(change) = &change
        && !args.yes
    {
        confirm_server(session, &name, change).await?;
    }
    if let Some(current) = session.settings.file().contexts().get(&name)
        && (current.protected && fields.protected == Some(false)
            || current.read_only && fields.read_only == Some(false))
    {
        confirm_unprotected(session, &name, args.confirm)?;
    }
    let file = session.settings.file();
    let written = settings::set_context(file, &name, connection, &fields, change.as_ref())?;
    let path = file.shown_path();
    if written.lines.is_empty() {
        session.ui.status(NOTHING_TO_WRITE);
        return Ok(Exit::Done);
    }
    let verb = if written.is_new { "Added" } else { "Changed" };
    session.ui.status(&format!("{verb} context {name} in {path}:"));
    for line in &written.lines {
        session.ui.status(&format!("  {}", escape::text(line.as_bytes())));
    }
    if let Some(shared) = written.shared_access {
        session.ui.note(&shared);
    }
    if let Some(former) = written.former {
        session.ui.status(&previous(&former));
    }
    // The password of the former server would go to the new one without the operator noticing.
    if let Some(field) = written.login_kept {
        session
            .ui
            .warning(&format!("{field} is unchanged, and is sent to the new server from now on"));
    }
    if let Some(pass_file) = &connection.pass_file
        && !pass_file.is_file()
    {
        session.ui.warning(&format!("{} does not exist yet", pass_file.display()));
    }
    session.ui.hint(&format!("`idemctl context test {name}` tries it"));
    Ok(Exit::Done)
}

/// Asks for the context's name, because the context shall lose a protection.
///
/// # Errors
/// Usage: another name, or idemctl cannot ask without a terminal.
fn confirm_unprotected(
    session: &mut Session,
    name: &str,
    confirm: Option<String>,
) -> Result<(), CommandError> {
    let typed = match confirm {
        Some(confirm) => confirm,
        None if session.ui.is_interactive() => session.ui.ask_for("Type the context's name")?,
        None => String::new(),
    };
    if typed.trim() == name {
        return Ok(());
    }
    Err(not_confirmed().hint(format!("pass --confirm {}", word(name))))
}

/// Asks whether the context shall get another server.
///
/// # Errors
/// Usage: the user did not agree, or idemctl cannot ask without a terminal.
async fn confirm_server(
    session: &mut Session,
    name: &str,
    ServerChange { from, to }: &ServerChange,
) -> Result<()> {
    let change = format!("context {name} would no longer use {from}, but {to}");
    if !session.ui.is_interactive() {
        let options = "pass --yes to move the context, or choose another name for a new one";
        return Err(CommandError::usage(format!("{change}; nothing was written"))
            .hint(options)
            .into());
    }
    let question = format!("Move context {name} from {from} to {to}?");
    if !session.ui.confirm(&question).await? {
        return Err(not_confirmed().into());
    }
    Ok(())
}

/// # Errors
/// Usage: a schema that does not exist. Every command in the context would stop there.
fn check_schemas(session: &Session, name: &str, fields: &ContextArgs) -> Result<(), CommandError> {
    let mut schema_dir = fields.schema_dir.clone();
    if schema_dir.is_none()
        && let Some(config) = session.settings.file().contexts().get(name)
    {
        schema_dir = config.schema_dir.clone();
    }
    let schemas = session.all_schemas(&SchemaFolderArgs { schema_dir })?;
    let known: Vec<_> = schemas.all().iter().map(|schema| schema.name.as_str()).collect();
    let mut named: Vec<&String> = fields.schema.iter().collect();
    for (_, ttl) in fields.ttls() {
        named.extend(&ttl.schema);
    }
    for schema in named {
        if !known.contains(&schema.as_str()) {
            return Err(CommandError::no_schema(schema, &known));
        }
    }
    Ok(())
}

pub(super) async fn remove(session: &mut Session, args: &RemoveArgs) -> Result<Exit> {
    let name = &args.name;
    let file = session.settings.file();
    let config = file.context(name)?;
    let is_default = file.default_context() == Some(name.as_str());
    if is_default && !args.default {
        return Err(CommandError::usage(format!(
            "{name} is the default context, and without it commands need an explicit server"
        ))
        .hint("pass --default to remove it all the same")
        .into());
    }
    // The question shows which protection the server would lose.
    let server = config.server().unwrap_or_else(|| "no server of its own".to_owned());
    let protection = if config.read_only {
        ", read-only"
    } else if config.protected {
        ", protected"
    } else {
        ""
    };
    let path = file.shown_path();
    let question = format!("Remove context {name} ({server}{protection}) from {path}?");
    if !args.yes && !session.ui.confirm(&question).await? {
        return Err(not_confirmed().into());
    }
    let former = settings::remove_context(session.settings.file(), name, is_default)?;
    session.ui.status(&format!("Removed context {name}."));
    if let Some(former) = former {
        session.ui.status(&previous(&former));
    }
    if let Some(used) = session.settings.overriding_context()
        && session.settings.context_name() == Some(name.as_str())
    {
        session.ui.warning(&format!("{used} still refers to it"));
    }
    Ok(Exit::Done)
}
