//! `context set` and `context remove`, which add, change or remove a context of the config file.

use std::path::{Path, PathBuf};
use std::time::Duration;

use toml_edit::{Array, Table, TableLike, Value};

use super::config::ContextConfig;
use super::edit::{self, ConfigLock, Edit, table};
use super::file::ConfigFile;
use crate::args::{ConnectionArgs, ContextArgs, StatedTtl};
use crate::domain::duration;
use crate::domain::schema::ttl::{NO_TTL, NONE};
use crate::exit::CommandError;
use crate::store::{NO_URL, Target};

/// What is said if the config file has the settings already.
pub(crate) const NOTHING_TO_WRITE: &str = "The config file has these settings already.";

/// Where the former config file is.
pub(crate) fn previous(former: &Path) -> String {
    format!("The previous file is kept as {}.", former.display())
}

/// The error of a question about the config file that was answered with no.
pub(crate) fn not_confirmed() -> CommandError {
    CommandError::usage("not confirmed; nothing was written")
}

/// Another server for an existing context.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ServerChange {
    /// The context's server, as messages name it.
    pub(crate) from: String,
    pub(crate) to: String,
}

/// The result of writing the config file.
pub(crate) struct WrittenFile {
    /// The written fields as `NAME = VALUE`; empty if the context already had all of them.
    pub(crate) lines: Vec<String>,
    pub(crate) is_new: bool,
    /// The path of the previous file.
    pub(crate) former: Option<PathBuf>,
    /// The context's existing log-in, which it now sends to another server.
    pub(crate) login_kept: Option<&'static str>,
    /// What applies to its server, if other contexts have the same one.
    pub(crate) shared_access: Option<String>,
}

/// The path of a context's field, and its value.
type SettingField = (Vec<String>, Value);

/// The server to which these options would move the context; `None` if it keeps its server, or is
/// new.
///
/// # Errors
/// Usage: the options do not name a server that a context can have.
pub(crate) fn server_change(
    file: &ConfigFile,
    name: &str,
    connection: &ConnectionArgs,
) -> Result<Option<ServerChange>, CommandError> {
    refuse_what_is_not_stored(connection)?;
    Ok(change_of_server(file, name, url(connection)?.as_deref()))
}

fn change_of_server(file: &ConfigFile, name: &str, url: Option<&str>) -> Option<ServerChange> {
    let to = Target::parse(url?)?.to_string();
    let from = file.contexts().get(name)?.server()?;
    if from == to { None } else { Some(ServerChange { from, to }) }
}

/// Writes the connection options and these fields into a context, and creates it if it does not
/// exist. `agreed` is the change of its server that the operator has agreed to.
///
/// # Errors
/// Usage: a password would be stored, an option cannot be stored in a context, a new context has no
/// server, there is nothing to write, or the file cannot be written, or has changed since the
/// operator agreed.
pub(crate) fn set_context(
    file: &ConfigFile,
    name: &str,
    connection: &ConnectionArgs,
    fields: &ContextArgs,
    agreed: Option<&ServerChange>,
) -> Result<WrittenFile, CommandError> {
    refuse_what_is_not_stored(connection)?;
    let url = url(connection)?;
    let (lock, file) = ConfigLock::take(file)?;
    let change = change_of_server(&file, name, url.as_deref());
    if change.is_some() && change.as_ref() != agreed {
        return Err(CommandError::usage(format!(
            "the server of context `{name}` was changed meanwhile; nothing was written"
        ))
        .hint("run the command again"));
    }
    let before = file.contexts().get(name);
    if before.is_none() && url.is_none() {
        return Err(CommandError::usage(format!(
            "there is no context `{name}` yet, and a new one needs a server"
        ))
        .hint("-u redis://HOST:PORT/DB"));
    }
    // The context's password would be sent to the new server, so the operator must know.
    let login_kept = before.and_then(|before| login_kept(before, url.as_deref(), connection));
    let mut all = of_connection(url, connection);
    all.extend(of_context(fields)?);
    if all.is_empty() {
        return Err(CommandError::usage(format!("nothing to write into context `{name}`"))
            .hint("`idemctl context set --help` lists what a context can say"));
    }
    let mut edit = Edit::open(&file)?;
    let mut lines = Vec::new();
    for (keys, value) in all {
        let line = format!("{} = {value}", keys.join("."));
        let mut written = None;
        if let Some(contexts) = edit.contexts()
            && let Some(of_context) = table(contexts, name, false)
        {
            written = write(of_context, &keys, value);
        }
        match written {
            Some(true) => lines.push(line),
            Some(false) => {}
            None => {
                return Err(edit.cannot(format!("there is something else at `{}`", keys.join("."))));
            }
        }
    }
    let former = edit.save(&lock)?;
    let shared_access = file.again()?.shared_access(name);
    Ok(WrittenFile { lines, is_new: before.is_none(), former, login_kept, shared_access })
}

/// Removes a context. `is_default` permits removing the default context, after which the file has
/// none.
///
/// # Errors
/// Usage: the file cannot be written.
pub(crate) fn remove_context(
    file: &ConfigFile,
    name: &str,
    is_default: bool,
) -> Result<Option<PathBuf>, CommandError> {
    let (lock, file) = ConfigLock::take(file)?;
    file.context(name)?;
    let mut edit = Edit::open(&file)?;
    if let Some(contexts) = edit.contexts() {
        contexts.remove(name);
    }
    // A default context that does not exist would stop every other command.
    if is_default {
        edit.document.remove("default_context");
    }
    edit.save(&lock)
}

/// Refuses options that apply to one run only or contain a secret.
fn refuse_what_is_not_stored(connection: &ConnectionArgs) -> Result<(), CommandError> {
    let mut url_has_password = false;
    // A URL that cannot be read is refused later.
    if let Some(url) = &connection.url
        && let Some(target) = Target::parse(url)
    {
        url_has_password = target.password.is_some();
    }
    if url_has_password || connection.password.is_some() {
        let option = if url_has_password { "--url" } else { "--pass" };
        return Err(CommandError::usage(format!(
            "{option}: the config file would hold the password as plain text"
        ))
        .hint(
            "write the password into a file that only you can read and pass --password-file FILE, \
            or set REDISCLI_AUTH",
        ));
    }
    let stdin = Some(Path::new("-"));
    let refused = [
        ("--askpass", connection.askpass),
        ("--sandbox", connection.sandbox),
        ("--cluster", connection.cluster),
        ("--password-file -", connection.pass_file.as_deref() == stdin),
        ("--sentinel-pass-file -", connection.sentinel_pass_file.as_deref() == stdin),
    ];
    for (option, is_given) in refused {
        if is_given {
            let stop =
                CommandError::usage(format!("{option} is for one run: a context cannot hold it"));
            let is_cluster = option == "--cluster";
            return Err(if is_cluster {
                stop.hint("idemctl detects clusters itself")
            } else {
                stop
            });
        }
    }
    Ok(())
}

/// The URL of the server that the options name; `None` if they name no server.
fn url(connection: &ConnectionArgs) -> Result<Option<String>, CommandError> {
    let db = connection.db;
    let path = match db {
        Some(db) => format!("/{db}"),
        None => String::new(),
    };
    let url = if let Some(url) = &connection.url {
        if db.is_some() {
            return Err(CommandError::usage(
                "-n: write the database into the URL, e.g. redis://HOST:PORT/3",
            ));
        }
        url.clone()
    } else if let Some(socket) = &connection.socket {
        let socket = absolute(socket);
        // In the URL of a socket, the path names the socket, so the database is a parameter.
        match db {
            Some(db) => format!("unix://{socket}?db={db}"),
            None => format!("unix://{socket}"),
        }
    } else if let (Some(sentinels), Some(service)) = (&connection.sentinel, &connection.master_name)
    {
        format!("redis-sentinel://{sentinels}/{service}{path}")
    } else if connection.host.is_some() || connection.port.is_some() {
        let host = connection.host.as_deref().unwrap_or("127.0.0.1");
        // An IPv6 address in a URL needs brackets, because its colons would begin the port.
        let host = if host.contains(':') { format!("[{host}]") } else { host.to_owned() };
        format!("redis://{host}:{}{path}", connection.port.unwrap_or(6379))
    } else if db.is_some() {
        return Err(CommandError::usage("-n: name the server, too, e.g. -u redis://HOST:PORT/3"));
    } else {
        return Ok(None);
    };
    Target::parse(&url)
        .ok_or_else(|| CommandError::usage(format!("the server's URL: {NO_URL}")))?;
    Ok(Some(url))
}

/// The context's log-in, if the context keeps it for another server.
fn login_kept(
    before: &ContextConfig,
    url: Option<&str>,
    connection: &ConnectionArgs,
) -> Option<&'static str> {
    let now = Target::parse(url?)?;
    let then = Target::parse(before.url.as_deref()?)?;
    let is_new = connection.pass_file.is_some() || connection.password_command.is_some();
    if now.address == then.address || is_new {
        return None;
    }
    match (&before.password, &before.password_command, &before.password_file) {
        (Some(_), ..) => Some("password"),
        (None, Some(_), _) => Some("password_command"),
        (None, None, Some(_)) => Some("password_file"),
        (None, None, None) => None,
    }
}

fn of_connection(url: Option<String>, connection: &ConnectionArgs) -> Vec<SettingField> {
    let tls = &connection.tls;
    let user = connection.user.clone().map(Value::from);
    let sentinel_user = connection.sentinel_user.clone().map(Value::from);
    // A TLS table already enables TLS, so `tls = true` is written only without one.
    let tls_flag = flag(tls.tls && tls.named().is_none());
    let named: [(&[&str], Option<Value>); 15] = [
        (&["url"], url.map(Value::from)),
        (&["user"], user),
        (&["password_file"], path_value(connection.pass_file.as_deref())),
        (&["password_command"], connection.password_command.clone().map(Value::from)),
        (&["sentinel", "user"], sentinel_user),
        (&["sentinel", "password_file"], path_value(connection.sentinel_pass_file.as_deref())),
        (&["tls"], tls_flag),
        (&["tls", "cacert"], path_value(tls.cacert.as_deref())),
        (&["tls", "cacertdir"], path_value(tls.cacertdir.as_deref())),
        (&["tls", "cert"], path_value(tls.cert.as_deref())),
        (&["tls", "key"], path_value(tls.key.as_deref())),
        (&["tls", "sni"], tls.sni.clone().map(Value::from)),
        (&["tls", "insecure"], flag(tls.insecure)),
        (&["timeout"], duration_value(connection.timeout)),
        (&["connect_timeout"], duration_value(connection.connect_timeout)),
    ];
    let mut fields = Vec::new();
    for (keys, value) in named {
        if let Some(value) = value {
            fields.push((keys.iter().map(|key| (*key).to_owned()).collect(), value));
        }
    }
    fields
}

/// `true` if the option was given. An option that was not given leaves the context unchanged.
fn flag(is_given: bool) -> Option<Value> {
    if is_given { Some(Value::from(true)) } else { None }
}

fn path_value(path: Option<&Path>) -> Option<Value> {
    Some(Value::from(absolute(path?)))
}

fn duration_value(duration: Option<Duration>) -> Option<Value> {
    Some(Value::from(duration_text(duration?)))
}

/// # Errors
/// Usage: a TTL names no schema.
fn of_context(fields: &ContextArgs) -> Result<Vec<SettingField>, CommandError> {
    let mut schemas = None;
    if !fields.schema.is_empty() {
        let names: Array = fields.schema.iter().map(String::as_str).collect();
        schemas = Some(Value::from(names));
    }
    let named = [
        ("protected", fields.protected.map(Value::from)),
        ("read_only", fields.read_only.map(Value::from)),
        ("schema", schemas),
        ("schema_dir", path_value(fields.schema_dir.as_deref())),
        ("retry_window", duration_value(fields.retry_window)),
    ];
    let mut all: Vec<SettingField> = Vec::new();
    for (name, value) in named {
        if let Some(value) = value {
            all.push((vec![name.to_owned()], value));
        }
    }
    for (field, StatedTtl { schema, ttl }) in fields.ttls() {
        let Some(schema) = schema else {
            return Err(CommandError::usage("write SCHEMA=DURATION, e.g. NAME=90s"));
        };
        let ttl = if *ttl == NO_TTL { NONE.to_owned() } else { duration_text(*ttl) };
        all.push((["deployment", schema, field].map(str::to_owned).to_vec(), Value::from(ttl)));
    }
    Ok(all)
}

/// Writes a field. `Some(false)` if it already has this value; `None` if something other than a
/// table is in the way.
fn write(of_context: &mut dyn TableLike, keys: &[String], value: Value) -> Option<bool> {
    let (last, outer) = keys.split_last()?;
    let mut within = of_context;
    for (depth, key) in outer.iter().enumerate() {
        // `tls = true` is replaced by the table with the TLS settings.
        if key == "tls"
            && let Some(item) = within.get(key)
            && item.as_bool().is_some()
        {
            within.insert(key, toml_edit::Item::Table(Table::new()));
        }
        let has_fields = depth + 1 == outer.len();
        within = table(within, key, !has_fields)?;
    }
    if let Some(current) = within.get(last) {
        // `tls = true` would delete the settings of a table that already enables TLS.
        if last == "tls" && current.is_table_like() {
            return Some(false);
        }
        if let Some(current) = current.as_value()
            && content(current) == content(&value)
        {
            return Some(false);
        }
    }
    edit::set(within, last, value);
    Some(true)
}

/// A value without the surrounding spaces and comments.
fn content(value: &Value) -> String {
    let mut value = value.clone();
    value.decor_mut().clear();
    match &value {
        Value::String(text) => text.value().clone(),
        Value::Array(all) => all.iter().map(content).collect::<Vec<_>>().join("\n"),
        other => other.to_string(),
    }
}

fn duration_text(span: Duration) -> String {
    duration::exact(span).replace(' ', "")
}

/// Makes a path absolute, because relative paths in the config file refer to another folder than
/// those on the command line.
fn absolute(path: &Path) -> String {
    std::path::absolute(path).unwrap_or_else(|_| path.to_owned()).display().to_string()
}
